"""The example models, and how each is named on the command line."""

import shutil
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from fedrain.envs import Environment, Task, make
from fedrain.references import load

FOLDER = Path(__file__).parents[2] / "examples"
_TEMPORARY = TemporaryDirectory()


@dataclass(frozen=True)
class Example:
    """A file, what of it is named, and by which option."""

    files: tuple[str, ...]  # the first is named
    name: str = "task"
    agents: int = 6
    in_jax: bool = True

    @property
    def option(self) -> str:
        return "--env" if self.name == "task" else "--model"

    @property
    def path(self) -> Path:
        return (compiled_in() if len(self.files) > 1 else FOLDER) / self.files[0]

    @property
    def reference(self) -> str:
        return f"{self.path}:{self.name}"

    def thing(self):
        """The task, or the class of the model."""
        return load(self.reference, "example")

    def make(self, **options) -> Environment:
        thing = self.thing()
        if isinstance(thing, Task):
            return make(thing, **options)
        return make("ebm-v3", model=thing, **options)


@cache
def compiled_in() -> Path:
    """A folder outside the checkout where the Fortran example is compiled."""
    ignored = shutil.ignore_patterns("*.so", "__pycache__")
    shutil.copytree(FOLDER / "fortran", Path(_TEMPORARY.name) / "fortran", ignore=ignored)
    return Path(_TEMPORARY.name)


EXAMPLES = {
    "heat_capacity": Example(("heat_capacity.py",), "LandAndSea"),
    "diffusivity_only": Example(("diffusivity_only.py",)),
    "albedo": Example(("albedo.py",)),
    "two_layer": Example(("two_layer.py",)),
    "season": Example(("season.py",)),
    "lat_lon": Example(("lat_lon.py",), agents=8),
    "numpy_model": Example(("numpy_model.py",), "Budyko", in_jax=False),
    "fortran": Example(("fortran/ebm.py", "fortran/ebm.f90"), "FortranModel", in_jax=False),
}
no_fortran = pytest.mark.skipif(
    shutil.which("gfortran") is None, reason="gfortran, which f2py compiles with, is not installed"
)


def examples(condition=bool):
    """Parameters of a test: those examples for which it is meant."""
    return pytest.mark.parametrize(
        "example",
        [
            pytest.param(example, id=name, marks=[no_fortran] if name == "fortran" else [])
            for name, example in EXAMPLES.items()
            if condition(example)
        ],
    )
