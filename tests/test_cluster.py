"""Work on a Ray cluster: what is handed out, what is kept, and what is lost on the way."""

import ast
import os
import shutil
import socket
import subprocess
import sys
import time
import types
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import fedrain
from fedrain import cluster as clusters
from fedrain.cli import main
from fedrain.errors import FailureError, InputError, MissingExtraError
from fedrain.paper import Store, cells, run_missing, run_on_cluster, slurm_script

PACKAGE = Path(fedrain.__file__).parent
RESULTS = PACKAGE.parent / "results" / "paper"


# ------------------------------------------------------------------ without a cluster


class FakeRay:
    """Ray in one process: tasks are done when they are waited for, the latest one first."""

    class exceptions:  # noqa: N801
        RayError = type("RayError", (Exception,), {})
        RayTaskError = type("RayTaskError", (RayError,), {})

    def __init__(self):
        self.most, self.under_way, self.cancelled = 0, [], []

    def remote(self, **options):
        self.options = options

        def of(work):
            def start(*arguments):
                self.under_way.append(lambda: work(*arguments))
                self.most = max(self.most, len(self.under_way))
                return self.under_way[-1]

            return types.SimpleNamespace(remote=start)

        return of

    def wait(self, tasks):
        return [tasks[-1]], tasks[:-1]

    def get(self, task):
        self.under_way.remove(task)
        return task()

    def cancel(self, task, force):
        assert force
        self.cancelled.append(task)


def work(number):
    if number == 2:
        raise InputError("not two")
    if number == 3:
        raise FakeRay.exceptions.RayError("the node is gone\nand more of it")
    if number == 4:
        raise FakeRay.exceptions.RayTaskError("a mistake")
    return number * number


def test_answers_are_kept_by_name_as_they_come():
    ray, kept, said = FakeRay(), {}, []
    pieces = {f"piece {n}": (n,) for n in (0, 1, 2, 3, 5)}
    failed = clusters.Cluster(ray).run(work, pieces, kept.__setitem__, said.append)
    assert kept == {"piece 5": 25, "piece 1": 1, "piece 0": 0}
    assert failed == ["piece 3", "piece 2"]
    assert "piece 2: not two" in said
    assert "piece 3: its worker was lost again and again (the node is gone)" in said
    assert said[-1] == "piece 0: finished, 3 so far, 0 under way or waiting"
    assert ray.options == {"num_cpus": 1, "max_retries": clusters.LOST, "retry_exceptions": False}
    assert ray.most == 5


def test_no_more_are_under_way_than_asked_and_the_next_is_made_when_there_is_room():
    ray, kept, made = FakeRay(), [], []

    def ask():
        for n in (0, 1, 5, 6, 7):
            made.append((n, len(kept)))
            yield str(n), (n,)

    clusters.Cluster(ray).run(work, ask(), lambda *one: kept.append(one), lambda _: None, at_once=2)
    assert ray.most == 2
    assert made == [(0, 0), (1, 0), (5, 1), (6, 2), (7, 3)]
    assert len(kept) == 5


def test_a_mistake_ends_all_that_is_under_way():
    ray = FakeRay()
    with pytest.raises(FakeRay.exceptions.RayTaskError, match="a mistake"):
        clusters.Cluster(ray).run(
            work, {str(n): (n,) for n in (0, 1, 4)}, lambda *_: None, lambda _: None
        )
    assert len(ray.cancelled) == 2


def test_what_cannot_be_kept_ends_it(tmp_path):
    def keep(name, answer):
        raise InputError("the disk is full")

    with pytest.raises(InputError, match="the disk is full"):
        clusters.Cluster(FakeRay()).run(work, {"0": (0,)}, keep, lambda _: None)


def test_without_the_extra_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with (
        pytest.raises(
            MissingExtraError, match=r"ray is not installed: pip install 'fedrain\[ray\]'"
        ),
        clusters.connected(None, print),
    ):
        pass


