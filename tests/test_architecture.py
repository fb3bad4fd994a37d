"""The rules of the house, held by tests."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import fedrain

PACKAGE = Path(fedrain.__file__).parent
ROOT = PACKAGE.parent
FILES = sorted(PACKAGE.rglob("*.py"))

#: Imports point to the left only. The baselines stand on the environments and need no agent.
ROOMS = (
    "climate", "envs", "baselines", "agents", "federation", "experiment", "flower", "tuning",
    "paper", "cli",
)  # fmt: skip
#: Foundations that every room may use, and which use no room.
FOUNDATIONS = {
    "cluster", "errors", "reading", "io", "tables", "plotting", "references", "registration",
}  # fmt: skip
#: What users see of the package; nothing in the house imports it.
FACE = {"__init__", "__main__"}


def imported_modules(code: str) -> set[str]:
    """Modules of the package that code imports: anywhere in it, and by whatever means."""
    names = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            whole = {"fedrain"} if node.module == "fedrain" else set()
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
            names |= {node.module} - whole
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(
            ("import_module", "__import__")
        ):
            names |= {one.value for one in node.args if isinstance(one, ast.Constant)}
    return {name for name in names if name.split(".")[0] == "fedrain"}


def misplaced(here: str, code: str) -> list[str]:
    """Imports that point up, from a room or a foundation."""
    found = []
    for name in sorted(imported_modules(code)):
        there = name.split(".")[1] if "." in name else "__init__"
        if there in FACE or (
            there in ROOMS and (here in FOUNDATIONS or ROOMS.index(there) > ROOMS.index(here))
        ):
            found.append(name)
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_one_way(path):
    here = path.relative_to(PACKAGE).with_suffix("").parts[0]
    if here in FACE:
        return
    assert here in ROOMS or here in FOUNDATIONS, f"{here} is not a room of the design"
    assert misplaced(here, path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("here", "code", "found"),
    [
        ("climate", "from fedrain.envs import make", True),
        ("climate", "import fedrain.envs.tasks as t", True),
        ("climate", "from fedrain import envs", True),
        ("climate", "import fedrain", True),
        ("climate", "def late():\n    from fedrain.envs import make", True),
        ("climate", "if TYPE_CHECKING:\n    from fedrain.envs import Task", True),
        ("climate", "importlib.import_module('fedrain.envs')", True),
        ("federation", "from fedrain.experiment import train", True),
        ("experiment", "from fedrain.flower import server", True),
        ("paper", "from fedrain.cli import main", True),
        ("tables", "from fedrain.climate import Grid", True),
        ("references", "from fedrain.envs.tasks import Task", True),
        ("flower", "from fedrain.experiment import train", False),
        ("envs", "from fedrain.climate.models.host import HostModel", False),
        ("climate", "from fedrain.climate.stability import Branch", False),
        (
            "climate",
            "from fedrain.errors import InputError\nimport envs, fedrain_extra.envs",
            False,
        ),
        ("plotting", "from fedrain.io import write_whole", False),
    ],
)
def test_a_wrong_import_would_be_found(here, code, found):
    assert bool(misplaced(here, code)) == found


def test_all_rooms_of_the_design_are_there():
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    modules = {path.stem for path in PACKAGE.glob("*.py")}
    assert folders == set(ROOMS)
    assert modules == FOUNDATIONS | FACE


@pytest.mark.parametrize(
    "folder", ["fedrain", "tests", "benchmarks", "studies", "docs", "examples"]
)
def test_files_can_be_read_in_one_sitting(folder):
    lengths = {
        str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines())
        for path in (ROOT / folder).rglob("*.py")
    }
    assert {name: n for name, n in lengths.items() if n > 400} == {}


def run_python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout


def test_importing_the_package_is_light():
    code = (
        "import sys, fedrain; heavy = {'jax', 'matplotlib', 'xarray', 'climlab', 'torch'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    assert run_python(code) == "[]\n"


def test_learning_needs_no_climlab():
    code = (
        "import sys, gymnasium, fedrain; "
        "env = gymnasium.make('fedrain/EnergyBalance-v1'); env.reset(); "
        "env.step(env.action_space.sample()); fedrain.envs.parallel_env().reset(); "
        "print('climlab' in sys.modules, 'torch' in sys.modules)"
    )
    assert run_python(code) == "False False\n"


def test_public_names_exist():
    for module in (fedrain, fedrain.climate, fedrain.envs, fedrain.baselines):
        for name in module.__all__:
            assert getattr(module, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'climat'"):
        _ = fedrain.climat
