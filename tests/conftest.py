"""What tests share."""

import os
import resource
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

# Most of the suite's time is compiling; what is compiled without optimisation is as right.
os.environ.setdefault(
    "XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false"
)

import jax
import numpy as np
import pytest
from hypothesis import settings

from fedrain.climate import ClimateModel
from fedrain.experiment import report

# What one test has compiled, the others need not compile again.
_COMPILED = Path(__file__).parent.parent / ".pytest_cache" / "compiled"
jax.config.update("jax_compilation_cache_dir", str(_COMPILED))
os.environ["JAX_COMPILATION_CACHE_DIR"] = str(_COMPILED)  # also those in processes of their own
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.3)

settings.register_profile("fedrain", deadline=None)  # times say nothing on a shared machine
settings.load_profile("fedrain")


@pytest.fixture(autouse=True, scope="module")
def little_memory() -> Iterator[None]:
    """What a process has compiled is forgotten when it has grown large."""
    yield
    if memory_now() > 4 * 1024**3:
        jax.clear_caches()


def optimised(function: Callable[..., Any]) -> Any:
    """A function compiled as for a user: without optimisation tanh is less exact."""
    return jax.jit(function, compiler_options={"xla_backend_optimization_level": 2})


@pytest.fixture(autouse=True)
def no_figures(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs draw no figures at their end, which takes longer than they do, but where one looks."""
    if request.node.get_closest_marker("figures") is None:
        leave_out_figures(monkeypatch)


def leave_out_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on, a run that has finished draws none."""
    monkeypatch.setattr(report, "write_figures", lambda _: [])


def memory_now() -> int:
    """Bytes that this process has in memory now: its highest ever would only grow."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, IndexError, ValueError):  # not on Linux
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return pages * resource.getpagesize()


@pytest.fixture
def x64() -> Iterator[None]:
    """Double precision for one test."""
    with jax.enable_x64(True):
        yield


def random_parameters(rng: np.random.Generator, model: ClimateModel, *batch: int) -> dict:
    """Uniform within the bounds."""
    columns = len(model.columns)
    return {
        row.symbol: rng.uniform(row.low, row.high, (*batch, *row.shape(columns)))
        for row in model.table
    }
