"""A page that shows a run while it trains, on this machine alone.

``fedrain watch RUN`` or ``fedrain train --watch``. The server listens on the loopback, answers
nothing but the page and one small JSON text, and takes nothing in. It shows what the run has
written (:mod:`fedrain.experiment.live`): whether anybody watches makes no difference to the run.
"""

import json
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from typing import Any

from fedrain.climate.columns import check_count
from fedrain.errors import InputError
from fedrain.experiment.configuration import Named
from fedrain.experiment.held import hold
from fedrain.experiment.live import PROGRESS, reference
from fedrain.experiment.resolve import from_dict
from fedrain.experiment.results import episodes_learnt
from fedrain.io import LOCK, is_locked
from fedrain.plotting import REGIONS, style
from fedrain.reading import MIB, parse_json, read_bytes, read_json
from fedrain.tables import finite

HERE = "127.0.0.1"
MOST_PORT = 65535
SECONDS = 10.0  # that a request may take to arrive
MOST = 4 * MIB  # of what a run tells
DRAWN = ("target", "static", "limit", "model")
#: The page needs nothing from anywhere, runs no script but its own, and is in no other page.
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; "
    "script-src 'unsafe-inline'; connect-src 'self'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
HTML, JSON, TEXT = "text/html; charset=utf-8", "application/json", "text/plain; charset=utf-8"

Say = Callable[[str], None]


class Watched:
    """A run's folder, as the page is told of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.static: dict[str, Any] | None = None

    def check(self) -> None:
        """Refuse what is no run, or has nothing to tell."""
        folder = self.folder
        if not (folder / "configuration.json").is_file():
            raise InputError(f"{folder}: is not the folder of a run")
        if not (folder / PROGRESS).exists() and episodes_learnt(folder) is not None:
            raise InputError(
                f"{folder}: was trained by an earlier version, which has left nothing to watch"
            )

    def state(self) -> dict[str, Any]:
        """What the run has told last, and whether it is at work."""
        try:
            text = read_bytes(self.folder / PROGRESS, MOST).decode("utf-8")
            told = parse_json(text, PROGRESS)
        except (InputError, UnicodeDecodeError):
            told = None
        if not isinstance(told, dict):
            told = {"state": "starting"}
        if told.get("static") is None:
            told["static"] = self.static
        if told.get("state") not in ("finished", "stopped"):
            told["alive"] = is_locked(self.folder / LOCK)
        return told

    def compare(self, named: Named) -> None:
        """Play the static model, if the run has not told what it reaches."""
        with suppress(Exception):  # the page is as right without
            if self.state().get("static") is None:
                with suppress(OSError, AttributeError):
                    os.nice(19)
                configuration = from_dict(read_json(self.folder / "configuration.json"), named)
                environment = configuration.make_environment()
                seeds = tuple(configuration.seeds)
                fixed = hold(environment, environment.static_actions, seeds)
                self.static = reference(environment, fixed)


def page() -> bytes:
    """The page, whole: styles, script and colours are in it."""
    folder = files("fedrain.experiment") / "page"
    text = (folder / "watch.html").read_text("utf-8")
    colours = {key: style(key).colour for key in DRAWN}
    colours |= {f"region-{i}": one.colour for i, one in enumerate(REGIONS)}
    for name, content in {
        "/*STYLE*/": (folder / "watch.css").read_text("utf-8"),
        "/*COLOURS*/": " ".join(f"--{key}-colour: {value};" for key, value in colours.items()),
        "/*SCRIPT*/": "\n".join(
            (folder / name).read_text("utf-8") for name in ("charts.js", "watch.js")
        ),
    }.items():
        text = text.replace(name, content)
    return text.encode()


class _Handler(BaseHTTPRequestHandler):
    """Answers GET and HEAD of two paths, asked for by this machine's own names of itself.

    Each answer ends its connection, so that none outlives the server.
    """

    server: "Server"
    server_version, sys_version = "fedrain", ""
    timeout = SECONDS

    def do_GET(self) -> None:
        """The page or what the run tells."""
        if self.headers.get("Host", "") not in self.server.names:
            # Else a page from elsewhere could read this one under a name that it points here.
            self._answer(421, TEXT, b"not served under this name\n")
        elif self.path == "/":
            self._answer(200, HTML, self.server.page)
        elif self.path == "/state.json":
            told = json.dumps(finite(self.server.watched.state()), allow_nan=False)
            self._answer(200, JSON, told.encode())
        else:
            self._answer(404, TEXT, b"there is nothing here\n")

    do_HEAD = do_GET  # noqa: N815

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:  # noqa: ARG002
        """What is no GET or HEAD, or no request at all; nothing of it is repeated."""
        self._answer(405 if code == 501 else code, TEXT, b"not for this page\n")

    def _answer(self, status: int, kind: str, content: bytes) -> None:
        self.send_response(status)
        for name, value in HEADERS.items():
            self.send_header(name, value)
        if status == 405:
            self.send_header("Allow", "GET, HEAD")
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *_: Any, **__: Any) -> None:
        """Nobody is told of requests."""


class Server(ThreadingHTTPServer):
    """Serves the page of one run on the loopback.

    Args:
        folder: Of the run.
        port: 0: any that is free.
    """

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, folder: Path, port: int) -> None:
        check_port(port)
        self.watched, self.page = Watched(folder), page()
        try:
            super().__init__((HERE, port), _Handler)
        except OSError as error:
            raise InputError(
                f"--port {port}: cannot be listened on ({error.strerror}): choose another"
            ) from None
        self.names = {f"{name}:{self.server_port}" for name in (HERE, "localhost")}

    @property
    def address(self) -> str:
        """Where a browser finds the page."""
        return f"http://{HERE}:{self.server_port}/"

    def handle_error(self, *_: Any, **__: Any) -> None:
        """A browser that went away is no error to be told of."""


def check_port(port: object) -> None:
    """Refuse what is no port; 0 stands for any."""
    check_count("the port", port, 0, MOST_PORT)


def watch(
    run: str | Path,
    port: int = 0,
    env: Any = None,
    model: Any = None,
    algo: Any = None,
    say: Say = print,
) -> None:
    """Serve a page that shows a run while it trains, until it is interrupted (Ctrl-C).

    The page is there for this machine alone, and shows what the run writes: the run may end and be
    resumed, and the page be closed and opened, at any time.

    Args:
        run: Folder of the run, which may not have begun to train yet.
        port: Where to listen on 127.0.0.1; 0: any that is free.
        env: The task, if it is of your own: without it the static model is not shown.
        model: Likewise, the climate model.
        algo: Likewise, the algorithm.
        say: Told the address.
    """
    Watched(Path(run)).check()
    with Server(Path(run), port) as server:
        say(f"watch at {server.address} (Ctrl-C ends the page, not the run)")
        named = Named(env, model, algo)
        threading.Thread(target=server.watched.compare, args=(named,), daemon=True).start()
        with suppress(KeyboardInterrupt):
            server.serve_forever(poll_interval=0.5)


@contextmanager
def watched(out: Path, watch: bool, port: int, say: Say) -> Iterator[None]:
    """The page of a run of this process, for as long as it trains, if it is to be watched."""
    if not watch:
        if port:
            raise InputError("the port is that of the page: ask for it with --watch")
        yield
        return
    with Server(out, port) as server:
        say(f"watch at {server.address}")
        threading.Thread(target=server.serve_forever, args=(0.5,), daemon=True).start()
        try:
            yield
        finally:
            server.shutdown()
