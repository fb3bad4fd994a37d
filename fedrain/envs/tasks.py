"""The tasks by name: a model, a target, what is learnt, how the globe is divided, how it starts.

| name   | agents | climates           | sees               | sets               |
|--------|--------|--------------------|--------------------|--------------------|
| ebm-v1 | 1      | 1                  | all latitudes      | all latitudes      |
| ebm-v2 | n      | one for each agent | all of its climate | all of its climate |
| ebm-v3 | n      | one, shared        | its own region     | its own region     |

``ebm-v1-published`` and so on are these as in the published runs.

A task of one's own is a :class:`Task`, named as ``file.py:name``; a model of one's own takes the
place of the energy balance model in any of them.
"""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

import jax
import numpy as np

from fedrain.climate import ClimateModel, ParameterTable, check_model
from fedrain.climate.climatology import Target
from fedrain.climate.model import same_structure
from fedrain.envs.catalogue import CIRCULATION, OPEN, PAPER, PUBLISHED
from fedrain.envs.environment import Environment
from fedrain.envs.episode import EnvParams, Record
from fedrain.envs.models import (
    earth_circulation,
    energy_balance,
    energy_budget,
    general_circulation,
    radiative_convective,
    seasonal,
    twin,
)
from fedrain.envs.options import (
    analysis_of,
    around_of,
    completed,
    forcings,
    judged_fields,
    names_of,
    noise_of,
    ramp_of,
    smooth_of,
    split_of,
    starts,
    targets,
    tiles_of,
)
from fedrain.envs.outside import made_model, made_task
from fedrain.envs.task import Bounds, Task
from fedrain.errors import InputError
from fedrain.references import Registry

#: Tasks by name: those of the package, and of others that have an entry point ``fedrain.tasks``.
TASKS = Registry("environment", "fedrain.tasks", PAPER | PUBLISHED | OPEN | CIRCULATION)
MODELS = Registry("climate model", "fedrain.models", {})

#: Models of the package, which take bounds, static values and what else is theirs as options.
OWN_MODELS = (
    energy_balance, energy_budget, twin, seasonal, radiative_convective, general_circulation,
    earth_circulation,
)  # fmt: skip
#: Options of :func:`energy_balance`, which a model of one's own decides for itself.
MODEL_OPTIONS = ("latitudes", "backend")


def find_task(task: "str | Task") -> Task:
    """A task by its name or reference, or as it is."""
    return made_task(TASKS.get(task) if isinstance(task, str) else task, task)


def find_model(
    model: Any, options: Mapping[str, Any] | None = None, learnt: tuple[str, ...] | None = None
) -> ClimateModel:
    """A model by its name or reference, of a class, or as it is; with options of its class."""
    found = made_model(MODELS.get(model) if isinstance(model, str) else model, options)
    if learnt is not None and isinstance(table := getattr(found, "table", None), ParameterTable):
        table.learnt(learnt)  # refused before a start is asked for, which may take minutes
    check_model(found)
    return found


