"""Results of the matrix: the NetCDF schema, its writer and reader, and results in memory.

A finished cell is one file, ``<name of the cell>.nc``, that holds :data:`CELL`. The optimal control
that cells are measured by is in files ``limit-*.nc`` (:data:`REFERENCES`), which hold
:data:`EPISODE`. Every variable is named here once, for the writer and the reader alike.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from fedrain.baselines import Baseline, known_limit, sequence_dataset, static
from fedrain.climate import BAND_NAMES, ParameterTable, Skill, band_skill
from fedrain.envs import Environment, make
from fedrain.errors import InputError
from fedrain.experiment import Configuration, Run
from fedrain.experiment.resolve import from_dict
from fedrain.io import write_dataset
from fedrain.paper.matrix import EPISODE_STEPS, REPRODUCTIONS, Cell, cells, preset_order
from fedrain.paper.published import PUBLISHED_SEEDS
from fedrain.paper.statistics import Sample
from fedrain.reading import check_dataset, parse_json, read_dataset, read_json

#: Environment and agents of each optimal control. Agents of a shared climate have the same limit
#: together as one agent for the globe, so ebm-v1 and ebm-v3 need only one.
REFERENCES = {
    f"{name}{kind}": (f"{env}{kind}", agents)
    for kind in ("", "-published")  # where the albedo is not applied, there is less to control
    for name, env, agents in (
        ("limit-shared", "ebm-v1", 1),
        ("limit-v2-a2", "ebm-v2", 2),
        ("limit-v2-a6", "ebm-v2", 6),
    )
}
#: One episode without exploration: the climate and every parameter, step by step.
EPISODE = {
    "surface_temperature": ("step", "lat"),
    "D": ("step",),
    "A": ("step", "lat"),
    "B": ("step", "lat"),
    "a0": ("step",),
    "a2": ("step",),
}
#: A finished cell: its training, the skill of its policies, and the mean episode of its seeds.
CELL = {
    "returns": ("episode", "seed", "agent"),
    "seconds": ("episode",),
    "core_seconds": ("episode",),
    "areawrmse": ("policy", "seed", "band"),
    "areawrmse_global": ("policy", "seed"),
    "evaluation_return": ("policy", "seed", "agent"),
    "final_temperature": ("policy", "seed", "lat"),
    "target": ("lat",),
    **{f"episode_{name}": dimensions for name, dimensions in EPISODE.items()},
}
#: The agents' own policies, and their average.
POLICIES = ("local", "global")
#: Sizes that are the same in every file.
SIZES = {"step": EPISODE_STEPS, "lat": 96, "band": len(BAND_NAMES), "policy": len(POLICIES)}
COLDEST, WARMEST = -150.0, 150.0  # °C: the range that packed temperatures cover
#: The results that a wheel has; in a checkout they are in ``results/paper``.
PACKAGED = Path(__file__).parent / "data" / "results"
REMEDY = ": remove it and run the benchmark again"

#: AreaWRMSE of the six bands in a cell, from south to north; None where a source has no such cell.
Bands = Callable[[Cell], list[Sample] | None]


def write_result(path: Path, run: Run) -> None:
    """Write what is kept of a finished run."""
    results, returns = run.results, run.returns
    last = run.configuration.make_environment().last_judged
    kept = {
        "returns": returns.returns.astype(np.float32),
        "seconds": returns.seconds,
        "core_seconds": returns.core_seconds,
        "areawrmse": results.areawrmse,
        "areawrmse_global": results.areawrmse_global,
        "evaluation_return": results.returns,
        "final_temperature": results.surface_temperature.isel(step=last, drop=True),
        "target": results.target,
    }
    episode = results.sel(policy="local").mean("seed", keep_attrs=True)
    note = "mean over the seeds, local policy, one episode without exploration"
    table = run.configuration.make_environment().model.table
    for name, values in _pack_episode(episode, table).items():
        kept[f"episode_{name}"] = values.assign_attrs(comment=note)
    stored = read_json(run.folder / "configuration.json")
    attributes = {
        "Conventions": "CF-1.11",
        "title": f"FedRAIN benchmark {run.configuration.name}",
        "configuration": json.dumps({k: v for k, v in stored.items() if k != "versions"}),
        "versions": json.dumps(stored["versions"]),
    }
    write_dataset(path, xr.Dataset({name: kept[name] for name in CELL}, attrs=attributes))


def write_reference(path: Path, environment: Environment, baseline: Baseline) -> None:
    """Write an episode under optimal control."""
    sequence = sequence_dataset(environment, baseline)
    write_dataset(path, sequence.assign(_pack_episode(sequence, environment.model.table)))


def read_result(path: Path, configuration: Configuration) -> xr.Dataset:
    """The result of an experiment; an error if the file holds anything else."""
    data = read_dataset(path, REMEDY)
    try:
        held = from_dict(parse_json(str(data.attrs["configuration"]), path))
        if held.identity != configuration.identity:
            raise ValueError("another experiment")
        sizes = {
            "episode": configuration.episodes,
            "seed": len(configuration.seeds),
            "agent": configuration.agents,
        }
        _check(data, CELL, sizes)
        if data.policy.values.tolist() != list(POLICIES):
            raise ValueError("other policies")
        check_dataset(path, data, _coordinates(configuration), {})
        parse_json(str(data.attrs["versions"]), path)
    except (KeyError, ValueError) as error:
        raise InputError(
            f"{path}: is not the result of this cell ({error}): remove it to train the cell again"
        ) from None
    return data


def _coordinates(configuration: Configuration) -> dict[str, Any]:
    """The values along every dimension of a cell, in their order."""
    return {
        "policy": list(POLICIES),
        "band": list(BAND_NAMES),
        "episode": np.arange(1, configuration.episodes + 1),
        "step": np.arange(1, EPISODE_STEPS + 1),
        "seed": np.array(configuration.seeds),
        "agent": np.arange(configuration.agents),
        "lat": configuration.make_environment().model.columns.latitude,
    }


def read_reference(path: Path) -> xr.Dataset:
    """An episode under optimal control."""
    data = read_dataset(path, REMEDY)
    try:
        _check(data, EPISODE, {})
        check_dataset(path, data, {"step": np.arange(1, EPISODE_STEPS + 1)}, {})
    except ValueError as error:
        raise InputError(
            f"{path}: is not an episode of optimal control ({error}){REMEDY}"
        ) from None
    return data


def optimal_skill(folder: str | Path) -> dict[str, Skill]:
    """Skill of each optimal control that a folder of results holds, by its name."""
    columns, found = make("ebm-v1").model.columns, {}
    for name in REFERENCES:
        if (path := Path(folder) / f"{name}.nc").exists():
            data = read_reference(path)
            final = data.surface_temperature.values[-1].astype(float)
            found[name] = band_skill(columns, final, data.target.values.astype(float))
    return found


def reference_of(cell: Cell) -> str:
    """Name of the optimal control that a cell is measured by."""
    name = f"limit-v2-a{cell.agents}" if cell.env == "ebm-v2" else "limit-shared"
    return f"{name}-published" if cell.preset == "published" else name


def _check(
    data: xr.Dataset, variables: Mapping[str, tuple[str, ...]], sizes: dict[str, int]
) -> None:
    for name, dimensions in variables.items():
        if name not in data:
            raise ValueError(f"{name} is missing")
        expected = {which: (SIZES | sizes)[which] for which in dimensions}
        if list(data[name].sizes.items()) != list(expected.items()):
            raise ValueError(f"{name} has the wrong shape")
        if data[name].dtype.kind not in "fiu":
            raise ValueError(f"{name} has no numbers")


def _pack_episode(data: xr.Dataset, table: ParameterTable) -> dict[str, xr.DataArray]:
    """Every variable of an episode in 16 bits over the range that it may have."""
    ranges = {row.symbol: (row.low, row.high) for row in table}
    ranges["surface_temperature"] = (COLDEST, WARMEST)
    return {name: _pack(data[name], *ranges[name]) for name in EPISODE}


def _pack(values: xr.DataArray, low: float, high: float) -> xr.DataArray:
    values = values.astype(np.float32)
    values.encoding = {
        "dtype": "int16",
        "scale_factor": (high - low) / 60_000,
        "add_offset": (low + high) / 2,
        "_FillValue": np.iinfo(np.int16).min,
    }
    return values


class Result:
    """The stored result of one cell, without the seeds that diverged.

    ``cell`` is the :class:`Cell`, ``data`` the file's variables as an :class:`xarray.Dataset`.
    Wherever a policy is asked for, ``local`` are the agents' own policies, which the paper's tables
    report, and ``global`` is their average.

    Args:
        cell: Which.
        data: The variables of its file.

    Example:
        >>> result = load_results("results/paper")[Cell("ebm-v3", 6, "fed05", "ddpg", "paper")]
        >>> result.skill().shape, round(result.globe().mean, 2)
        ((10, 6), 3.02)
    """

    def __init__(self, cell: Cell, data: xr.Dataset) -> None:
        self.cell = cell
        learnt = np.isfinite(data.returns).all(("agent", "episode"))
        finite = (np.isfinite(data.areawrmse_global.sel(policy="local")) & learnt).values
        self.data = data.isel(seed=np.flatnonzero(finite))

    def skill(self, policy: str = "local") -> Float[np.ndarray, "seed band"]:
        """AreaWRMSE of the bands from south to north, in K."""
        return self.data.areawrmse.sel(policy=policy).values

    def globe(self, policy: str = "local") -> Sample:
        """AreaWRMSE of the globe in K over the seeds whose policy stays finite."""
        errors = self.data.areawrmse_global.sel(policy=policy).values
        return Sample.of(errors[np.isfinite(errors)])

    def bands(self, policy: str = "local") -> list[Sample]:
        """AreaWRMSE of each band in K over the seeds."""
        return [Sample.of(values) for values in self.skill(policy).T]

    @cached_property
    def best_seed(self) -> int:
        """Index of the seed with the lowest global error."""
        return int(np.argmin(self.data.areawrmse_global.sel(policy="local").values))

    @cached_property
    def learning(self) -> Float[np.ndarray, "seed episode"]:
        """Return of each training episode in K², mean over the agents."""
        return self.data.returns.mean("agent").transpose("seed", "episode").values

    def evaluation_return(self, policy: str) -> float:
        """Return without exploration in K², mean over agents and seeds."""
        return float(self.data.evaluation_return.sel(policy=policy).mean())

    def share_of_limit(self, policy: str) -> float:
        """Where that return lies between the static model (0) and optimal control (1)."""
        worst, best = self.ends
        return (self.evaluation_return(policy) - worst) / (best - worst)

    @property
    def ends(self) -> tuple[float, float]:
        """Return of the static model and of optimal control in K², mean over the agents."""
        return _static_and_limit(self.cell.configuration().env, self.cell.agents)

    @property
    def core_hours(self) -> float:
        """Processor time of the training."""
        return float(self.data.core_seconds.sum()) / 3600

    @property
    def hours(self) -> float:
        """Wall-clock time of the training, without interruptions."""
        return float(self.data.seconds.sum()) / 3600

    @property
    def versions(self) -> dict[str, Any]:
        """Software and machine that it was trained with."""
        return json.loads(self.data.attrs["versions"])


Results = dict[Cell, Result]


def load_results(folder: str | Path) -> Results:
    """Read every finished cell of the matrix.

    Args:
        folder: Where ``fedrain benchmark run`` keeps its results (``results/paper``).

    Returns:
        Results by cell, in the order of the tables. Cells that are not finished, or of which fewer
        than two seeds have not diverged, are left out.

    Raises:
        InputError: If there is no result, or one is damaged or of another experiment.

    Example:
        >>> results = load_results("results/paper")
        >>> sum(cell.preset == "corrected" for cell in results)
        26
    """
    found = {}
    for cell in sorted(cells(), key=_place_in_tables):
        path = Path(folder) / f"{cell.name}.nc"
        if path.exists():
            result = Result(cell, read_result(path, cell.configuration()))
            if result.data.sizes["seed"] > 1:
                found[cell] = result
    if not found:
        raise InputError(f"{folder}: holds no results: fedrain benchmark run computes them")
    return found


def _place_in_tables(cell: Cell) -> tuple[str, str, int, int, str]:
    """Sorts cells so that those to be compared stand side by side."""
    return cell.algo, cell.env, cell.agents, preset_order(cell.preset), cell.scheme


def experiments_of(results: Results, preset: str) -> Results:
    """The results of one preset by experiment, which is what its cell of preset ``paper`` is."""
    return {
        replace(cell, preset="paper"): result
        for cell, result in results.items()
        if cell.preset == preset
    }


def reproduction(results: Results, experiment: Cell) -> Result | None:
    """What stands for an experiment of the paper: preset ``published`` if it is there."""
    found = (results.get(replace(experiment, preset=preset)) for preset in REPRODUCTIONS)
    return next((result for result in found if result is not None), None)


def missing_cells(results: Results) -> list[Cell]:
    """Cells of the matrix that have no result, in the order of the tables."""
    return [cell for cell in sorted(cells(), key=_place_in_tables) if cell not in results]


def our_bands(results: Results) -> Bands:
    """Our own figures."""
    return lambda cell: results[cell].bands() if cell in results else None


@cache
def static_skill() -> Skill:
    """Skill of the static model, which is the same in every environment."""
    return static(make("ebm-v1")).skill


@cache
def _static_and_limit(env: str, agents: int) -> tuple[float, float]:
    """Mean return of the agents with the static model, and under optimal control."""
    environment = make(env, agents=agents)
    best = known_limit(environment)
    assert best is not None  # the limits of the matrix come with the package
    return float(static(environment).returns.mean()), best


def static_bands() -> list[Sample]:
    """The static model's errors as samples without spread, which tests take as fixed numbers."""
    return [Sample(error, 0.0, PUBLISHED_SEEDS) for error in static_skill().bands]
