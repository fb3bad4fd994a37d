"""A child that does not outlive its parent.

Standard input is the link between them: when it closes, because the parent let go or died in
whatever way, the child is told to end, and killed if it does not. Run as a script, this runs
another one in that manner; it imports nothing of the package, which would bring JAX along.
"""

import os
import runpy
import signal
import sys
import threading
import time

GRACE_SECONDS = 5.0


def main() -> None:
    """Run a script with the arguments that follow."""
    threading.Thread(target=_terminate_with_input, daemon=True).start()
    runpy.run_path(sys.argv.pop(1), run_name="__main__")


def end_with_input() -> None:
    """End this process when its standard input does."""

    def watch() -> None:
        _wait_for_end_of_input()
        os._exit(0)  # files are always whole on disk, and Flower's program ends with us

    threading.Thread(target=watch, daemon=True).start()


def _terminate_with_input() -> None:
    _wait_for_end_of_input()
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE_SECONDS)
    os.kill(os.getpid(), signal.SIGKILL)


def _wait_for_end_of_input() -> None:
    while os.read(0, 1):
        pass


if __name__ == "__main__":
    main()
