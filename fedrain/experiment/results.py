"""The results of a run as files: NetCDF for returns and skill, safetensors for weights.

What is written here is read here; :class:`fedrain.experiment.Run` shows it.
"""

from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from fedrain.agents.networks import Network
from fedrain.agents.step import start_training
from fedrain.climate import BAND_NAMES, Skill
from fedrain.climate.columns import is_integer
from fedrain.climate.fields import ABSORBED_SHORTWAVE, OUTGOING_LONGWAVE
from fedrain.climate.layout import Layout
from fedrain.climate.physics import Physics
from fedrain.envs import Environment
from fedrain.envs.options import has_own_target
from fedrain.errors import InputError, unknown
from fedrain.experiment.configuration import Configuration
from fedrain.experiment.course import COURSE, Course
from fedrain.experiment.evaluation import Evaluation, evaluate
from fedrain.experiment.integrity import FILES, check_file, check_returns, check_skill, checksums
from fedrain.federation import mean_network
from fedrain.io import flatten, unflatten, write_arrays, write_dataset
from fedrain.reading import (
    ARRAYS,
    CHANGED,
    MIB,
    has_checksum,
    read_arrays,
    read_dataset,
    read_json,
    read_note,
)

POLICIES = ("local", "global")
RETURNS, SKILL, WEIGHTS = "returns.nc", "skill.nc", "weights.safetensors"
#: What the skill says of itself where it is not that of the climate in which the agents learnt.
CLIMATE = "climate"
FOREIGN = (
    "the agents learnt in the climate of another program; this is what their policies do in the "
    "model of the experiment"
)
#: A return is minus a sum of squares.
ATTRIBUTES = {
    "returns": ("return", "sum of the rewards of an episode, with exploration", "{square}"),
    "critic_loss": ("critic loss", "loss of the critics at the last policy update", "1"),
    "actor_loss": ("actor loss", "last loss of the actor in the episode", "1"),
    "q": ("value", "mean value that the critics give to what they learn from", "1"),
}


def write_results(
    configuration: Configuration,
    local: Network,
    history: dict[str, np.ndarray],
    out: Path,
    foreign: bool = False,
    course: Course | None = None,
) -> None:
    """Weights, returns and skill of the local policies and of their average, as files of a run.

    ``course`` is what was recorded of the climate over training.

    ``foreign`` says that they were learnt in the climate of another program than the experiment's,
    in which we cannot evaluate them: then the skill is that of the experiment's model, and says so.

    The weights, whose note tells how many episodes they have learnt from, come last: with them
    the run is finished.
    """
    environment = configuration.make_environment()
    sharing = configuration.make_sharing()
    average = jax.jit(jax.vmap(partial(mean_network, sharing=sharing)))(local)
    policies: dict[str, Any] = {"local": local, "global": average}
    evaluations = {
        name: evaluate(environment, configuration.make_algorithm(), actors, configuration.seeds)
        for name, actors in policies.items()
    }
    write_dataset(out / RETURNS, returns_dataset(configuration, history))
    skill = skill_dataset(configuration, environment, evaluations)
    write_dataset(out / SKILL, skill.assign_attrs({CLIMATE: FOREIGN} if foreign else {}))
    names = [RETURNS, SKILL]
    (out / COURSE).unlink(missing_ok=True)  # of the run before it was extended
    if course is not None and course.episodes:
        write_dataset(out / COURSE, course.dataset())
        names.append(COURSE)
    weights = {
        f"{name}/{path}": leaf
        for name, actors in policies.items()
        for path, leaf in flatten(actors).items()
    }
    stored = read_json(out / "configuration.json")
    note = {
        "layout": "seed, agent, …",
        "episodes": configuration.episodes,
        **checksums(out, stored, names),
    }
    write_arrays(out / WEIGHTS, weights, note)


def episodes_learnt(folder: Path) -> int | None:
    """Episodes that the weights of a run have learnt from; None if there are no results yet.

    Weights from before version 0.2 do not say: 0.
    """
    if not all((folder / name).is_file() for name in (RETURNS, SKILL, WEIGHTS)):
        return None
    try:
        episodes = read_note(folder / WEIGHTS).get("episodes", 0)
    except InputError:
        return 0  # whoever reads them will say what is wrong
    return episodes if is_integer(episodes) else 0


def read_weights_note(folder: Path) -> dict[str, Any]:
    """What the weights of a finished run tell of it, and of its other files."""
    return read_note(folder / WEIGHTS)


def read_returns(folder: Path, configuration: Configuration) -> xr.Dataset:
    """The returns of a finished run; anything else in their place is refused."""
    check_file(path := folder / RETURNS, read_weights_note(folder))
    check_returns(path, data := read_dataset(path), configuration)
    return data