def closed_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("127.0.0.1:{port}", "no Ray cluster answers there (Connection refused)"),
        ("ray://127.0.0.1:{port}", "no Ray cluster answers there (Connection refused)"),
        ("nowhere", "a cluster's address is machine:port, or auto"),
        ("127.0.0.1:99999", "a cluster's address is machine:port, or auto"),
    ],
)
def test_a_wrong_address_is_one_line_and_status_2(address, said, tmp_path, capsys, monkeypatch):
    """At once: Ray would try for a minute."""
    ray = types.SimpleNamespace(init=lambda **_: pytest.fail("Ray was asked"))
    monkeypatch.setitem(sys.modules, "ray", ray)
    address = address.format(port=closed_port())
    command = ["benchmark", "run", "--only", "ebm-v1-td3-paper", "--results", str(tmp_path)]
    assert main([*command, "--engine", "ray", "--address", address]) == 2
    assert capsys.readouterr().err.splitlines()[-1].endswith(f"{address}: {said}")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--engine", "dask"], "there is no engine 'dask'"),
        (["--address", "auto"], "--address is that of a Ray cluster"),
    ],
)
@pytest.mark.parametrize("command", [["benchmark", "run"], ["tune"]])
def test_what_does_not_fit_is_refused(command, options, said, capsys):
    assert main([*command, *options]) == 2
    assert said in capsys.readouterr().err


