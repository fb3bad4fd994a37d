"""The stored results, read back, and the published figures in the same form."""

import json
from collections.abc import Callable, Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from fedrain.baselines import share_reached, static
from fedrain.climate import BAND_NAMES, Skill
from fedrain.envs import make
from fedrain.errors import InputError
from fedrain.experiment import Configuration
from fedrain.experiment.configuration import from_dict
from fedrain.experiment.records import POLICIES
from fedrain.experiment.training import identity
from fedrain.io import read_dataset
from fedrain.paper.matrix import EPISODE_STEPS, Cell, cells
from fedrain.paper.published import published_skill
from fedrain.paper.statistics import Sample

PUBLISHED_SEEDS = 10

REMEDY = ": remove it to make it again"
SIZES = {"step": EPISODE_STEPS, "lat": 96, "band": len(BAND_NAMES), "policy": len(POLICIES)}
#: What is read of an episode, and of a cell.
EPISODE = dict.fromkeys(("surface_temperature", "A", "B"), ("step", "lat"))
CELL = {
    "returns": ("episode", "seed", "agent"),
    "seconds": ("episode",),
    "core_seconds": ("episode",),
    "areawrmse": ("policy", "seed", "band"),
    "areawrmse_global": ("policy", "seed"),
    "evaluation_return": ("policy", "seed", "agent"),
    **{f"episode_{name}": dimensions for name, dimensions in EPISODE.items()},
}

#: AreaWRMSE of the six bands in a cell, from south to north; None where a source has no such cell.
Bands = Callable[[Cell], list[Sample] | None]


class Result:
    """What is kept of one cell. Seeds that broke are left out."""

    def __init__(self, cell: Cell, data: xr.Dataset) -> None:
        self.cell = cell
        returns = np.isfinite(data.returns).all(("agent", "episode"))
        self.whole = (np.isfinite(data.areawrmse_global.sel(policy="local")) & returns).values
        self.data = data.isel(seed=np.flatnonzero(self.whole))

    def skill(self, policy: str = "local") -> Float[np.ndarray, "seed band"]:
        """AreaWRMSE of the bands, in K."""
        return self.data.areawrmse.sel(policy=policy).values

    def globe(self, policy: str = "local") -> Sample:
        """AreaWRMSE of the globe, of seeds whose average works if it is asked for."""
        errors = self.data.areawrmse_global.sel(policy=policy).values
        return Sample.of(errors[np.isfinite(errors)])

    def bands(self, policy: str = "local") -> list[Sample]:
        """AreaWRMSE of the bands over the seeds."""
        return [Sample.of(values) for values in self.skill(policy).T]

    @cached_property
    def best_seed(self) -> int:
        """Position of the seed with the lowest error of the globe."""
        return int(np.argmin(self.data.areawrmse_global.sel(policy="local").values))

    @cached_property
    def learning(self) -> Float[np.ndarray, "seed episode"]:
        """Return of each episode, mean over the agents."""
        return self.data.returns.mean("agent").transpose("seed", "episode").values

    def evaluation_return(self, policy: str) -> float:
        """Return without exploration, mean over agents and seeds."""
        return float(self.data.evaluation_return.sel(policy=policy).mean())

    def share_of_limit(self, policy: str) -> float:
        """How far that return is from the static model (0) to optimal control (1)."""
        environment = self.cell.configuration().make_environment()
        share = share_reached(environment, self.evaluation_return(policy))
        assert share is not None  # the limits of the matrix come with the package
        return share

    @property
    def core_hours(self) -> float:
        """Processor time of the training."""
        return float(self.data.core_seconds.sum()) / 3600

    @property
    def hours(self) -> float:
        """Time from the first episode to the last, interruptions left out."""
        return float(self.data.seconds.sum()) / 3600

    @property
    def versions(self) -> dict[str, Any]:
        """Software and machine that it was made with."""
        return json.loads(self.data.attrs["versions"])


Results = dict[Cell, Result]


def load_results(folder: str | Path) -> Results:
    """Every cell of the matrix that is done, and of which two seeds at least have not broken."""
    found = {}
    for cell in sorted(cells(), key=_place_in_tables):
        path = Path(folder) / f"{cell.name}.nc"
        if path.exists():
            result = Result(cell, read_result(path, cell.configuration()))
            if result.whole.sum() > 1:
                found[cell] = result
    if not found:
        raise InputError(f"{folder}: holds no results: fedrain benchmark run makes them")
    return found


def _place_in_tables(cell: Cell) -> tuple[str, str, int, bool, str]:
    """What is to be compared stands side by side."""
    return cell.algo, cell.env, cell.agents, cell.preset != "paper", cell.scheme


def our_bands(results: Results) -> Bands:
    """Our own figures."""
    return lambda cell: results[cell].bands() if cell in results else None


def published_bands(cell: Cell) -> list[Sample] | None:
    """The paper's figures, which are of preset ``paper``."""
    found = published_skill(cell.configuration())
    if cell.preset != "paper" or found is None:
        return None
    return [Sample(m, s, PUBLISHED_SEEDS) for m, s in zip(found.mean, found.std, strict=True)]


@cache
def static_skill() -> Skill:
    """The static model, the same in every environment."""
    return static(make("ebm-v1")).skill


def static_bands() -> list[Sample]:
    """Its errors as samples that have no spread, which makes them numbers."""
    return [Sample(error, 0.0, PUBLISHED_SEEDS) for error in static_skill().bands]


def read_result(path: Path, configuration: Configuration) -> xr.Dataset:
    """The result of an experiment, and of no other."""
    data = read_dataset(path, REMEDY)
    try:
        held = from_dict(json.loads(data.attrs["configuration"]))
        if identity(held) != identity(configuration):
            raise ValueError("another experiment")
        sizes = {
            "episode": configuration.episodes,
            "seed": len(configuration.seeds),
            "agent": configuration.agents,
        }
        _check(data, CELL, sizes)
        if data.policy.values.tolist() != list(POLICIES):
            raise ValueError("other policies")
        json.loads(data.attrs["versions"])
    except (KeyError, ValueError) as error:
        raise InputError(
            f"{path}: is not the result of this cell ({error}): remove it to train the cell again"
        ) from None
    return data


def read_reference(path: Path) -> xr.Dataset:
    """An episode under optimal control."""
    data = read_dataset(path, REMEDY)
    try:
        _check(data, EPISODE, {})
    except ValueError as error:
        raise InputError(f"{path}: is no such episode ({error}){REMEDY}") from None
    return data


def _check(
    data: xr.Dataset, variables: Mapping[str, tuple[str, ...]], sizes: dict[str, int]
) -> None:
    """Whether the variables are there, over all of what they should be over."""
    for name, dimensions in variables.items():
        if name not in data:
            raise ValueError(f"no {name} in it")
        expected = {which: (SIZES | sizes)[which] for which in dimensions}
        if dict(data[name].sizes) != expected:
            raise ValueError(f"{name} has another shape")
