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
FOUNDATIONS = {"errors", "io", "tables", "plotting", "registration", "__init__"}


def room(path: Path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imported_rooms(path: Path) -> set[str]:
    """The rooms that a file imports, anywhere in it, but for the benefit of type checkers."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
            names |= {node.module} - {"fedrain"}
    if room(path) not in FOUNDATIONS:
        assert "fedrain" not in names, f"{path}: name the room that is imported"
    return {n.split(".")[1] for n in names if n.startswith("fedrain.")}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_one_way(path):
    here = room(path)
    imported = imported_rooms(path) & set(ROOMS)
    if here in FOUNDATIONS:
        assert not imported
    elif here != "__main__":
        assert here in ROOMS, f"{here} is not a room of the design"
        assert not [other for other in imported if ROOMS.index(other) > ROOMS.index(here)]


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
