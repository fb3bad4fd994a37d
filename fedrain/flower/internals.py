"""Everything that is taken from Flower's inside, which Flower may change with any release.

All other files of the package use ``flwr.app``, ``flwr.clientapp``, ``flwr.serverapp`` and
``flwr.simulation`` only. Known to work with Flower 1.41 and 1.42;
``tests/flower/test_internals.py`` names what a new release no longer has.

Two things need it. Flower would start a new process for every message and run in it whatever code
the message's run brings along. Here the process that asks for a task does it, with the apps of this
package and no others, and with its memory and its compiled code at hand: code never travels. And a
SuperLink of ours listens to other machines as nodes only.

Run as a script, this file is one of Flower's programs. So it imports nothing of the package, which
would bring JAX along.
"""

import hashlib
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import httpx
from cryptography.hazmat.primitives.asymmetric import ec
from flwr.app import Context, Error, Message
from flwr.cli.build import build_fab_from_files
from flwr.clientapp import ClientApp
from flwr.common.constant import ErrorCode, SubStatus
from flwr.common.serde import context_from_proto, fab_to_proto, run_from_proto
from flwr.proto.control_pb2 import RegisterNodeRequest, StartRunRequest
from flwr.proto.runtime_pb2 import (
    AcquireTaskRequest,
    PullTaskInputRequest,
    SendTaskHeartbeatRequest,
)
from flwr.serverapp import ServerApp
from flwr.supercore.constant import TaskType
from flwr.supercore.control import ControlHttpClient
from flwr.supercore.fab import Fab
from flwr.supercore.heartbeat import HeartbeatSender
from flwr.supercore.interceptors import (
    RuntimeTokenHttpInterceptor,
    RuntimeVersionHttpInterceptor,
    SuperExecAuthHttpInterceptor,
)
from flwr.supercore.primitives.asymmetric import public_key_to_bytes
from flwr.supercore.retry import RetryInvoker, constant
from flwr.supercore.run import Run as FlowerRun
from flwr.supercore.runtime import RuntimeHttpClient
from flwr.supercore.task_identity import TaskIdentity
from flwr.superlink import extensions
from flwr.superlink.cli import flower_superlink
from flwr.superlink.grid import HttpGrid
from flwr.supernode.cli import flower_supernode
from flwr.supernode.runtime.run_clientapp import pull_task_input, push_message, push_task_output
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse

__all__ = [
    "ERRORS",
    "POLL_SECONDS",
    "FlowerRun",
    "NodesOnly",
    "Runtime",
    "identify",
    "listen_to_nodes_only",
    "run_server_app",
    "serve_client_app",
]

#: What Flower's programs write when they give up, and what it means here.
ERRORS = {
    "address already in use": "another program listens on that port",
    "[code: 2004]": "the server does not know this key, or another node uses it",
    "401 Unauthorized": "the server has forgotten this node",
    "CERTIFICATE_VERIFY_FAILED": "the server's certificate is not signed by our authority",
}
#: Requests that a SuperLink accepts from other machines. Commands and executors run on its own.
OPEN_TO_ALL = "/v1/fleet/"
POLL_SECONDS = 0.2
RESEND_SECONDS = 10.0  # without a reply; sending again costs little


@dataclass(frozen=True)
class Runtime:
    """A SuperLink or SuperNode of this machine."""

    address: str
    secret: bytes
    authority: bytes | None  # certificate; None: without TLS, on this machine only

    def client(self, interceptor: Any) -> RuntimeHttpClient:
        """A connection for tasks."""
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

    def register_node(self, key: ec.EllipticCurvePublicKey) -> int:
        """Let the node with this key in; Flower's number for it."""
        with self._control() as control:
            data = public_key_to_bytes(key)
            return int(control.RegisterNode(RegisterNodeRequest(public_key=data)).node_id)

    def start_run(self, bundle: str) -> None:
        """Start one of Flower's runs, whose server app this process then acquires.

        Flower wants a bundle with it: the text of its ``pyproject.toml``, and here no code.
        """
        content, _ = build_fab_from_files({"pyproject.toml": bundle.encode()})
        fab = Fab(hashlib.sha256(content).hexdigest(), content, {})
        with self._control() as control:
            control.StartRun(StartRunRequest(fab=fab_to_proto(fab)))

    @contextmanager
    def _control(self) -> Iterator[ControlHttpClient]:
        client = ControlHttpClient.from_server_address(
            server_address=self.address,
            insecure=self.authority is None,
            root_certificates=self.authority,
            interceptors=[RuntimeVersionHttpInterceptor(component_name="fedrain")],
        )
        try:
            yield client
        finally:
            client.close()


