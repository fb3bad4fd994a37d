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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any

import jax
import numpy as np

from fedrain.climate import (
    ENERGY_BALANCE_PARAMETERS,
    ClimateModel,
    ClimlabModel,
    EnergyBalanceModel,
    Grid,
    check_model,
)
from fedrain.climate.climatology import Target
from fedrain.climate.model import first_line, same_structure
from fedrain.envs.environment import Environment
from fedrain.envs.episode import EnvParams
from fedrain.envs.options import (
    forcings,
    judged_fields,
    names_of,
    noise_of,
    ramp_of,
    starts,
    targets,
    tiles_of,
)
from fedrain.errors import InputError, unknown
from fedrain.references import Registry

#: What computes the energy balance model: this package or climlab.
BACKENDS = ("jax", "climlab")
#: One number, or the lowest and highest between which it is drawn in each episode.
Bounds = Any


def energy_balance(
    latitudes: int = 96,
    bounds: Mapping[str, Sequence[float]] | None = None,
    static: Mapping[str, Any] | None = None,
    backend: str = "jax",
) -> ClimateModel:
    """The annual energy balance model, on JAX or on climlab."""
    table = ENERGY_BALANCE_PARAMETERS.replace(bounds=bounds, static=static)
    model = EnergyBalanceModel(grid=Grid(latitudes), table=table)
    if backend not in BACKENDS:
        raise unknown("backend", backend, BACKENDS)
    return model if backend == "jax" else ClimlabModel(model)


@dataclass(frozen=True)
class Task:
    """What an experiment is about. Every field can be replaced by an option of :func:`make`.

    Args:
        model: A climate model, or a function of options that makes one.
        agents: How many agents there are, if it is not said; 1: there is always one.
        shared_climate: One climate for all agents, or one for each.
        local_observation: Whether an agent sees its own region only.
        episode_length: Steps in an episode.
        learn: Symbols of the parameters that are learnt; all, if it is None.
        judge: Fields that are judged, with their weights; the model's first, if it is None.
        observe: What agents see: fields, ``"target"``, ``"error"``, ``"season"``; the judged
            fields, if it is None.
        target: See :func:`fedrain.climate.target_fields`.
        start: Arguments of the model's ``init``: a number, or a pair to draw between.
        forcing: By name: a number, or a pair to draw between.
        ramp: Steps over which the forcing sets in.
        noise: Standard deviation of the sensors' error, as a share of each field's scale.
        tiles: Rows and columns of regions, on a latitude–longitude grid.
        unapplied: Symbols of parameters that agents set and the model does not get.
        unclipped: Whether observations may leave their bounds.
        judged_early: Steps before the end of an episode at which an evaluation is judged.
        summary: One line for ``fedrain envs``.
    """

    model: ClimateModel | Callable[..., ClimateModel] = energy_balance
    agents: int = 6
    shared_climate: bool = True
    local_observation: bool = True
    episode_length: int = 200
    learn: Sequence[str] | None = None
    judge: Mapping[str, float] | Sequence[str] | None = None
    observe: Sequence[str] | None = None
    target: Target = None
    start: Mapping[str, Bounds] = field(default_factory=dict)
    forcing: Mapping[str, Bounds] = field(default_factory=dict)
    ramp: int = 0
    noise: float | None = None
    tiles: tuple[int, int] | None = None
    unapplied: Sequence[str] = ()
    unclipped: bool = False
    judged_early: int = 0
    summary: str = ""

    @property
    def multi_agent(self) -> bool:
        """Whether there can be several agents."""
        return self.agents > 1


PAPER = {
    "ebm-v1": Task(
        agents=1,
        shared_climate=False,
        local_observation=False,
        summary="one agent sets a whole climate",
    ),
    "ebm-v2": Task(
        shared_climate=False,
        local_observation=False,
        summary="each agent has a climate of its own, and is judged by its region",
    ),
    "ebm-v3": Task(summary="the agents share one climate; each sees and sets its region"),
}
#: As the published runs had them: the climate does not get the albedo that agents set, what they
#: see may leave its bounds, and the profile is that before the last step.
PUBLISHED = {
    f"{name}-published": replace(
        task,
        unapplied=("a0", "a2"),
        unclipped=True,
        judged_early=1,
        summary=f"{name} as in the published runs: a0 and a2 are set and not applied",
    )
    for name, task in PAPER.items()
}
#: Tasks by name: those of the package, and of others that have an entry point ``fedrain.tasks``.
TASKS = Registry("environment", "fedrain.tasks", PAPER | PUBLISHED)
MODELS = Registry("climate model", "fedrain.models", {})

#: Options of :func:`energy_balance`, which a model of one's own decides for itself.
MODEL_OPTIONS = ("latitudes", "backend")


