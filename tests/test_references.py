"""Models, tasks and algorithms by name and by reference, and who may make them be imported."""

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedrain.agents import ALGORITHMS
from fedrain.climate import EnergyBalanceModel, Grid
from fedrain.envs import TASKS, Task, make
from fedrain.envs.tasks import MODELS, find_model, find_task
from fedrain.errors import InputError
from fedrain.experiment.resolve import configure, from_dict
from fedrain.references import (
    Registry,
    check_same,
    fingerprint,
    is_ours,
    is_reference,
    load,
    reference_to,
    source_hash,
    stored_fields,
)

MODEL = '''
from dataclasses import dataclass
from fedrain.climate import EnergyBalanceModel, Grid
from fedrain.envs import Task

@dataclass(frozen=True)
class Deep(EnergyBalanceModel):
    """An ocean that is deep."""
    grid: Grid = Grid(12)
    water_depth: float = 50.0  # m

def make_deep(depth=70.0):
    return Deep(water_depth=depth)

class Outer:
    class Inner:
        pass

task = Task(model=Deep, agents=3, summary="deep")
_hidden = 3
'''


@pytest.fixture
def file(tmp_path) -> Path:
    path = tmp_path / "deep.py"
    path.write_text(MODEL, encoding="utf-8")
    return path


# ------------------------------------------------------------------ names


def test_names_are_those_of_the_package():
    registry = Registry("thing", "fedrain.none", {"one": 1, "two": 2})
    assert registry.names() == ["one", "two"]
    assert registry.get("two") == 2
    assert registry.is_known("one")
    assert not registry.is_known("three")
    assert not registry.is_known(["one"])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("tow", "there is no thing 'tow': did you mean 'two'. There are one, two"),
        ("xyzzy", "there is no thing 'xyzzy': use one of one, two"),
        ("", "there is no thing ''"),
        (None, "there is no thing None"),
        (["one"], r"there is no thing \['one'\]"),
    ],
)
def test_a_typo_lists_the_names(name, message):
    with pytest.raises(InputError, match=message):
        Registry("thing", "fedrain.none", {"one": 1, "two": 2}).get(name)


def test_nothing_to_name():
    with pytest.raises(InputError, match="there is no thing 'one': there are none"):
        Registry("thing", "fedrain.none").get("one")


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """An installed package that names a task, a broken one, and one that we have already."""
    folder = tmp_path / "fedrain_plugin_of_tests-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: fedrain-plugin-of-tests\n")
    (folder / "entry_points.txt").write_text(
        "[fedrain.tests]\nmine = plugin_of_tests:task\nbroken = plugin_of_tests:none\n"
        "ours = plugin_of_tests:task\n"
    )
    (tmp_path / "plugin_of_tests.py").write_text("task = 'a task from elsewhere'\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield Registry("task", "fedrain.tests", {"ours": "a task of ours"})
    sys.modules.pop("plugin_of_tests", None)


def test_plugins_are_known_by_name(plugin):
    assert plugin.names() == ["ours", "mine", "broken"]
    assert plugin.is_known("mine")
    assert "plugin_of_tests" not in sys.modules  # that it is there says nothing of its code
    assert plugin.get("mine") == "a task from elsewhere"
    assert plugin.get("ours") == "a task of ours"  # nobody takes a name of the package
    with pytest.raises(InputError, match="the plug-in 'broken': cannot be imported"):
        plugin.get("broken")


# ------------------------------------------------------------------ references


def test_references_to_modules_and_files(file):
    assert load("fedrain.climate:Grid", "model") is Grid
    assert load("fedrain.climate:Grid.columns", "model") is Grid.columns
    deep = load(f"{file}:Deep", "model")
    assert deep().water_depth == 50
    assert load(f"{file}:Outer.Inner", "model").__qualname__ == "Outer.Inner"
    assert is_reference(f"{file}:Deep")
    assert not is_reference("ebm-v3")


def test_a_module_in_the_folder_where_one_is(file, monkeypatch):
    monkeypatch.chdir(file.parent)
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p not in ("", str(file.parent))])
    file.rename("deep_module_of_tests.py")
    assert load("deep_module_of_tests:Deep", "model")().water_depth == 50
    del sys.modules["deep_module_of_tests"]


