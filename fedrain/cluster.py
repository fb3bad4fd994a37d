"""Pieces of work as tasks on a Ray cluster; nobody else in the package imports Ray.

A piece is a function of a module and plain arguments. It answers with plain values or the bytes of
a file, which this process, the one that was started, writes: progress and results are in one place.
A piece whose worker or node is lost begins again on another; what is finished is not touched. Ray
passes pieces and answers on with pickle, between processes of the person who runs the cluster:
whoever can reach one of its ports can run code on it (SECURITY.md).
"""

import logging
import os
import socket
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr
from pathlib import Path
from typing import Any

from fedrain.errors import FailureError, InputError, MissingExtraError

Say = Callable[[str], None]
#: Called by the piece's name with its answer, in this process.
Keep = Callable[[str, Any], None]

ENGINES = ("local", "ray")
LOOPBACK = "127.0.0.1"
LOST = 5  # times that a piece may lose its worker or node, before it counts as failed
PATIENCE = 5.0  # seconds for a port to answer
#: Read as Ray is imported: it reports its use to nobody, and leaves accelerators alone.
QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
#: Of each worker. A piece has one core, as Ray counts them.
WORKER = {**QUIET, "JAX_NUM_CPU_DEVICES": "1"}


def check_engine(engine: str, address: str | None) -> bool:
    """Whether work goes to a Ray cluster; an address for anything else is refused.

    Args:
        engine: ``local`` or ``ray``.
        address: Of the cluster, if one was given.
    """
    if engine not in ENGINES:
        raise InputError(f"there is no engine {engine!r}: use one of {', '.join(ENGINES)}")
    if address is not None and engine != "ray":
        raise InputError("--address is that of a Ray cluster: it goes with --engine ray")
    return engine == "ray"


class Cluster:
    """A cluster that is connected to, as :func:`connected` gives it.

    Args:
        ray: The module.
    """

    def __init__(self, ray: Any) -> None:
        self._ray = ray

    def run(
        self,
        work: Callable[..., Any],
        pieces: Mapping[str, tuple[Any, ...]] | Iterator[tuple[str, tuple[Any, ...]]],
        keep: Keep,
        say: Say,
        at_once: int | None = None,
    ) -> list[str]:
        """Hand out pieces and keep their answers as they come.

        Args:
            work: A function of a module that the workers can import.
            pieces: Its arguments by the name of the piece, in order of worth; an iterator is asked
                for the next one only when there is room.
            keep: Called with each answer.
            say: Called with a line of progress.
            at_once: How many may be under way; all, if it is left out.

        Returns:
            The names of those that failed, each after a line that says why.
        """
        ray = self._ray
        task = ray.remote(num_cpus=1, max_retries=LOST, retry_exceptions=False)(work)
        waiting = iter(pieces.items()) if isinstance(pieces, Mapping) else pieces
        running: dict[Any, str] = {}
        failed, done, more = list[str](), 0, True
        try:
            while True:
                while more and (at_once is None or len(running) < at_once):
                    name, arguments = next(waiting, (None, ()))
                    if name is None:
                        more = False
                    else:
                        running[task.remote(*arguments)] = name
                if not running:
                    return failed
                (ready, *_), _ = ray.wait(list(running))
                name = running.pop(ready)
                try:
                    answer = ray.get(ready)
                except (InputError, FailureError) as error:
                    failed.append(name)
                    say(f"{name}: {_cause(error)}")
                    continue
                except ray.exceptions.RayTaskError:
                    raise  # a mistake of ours, or in a file of the user's
                except ray.exceptions.RayError as error:
                    failed.append(name)
                    say(f"{name}: its worker was lost again and again ({_first_line(error)})")
                    continue
                keep(name, answer)
                done += 1
                say(f"{name}: finished, {done} so far, {len(running)} under way or waiting")
        finally:
            for one in running:
                ray.cancel(one, force=True)

    @property
    def cores(self) -> int:
        """How many pieces the cluster works on at once, as it is now."""
        return max(1, int(self._ray.cluster_resources().get("CPU", 1)))


@contextmanager
def connected(address: str | None, say: Say) -> Iterator[Cluster]:
    """A connection to a cluster, or a cluster of this machine's own for as long as it lasts.

    Args:
        address: ``10.0.0.1:6379``, ``auto`` for the one that this machine is a node of, or None:
            a new one on the loopback interface.
        say: Called with a line of progress.
    """
    os.environ.update(QUIET)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Ray's
            import ray
    except ModuleNotFoundError:
        raise MissingExtraError("ray", "ray") from None
    own: dict[str, Any] = {"include_dashboard": False, "_node_ip_address": LOOPBACK}
    if address is not None:
        _check_address(address)
        own = {}
    try:
        with warnings.catch_warnings(), Path(os.devnull).open("w") as nowhere:
            warnings.simplefilter("ignore")
            with redirect_stderr(nowhere):
                ray.init(
                    address="local" if address is None else address,
                    log_to_driver=False,
                    logging_level=logging.CRITICAL,
                    runtime_env={"env_vars": WORKER},
                    **own,
                )
    except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
        raise InputError(
            f"{address or 'Ray'}: no cluster that can be used ({_first_line(error)})"
        ) from None
    try:
        cluster = Cluster(ray)
        nodes = sum(node["Alive"] for node in ray.nodes())
        say(f"Ray: {nodes} nodes with {cluster.cores} cores")
        yield cluster
    finally:
        ray.shutdown()


def _check_address(address: str) -> None:
    """Refuse at once what Ray would try for a minute."""
    where = address.removeprefix("ray://")
    if where in ("auto", "local"):
        return
    machine, _, port = where.rpartition(":")
    if not machine or not port.isdigit() or not 0 < int(port) < 65536:
        raise InputError(f"{address}: a cluster's address is machine:port, or auto")
    begin = time.monotonic()
    try:
        with socket.create_connection((machine.strip("[]"), int(port)), PATIENCE):
            pass
    except OSError as error:
        waited = f" after {PATIENCE:g} s" if time.monotonic() - begin >= PATIENCE else ""
        reason = error.strerror or "no answer"
        raise InputError(f"{address}: no Ray cluster answers there{waited} ({reason})") from None


def _cause(error: BaseException) -> str:
    """What a task's own error says, without Ray's account of where it was."""
    return _first_line(getattr(error, "cause", None) or error)


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