def find_task(task: "str | Task") -> Task:
    """A task by its name or reference, or as it is."""
    found = TASKS.get(task) if isinstance(task, str) else task
    if callable(found) and not isinstance(found, Task):
        found = found()
    if not isinstance(found, Task):
        raise InputError(f"{task}: is not a fedrain.envs.Task, but a {type(found).__name__}")
    return found


def find_model(model: Any, options: Mapping[str, Any] | None = None) -> ClimateModel:
    """A model by its name or reference, of a class, or as it is; with options of its class."""
    found = MODELS.get(model) if isinstance(model, str) else model
    if isinstance(found, type) or inspect.isfunction(found):
        allowed = inspect.signature(found).parameters
        takes_any = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in allowed.values())
        for name in options or {}:
            if name not in allowed and not takes_any:
                raise unknown(f"option of {found.__name__}", name, list(allowed))
        try:
            found = found(**(options or {}))
        except InputError:
            raise
        except Exception as error:
            raise InputError(f"{found.__name__} cannot be made ({first_line(error)})") from None
    elif options:
        raise InputError("a model that is made already takes no options")
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
    observe: Sequence[str] | str | None = None,
    target: Target = None,
    start: Mapping[str, Bounds] | Bounds = None,
    forcing: Mapping[str, Bounds] | None = None,
    ramp: int | None = None,
    noise: float | None = None,
    tiles: Sequence[int] | None = None,
    unapplied: Sequence[str] | str | None = None,
    unclipped: bool | None = None,
    judged_early: int | None = None,
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
        observe: What agents see: fields, ``"target"``, ``"error"``, ``"season"``.
        target: NetCDF file, DataArray or values of the judged fields.
        start: Arguments of the model's ``init``: numbers, or pairs to draw between in each
            episode: ``{"temperature": (20, 50)}``. One number is for the first of them.
        forcing: Likewise, by name: ``{"longwave": (-1, 1)}``, in W m⁻².
        ramp: Steps over which the forcing sets in; 0: at once.
        noise: Standard deviation of the sensors' error, as a share of each field's scale.
        tiles: Rows and columns of regions, on a latitude–longitude grid.
        unapplied: Symbols of parameters that agents set and the model does not get, as a0 and a2
            in the published runs; it keeps their static values.
        unclipped: Whether observations may leave their bounds.
        judged_early: Steps before the end of an episode at which an evaluation is judged (0).
        episode_length: Steps in an episode.

    Returns:
        An :class:`Environment`; its ``params`` are what the task says of start, target, forcing
        and noise.
    """
    task = find_task(name)
    called = name if isinstance(name, str) else "this task"
    tiling = tiles_of(task.tiles if tiles is None else tiles)
    if agents is None and tiles is not None and tiling is not None:
        agents = tiling[0] * tiling[1]
    if not task.multi_agent and agents not in (None, 1):
        raise InputError(f"{called} has one agent, not {agents}")
    if not task.multi_agent and region is not None:
        raise InputError(f"{called} has no regions; ebm-v2 has")
    chosen = _model(task, model, model_options, latitudes, backend, bounds, static)
    judged = judged_fields(task.judge if judge is None else judge, chosen)
    observed = names_of("observe", task.observe if observe is None else observe)
    learnt = names_of("learn", task.learn if learn is None else learn)
    environment = Environment(
        model=chosen,
        params=EnvParams(
            target=targets(
                chosen,
                task.target if target is None else target,
                dict(judged),
                strict=target is not None,  # a task may have targets of more than is judged
            ),
            start=starts(chosen, task.start if start is None else start),
            forcing=forcings(chosen, task.forcing if forcing is None else forcing),
            ramp=ramp_of(task.ramp if ramp is None else ramp),
            noise=noise_of(task.noise if noise is None else noise),
        ),
        agents=task.agents if agents is None else agents,
        shared_climate=task.shared_climate,
        local_observation=task.local_observation,
        episode_length=task.episode_length if episode_length is None else episode_length,
        learn=learnt,
        judged=judged,
        observed=tuple(dict(judged)) if observed is None else observed,
        tiles=tiling,
        unapplied=names_of("unapplied", task.unapplied if unapplied is None else unapplied) or (),
        unclipped=bool(task.unclipped if unclipped is None else unclipped),
        judged_early=task.judged_early if judged_early is None else judged_early,
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
) -> ClimateModel:
    own = {k: v for k, v in (("latitudes", latitudes), ("backend", backend)) if v is not None}
    tuned = {k: v for k, v in (("bounds", bounds), ("static", static)) if v is not None}
    if model is None and task.model is energy_balance:
        return find_model(energy_balance, {**(options or {}), **own, **tuned})
    if own:
        names = " and ".join(own)
        raise InputError(f"{names}: the energy balance model has it; your model decides for itself")
    found = find_model(task.model if model is None else model, options)
    return _retabled(found, tuned) if tuned else found


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