class PromptNetwork(HttpGrid):
    """Flower's network, asking for replies more often than every three seconds.

    It speaks to a program of this machine: if that does not answer, it has ended.
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
        """Send, and wait for the replies that come in time.

        Flower drops a message, or the reply to it, when the connection breaks while it is on its
        way. So what is not answered is sent again, and again after twice as long: a region plays a
        round once, and answers the second request from memory.
        """
        messages = list(messages)
        sent = zip(self.push_messages(messages), messages, strict=True)
        waiting = {name: message for name, message in sent if name is not None}
        first = {name: name for name in waiting}  # of what each message is a copy
        begin = time.monotonic()
        end = begin + (float("inf") if timeout is None else timeout)
        pause = RESEND_SECONDS
        again = begin + pause
        replies: list[Message] = []
        while waiting and (now := time.monotonic()) < end:
            if now > again:
                pause *= 2
                again = now + pause
                copies = [_copy(message) for message in waiting.values()]
                pushed = zip(self.push_messages(copies), list(waiting), strict=True)
                first |= {name: one for name, one in pushed if name is not None}
            for reply in self.pull_messages([n for n, one in first.items() if one in waiting]):
                name = first[reply.metadata.reply_to_message_id]
                if waiting.pop(name, None) is not None:
                    reply.metadata.__dict__["_reply_to_message_id"] = name
                    replies.append(reply)
            if waiting:
                time.sleep(POLL_SECONDS)
        return replies


def _copy(message: Message) -> Message:
    """The same to the same node, under a name of its own."""
    metadata = message.metadata
    return Message(
        content=message.content,
        message_type=metadata.message_type,
        dst_node_id=metadata.dst_node_id,
        group_id=metadata.group_id,
    )


def identify(task: int, run: int, node: int) -> None:
    """Set in whose name this process sends messages, as Flower's engines do for their apps."""
    TaskIdentity.task_id, TaskIdentity.run_id, TaskIdentity.node_id = task, run, node


def run_server_app(runtime: Runtime, app: ServerApp, wanted: Callable[[], bool]) -> None:
    """Do the task of one of Flower's runs: be its server."""
    token = runtime.acquire(TaskType.SERVER_APP, wanted)
    if token is None:
        return
    network = PromptNetwork(runtime, token)
    client = network._runtime_client
    with _heartbeat(client):
        task = client.PullTaskInput(PullTaskInputRequest())
        identify(task.task_id, task.run.run_id, task.context.node_id)
        context = context_from_proto(task.context)
        network.set_run(run_from_proto(task.run))
        status, details = SubStatus.FAILED, "the server app did not finish"
        try:
            app(network, context)
            status, details = SubStatus.COMPLETED, ""
        finally:
            push_task_output(client, None, status, details)
            network.close()


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
    """Report in the background that the task is being worked on.

    Flower's own heartbeat would interrupt the process once the task is no longer known. Here the
    work continues: what was learnt is kept, and the server asks again.
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


class NodesOnly:
    """Other machines are listened to as nodes, and as nothing else."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Refuse, or pass on."""
        app = self.app
        if scope["type"] == "http" and not scope["path"].startswith(OPEN_TO_ALL):
            machine = (scope.get("client") or ("nobody",))[0]
            if machine not in ("127.0.0.1", "::1"):
                app = PlainTextResponse("accepted from the server's own machine only", 403)
        await app(scope, receive, send)


def listen_to_nodes_only() -> None:
    """Close a SuperLink of this process to all but nodes.

    Without this, whoever reaches the port could register nodes and start runs.
    """
    extensions.get_middleware = lambda: (Middleware(NodesOnly),)


def main() -> None:
    """Be ``superlink`` or ``supernode``, with the arguments that follow."""
    if sys.argv.pop(1) == "superlink":
        listen_to_nodes_only()
        flower_superlink()
    else:
        flower_supernode()


if __name__ == "__main__":
    main()
