"""What a person may say of an episode and of what is judged: checked, and in one form."""

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fedrain.climate import ClimateModel, target_fields
from fedrain.climate.climatology import Target
from fedrain.climate.columns import check_count, is_integer
from fedrain.envs.environment import Environment
from fedrain.envs.episode import EnvParams
from fedrain.envs.task import Task
from fedrain.errors import InputError, unknown

#: What may be changed when an episode starts, by name.
EPISODE_OPTIONS = ("start", "target", "forcing", "ramp", "noise", "analysis_every", "smooth")

#: Steps of a ramp, or from one analysis to the next: longer than any episode.
LONGEST = 1_000_000
#: The split of every task that is the task as it is.
TRAIN = "train"


def changed_params(environment: Environment, options: Mapping[str, Any] | None) -> EnvParams:
    """The params of an environment with another start, target, forcing, ramp or noise."""
    params = environment.params
    for name, value in (options or {}).items():
        if name not in EPISODE_OPTIONS:
            raise unknown("option of an episode", name, EPISODE_OPTIONS)
        model, judged = environment.model, dict(environment.judged)
        if name == "start":
            params = params._replace(start=params.start | _given_starts(model, value))
            environment.check_start(params)
        elif name == "target":
            if has_own_target(environment):
                raise InputError(
                    "target: this task's target changes at every step and cannot be set"
                )
            value = completed(value, params.target, judged)
            params = params._replace(target=targets(model, value, judged))
        elif name == "forcing":
            params = params._replace(forcing=params.forcing | _given_forcings(model, value))
        elif name == "analysis_every":
            known = params.record is not None and not hasattr(model, "target_at")
            every = analysis_of(value, model, recorded=known)
            params = params._replace(analysis_every=every)
        else:
            params = params._replace(**{name: _OF[name](value)})
    return params


def split_of(task: Task, called: str, name: str | None) -> Mapping[str, Any]:
    """What of an episode is another in a split of a task."""
    known = [TRAIN, *task.splits]
    if name is None or name == TRAIN:
        return {}
    if name not in known:
        raise InputError(f"{called} has no split {name!r}; it has {', '.join(known)}")
    changes = task.splits[name]
    own = {n: getattr(task, n) for n in changes}
    return {n: {**own[n], **v} if isinstance(v, Mapping) else v for n, v in changes.items()}


def is_forced(environment: Environment, params: EnvParams) -> bool:
    """Whether any forcing is not at its default."""
    defaults = {one.name: one.default for one in environment.model.forcings}
    return any((np.asarray(params.forcing[name]) != x).any() for name, x in defaults.items())


def has_own_target(environment: Environment) -> bool:
    """Whether what is judged against changes from step to step: a truth, or a season."""
    beside = environment.truth is not None or environment.params.record is not None
    return beside or hasattr(environment.model, "target_at")


def completed(target: Target, known: Any, judged: Mapping[str, float]) -> Target:
    """A target with those that are known of the other judged fields."""
    if target is None or not isinstance(known, Mapping):
        return known if target is None else target
    given = target if isinstance(target, Mapping) else {next(iter(judged)): target}
    return {**{n: v for n, v in known.items() if n in judged}, **given}


def targets(
    model: ClimateModel, target: Target, judged: Mapping[str, float], strict: bool = True
) -> dict[str, Any]:
    """The target of every judged field, on the columns of the model."""
    return target_fields(target, model, judged, strict)


def judged_fields(judge: Any, model: ClimateModel) -> tuple[tuple[str, float], ...]:
    """Names of the judged fields with their weights; the model's first, if none is named."""
    if judge is None:
        judge = (model.fields[0].name,)
    if isinstance(judge, Mapping):
        pairs = tuple((str(name), weight) for name, weight in judge.items())
    else:
        pairs = tuple((name, 1.0) for name in names_of("judge", judge) or ())
    if not pairs:
        raise InputError("an environment needs a field to judge")
    for name, weight in pairs:
        if not _is_number(weight) or weight <= 0:
            raise InputError(f"the weight of {name} must be a positive number, not {weight!r}")
    return tuple((name, float(weight)) for name, weight in pairs)


def around_of(around: Any, among: Any = None) -> tuple[tuple[str, float], ...]:
    """Judged fields of which errors nearby count too, with degrees; 0: none nearby.

    Those of a task are left out where they are not ``among`` what is judged.
    """
    if not isinstance(around, Mapping):
        raise InputError("around is given by field, as {'surface_temperature': 10}")
    for name, degrees in around.items():
        if not _is_number(degrees) or degrees < 0:
            raise InputError(f"around {name}: degrees are a number from 0, not {degrees!r}")
    chosen = {name: d for name, d in around.items() if d and (among is None or name in among)}
    return tuple((str(name), float(degrees)) for name, degrees in chosen.items())