def test_two_files_alone_import_ray_and_only_when_it_is_asked_for():
    """Nowhere at the top of a file."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        at_top = list(tree.body)
        for node in ast.walk(tree):
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if any(name.split(".")[0] == "ray" for name in names):
                assert node not in at_top
                found[str(path.relative_to(PACKAGE))] = True
    assert set(found) == {"cluster.py", "flower/simulation.py"}


def test_the_benchmark_runs_on_one_machine_without_ray():
    code = (
        "import sys; sys.modules['ray'] = None; "
        "import fedrain.paper, fedrain.tuning, fedrain.cluster; print('fine')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "fine\n"


# ------------------------------------------------------------------ Slurm


def test_each_index_of_the_job_array_trains_one_missing_cell(tmp_path, monkeypatch, capsys):
    """The script is run as Slurm would, with a program in Python's place that says what it got."""
    program = tmp_path / "pyth on"
    program.write_text('#!/bin/sh\nprintf "%s|" "$@"\n')
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    results = tmp_path / "with blank"
    results.mkdir()
    done = "ebm-v1-td3-paper"
    shutil.copy(RESULTS / f"{done}.nc", results)
    options = ["--only", "ebm-v1-*-paper", "--results", str(results), "--work", str(tmp_path / "w")]
    main(["benchmark", "slurm", *options, "--cores", "3", "--hours", "1.5"])
    script = tmp_path / "job.sh"
    script.write_text(capsys.readouterr().out)
    text = script.read_text()
    missing = [cell.name for cell in cells("ebm-v1-*-paper") if cell.name != done]
    assert f"#SBATCH --array=0-{len(missing) - 1}\n" in text
    assert "#SBATCH --cpus-per-task=3\n" in text
    assert "#SBATCH --time=90\n" in text
    for i, name in enumerate(missing):
        told = subprocess.run(
            ["sh", script], env=os.environ | {"SLURM_ARRAY_TASK_ID": str(i)},
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        assert told.split("|")[:-1] == [
            "-m", "fedrain", "benchmark", "run", "--jobs", "1", "--only", name,
            "--results", str(results), "--work", str(tmp_path / "w"),
        ]  # fmt: skip
    other = os.environ | {"SLURM_ARRAY_TASK_ID": str(len(missing))}
    assert subprocess.run(["sh", script], env=other, capture_output=True).returncode == 2


def test_no_job_array_of_nothing(tmp_path):
    store = Store(RESULTS, tmp_path)
    with pytest.raises(InputError, match="no cell is missing"):
        slurm_script(store, cells("ebm-v1-td3-paper"), 2, 1.0)
    with pytest.raises(InputError, match="a core or more"):
        slurm_script(Store(tmp_path, tmp_path), cells("ebm-v1-td3-paper"), 0, 1.0)


# ------------------------------------------------------------------ a real cluster


def note_pid(number):
    import fedrain.paper.machines  # noqa: F401

    return number, os.getpid()


@pytest.fixture
def two_nodes():
    """A head and a second node on the loopback interface, a core each.

    Ray takes 127.0.0.1 for the machine's address that others reach, where nothing listens here.
    """
    pytest.importorskip("ray")
    os.environ.update(clusters.QUIET)
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from ray.cluster_utils import Cluster

        each = {"num_cpus": 1, "include_dashboard": False, "node_ip_address": "127.0.0.2"}
        nodes = Cluster(initialize_head=True, head_node_args=each)
        second = nodes.add_node(**{k: v for k, v in each.items() if k != "include_dashboard"})
        nodes.wait_for_nodes()
        yield nodes, second
        nodes.shutdown()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # Ray's
def test_twelve_cells_on_two_nodes_of_which_one_is_killed(two_nodes, tmp_path):
    """The same bits as in one process, none missing."""
    nodes, second = two_nodes
    chosen = cells("ebm-v?-a2-*-td3-*")[:12]
    assert len(chosen) == 12
    alone, together = (
        Store(tmp_path / where, tmp_path / f"{where}-work", seeds=2, episodes=2)
        for where in ("alone", "together")
    )
    for path in RESULTS.glob("limit-*.nc"):
        together.results.mkdir(exist_ok=True)
        shutil.copy(path, together.results)
    said = []

    def say(text):
        said.append(text)
        if sum("finished" in one for one in said) == 3 and second in nodes.worker_nodes:
            nodes.remove_node(second, allow_graceful=False)

    run_on_cluster(together, chosen, nodes.address, say)
    assert second not in nodes.worker_nodes
    run_missing(alone, chosen, lambda _: None)
    times = ["seconds", "core_seconds"]
    for cell in chosen:
        one, other = (xr.load_dataset(store.result(cell)) for store in (alone, together))
        xr.testing.assert_identical(one.drop_vars(times), other.drop_vars(times))
    assert not any(together.work.glob("*/"))
    before = len(said)
    run_on_cluster(together, chosen, nodes.address, say)  # nothing is left, and nothing is asked
    assert len(said) == before


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # Ray's
def test_handing_out_a_cell_costs_less_than_two_seconds(two_nodes):
    nodes, _ = two_nodes
    kept = {}
    with clusters.connected(nodes.address, print) as cluster:
        ready = {f"warm {n}": (n,) for n in range(2)}
        cluster.run(note_pid, ready, kept.__setitem__, print)
        begin = time.monotonic()
        pieces = {str(n): (n,) for n in range(12)}
        assert cluster.run(note_pid, pieces, kept.__setitem__, print) == []
        each = (time.monotonic() - begin) / 12
    print(f"overhead of a piece: {each:.3f} s")
    assert {kept[name][0] for name in pieces} == set(range(12))
    assert each < 2


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # Ray's
def test_a_piece_that_always_takes_its_worker_down_fails_alone(two_nodes):
    nodes, _ = two_nodes
    kept, said = {}, []
    with clusters.connected(nodes.address, print) as cluster:
        pieces = {"good": (1,), "bad": (13,)}
        failed = cluster.run(fatal, pieces, kept.__setitem__, said.append)
    assert failed == ["bad"]
    assert kept == {"good": 1}
    assert any(one.startswith("bad: its worker was lost again and again") for one in said)


def fatal(number):
    if number == 13:
        os._exit(1)
    return number


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # Ray's
def test_trials_on_a_cluster_reach_what_they_reach_alone(two_nodes, tmp_path):
    pytest.importorskip("optuna")
    from fedrain.experiment import configure
    from fedrain.tuning import Choice, Study, Tuning, tune
    from fedrain.tuning.trial import score
    from tests.experiment.small import small_preset

    nodes, _ = two_nodes
    configuration = configure(
        env="ebm-v2", agents=2, latitudes=12, episode_length=10, episodes=4, algo="td3",
        preset=small_preset(tmp_path), seeds=[100],
    )  # fmt: skip
    tuning = Tuning(configuration, {"learning_rate": Choice((1e-3, 1e-2))})
    path = tmp_path / "study.journal"
    said = []
    given = path, 4, tmp_path / "best.toml", said.append, "ray", nodes.address
    found = tune(tuning, *given)
    assert found["trials"] == 4
    values, best = Study(path, tuning).best
    alone = score(tuning.configured(values), "skill", lambda *_: False)
    assert best == alone
    before = len(said)
    assert tune(tuning, *given)["trials"] == 4  # no more are asked for
    assert len(said) == before
    assert np.isfinite(best)


def test_a_cell_that_fails_is_named_at_the_end(monkeypatch, tmp_path):
    """And the others are kept."""
    from contextlib import contextmanager

    from fedrain.paper import machines

    store = Store(tmp_path / "results", tmp_path / "work", seeds=2, episodes=2)
    (cell,) = cells("ebm-v1-td3-paper")
    for path in RESULTS.glob("limit-*.nc"):
        store.results.mkdir(exist_ok=True)
        shutil.copy(path, store.results)

    class Lost:
        def run(self, work, pieces, keep, say, at_once):
            assert work is machines.make_file
            assert pieces == {cell.name: (cell.name, str(store.work), 2, 2)}
            return [cell.name]

    @contextmanager
    def connected(address, say):
        assert address == "auto"
        yield Lost()

    monkeypatch.setattr(machines, "connected", connected)
    with pytest.raises(FailureError, match="1 of 1 cells failed: ebm-v1-td3-paper"):
        run_on_cluster(store, [cell], "auto", print)


def slow_square(number):
    time.sleep(2)
    return number * number