def read_skill(folder: Path, configuration: Configuration) -> xr.Dataset:
    """The skill of a finished run; anything else in its place is refused."""
    check_file(path := folder / SKILL, read_weights_note(folder))
    check_skill(path, data := read_dataset(path), configuration)
    return data


def read_actors(folder: Path, configuration: Configuration, policy: str) -> Network:
    """The weights of all actors, stacked as seed, agent."""
    check_policy(policy)
    environment = configuration.make_environment()
    algorithm = configuration.make_algorithm()

    def fresh(seed: jax.Array) -> Network:
        regions = environment.regions
        return start_training(algorithm, environment.spec, regions, seed, 1).agents.actor

    like = jax.eval_shape(jax.vmap(fresh), jnp.asarray(configuration.seeds, jnp.uint32))
    size = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(like))
    path = folder / WEIGHTS
    arrays, note = read_arrays(path, most=max(ARRAYS, len(POLICIES) * size + MIB))
    if FILES in note and not has_checksum(path):
        raise InputError(f"{path}: {CHANGED}")
    prefix = f"{policy}/"
    own = {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}
    return unflatten(like, own, str(folder / WEIGHTS))


def check_policy(policy: str) -> None:
    """Refuse a policy that runs do not have."""
    if policy not in POLICIES:
        raise unknown("policy", policy, POLICIES)


def returns_dataset(configuration: Configuration, history: dict[str, np.ndarray]) -> xr.Dataset:
    """Returns, losses and the distance between actors, over the episodes."""
    environment = configuration.make_environment()
    square = _square(environment)
    variables: dict[str, Any] = {
        key: (
            ("episode", "seed", "agent"),
            history[key],
            {"long_name": long, "comment": text, "units": unit.format(square=square)},
        )
        for key, (long, text, unit) in ATTRIBUTES.items()
    }
    variables["actor_distance"] = (
        ("episode", "seed"),
        history["distance"],
        {"long_name": "root mean square distance of the actors from their mean", "units": "1"},
    )
    for key, long in (("seconds", "time taken"), ("core_seconds", "processor time taken")):
        variables[key] = ("episode", history[key], {"long_name": long, "units": "s"})
    episode = np.arange(1, len(history["returns"]) + 1)
    steps = episode * environment.episode_length
    return xr.Dataset(
        variables,
        coords={
            "episode": ("episode", episode, {"long_name": "episode"}),
            "step": ("episode", steps, {"long_name": "step"}),
            "seed": ("seed", np.array(configuration.seeds, np.int64), {"long_name": "seed"}),
            "agent": _agents(environment),
        },
        attrs=_attributes(configuration),
    )


def skill_dataset(
    configuration: Configuration,
    environment: Environment,
    evaluations: dict[str, Evaluation],
) -> xr.Dataset:
    """Skill, judged fields and parameters of both policies over one episode.

    ``areawrmse`` is of the first of the judged fields, ``rms_error`` of each; ``target`` is of the
    first, ``target_<field>`` of the others.
    """
    layout = Layout(environment.model)
    skills = {name: evaluation.skill(environment) for name, evaluation in evaluations.items()}
    errors = {name: evaluation.errors(environment) for name, evaluation in evaluations.items()}
    unit = {"units": environment.judged_fields[0].difference_unit}
    variables: dict[str, Any] = {
        "areawrmse": (
            ("policy", "seed", "band"),
            np.array([[s.bands for s in skills[p]] for p in POLICIES]),
            {"long_name": "area-weighted root mean square error of the band", **unit},
        ),
        "areawrmse_global": (
            ("policy", "seed"),
            np.array([[s.globe for s in skills[p]] for p in POLICIES]),
            {"long_name": "area-weighted root mean square error of the globe", **unit},
        ),
        "rms_error": (
            ("policy", "seed", "field"),
            np.array([np.stack(list(errors[p].values()), axis=-1) for p in POLICIES]),
            {"long_name": "area-weighted root mean square error of each field that is known"},
        ),
        "returns": (
            ("policy", "seed", "agent"),
            np.stack([evaluations[p].returns for p in POLICIES]),
            {"long_name": "return without exploration", "units": _square(environment)},
        ),
    }
    variables |= _physics(environment, evaluations)
    coords: dict[str, Any] = {
        "policy": ("policy", list(POLICIES)),
        "seed": ("seed", np.array(configuration.seeds, np.int64)),
        "agent": _agents(environment),
        "band": ("band", list(BAND_NAMES)),
        "field": ("field", list(errors[POLICIES[0]])),
        "parameter": ("parameter", [row.symbol for row in environment.learnt]),
        "step": ("step", np.arange(1, environment.episode_length + 1), {"long_name": "step"}),
        **layout.coordinates,
    }
    run = ("policy", "seed", "step")
    for i, field in enumerate(environment.judged_fields):
        values = np.stack([evaluations[p].fields[field.name] for p in POLICIES])
        variables[field.name] = layout.field(field, values, run)
        moving = has_own_target(environment)  # then each seed has its own
        values = evaluations[POLICIES[0]].target[field.name]
        target = layout.field(field, values if moving else values[0], ("seed",) if moving else ())
        target.attrs["long_name"] = f"target of the {field.title}"
        variables[f"target_{field.name}" if i else "target"] = target
    fields = {one.name: one for one in (OUTGOING_LONGWAVE, ABSORBED_SHORTWAVE)}
    for name in evaluations[POLICIES[0]].fluxes:
        if name not in variables:
            values = np.stack([evaluations[p].fluxes[name] for p in POLICIES])
            variables[name] = layout.field(fields[name], values, ("policy", "seed"))
    for row in environment.model.table:
        values = np.stack([evaluations[p].parameters[row.symbol] for p in POLICIES])
        variables[row.symbol] = layout.parameter(row, values, run)
    return xr.Dataset(variables, coords=coords, attrs=_attributes(configuration))