def names_of(what: str, names: Any) -> tuple[str, ...] | None:
    """Names from a sequence, or from text with commas between them."""
    if names is None:
        return None
    if isinstance(names, str):
        names = [part.strip() for part in names.split(",") if part.strip()]
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise InputError(f"{what}: must be names, not {names!r}")
    if len(set(names)) < len(names):
        raise InputError(f"{what}: a name is given twice in {', '.join(names)}")
    return tuple(names)


def _start_arguments(model: ClimateModel) -> dict[str, inspect.Parameter]:
    """What a task may set of the model's start, in the order in which ``init`` takes it."""
    every = inspect.signature(getattr(model, "init_host", model.init)).parameters
    unnamed = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    return {
        name: one
        for name, one in every.items()
        if name not in ("key", "rng") and one.kind not in unnamed
    }


def starts(model: ClimateModel, start: Any) -> dict[str, Any]:
    """Bounds of the arguments of ``init``: as given, or its defaults.

    Defaults are listed too, so that what is compiled for one start serves all others.
    """
    defaults = {
        name: _pair(name, one.default)
        for name, one in _start_arguments(model).items()
        if isinstance(one.default, float)
    }
    return defaults | _given_starts(model, start)


def _given_starts(model: ClimateModel, start: Any) -> dict[str, Any]:
    allowed = list(_start_arguments(model))
    if not isinstance(start, Mapping):
        if not allowed:
            raise InputError(f"{type(model).__name__}: its start has no options")
        start = {allowed[0]: start}
    for name in start:
        if name not in allowed:
            raise unknown(f"argument of the start of {type(model).__name__}", name, allowed)
    return {name: _pair(f"start {name}", value, wide=True) for name, value in start.items()}


def forcings(model: ClimateModel, forcing: Any) -> dict[str, Any]:
    """Bounds of every forcing: as given, or its default."""
    defaults = {one.name: _pair(one.name, one.default) for one in model.forcings}
    return defaults | _given_forcings(model, forcing)


def _given_forcings(model: ClimateModel, forcing: Any) -> dict[str, Any]:
    if not isinstance(forcing, Mapping):
        raise InputError("forcings are given by name, as {'longwave': -3.7}")
    known = [one.name for one in model.forcings]
    for name in forcing:
        if name not in known:
            raise unknown(f"forcing of {type(model).__name__}", name, known)
    return {name: _pair(f"forcing {name}", value) for name, value in forcing.items()}


def _pair(what: str, value: Any, wide: bool = False) -> Any:
    """Lowest and highest; one number, or one profile where it may be ``wide``, is both."""
    try:
        array = np.asarray(value, float)
    except (TypeError, ValueError):
        array = np.full((), np.nan)
    if array.ndim == 0 or (wide and array.ndim == 1 and len(array) != 2):
        array = np.stack([array, array])
    if not np.isfinite(array).all() or len(array) != 2 or (array.ndim > 1 and not wide):
        said = " ".join(repr(value).split())  # an array may be several lines
        raise InputError(f"{what}: must be a number, or a pair (low, high), not {said}")
    if (array[0] > array[1]).any():
        raise InputError(f"{what}: the lower bound exceeds the upper one")
    return array


def noise_of(noise: Any) -> Any:
    """The share of each field's scale by which sensors err."""
    if noise is None:
        return None
    if not _is_number(noise) or noise < 0:
        raise InputError(f"noise must be a number from 0, not {noise!r}")
    return None if noise == 0 else np.asarray(noise, float)


def ramp_of(ramp: Any) -> Any:
    """Steps over which the forcing sets in."""
    check_count("ramp", ramp, 0, LONGEST)
    return np.asarray(ramp, float)


def analysis_of(steps: Any, model: ClimateModel, recorded: bool = False) -> Any:
    """Steps from one analysis to the next; a record has the states to be set to."""
    if steps is None or (is_integer(steps) and steps == 0):
        return None
    check_count("analysis_every", steps, 0, LONGEST)
    if not recorded and not hasattr(model, "analyse"):
        raise InputError(
            f"analysis_every cannot apply: {type(model).__name__} has no `analyse`, which sets its "
            "state to what is observed"
        )
    return np.asarray(steps, np.int32)


def smooth_of(weight: Any) -> Any:
    """The weight of the penalty on rough parameters."""
    if weight is None:
        return None
    if not _is_number(weight) or weight < 0:
        raise InputError(f"smooth must be a number from 0, not {weight!r}")
    return None if weight == 0 else np.asarray(weight, float)


def tiles_of(tiles: Any) -> tuple[int, int] | None:
    """Rows and columns of regions."""
    if tiles is None:
        return None
    if not isinstance(tiles, Sequence) or len(tiles) != 2 or not all(map(is_integer, tiles)):
        raise InputError(f"tiles are a pair (rows, columns) of integers, not {tiles!r}")
    return int(tiles[0]), int(tiles[1])


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return False
    return bool(np.isfinite(value))


_OF = {"ramp": ramp_of, "noise": noise_of, "smooth": smooth_of}