def make(
    name: str | Task = "ebm-v3",
    *,
    agents: int | None = None,
    region: int | None = None,
    model: Any = None,
    model_options: Mapping[str, Any] | None = None,
    latitudes: int | None = None,
    backend: str | None = None,
    bounds: Mapping[str, Sequence[float]] | None = None,
    static: Mapping[str, Any] | None = None,
    learn: Sequence[str] | str | None = None,
    judge: Mapping[str, float] | Sequence[str] | str | None = None,
    reward_shape: str | None = None,
    around: Mapping[str, float | int] | None = None,
    observe: Sequence[str] | str | None = None,
    target: Target = None,
    start: Mapping[str, Bounds] | Bounds = None,
    forcing: Mapping[str, Bounds] | None = None,
    ramp: int | None = None,
    noise: float | int | None = None,
    split: str | None = None,
    analysis_every: int | None = None,
    smooth: float | int | None = None,
    tiles: Sequence[int] | None = None,
    overlap: bool | None = None,
    unapplied: Sequence[str] | str | None = None,
    unclipped: bool | None = None,
    judged_early: int | None = None,
    judged_over: int | None = None,
    episode_length: int | None = None,
) -> Environment:
    """An environment: a task by its name, and what is to be different in it.

    Args:
        name: ``ebm-v1``, ``ebm-v2``, ``ebm-v3``, another of ``fedrain envs``, ``file.py:name``, or
            a :class:`Task`.
        agents: Number of agents, a divisor of the columns; as many as there are tiles, if they
            are given.
        region: Keep only the agent of this region, where agents have climates of their own.
        model: A climate model of your own: an object, a class, or ``file.py:Class``.
        model_options: Arguments of its class.
        latitudes: Number of latitudes of the energy balance model (96).
        backend: ``"jax"``, or ``"climlab"`` for the same model on climlab.
        bounds: Other bounds of parameters, by symbol, in physical units: ``{"A": (180, 240)}``.
        static: Other static values of parameters, likewise.
        learn: Symbols of the parameters that agents set; the others keep their static values.
        judge: Fields that agents are judged by, with weights: ``{"surface_temperature": 1.0}``.
        reward_shape: ``"square"`` or ``"log"``; see :class:`Task`.
        around: Degrees over which errors nearby count too, e times less, by judged field.
        observe: What agents see: fields, ``"target"``, ``"error"``, ``"season"``, ``"place"``.
        target: NetCDF file, DataArray or values of the judged fields.
        start: Arguments of the model's ``init``: numbers, or pairs to draw between in each
            episode: ``{"temperature": (20, 50)}``. One number is for the first of them.
        forcing: Likewise, by name: ``{"longwave": (-1, 1)}``, in W m⁻².
        ramp: Steps over which the forcing sets in; 0: at once.
        noise: Standard deviation of the sensors' error, as a share of each field's scale.
        split: Episodes of the task that are kept from training: ``"validation"`` or ``"test"``,
            where it has them; what is given beside it counts more.
        analysis_every: Steps after which the model is set to what is observed; 0: never.
        smooth: Weight, in the reward, of differences between neighbouring columns.
        tiles: Rows and columns of regions, of latitude–longitude columns.
        overlap: Whether bands may share latitudes, where they do not divide them equally.
        unapplied: Symbols of parameters that agents set and the model does not get, as a0 and a2
            in the published runs; it keeps their static values.
        unclipped: Whether observations may leave their bounds.
        judged_early: Steps before the end of an episode at which an evaluation is judged (0).
        judged_over: Steps up to then over whose mean it is judged (1).
        episode_length: Steps in an episode.

    Returns:
        An :class:`Environment`; its ``params`` are what the task says of start, target, forcing
        and noise.
    """
    task = find_task(name)
    called = name if isinstance(name, str) else "this task"
    task = replace(task, **split_of(task, called, split))
    tiling = tiles_of(task.tiles if tiles is None else tiles)
    if agents is None and tiles is not None and tiling is not None:
        agents = tiling[0] * tiling[1]
    if not task.multi_agent and agents not in (None, 1):
        raise InputError(f"{called} has one agent, not {agents}")
    if not task.multi_agent and region is not None:
        raise InputError(f"{called} has no regions; ebm-v2 has")
    learnt = names_of("learn", task.learn if learn is None else learn)
    chosen = _model(task, model, model_options, latitudes, backend, bounds, static, learnt)
    judged = judged_fields(task.judge if judge is None else judge, chosen)
    observed = names_of("observe", task.observe if observe is None else observe)
    truth = _truth(task, chosen)
    length = task.episode_length if episode_length is None else episode_length
    record = None if task.record is None else task.record(chosen, length)
    moving = truth is not None or record is not None or hasattr(chosen, "target_at")
    if target is not None and moving:
        raise InputError(f"target: that of {called} changes at every step and cannot be set")
    if ramp is not None and ramp_of(ramp) and not (forcing or task.forcing):
        raise InputError("ramp cannot apply: there is no forcing; give one too")
    environment = Environment(
        model=chosen,
        params=EnvParams(
            target=targets(
                chosen,
                completed(target, _known_target(task, chosen, record), dict(judged)),
                dict(judged),
                strict=target is not None,  # a task may have targets of more than is judged
            ),
            start=starts(chosen, task.start if start is None else start),
            forcing=forcings(chosen, task.forcing if forcing is None else forcing),
            ramp=ramp_of(task.ramp if ramp is None else ramp),
            noise=noise_of(task.noise if noise is None else noise),
            analysis_every=analysis_of(
                task.analysis_every if analysis_every is None else analysis_every,
                chosen,
                recorded=record is not None and not hasattr(chosen, "target_at"),
            ),
            smooth=smooth_of(task.smooth if smooth is None else smooth),
            record=record,
        ),
        agents=task.agents if agents is None else agents,
        shared_climate=task.shared_climate,
        local_observation=task.local_observation,
        episode_length=length,
        learn=learnt,
        judged=judged,
        reward_shape=task.reward_shape if reward_shape is None else reward_shape,
        around=around_of(task.around, dict(judged)) if around is None else around_of(around),
        observed=tuple(dict(judged)) if observed is None else observed,
        tiles=tiling,
        overlap=bool(task.overlap if overlap is None else overlap),
        unapplied=names_of("unapplied", task.unapplied if unapplied is None else unapplied) or (),
        unclipped=bool(task.unclipped if unclipped is None else unclipped),
        judged_early=task.judged_early if judged_early is None else judged_early,
        judged_over=min(task.judged_over, length) if judged_over is None else judged_over,
        truth=truth,
        only_region=region,
    )
    environment.check_start()
    return environment


