"""A child that does not outlive its parent.

Standard input is the link between them: when it closes, because the parent let go or died in
whatever way, the child is asked to end, and killed if it does not. Run as a script, this runs
another one in that manner, or removes a folder once its parent has ended; it imports nothing of the
package, which would bring JAX along.
"""

import os
import runpy
import shutil
import signal
import sys
import threading
import time

GRACE_SECONDS = 5.0
LAST_SECONDS = 2 * GRACE_SECONDS


def main() -> None:
    """Run a script with the arguments that follow, or remove a folder."""
    if sys.argv[1] == "--remove":
        remove_with_input(sys.argv[2])
        return
    threading.Thread(target=_terminate_with_input, daemon=True).start()
    runpy.run_path(sys.argv.pop(1), run_name="__main__")


def remove_with_input(folder: str) -> None:
    """Remove a folder when standard input ends.

    A line says that all who wrote there have ended. Without one the parent has died: then others
    may write for as long as they have to end, and the folder is removed again.
    """
    for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # meant for the parent
        signal.signal(one, signal.SIG_IGN)
    all_ended = os.read(0, 1)
    end = time.monotonic() + (0 if all_ended else LAST_SECONDS)
    shutil.rmtree(folder, ignore_errors=True)
    while time.monotonic() < end:
        time.sleep(0.5)
        shutil.rmtree(folder, ignore_errors=True)


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
