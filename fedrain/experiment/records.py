"""The results of a run as files: NetCDF for returns and skill, safetensors for weights."""

from typing import Any

import numpy as np
import xarray as xr

from fedrain.climate import BAND_NAMES
from fedrain.climate.diagnostics import latitude_coordinates
from fedrain.envs import Environment
from fedrain.experiment.configuration import Configuration
from fedrain.experiment.evaluation import Evaluation

POLICIES = ("local", "global")


def returns_dataset(
    configuration: Configuration, history: dict[str, np.ndarray], episode_length: int
) -> xr.Dataset:
    """Returns, losses and the distance between actors, over the episodes."""
    names = {
        "returns": ("return", "sum of the rewards of an episode, with exploration", "K2"),
        "critic_loss": ("critic loss", "loss of the critics at the last policy update", "1"),
        "actor_loss": ("actor loss", "last loss of the actor in the episode", "1"),
        "q": ("value", "mean value that the critics give to what they learn from", "K2"),
    }
    variables: dict[str, Any] = {
        key: (
            ("episode", "seed", "agent"),
            history[key],
            {"long_name": long, "comment": text, "units": unit},
        )
        for key, (long, text, unit) in names.items()
    }
    variables["actor_distance"] = (
        ("episode", "seed"),
        history["distance"],
        {"long_name": "root mean square distance of the actors from their mean", "units": "1"},
    )
    variables["seconds"] = (
        "episode", history["seconds"], {"long_name": "time taken", "units": "s"},
    )  # fmt: skip
    variables["core_seconds"] = (
        "episode", history["core_seconds"], {"long_name": "processor time taken", "units": "s"},
    )  # fmt: skip
    episodes = len(history["returns"])
    return xr.Dataset(
        variables,
        coords={
            "episode": ("episode", np.arange(1, episodes + 1), {"long_name": "episode"}),
            "step": ("episode", np.arange(1, episodes + 1) * episode_length, {"long_name": "step"}),
            "seed": ("seed", np.array(configuration.seeds, np.int64), {"long_name": "seed"}),
            "agent": (
                "agent",
                np.arange(configuration.agents),
                {"long_name": "agent, south to north"},
            ),
        },
        attrs=_attributes(configuration),
    )


def skill_dataset(
    configuration: Configuration,
    environment: Environment,
    evaluations: dict[str, Evaluation],
) -> xr.Dataset:
    """Skill, profiles and parameters of the local and the global policies over one episode."""
    grid = environment.model.grid
    skills = {name: evaluation.skill(environment) for name, evaluation in evaluations.items()}
    kelvin = {"units": "K"}
    variables: dict[str, Any] = {
        "areawrmse": (
            ("policy", "seed", "band"),
            np.array([[s.bands for s in skills[p]] for p in POLICIES]),
            {"long_name": "area-weighted root mean square error of the band", **kelvin},
        ),
        "areawrmse_global": (
            ("policy", "seed"),
            np.array([[s.globe for s in skills[p]] for p in POLICIES]),
            {"long_name": "area-weighted root mean square error of the globe", **kelvin},
        ),
        "returns": (
            ("policy", "seed", "agent"),
            np.stack([evaluations[p].returns for p in POLICIES]),
            {"long_name": "return without exploration", "units": "K2"},
        ),
        "surface_temperature": (
            ("policy", "seed", "step", "lat"),
            np.stack([evaluations[p].profile for p in POLICIES]),
            {
                "standard_name": "surface_temperature",
                "long_name": "surface temperature",
                "units": "degC",
            },
        ),
        "target": (
            "lat",
            np.array(environment.target),
            {"standard_name": "surface_temperature", "long_name": "target", "units": "degC"},
        ),
    }
    for row in environment.model.table:
        dims = ("policy", "seed", "step", "lat") if row.per_latitude else ("policy", "seed", "step")
        values = np.stack([evaluations[p].parameters[row.symbol] for p in POLICIES])
        variables[row.symbol] = (dims, values, {"long_name": row.name, "units": row.unit})
    return xr.Dataset(
        variables,
        coords={
            "policy": ("policy", list(POLICIES)),
            "seed": ("seed", np.array(configuration.seeds, np.int64)),
            "agent": ("agent", np.arange(configuration.agents)),
            "band": ("band", list(BAND_NAMES)),
            "step": ("step", np.arange(1, environment.episode_length + 1), {"long_name": "step"}),
            "lat": latitude_coordinates(grid)["lat"],
        },
        attrs=_attributes(configuration),
    )


def _attributes(configuration: Configuration) -> dict[str, str]:
    return {
        "Conventions": "CF-1.11",
        "title": f"FedRAIN experiment {configuration.name}",
        "source": "FedRAIN",
    }
