"""The page of a run in a real browser, while the run trains."""

import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import pytest

from fedrain.experiment.live import PROGRESS
from fedrain.experiment.watching import Server
from tests.experiment.small import SMALL, small_preset
from tests.paper.test_report import WIDTHS, opened, wait_for

pytestmark = pytest.mark.slow
EPISODES = 60
#: Each episode takes a while, as it does where people watch.
CODE = f"""
import sys, time
from fedrain import train
preset, out, resume = sys.argv[1:]
train(
    agents=3, seeds=2, episodes={EPISODES}, preset=preset, out=out, resume=resume == "resume",
    on_episode=lambda _: time.sleep(0.3), figures=False, **{SMALL},
)
"""


@pytest.fixture
def started(tmp_path):
    """A run that trains in a process of its own, and a way to start it again."""
    preset, out, processes = small_preset(tmp_path), tmp_path / "run", []

    def start(how="new"):
        command = [sys.executable, "-c", CODE, str(preset), str(out), how]
        processes.append(subprocess.Popen(command, stdout=subprocess.DEVNULL))
        return processes[-1]

    yield out, start
    for process in processes:
        process.kill()
        process.wait()


@contextmanager
def served(folder, port=0):
    with Server(folder, port) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield server
        finally:
            server.shutdown()


def wait_until(condition, seconds=300):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.2)


class Address(str):
    """What `opened` is given in place of a file."""

    def as_uri(self):
        return str(self)


def shown(page):
    script = """
        const text = (id) => document.getElementById(id).innerText;
        return {
            state: text("state"), figures: text("figures"), episode: +document.body.dataset.episode,
            curve: document.querySelector("#returns path:last-of-type")?.getAttribute("d"),
            profile: document.querySelector("#profile path:last-of-type")?.getAttribute("d"),
            regions: [...document.querySelectorAll("#regions td b")].map((one) => one.textContent),
            labels: [...document.querySelectorAll(".chart")].filter((one) => one.clientHeight)
                .map((one) => one.getAttribute("aria-label")),
            wide: document.documentElement.scrollWidth <= innerWidth,
        };
    """
    return page.execute_script(script)


@pytest.mark.parametrize("size", WIDTHS)
def test_a_training_is_watched(started, size):
    out, start = started
    process = start()
    wait_until((out / "configuration.json").exists)
    with served(out) as server, opened(Address(server.address), *WIDTHS[size]) as page:
        from selenium.webdriver.support.ui import WebDriverWait

        def until(condition, seconds=120):
            WebDriverWait(page, seconds).until(lambda _: condition())

        until(lambda: shown(page)["episode"] >= 2)
        before = shown(page)
        assert before["state"] == "training"
        assert before["wide"]
        assert len(before["regions"]) == 3
        until(lambda: shown(page)["episode"] >= before["episode"] + 3)
        after = shown(page)
        for what in ("figures", "curve", "profile", "regions"):
            assert after[what] != before[what], what
        assert re.search(r"Time left\n\d+:\d\d\n", after["figures"])
        assert all(label and len(label) > 20 for label in after["labels"])

        # The run is killed, and resumed.
        process.send_signal(signal.SIGKILL)
        process.wait()
        until(lambda: shown(page)["state"] == "interrupted")
        assert shown(page)["episode"] >= after["episode"]
        start("resume")
        until(lambda: shown(page)["state"] == "training")
        first = shown(page)["episode"]
        until(lambda: shown(page)["episode"] > first)

        # The page is closed and opened.
        page.refresh()
        until(lambda: shown(page)["episode"] > first)

        # And it sees the end.
        until(lambda: shown(page)["state"] == "finished")
        assert shown(page)["episode"] == EPISODES
        assert shown(page)["wide"]
    assert (out / PROGRESS).exists()


def test_the_page_comes_back_with_its_server(started):
    out, start = started
    start()
    wait_until((out / "configuration.json").exists)
    with served(out) as server:
        port = server.server_port
        with opened(Address(server.address)) as page:
            wait_for(page, lambda: shown(page)["state"] in ("compiling", "training", "starting"))
            server.shutdown()
            server.server_close()
            wait_for(page, lambda: shown(page)["state"] == "no connection")
            with served(out, port):
                wait_for(page, lambda: shown(page)["state"] != "no connection")
            page.get_log("browser")  # the browser itself tells of the connection that was refused