def test_the_same_file_is_the_same_class(file, tmp_path, monkeypatch):
    """By whatever path it is named: equal models are then equal, and compiled once."""
    monkeypatch.chdir(tmp_path)
    one, same = load(f"{file}:Deep", "model"), load("deep.py:Deep", "model")
    assert one is same
    file.write_text(MODEL.replace("50.0", "60.0"), encoding="utf-8")
    assert load("deep.py:Deep", "model")().water_depth == 60
    assert one().water_depth == 50


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("none.py:Deep", r"^none\.py: there is no such file$"),
        ("deep.py:Depe", "no model in deep.py called 'Depe': did you mean 'Deep'. There are Deep, "
                         "make_deep, Outer, task"),
        ("deep.py:Outer.Outer", "no model in deep.py called 'Outer.Outer'"),
        ("deep.py:", "names no model: write file.py:Name or package.module:Name"),
        (":Deep", "names no model"),
        ("importing.py:Grod", "did you mean 'grid'. There are grid$"),
        ("no_such_module_of_tests:Deep", r"cannot be imported \(ModuleNotFoundError: No module"),
        ("no_such.module.of_tests:Deep", r"cannot be imported \(ModuleNotFoundError: No module"),
        ("fedrain.climate:Gird", "no model in fedrain.climate called 'Gird'"),
        ("broken.py:Deep", r"^broken\.py: cannot be imported \(SyntaxError: "),
        ("failing.py:Deep", r"^failing\.py: cannot be imported \(ZeroDivisionError: division"),
        ("exiting.py:Deep", r"^exiting\.py: cannot be imported \(SystemExit: 3; exiting\.py:1\)$"),
        ("lines.py:Deep", r"^lines\.py: cannot be imported \(ValueError: one; lines\.py:1\)$"),
    ],
)  # fmt: skip
def test_what_cannot_be_loaded_is_said_in_one_line(file, monkeypatch, text, message):
    monkeypatch.chdir(file.parent)
    for name, code in (
        ("broken", "def ("),
        ("failing", "1 / 0"),
        ("exiting", "raise SystemExit(3)"),
        ("lines", "raise ValueError('one\\ntwo')"),
        ("importing", "from fedrain.climate import SURFACE_TEMPERATURE, Grid\ngrid = Grid(3)\n"),
    ):
        Path(f"{name}.py").write_text(code)
    before = set(sys.modules)
    with pytest.raises(InputError, match=message) as caught:
        load(text, "model")
    assert "\n" not in str(caught.value)
    assert not [name for name in set(sys.modules) - before if not name.endswith("_of_tests")
                and name.startswith("fedrain_own_") and "deep" not in name
                and "importing" not in name]  # fmt: skip


@pytest.mark.parametrize("registry", [TASKS, MODELS, ALGORITHMS])
def test_a_file_without_a_name(registry):
    with pytest.raises(InputError, match=rf"mine.py: say which {registry.kind} .*mine.py:Name$"):
        registry.get("mine.py")


def test_a_file_can_import_the_one_beside_it(tmp_path):
    """Each the one beside itself, and nothing is left on the path."""
    before = list(sys.path)
    for number in (1, 2, 1):
        folder = tmp_path / str(number)
        folder.mkdir(exist_ok=True)
        (folder / "helper_of_tests.py").write_text(f"class Base:\n    number = {number}\n")
        (folder / "own.py").write_text(
            f"from helper_of_tests import Base\nclass Own(Base):\n    own = {number}\n"
        )
        found = load(f"{folder / 'own.py'}:Own", "model")
        assert (found.own, found.number) == (number, number)
        assert sys.path == before
    sys.modules.pop("helper_of_tests")


def test_a_failure_is_told_with_its_place(file):
    """In the file of the user, not where it ended up in ours or in Python's."""
    file.write_text(MODEL + "\n\ndef failing():\n    return load(3)\n\n\n"
                    "def load(path):\n    import json\n    return json.loads(path)\n")  # fmt: skip
    line = file.read_text().splitlines().index("    return json.loads(path)") + 1
    with pytest.raises(
        InputError, match=rf"failing cannot be made \(TypeError: .*deep.py:{line}\)"
    ):
        find_model(f"{file}:failing")


