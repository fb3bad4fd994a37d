"""The keys of a rehearsal do not outlive it, in whatever way it ends."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

#: What a rehearsal does with its keys, without the rehearsal.
CODE = """
import sys, time
from fedrain.flower.deployment import temporary_folder
with temporary_folder() as folder:
    (folder / "keys").mkdir()
    (folder / "keys" / "authority.key").write_text("secret")
    print(folder, flush=True)
    time.sleep(60 if sys.argv[1] == "stay" else 0)
"""


@pytest.mark.parametrize("end", [None, signal.SIGKILL, signal.SIGTERM])
def test_keys_are_gone(end):
    command = [sys.executable, "-c", CODE, "stay" if end else "go"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with process:
        folder = Path(process.stdout.readline().strip())
        assert folder.name.startswith("fedrain-")
        if end:
            assert (folder / "keys" / "authority.key").exists()
            process.send_signal(end)
        process.wait(30)
    end = time.monotonic() + 20
    while folder.exists() and time.monotonic() < end:
        time.sleep(0.05)
    assert not folder.exists()