def _model(
    task: Task,
    model: Any,
    options: Mapping[str, Any] | None,
    latitudes: int | None,
    backend: str | None,
    bounds: Mapping[str, Sequence[float]] | None,
    static: Mapping[str, Any] | None,
    learnt: tuple[str, ...] | None,
) -> ClimateModel:
    own = {k: v for k, v in (("latitudes", latitudes), ("backend", backend)) if v is not None}
    tuned = {k: v for k, v in (("bounds", bounds), ("static", static)) if v is not None}
    if model is None and task.model in OWN_MODELS:
        return find_model(task.model, {**(options or {}), **own, **tuned}, learnt)
    if own:
        names = " and ".join(own)
        raise InputError(f"{names}: an option of the energy balance model only")
    found = find_model(task.model if model is None else model, options, learnt)
    return _retabled(found, tuned) if tuned else found


def _known_target(task: Task, model: ClimateModel, record: Record | None) -> Target:
    """The target of a task; of a record, its mean over the days that training sees."""
    if record is None:
        return task.target
    first, end = (int(one) for one in record.training)
    seen = jax.vmap(model.observe)(jax.tree.map(lambda every: every[first:end], record.states))
    return {name: np.asarray(values, float).mean(0) for name, values in seen.items()}


def _truth(task: Task, model: ClimateModel) -> ClimateModel | None:
    if task.truth is None:
        return None
    found = task.truth(model) if inspect.isfunction(task.truth) else task.truth
    truth = find_model(found)
    if truth.columns != model.columns or truth.forcings != model.forcings:
        raise InputError("the truth of a task has the columns and the forcings of its model")
    return truth


def _retabled(model: Any, tuned: dict[str, Any]) -> ClimateModel:
    """The model with other bounds and static values, where its table is a field of it."""
    rows = fields(model) if is_dataclass(model) else ()
    if "table" not in {row.name for row in rows if row.init}:
        raise InputError(
            f"{', '.join(tuned)}: {type(model).__name__} must be a dataclass with a field `table`"
        )
    return replace(model, table=model.table.replace(**tuned))


def same_task(one: Environment, other: Environment) -> bool:
    """Whether two environments are equal, and so are their start, target, forcing and noise."""
    if one != other or not same_structure(one.params, other.params):
        return False
    return jax.tree.all(jax.tree.map(np.array_equal, one.params, other.params))