def test_models_and_tasks_from_a_file(file):
    env = make("ebm-v3", model=f"{file}:Deep", agents=3)
    assert env.model.water_depth == 50
    assert make("ebm-v3", model=f"{file}:make_deep", agents=3).model.water_depth == 70
    options = {"water_depth": 5.0}
    assert find_model(f"{file}:Deep", options).water_depth == 5
    own = make(f"{file}:task")
    assert own.agents == 3
    assert own.model == env.model
    assert find_task(f"{file}:task").summary == "deep"
    with pytest.raises(InputError, match=r"is not a fedrain\.envs\.Task, but a int"):
        find_task(f"{file}:_hidden")
    with pytest.raises(InputError, match=r"Inner has no columns"):
        find_model(f"{file}:Outer.Inner")


# ------------------------------------------------------------------ what is stored of them


def test_how_a_thing_would_be_named_again(file):
    assert reference_to(load(f"{file}:Deep", "model")) == "deep.py:Deep"
    assert reference_to(load(f"{file}:Deep", "model")()) == "deep.py:Deep"
    assert reference_to(load(f"{file}:make_deep", "model")) == "deep.py:make_deep"
    assert reference_to(Grid(4)) == "fedrain.climate.grid:Grid"


def test_what_is_ours(file):
    assert is_ours(EnergyBalanceModel())
    assert is_ours(Grid)
    assert not is_ours(load(f"{file}:Deep", "model"))
    assert not is_ours(np.zeros(3))


LAYOUT = (
    MODEL.replace("  # m", "  # metres of water, all mixed")
    .replace("def make_deep(depth=70.0):", "\n\ndef make_deep(\n    depth = 70.0,\n):  # another")
    .replace("_hidden = 3", "_hidden = (3)")
)
CODE = [
    MODEL.replace("50.0", "51.0"),
    MODEL.replace("depth=70.0", "depth=71.0"),
    MODEL.replace("_hidden = 3", "_hidden = 4"),
    MODEL + "\n\ndef helper():\n    return 1\n",
]  # fmt: skip


def hash_of(tmp_path, code):
    path = tmp_path / "deep.py"
    path.write_text(code, encoding="utf-8")
    return source_hash(load(f"{path}:Deep", "model"))


def test_the_hash_sees_code_and_neither_comments_nor_layout(tmp_path):
    first = hash_of(tmp_path, MODEL)
    assert len(first) == 64
    assert LAYOUT != MODEL
    assert hash_of(tmp_path, LAYOUT) == first
    assert len({first, *(hash_of(tmp_path, code) for code in CODE)}) == len(CODE) + 1


def test_the_hash_is_of_what_was_loaded(file):
    """And not of what the file has become since."""
    deep = load(f"{file}:Deep", "model")
    before = source_hash(deep)
    file.write_text(MODEL.replace("50.0", "51.0"), encoding="utf-8")
    assert source_hash(deep) == before
    assert source_hash(load(f"{file}:Deep", "model")) != before


def test_the_hash_of_a_task_is_that_of_its_file(tmp_path):
    """Its class is ours: what a person wrote is where it was made."""
    hashes = set()
    for code in (MODEL, MODEL.replace("agents=3", "agents=4"), MODEL.replace("50.0", "51.0")):
        (tmp_path / "deep.py").write_text(code, encoding="utf-8")
        text = f"{tmp_path / 'deep.py'}:task"
        hashes.add(fingerprint(find_task(text), text)["source"])
    assert len(hashes) == 3


def test_the_hash_of_a_task_in_memory_is_that_of_its_model(tmp_path):
    hashes = []
    for code in (MODEL, MODEL.replace("50.0", "51.0")):
        (tmp_path / "deep.py").write_text(code, encoding="utf-8")
        deep = load(f"{tmp_path / 'deep.py'}:Deep", "model")
        hashes += [source_hash(Task(model=deep)), source_hash(Task(model=deep()))]
    assert hashes[0] == hashes[1] != hashes[2] == hashes[3]
    load("fedrain.envs.models:energy_balance", "model")  # by reference, too
    assert source_hash(TASKS.get("ebm-v3")) == source_hash(EnergyBalanceModel()) == ""


