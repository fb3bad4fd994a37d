"""Whether the files of a finished run are those that it wrote, and hold what a run has.

The weights are written last, and their note has the checksums of the other files: with them the run
is finished, and whole. Runs from before version 0.2 have none, and are read as they are.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from fedrain.climate import BAND_NAMES
from fedrain.climate.layout import Layout
from fedrain.envs.options import has_own_target
from fedrain.errors import InputError
from fedrain.experiment.configuration import Configuration
from fedrain.reading import CHANGED, check_dataset, file_digest

CONFIGURATION, FILES = "configuration", "files"
RUN = ("policy", "seed", "step")


def checksums(folder: Path, values: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """What the note of the weights has of the files of a run, and of its stored configuration."""
    files = {name: file_digest(folder / name) for name in names}
    return {CONFIGURATION: _digest(values), FILES: files}


def _digest(values: Mapping[str, Any]) -> str:
    """Of what a configuration says, except for what may change when the run is finished."""
    sources = values.get("sources") or {}
    kept = {
        kind: {k: v for k, v in source.items() if k != "accepted"}
        if isinstance(source, Mapping)
        else source
        for kind, source in sources.items()
    }
    said = {k: v for k, v in values.items() if k != "versions"} | {"sources": kept}
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def check_configuration(path: Path, values: Mapping[str, Any], note: Mapping[str, Any]) -> None:
    """Refuse a configuration that is not the one which the run was finished with."""
    if note.get(CONFIGURATION, (now := _digest(values))) != now:
        raise InputError(f"{path}: {CHANGED}")


def check_file(path: Path, note: Mapping[str, Any]) -> None:
    """Refuse a file of a run whose checksum is not what the note says, before it is opened."""
    known = note.get(FILES)
    if isinstance(known, Mapping) and known.get(path.name) != file_digest(path):
        raise InputError(f"{path}: {CHANGED}")


def check_returns(path: Path, data: xr.Dataset, configuration: Configuration) -> None:
    """Refuse a dataset that is not the returns of this experiment."""
    episodes = np.arange(1, configuration.episodes + 1)
    each = ("episode", "seed", "agent")
    known = {"actor_distance": each[:2], "seconds": each[:1], "core_seconds": each[:1]}
    known |= dict.fromkeys(("critic_loss", "actor_loss", "q"), each)
    coordinates = {
        "episode": episodes,
        "step": episodes * configuration.make_environment().episode_length,
        **_who(configuration),
    }
    check_dataset(path, data, coordinates, {"returns": each} | _there(known, data))


def check_course(path: Path, data: xr.Dataset, configuration: Configuration) -> None:
    """Refuse a dataset that is not the course of this experiment."""
    environment = configuration.make_environment()
    layout, number = Layout(environment.model), len(environment.model.columns)
    places = {name: variable.values for name, variable in layout.coordinates.items()}
    episodes = data["episode"].values if "episode" in data.variables else np.zeros(0)
    rising = episodes.dtype.kind in "iu" and episodes.ndim == 1 and (np.diff(episodes) > 0).all()
    if not (rising and len(episodes) and 1 <= episodes[0] <= episodes[-1]):
        raise InputError(f"{path}: its coordinate 'episode' is not that of the run")
    if episodes[-1] > configuration.episodes:
        raise InputError(f"{path}: has more episodes than the run")
    lead = ("episode", "seed")
    variables: dict[str, tuple[str, ...]] = {}
    optional: dict[str, tuple[str, ...]] = {}
    for field in environment.judged_fields:
        at = _dimensions(layout.field(field, np.zeros(field.shape(number))))
        optional |= dict.fromkeys((field.name, f"target_{field.name}"), (*lead, *at))
    for row in environment.learnt:
        one = layout.parameter(row, np.zeros(row.shape(number)))
        variables[row.symbol] = (*lead, *_dimensions(one))
    seeds = _who(configuration)["seed"]
    check_dataset(path, data, {"seed": seeds, **places}, variables | _there(optional, data))


def check_skill(path: Path, data: xr.Dataset, configuration: Configuration) -> None:
    """Refuse a dataset that is not the skill of this experiment."""
    environment = configuration.make_environment()
    layout, number = Layout(environment.model), len(environment.model.columns)
    places = {name: variable.values for name, variable in layout.coordinates.items()}
    coordinates: dict[str, Any] = {
        "policy": ["local", "global"],
        "band": list(BAND_NAMES),
        "step": np.arange(1, environment.episode_length + 1),
        **_who(configuration),
        **places,
    }
    budget = ("policy", "seed", "parameter")
    known: dict[str, tuple[str, ...]] = {"rms_error": ("policy", "seed", "field")}
    known |= dict.fromkeys(("roughness", "at_bounds"), budget)
    if "at_bounds" in data.variables:  # absent before version 0.2
        coordinates["field"] = [name for name, _ in environment.judged]
        coordinates["field"] += environment.flux_references
        coordinates["parameter"] = [row.symbol for row in environment.learnt]
    else:
        known = {}
    variables = {
        "areawrmse": ("policy", "seed", "band"),
        "areawrmse_global": ("policy", "seed"),
        "returns": ("policy", "seed", "agent"),
        **known,
    }
    own = ("seed",) if has_own_target(environment) else ()
    for i, field in enumerate(environment.judged_fields):
        at = _dimensions(layout.field(field, np.zeros(field.shape(number))))
        variables[field.name] = (*RUN, *at)
        variables[f"target_{field.name}" if i else "target"] = (*own, *at)
    for row in environment.model.table:
        variables[row.symbol] = (
            *RUN,
            *_dimensions(layout.parameter(row, np.zeros(row.shape(number)))),
        )
    columns = {"above_black_body": ("policy", "seed")}
    check_dataset(path, data, coordinates, variables | _there(columns, data))


def _who(configuration: Configuration) -> dict[str, np.ndarray]:
    agents = len(configuration.make_environment().regions)
    return {"seed": np.array(configuration.seeds, np.int64), "agent": np.arange(agents)}


def _dimensions(variable: xr.Variable) -> tuple[str, ...]:
    return tuple(map(str, variable.dims))


def _there(known: Mapping[str, tuple[str, ...]], data: xr.Dataset) -> dict[str, tuple[str, ...]]:
    """Variables that runs from before version 0.2 may lack."""
    return {name: dimensions for name, dimensions in known.items() if name in data.variables}
