"""A run folder may come from a stranger: no code runs because of it, even if it is named again."""

import ast
import hashlib
import inspect
import json
import shutil
import subprocess

import pytest

from fedrain import io
from fedrain.cli import main
from fedrain.errors import InputError
from fedrain.experiment import configure, load, train
from fedrain.experiment.configuration import Named
from fedrain.experiment.folder import accept
from fedrain.experiment.resolve import from_dict
from tests.experiment.small import SMALL, small_preset

FACTORY = """
from dataclasses import dataclass
from pathlib import Path
from fedrain.climate import EnergyBalanceModel, Grid
from fedrain.envs import Task

@dataclass(frozen=True)
class Deep(EnergyBalanceModel):
    grid: Grid = Grid(12)
    water_depth: float = 50.0

    def __post_init__(self):
        Path("made").touch()
        super().__post_init__()

def make_deep(depth=70.0):
    return Deep(water_depth=depth)

def task():
    Path("made").touch()
    return Task(agents=2, model=Deep)
"""


def hash_of(module) -> str:
    """The hash that we store of a module's source: a stranger can work it out, too."""
    text = ast.unparse(ast.parse(inspect.getsource(module)))
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished")
    configuration = configure(preset=small_preset(folder), episodes=1, agents=2, **SMALL)
    train(configuration, folder / "run", say=lambda _: None, figures=False)
    return folder / "run"


@pytest.fixture
def strange(finished, tmp_path, monkeypatch):
    """A folder that a stranger has changed: what of its configuration is other."""
    monkeypatch.chdir(tmp_path)

    def change(**other):
        shutil.copytree(finished, "run", dirs_exist_ok=True)
        path = tmp_path / "run" / "configuration.json"
        values = json.loads(path.read_text())
        if "model_options" in other:
            values["environment"] = {"model_options": other.pop("model_options")}
        path.write_text(json.dumps({**values, **other}))
        return path

    return change


def source(module=None, **fields):
    return {"source": "0" * 64 if module is None else hash_of(module), "fields": fields}


@pytest.mark.parametrize(
    "sources",
    [
        {},
        {"model": {}},
        {"model": None},
        {"model": "yes"},
        {"model": {"source": None, "fields": {}}},
        {"model": {"source": "", "fields": []}},
        {"model": source()},
        {"model": source(subprocess)},
        {"model": {"source": "", "fields": {}, "accepted": [hash_of(subprocess)]}},
        ["model"],
        {"modle": {}},
    ],
)
def test_following_the_advice_runs_nothing(strange, tmp_path, capsys, sources):
    touch = {"args": ["touch", str(tmp_path / "made")]}
    strange(model="subprocess:Popen", sources=sources, model_options=touch)
    for more in ([], ["--model", "subprocess:Popen"]):
        assert main(["evaluate", "run", *more]) == 2
        told = capsys.readouterr().err
        assert told.count("\n") == 1
        assert "--model subprocess" not in told  # no command to copy
    resume = ["train", "--resume", "--out", "run", "--model", "subprocess:Popen"]
    assert main([*resume, "--accept-changes"]) == 2
    assert not (tmp_path / "made").exists()


def test_functions_that_are_installed_take_no_arguments_from_a_folder(strange, tmp_path, capsys):
    (tmp_path / "thesis").mkdir()
    strange(
        model="shutil:rmtree",
        sources={"model": source(shutil)},
        model_options={"path": str(tmp_path / "thesis")},
    )
    assert main(["evaluate", "run", "--model", "shutil:rmtree"]) == 2
    assert "a function of an installed package is not called" in capsys.readouterr().err
    strange(
        model="fedrain.io:write_json",
        sources={"model": source(io)},
        model_options={"path": str(tmp_path / "thesis" / "x.json"), "value": {}},
    )
    assert main(["evaluate", "run", "--model", "fedrain.io:write_json"]) == 2
    assert "a function of an installed package is not called" in capsys.readouterr().err
    assert list((tmp_path / "thesis").iterdir()) == []


@pytest.mark.parametrize(
    ("kind", "name"), [("model", "Deep"), ("model", "make_deep"), ("env", "task")]
)
def test_the_source_is_compared_before_anything_is_made(strange, tmp_path, capsys, kind, name):
    (tmp_path / "deep.py").write_text(FACTORY)
    strange(**{kind: f"deep.py:{name}", "sources": {kind: source()}})
    assert main(["evaluate", "run", f"--{kind}", f"deep.py:{name}"]) == 2
    assert "its source has changed" in capsys.readouterr().err
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        {"model": "deep.py:Deep", "settings": {"model.water_depth": 60.0}},
        {"model": "deep.py:make_deep", "settings": {"model.depth": 60.0}},
        {"model": "fedrain.envs.models:energy_balance", "settings": {"model.latitudes": 12}},
        {"env": "deep.py:task"},
    ],
)
def test_what_is_ones_own_is_opened_as_before(tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "deep.py").write_text(FACTORY)
    stored = configure(episodes=1, agents=2, preset=small_preset(tmp_path), **arguments)
    named = Named(**{kind: arguments[kind] for kind in ("env", "model") if kind in arguments})
    found = from_dict(json.loads(json.dumps(stored.as_dict())), named)
    assert found.identity == stored.identity
    assert found.make_environment() == stored.make_environment()


def test_a_folder_without_sources_is_not_accepted_either(strange, tmp_path):
    (tmp_path / "deep.py").write_text(FACTORY)
    path = strange(model="deep.py:Deep", sources={})
    before = path.read_text()
    with pytest.raises(InputError, match="does not record the source of its climate model"):
        load("run", model="deep.py:Deep").summary()
    accept("run", True, Named(model="deep.py:Deep"))
    assert path.read_text() == before
