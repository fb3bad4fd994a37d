"""The page that shows a run while it trains, and the server that is all that it needs."""

import base64
import http.client
import json
import re
import socket
import threading
from contextlib import contextmanager

import numpy as np
import pytest

from fedrain.cli import main
from fedrain.errors import InputError
from fedrain.experiment import configure, live, train, watch
from fedrain.experiment.course import read_course
from fedrain.experiment.live import PROGRESS, Live, packed
from fedrain.experiment.watching import Server, Watched, page
from fedrain.io import alone_in
from fedrain.plotting import style
from tests.experiment.small import SMALL, small_preset


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("watched")
    said = []
    configuration = configure(preset=small_preset(folder), agents=3, seeds=2, episodes=6, **SMALL)
    run = train(configuration, folder / "run", figures=False, watch=True, say=said.append)
    assert re.match(r"watch at http://127\.0\.0\.1:\d+/$", said[0])
    return run


@contextmanager
def served(folder):
    with Server(folder, 0) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield server
        finally:
            server.shutdown()


def ask(server, path="/", method="GET", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    try:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer, answer.read()
    finally:
        connection.close()


def test_what_a_run_tells(run):
    """Every number again, from the files of the run."""
    told = json.loads((run.folder / PROGRESS).read_text("utf-8"))
    environment = run.configuration.make_environment()
    assert (told["state"], told["episode"], told["episodes"]) == ("finished", 6, 6)
    assert told["every"] == 5
    assert told["regions"] == ["90°S to 30°S", "30°S to 30°N", "30°N to 90°N"]
    returns = run.returns.returns.transpose("episode", "agent", "seed").values
    np.testing.assert_allclose(told["returns"], returns.mean(2), rtol=1e-4)
    course = read_course(run.folder, run.configuration, "weights.safetensors")
    target = environment.params.target["surface_temperature"]
    error = course.surface_temperature.values - target  # episode, seed, lat
    weights = np.cos(np.deg2rad(course.lat.values))
    square = (error**2 * weights).reshape(6, 2, 3, 4).sum(-1) / weights.reshape(3, 4).sum(-1)
    np.testing.assert_allclose(told["errors"], np.sqrt(square).mean(1), rtol=1e-4)
    whole = np.sqrt((error**2 @ weights) / weights.sum()).mean(1)
    np.testing.assert_allclose(told["globe"], whole, rtol=1e-4)
    np.testing.assert_allclose(told["profile"], course.surface_temperature[-1].mean("seed"), 1e-4)
    np.testing.assert_allclose(told["parameters"]["A"], course.A[-1].mean("seed"), rtol=1e-4)
    np.testing.assert_allclose(told["traces"]["D"], course.D.mean("seed"), rtol=1e-4)
    np.testing.assert_allclose(told["static"]["returns"], run.static.returns.mean(0), rtol=1e-4)
    fixed = run.static.fields["surface_temperature"][:, -1]
    np.testing.assert_allclose(told["static"]["profile"], fixed.mean(0), rtol=1e-4)
    square = ((fixed - target) ** 2 * weights).reshape(2, 3, 4).sum(-1)
    square /= weights.reshape(3, 4).sum(-1)
    np.testing.assert_allclose(told["static"]["errors"], np.sqrt(square).mean(0), rtol=1e-4)
    cells = np.frombuffer(base64.b64decode(told["history"]["cells"]), np.uint8).reshape(12, 6)
    unpacked = (cells.astype(float) - 128) / 127 * told["history"]["largest"]
    shown = np.clip(error.mean(1).T, -told["history"]["largest"], told["history"]["largest"])
    np.testing.assert_allclose(unpacked, shown, atol=told["history"]["largest"] / 250)


def test_static_model_is_played_once(run):
    """What the page is compared with is what figures need at the end."""
    assert "static" in run.__dict__


def test_packed_errors():
    found = packed(np.array([[0.0, 1.0], [-1.0, np.nan]]))
    assert base64.b64decode(found["cells"]) == bytes([128, 255, 1, 0])
    assert (found["rows"], found["columns"], found["largest"]) == (2, 2, 1.0)


def test_no_more_than_once_a_second(tmp_path, monkeypatch):
    configuration = configure(episodes=100, **SMALL)
    told = Live(configuration, tmp_path)
    history = {"returns": np.ones((100, 1, 6)), "seconds": np.ones(100)}
    now = [100.0]
    monkeypatch.setattr(live.time, "monotonic", lambda: now[0])
    written = []
    monkeypatch.setattr(live, "write_whole", lambda *_, **__: written.append(now[0]))
    for episode in range(1, 101):
        now[0] += 0.1
        told.tell(episode, history)
    assert min(np.diff(written[:-1])) >= 1
    assert len(written) <= 12


def test_a_run_does_not_fail_because_it_cannot_tell(tmp_path):
    configuration = configure(preset=small_preset(tmp_path), agents=3, episodes=2, **SMALL)
    (tmp_path / "run" / PROGRESS).mkdir(parents=True)
    told = Live(configuration, tmp_path / "run")
    told.tell(1, {"returns": np.zeros((1, 1))})
    told.write("finished")


def test_server_answers_two_paths_and_nothing_else(run):
    with served(run.folder) as server:
        assert server.server_address[0] == "127.0.0.1"
        answer, text = ask(server)
        assert (answer.status, answer.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        assert text == page()
        answer, text = ask(server, "/state.json")
        assert answer.status == 200
        assert json.loads(text)["episode"] == 6
        answer, text = ask(server, "/state.json", "HEAD")
        assert (answer.status, text) == (200, b"")
        assert int(answer.headers["Content-Length"]) > 100
        for path in (
            "/configuration.json", "/../configuration.json", "/%2e%2e/configuration.json",
            "/state.json?x", "/index.html", "/state.json/", "/..%5cstate.json",
        ):  # fmt: skip
            assert ask(server, path)[0].status == 404, path
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"):
            assert ask(server, "/", method)[0].status == 405, method


@pytest.mark.parametrize("host", ["elsewhere.example", "127.0.0.1", "127.0.0.1:1", "", "localhost"])
def test_server_answers_under_its_own_names_only(run, host):
    """A page from elsewhere whose name leads here is told nothing."""
    with served(run.folder) as server:
        answer, text = ask(server, "/state.json", Host=host)
        assert answer.status == 421
        assert b"episode" not in text
        assert ask(server, Host=f"localhost:{server.server_port}")[0].status == 200


def test_what_is_no_request_is_answered_and_the_server_goes_on(run):
    with served(run.folder) as server:
        for text in (b"nonsense\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"G" * 70000, b""):
            with socket.create_connection(("127.0.0.1", server.server_port), timeout=10) as one:
                one.sendall(text)
                one.shutdown(socket.SHUT_WR)
                assert b"Traceback" not in one.recv(1000)
        assert ask(server)[0].status == 200


def test_a_run_that_is_at_work_or_was_killed(run, tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "configuration.json").write_text("{}")
    watched = Watched(folder)
    watched.check()
    assert watched.state() == {"state": "starting", "static": None, "alive": False}
    told = json.loads((run.folder / PROGRESS).read_text("utf-8")) | {"state": "training"}
    (folder / PROGRESS).write_text(json.dumps(told))
    with alone_in(folder):
        assert watched.state()["alive"] is True
    assert watched.state()["alive"] is False
    for damaged in ("", "{", "[1]", "\x00", "[" * 100000, '{"episode": 1e400}'):
        (folder / PROGRESS).write_text(damaged)
        with served(folder) as server:
            answer, text = ask(server, "/state.json")
            assert answer.status == 200
            json.loads(text, parse_constant=pytest.fail)


def test_the_page_needs_nothing_else():
    text = page().decode("utf-8")
    assert not re.search(r"/\*[A-Z]+\*/", text)
    assert re.findall(r"https?://[^\"' )]+", text) == ["http://www.w3.org/2000/svg"]
    assert "innerHTML" not in text
    assert not re.search(r"src=|url\(|@import|eval\(", text)
    for key in ("target", "static", "limit", "model"):
        assert f"--{key}-colour: {style(key).colour};" in text
    defined = set(re.findall(r"(--[a-z0-9-]+):", text))
    assert set(re.findall(r"var\((--[a-z0-9-]+)\)", text)) <= defined


def test_one_line(run, tmp_path, capsys):
    def refused(*arguments):
        assert main(list(arguments)) == 2
        told = capsys.readouterr().err
        assert told.count("\n") == 1
        return told

    assert "is not the folder of a run" in refused("watch", str(tmp_path))
    assert "the port is at most 65535" in refused("watch", str(run.folder), "--port", "65536")
    assert "the port must be an integer from 0" in refused("watch", str(run.folder), "--port", "-1")
    with Server(run.folder, 0) as server:
        port = str(server.server_port)
        assert "cannot be listened on" in refused("watch", str(run.folder), "--port", port)
        assert "cannot be listened on" in refused(
            "train", "--watch", "--port", port, "--out", str(tmp_path / "new")
        )
    assert not (tmp_path / "new").exists()
    assert "ask for it with --watch" in refused(
        "train", "--port", "9", "--out", str(tmp_path / "n")
    )
    (run.folder / PROGRESS).rename(tmp_path / PROGRESS)
    try:
        with pytest.raises(InputError, match="has left nothing to watch"):
            watch(run.folder)
    finally:
        (tmp_path / PROGRESS).rename(run.folder / PROGRESS)


def test_a_run_is_what_it_is_whether_it_is_watched(run, tmp_path):
    alone = train(run.configuration, tmp_path / "alone", figures=False)
    np.testing.assert_array_equal(alone.returns.returns, run.returns.returns)
    assert alone.results.identical(run.results)
