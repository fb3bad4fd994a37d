"""One of Flower's programs, as a child that does not outlive its parent.

Run as a script, so that it imports neither JAX nor the rest of the package. Standard input is the
leash: when it closes, because the parent let go or died in whatever way, the program is told to
end, and made to if it does not.
"""

import os
import signal
import sys
import threading
import time
from typing import Any

GRACE_SECONDS = 5.0
#: What a SuperLink takes from other machines. Commands and executors come from its own.
OPEN_TO_ALL = "/v1/fleet/"


def main() -> None:
    """Run ``superlink`` or ``supernode`` with the arguments that follow."""
    threading.Thread(target=_hold, daemon=True).start()
    program = sys.argv.pop(1)
    if program == "superlink":
        _superlink()
    else:
        from flwr.supernode.cli import flower_supernode

        flower_supernode()


def wait_for_end_of_input() -> None:
    """Until the parent lets go, or dies."""
    while os.read(0, 1):
        pass


def _hold() -> None:
    wait_for_end_of_input()
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE_SECONDS)
    os.kill(os.getpid(), signal.SIGKILL)


def _superlink() -> None:
    from flwr.superlink import extensions
    from flwr.superlink.cli import flower_superlink
    from starlette.middleware import Middleware

    # Without this, whoever reaches the port could register nodes and start runs.
    extensions.get_middleware = lambda: (Middleware(NodesOnly),)
    flower_superlink()


class NodesOnly:
    """Other machines are heard as nodes, and as nothing else."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Refuse, or pass on."""
        from starlette.responses import PlainTextResponse

        app = self.app
        if scope["type"] == "http" and not scope["path"].startswith(OPEN_TO_ALL):
            host = (scope.get("client") or ("nobody",))[0]
            if host not in ("127.0.0.1", "::1"):
                app = PlainTextResponse("taken from the machine of the server only", 403)
        await app(scope, receive, send)


if __name__ == "__main__":
    main()