def _physics(environment: Environment, evaluations: dict[str, Evaluation]) -> dict[str, Any]:
    """How plausible budget and parameters are after the last step, as variables."""
    found = [evaluations[policy].physics(environment) for policy in POLICIES]
    symbols = [row.symbol for row in environment.learnt]
    by_parameter = ("policy", "seed", "parameter")

    def of(name: str) -> np.ndarray:
        return np.array(
            [[[getattr(p, name).get(s, np.nan) for s in symbols] for p in one] for one in found]
        )

    variables: dict[str, Any] = {
        "roughness": (
            by_parameter,
            of("roughness"),
            {"long_name": "mean difference between neighbours, over the range", "units": "1"},
        ),
        "at_bounds": (
            by_parameter,
            of("at_bounds"),
            {"long_name": "share of the values within 1 % of a bound", "units": "1"},
        ),
    }
    if found[0][0].above_black_body is not None:
        variables["above_black_body"] = (
            ("policy", "seed"),
            np.array([[p.above_black_body for p in one] for one in found]),
            {"long_name": "columns that emit more than a black body", "units": "1"},
        )
    return variables


def read_physics(data: xr.Dataset) -> Physics | None:
    """Mean over the seeds of one policy; None of runs from before version 0.2."""
    if "at_bounds" not in data:
        return None
    above = float(data.above_black_body.mean()) if "above_black_body" in data else None
    symbols = [str(symbol) for symbol in data.parameter.values]
    rough = dict(zip(symbols, data.roughness.mean("seed").values.tolist(), strict=True))
    bounded = dict(zip(symbols, data.at_bounds.mean("seed").values.tolist(), strict=True))
    return Physics(above, {s: v for s, v in rough.items() if np.isfinite(v)}, bounded)


def read_skills(data: xr.Dataset, policy: str) -> list[Skill]:
    """Skill of every seed."""
    check_policy(policy)
    chosen = data.sel(policy=policy)
    pairs = zip(chosen.areawrmse.values, chosen.areawrmse_global.values, strict=True)
    return [Skill(tuple(bands.tolist()), float(globe)) for bands, globe in pairs]


def read_columns(
    environment: Environment, data: xr.Dataset, name: str, policy: str, levels: bool = False
) -> np.ndarray:
    """A field or a parameter of each column, ``[seed, step, column]`` (with levels, a mean)."""
    values = np.asarray(data[name].sel(policy=policy).values)
    flat = values.reshape(*values.shape[:2], len(environment.model.columns), -1)
    return flat if levels else flat.mean(-1)


def _agents(environment: Environment) -> tuple[str, np.ndarray, dict[str, str]]:
    names = [environment.division.name(region) for region in environment.regions]
    comment = "; ".join(names) if len(names) <= 24 else "south to north"
    return ("agent", np.arange(len(names)), {"long_name": "agent", "comment": comment})


def _square(environment: Environment) -> str:
    """The unit of a return: a square, or a sum of squares of different units."""
    units = {field.difference_unit for field in environment.judged_fields}
    if len(units) > 1:
        return "1"
    (unit,) = units
    return "K2" if unit == "K" else "1" if unit == "1" else f"({unit})2"


def _attributes(configuration: Configuration) -> dict[str, str]:
    return {
        "Conventions": "CF-1.11",
        "title": f"FedRAIN experiment {configuration.name}",
        "source": "FedRAIN",
    }