@dataclass(frozen=True)
class Holder:
    number: Any = 1.5
    inner: Any = Grid(12)
    comment: str = field(default="", compare=False)


@pytest.mark.parametrize(
    "value",
    [1, 2.5, float("nan"), "text", None, True, (1, 2), [1.0], {"a": (1, 2)}, np.arange(3.0),
     np.float32(2.0), Grid(4), Grid, len, test_names_are_those_of_the_package, object()],
)  # fmt: skip
def test_fields_survive_json_and_are_the_same_again(value):
    stored = json.loads(json.dumps(fingerprint(Holder(value))))
    check_same("model", stored, Holder(value))
    check_same("model", stored, Holder(value, comment="says nothing"))
    with pytest.raises(InputError, match=r"model .*Holder is not the one that was trained: number"):
        check_same("model", stored, Holder(77))


def test_what_differs_is_said(file):
    stored = json.loads(json.dumps(fingerprint(load(f"{file}:Deep", "model")())))
    deeper = load(f"{file}:Deep", "model")(water_depth=60.0)
    with pytest.raises(
        InputError,
        match=r"^the model deep.py:Deep is not the one that was trained: "
        r"water_depth is 60.0, was 50.0$",
    ):
        check_same("model", stored, deeper)
    file.write_text(MODEL.replace("70.0", "71.0"), encoding="utf-8")
    with pytest.raises(
        InputError, match=r"not the one that was trained: its source has changed \("
    ):
        check_same("model", stored, load(f"{file}:Deep", "model")())


def test_long_fields_are_said_briefly():
    stored = fingerprint(Holder(np.arange(1000.0)))
    with pytest.raises(InputError) as caught:
        check_same("model", stored, Holder(np.zeros(1000)))
    assert len(str(caught.value)) < 300
    assert "\n" not in str(caught.value)


def test_classes_and_other_things_have_no_fields():
    assert stored_fields(Grid) == {}
    assert stored_fields(3) == {}
    assert stored_fields(Holder())["inner"] == {"latitudes": 12}


@pytest.mark.parametrize("registry", [TASKS, MODELS, ALGORITHMS])
def test_that_a_reference_is_known_is_never_found_out_by_importing_it(tmp_path, registry):
    """A run folder from a stranger may say anything; only a person's word imports it."""
    trap = tmp_path / "trap.py"
    trap.write_text(
        f"from pathlib import Path\nPath({str(tmp_path / 'sprung')!r}).touch()\nx = 1\n"
    )
    for text in ("subprocess:Popen", "os:system", f"{trap}:x", "fedrain.climate:Grid"):
        assert not registry.is_known(text)
    stored = {"source": "0" * 64, "fields": {}}
    with pytest.raises(InputError, match="not the one that was trained"):
        check_same(registry.kind, stored, Grid(4))  # compared with what the person named
    assert not (tmp_path / "sprung").exists()
    assert load(f"{trap}:x", registry.kind) == 1
    assert (tmp_path / "sprung").exists()


@pytest.mark.parametrize("kind", ["env", "model", "algo"])
def test_a_stored_experiment_makes_nothing_be_imported(tmp_path, kind):
    trap = tmp_path / "trap.py"
    trap.write_text(f"from pathlib import Path\nPath({str(tmp_path / 'sprung')!r}).touch()\n")
    stored = configure("ebm-v1", episodes=1).as_dict()
    for text in ("subprocess:Popen", "os:system", f"{trap}:Task", "fedrain.climate:Grid"):
        stranger = {**stored, kind: text, "sources": {kind: {"source": "", "fields": {}}}}
        with pytest.raises(InputError, match=f"name it again with --{kind}") as caught:
            from_dict(stranger)
        assert "\n" not in str(caught.value)
    assert not (tmp_path / "sprung").exists()
    with pytest.raises(InputError, match="there is no"):
        from_dict({**stored, kind: "ebm-v9"})
