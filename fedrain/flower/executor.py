"""Flower's tasks, done in this process.

Flower would start a new process for every message and run in it whatever code the run brings along.
Here the process that asks for the task does it: with the apps of this package and no others, and
with its memory and its compiled code at hand. Code never travels.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import httpx
from flwr.app import Context, Message
from flwr.app.error import Error
from flwr.clientapp import ClientApp
from flwr.common.constant import ErrorCode, SubStatus
from flwr.common.serde import context_from_proto, run_from_proto
from flwr.proto.runtime_pb2 import (
    AcquireTaskRequest,
    PullTaskInputRequest,
    SendTaskHeartbeatRequest,
)
from flwr.serverapp import ServerApp
from flwr.supercore.constant import TaskType
from flwr.supercore.heartbeat import HeartbeatSender
from flwr.supercore.interceptors import (
    RuntimeTokenHttpInterceptor,
    RuntimeVersionHttpInterceptor,
    SuperExecAuthHttpInterceptor,
)
from flwr.supercore.retry import RetryInvoker, constant
from flwr.supercore.runtime import RuntimeHttpClient
from flwr.supercore.task_identity import TaskIdentity
from flwr.superlink.grid import HttpGrid
from flwr.supernode.runtime.run_clientapp import pull_task_input, push_message, push_task_output

POLL_SECONDS = 0.2


@dataclass(frozen=True)
class Runtime:
    """A SuperLink or SuperNode of this machine that has tasks to give."""

    address: str
    secret: bytes
    authority: bytes | None  # certificate; None: without TLS, on this machine only

    def client(self, interceptor: Any) -> RuntimeHttpClient:
        """A connection."""
        return RuntimeHttpClient.from_server_address(
            server_address=self.address,
            insecure=self.authority is None,
            root_certificates=self.authority,
            interceptors=[RuntimeVersionHttpInterceptor(component_name="fedrain"), interceptor],
        )

    def acquire(self, kind: TaskType, wanted: Callable[[], bool]) -> str | None:
        """Wait for a task, and get the token for it; None once it is no longer wanted."""
        signed = SuperExecAuthHttpInterceptor(
            master_secret=self.secret,
            protected_methods=frozenset({"/flwr.proto.Runtime/AcquireTask"}),
        )
        client = self.client(signed)
        try:
            while wanted():
                try:
                    answer = client.AcquireTask(AcquireTaskRequest(supported_task_types=[kind]))
                except httpx.TransportError:  # not there yet, or gone
                    answer = None
                if answer is not None and answer.HasField("task") and answer.token:
                    return str(answer.token)
                time.sleep(POLL_SECONDS)
            return None
        finally:
            client.close()


class PromptGrid(HttpGrid):
    """Flower's grid, asking for replies more often than every three seconds.

    It speaks to a program of this machine: where that does not answer, it has ended.
    """

    def __init__(self, runtime: Runtime, token: str) -> None:
        insecure = runtime.authority is None
        super().__init__(runtime.address, insecure, runtime.authority, token=token)
        self._retry_invoker = RetryInvoker(
            lambda: constant(0.5), httpx.TransportError, max_tries=10, max_time=None
        )

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Iterable[Message]:
        """Send, and wait for the replies that come in time."""
        waiting = set(self.push_messages(messages))
        end = time.monotonic() + (float("inf") if timeout is None else timeout)
        replies: list[Message] = []
        while waiting and time.monotonic() < end:
            new = list(self.pull_messages(waiting))
            replies += new
            waiting -= {reply.metadata.reply_to_message_id for reply in new}
            if waiting:
                time.sleep(POLL_SECONDS)
        return replies


def run_server_app(runtime: Runtime, app: ServerApp, wanted: Callable[[], bool]) -> None:
    """Do the task of a run: be its server."""
    token = runtime.acquire(TaskType.SERVER_APP, wanted)
    if token is None:
        return
    grid = PromptGrid(runtime, token)
    client = grid._runtime_client
    with _heartbeat(client):
        task = client.PullTaskInput(PullTaskInputRequest())
        TaskIdentity.task_id, TaskIdentity.run_id = task.task_id, task.run.run_id
        TaskIdentity.node_id = task.context.node_id
        context = context_from_proto(task.context)
        grid.set_run(run_from_proto(task.run))
        status, details = SubStatus.FAILED, "the server app did not finish"
        try:
            app(grid, context)
            status, details = SubStatus.COMPLETED, ""
        finally:
            push_task_output(client, None, status, details)
            grid.close()


def serve_client_app(
    runtime: Runtime,
    app: Callable[[Message, Context], Message] | ClientApp,
    wanted: Callable[[], bool],
) -> None:
    """Answer messages, one after the other, while it is wanted."""
    while (token := runtime.acquire(TaskType.CLIENT_APP, wanted)) is not None:
        client = runtime.client(RuntimeTokenHttpInterceptor(token))
        try:
            with _heartbeat(client):
                message, context, *_ = pull_task_input(client)
                status, details = SubStatus.COMPLETED, ""
                try:
                    reply = app(message, context)
                except Exception as error:
                    status, details = SubStatus.FAILED, str(error)
                    code = ErrorCode.CLIENT_APP_RAISED_EXCEPTION
                    reply = Message(Error(code=code, reason=details), reply_to=message)
                push_message(client, reply, context)
                push_task_output(client, context, status, details)
        except httpx.HTTPError:
            continue  # the node's program has gone in the meantime: the server asks again
        finally:
            client.close()


@contextmanager
def _heartbeat(client: RuntimeHttpClient) -> Iterator[None]:
    """Say that we are at it, in the background.

    Flower's own would interrupt the process where the task is no longer known. Here the work goes
    on: what was learnt is kept, and the server asks again.
    """

    def beat() -> bool:
        with suppress(httpx.HTTPError):
            client.SendTaskHeartbeat(SendTaskHeartbeatRequest())
        return True

    sender = HeartbeatSender(beat)
    sender.start()
    try:
        yield
    finally:
        if sender.is_running:
            sender.stop()
