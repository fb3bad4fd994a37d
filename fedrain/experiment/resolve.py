"""From what a person says, or a file holds, to an experiment.

What a file holds of things from outside the package is compared with what a person names again: see
:mod:`fedrain.experiment.outside`.
"""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int

from fedrain.agents import Algorithm, load_algorithm
from fedrain.agents.presets import find_algorithm, hyperparameters_of, modernised
from fedrain.climate.columns import check_count, is_integer
from fedrain.envs import Task, make
from fedrain.envs.tasks import find_model, find_task
from fedrain.errors import InputError, unknown
from fedrain.experiment.configuration import (
    KINDS,
    MOST_SEEDS,
    Configuration,
    Named,
    difference,
    plain,
)
from fedrain.experiment.outside import NO_EXPERIMENT, name_of, recognised, stored_sources
from fedrain.federation import Sharing
from fedrain.federation.mixing import SCHEMES
from fedrain.references import fingerprint, is_ours

SYNC_EVERY = 5  # episodes between averages, unless it is said
#: Names that can be given for what is averaged, and with whom.
SHARINGS = (*SCHEMES, "personal")


def configure(
    env: str | Task = "ebm-v3",
    agents: int | None = None,
    sync_every: int | None = None,
    algo: str | type[Algorithm] = "ddpg",
    preset: str | Path = "fedrain",
    seeds: int | Sequence[int] | Int[np.ndarray, " seed"] = 1,
    episodes: int = 100,
    sharing: Sharing | str = "all",
    settings: Mapping[str, Any] | None = None,
    model: Any = None,
    **environment: Any,
) -> Configuration:
    """Check and resolve an experiment.

    Args:
        env: A task: ``ebm-v3``, another of ``fedrain envs``, ``file.py:name``, or a
            :class:`fedrain.envs.Task`.
        agents: Number of agents; the task's own, if it is left out.
        sync_every: Average the agents every so many episodes (5, if it is left out); 0: never.
        algo: ``ddpg``, ``td3``, ``tqc``, ``sac``, ``file.py:Class``, or a class.
        preset: Name of a preset, or a TOML file.
        seeds: How many seeds, from 0 on, or which.
        episodes: How many episodes.
        sharing: What is averaged and with whom: the actors of ``all``, of ``zones`` or of
            ``neighbours``; all but their last layer (``personal``); ``shared``, one policy for all
            agents; or a :class:`fedrain.federation.Sharing`.
        settings: Hyperparameters that differ from the preset's: ``{"knots": 12}``; and options of
            a model of your own: ``{"model.depth": 50}``.
        model: A climate model of your own: an object, a class, or ``file.py:Class``.
        environment: Options of :func:`fedrain.envs.make`.

    Returns:
        The experiment, resolved; :func:`fedrain.train` trains it.
    """
    _check_arguments(environment, preset, settings)
    task, kind = find_task(env), find_algorithm(algo)
    number = plain(task.agents if agents is None else agents)
    _check_federation(number, sync_every, sharing)
    every = SYNC_EVERY if task.multi_agent else 0
    environment = {k: v if k == "target" else plain(v) for k, v in environment.items()}
    chosen, options = _split(settings or {})
    averaged = number > 1 and (every if sync_every is None else plain(sync_every))
    if not averaged and any(chosen.get(f"{part}stale_averages") for part in ("", "schedule.")):
        raise InputError("stale_averages cannot apply: nothing is averaged")
    if options := {**(environment.get("model_options") or {}), **options}:
        environment["model_options"] = options
    found = None if model is None else find_model(model, options)
    sources, named = {}, {}
    for name, given, thing in (("env", env, task), ("model", model, found), ("algo", algo, kind)):
        if thing is not None and not _is_known(name, given):
            sources[name] = fingerprint(thing, given)
            named[name] = thing
    configuration = Configuration(
        env=name_of(env),
        agents=number,
        sync_every=every if sync_every is None else plain(sync_every),
        algo=name_of(algo),
        preset=str(preset),
        hyperparameters={},
        seeds=_listed(seeds),
        episodes=plain(episodes),
        environment=environment,
        model=None if model is None else name_of(model),
        sources=plain(sources),
        named=Named(**named),
    )
    made = configuration.make_environment()
    if environment.get("target") is not None:
        environment["target"] = {k: np.asarray(v) for k, v in made.params.target.items()}
    algorithm = load_algorithm(kind, preset, made.spec, chosen)
    configuration = replace(
        configuration,
        environment={name: plain(value) for name, value in environment.items()},
        hyperparameters=hyperparameters_of(algorithm),
        sharing=asdict(_sharing(sharing, algorithm.depth)),
    )
    configuration.check()
    return configuration


def _check_arguments(environment: Mapping[str, Any], preset: object, settings: object) -> None:
    """Refuse what only Python can say, and the command line cannot."""
    if "region" in environment:
        raise InputError("an experiment trains all regions: region is for environments")
    own, outer = inspect.signature(configure).parameters, inspect.signature(make).parameters
    known = [n for n in dict.fromkeys((*own, *outer)) if n not in ("environment", "name", "region")]
    for name in environment:
        if name not in known:
            raise unknown("option", name, known)
    if not isinstance(preset, str | Path):
        raise InputError(f"preset is the name of a preset, or a TOML file, not {preset!r}")
    named = isinstance(settings, Mapping) and all(isinstance(name, str) for name in settings)
    if settings is not None and not named:
        raise InputError(f"settings are values by name, such as {{'knots': 12}}, not {settings!r}")


def _check_federation(agents: int, sync_every: int | None, sharing: Sharing | str) -> None:
    """Refuse what was asked for and cannot apply: averages need several agents, and a time."""
    if isinstance(sharing, Sharing):
        name, default = sharing.scheme, sharing == Sharing()
        name = name if sharing.layers is None else "personal"
    else:
        name, default = sharing, sharing == "all"
    if name not in SHARINGS:
        raise unknown("sharing", name, SHARINGS)
    if agents == 1 and sync_every:
        raise InputError(f"sync_every {sync_every} cannot apply: there is one agent")
    if agents == 1 and not default:
        raise InputError(f"sharing {name!r} cannot apply: there is one agent")
    if sync_every == 0 and name in ("zones", "neighbours", "personal"):
        raise InputError(f"sharing {name!r} cannot apply: with sync_every 0 nothing is averaged")


def changed(held: Configuration, **given: Any) -> Configuration:
    """An experiment with some arguments of :func:`configure` replaced.

    What is not given stays as it is; hyperparameters stay if neither preset nor algorithm is given.
    """
    keeps = given.get("preset") is None and given.get("algo", held.algo) == held.algo
    named = held.named
    # One agent has nobody to be averaged with: what is stored of it is the default.
    alone = held.agents == 1 and held.sync_every == SYNC_EVERY
    arguments: dict[str, Any] = {
        "env": held.env if named.env is None else named.env,
        "agents": held.agents if held.is_multi_agent else None,
        "sync_every": None if alone else held.sync_every,
        "algo": held.algo if named.algo is None else named.algo,
        "preset": held.preset if given.get("preset") is None else given["preset"],
        "seeds": held.seeds,
        "episodes": held.episodes,
        "sharing": held.make_sharing(),
        "model": held.model if named.model is None else named.model,
        **held.environment,
    }
    settings = dict(given.pop("settings", None) or {})
    given = {name: value for name, value in given.items() if value is not None}
    if keeps:
        arguments["preset"] = "paper"  # has every algorithm; all its values are replaced
        settings = held.hyperparameters | settings
    if named.model is not None and "model" not in given:
        arguments.pop("model_options", None)
    new = configure(**{**arguments, **given, "settings": settings})
    # Names and sources as they were stored: what has been given again is recognised already.
    same = {
        kind: getattr(held, kind)
        for kind in KINDS
        if kind not in given
        or (kind in held.sources and held.sources[kind] == new.sources.get(kind))
    }
    return replace(
        new,
        **same,
        preset=given.get("preset", held.preset),
        environment=held.environment
        | {k: new.environment[k] for k in given if k in new.environment},
        sources=held.sources | {k: new.sources[k] for k in given if k in new.sources},
        start_from=held.start_from,
        extended_from=held.extended_from,
    )


def from_dict(values: Mapping[str, Any], named: Named | None = None) -> Configuration:
    """A configuration from JSON, which may come from anybody.

    Args:
        values: What :meth:`Configuration.as_dict` gave.
        named: Whatever of it is not of the package, named again by the person who opens it.
    """
    given = named or Named()
    tables = [values.get(name) or {} for name in ("hyperparameters", "environment", "sharing")]
    if not all(isinstance(table, Mapping) for table in tables):
        raise InputError(NO_EXPERIMENT)
    try:
        known = {f.name for f in fields(Configuration)} - {"named"}
        picked = {key: value for key, value in values.items() if key in known}
        picked["seeds"] = tuple(values["seeds"])
        picked["sources"] = stored_sources(values)
        picked["extended_from"] = _ends(values.get("extended_from") or [])
        options = dict(values.get("environment") or {})
        if "start_temperature" in options:  # before version 0.2
            options["start"] = options.pop("start_temperature")
        configuration = Configuration(**{**picked, "environment": options})
        configuration = replace(configuration, named=recognised(configuration, given))
        spec = configuration.make_environment().spec
        stored = modernised(values["hyperparameters"], spec)
        configuration = replace(configuration, hyperparameters=stored)
        configuration.check()
    except InputError:
        raise
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError):
        raise InputError(NO_EXPERIMENT) from None
    return configuration


def check_stored(values: Mapping[str, Any]) -> None:
    """Refuse what is plainly not the configuration of an experiment; nothing is made."""
    needed = [f.name for f in fields(Configuration) if f.default is f.default_factory is MISSING]
    if any(name not in values for name in needed):
        raise InputError(NO_EXPERIMENT)


def _ends(stored: Sequence[Any]) -> tuple[int | tuple[int, int], ...]:
    """Earlier ends of a run, as :class:`Configuration` has them."""
    found = tuple(tuple(one) if isinstance(one, list) else one for one in stored)
    for one in found:
        pair = one if isinstance(one, tuple) else (one, one)
        if len(pair) != 2 or not all(map(is_integer, pair)):
            raise TypeError("episodes are counted")
    return found


def check_same_experiment(held: Configuration, given: Configuration, where: object) -> None:
    """Refuse an experiment that is not the one that a folder holds, and say what differs."""
    differs = difference(held, given)
    if "algo" in differs:  # has other hyperparameters
        differs = [name for name in differs if not name.startswith("hyperparameters.")]
    if differs:
        raise _another(held, differs, where)


def check_same_names(held: Configuration, given: Mapping[str, Any], where: object) -> None:
    """Refuse another task, model or algorithm than a folder holds, by the names of them.

    What the folder has from outside is compared by what it is, whatever it is called now.
    """
    kinds = [kind for kind in KINDS if given.get(kind) is not None and kind not in held.sources]
    if differs := [kind for kind in kinds if name_of(given[kind]) != getattr(held, kind)]:
        raise _another(held, differs, where)


def _another(held: Configuration, differs: Sequence[str], where: object) -> InputError:
    return InputError(
        f"{where}: holds another experiment, {held.name} ({', '.join(differs)} "
        f"{'differs' if len(differs) == 1 else 'differ'}): choose another --out"
    )


def _split(settings: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Hyperparameters, and options of the model, which are called ``model.NAME``."""
    own = {k.removeprefix("model."): v for k, v in settings.items() if k.startswith("model.")}
    return {k: v for k, v in settings.items() if not k.startswith("model.")}, own


def _is_known(kind: str, given: Any) -> bool:
    """Whether what was given is of the package, or of a plug-in, by its name alone."""
    if isinstance(given, str):
        return KINDS[kind].is_known(given)
    known = any(given is thing for thing in KINDS[kind].builtin.values())
    return known or (kind == "algo" and is_ours(given))


def _sharing(named: Sharing | str, depth: int) -> Sharing:
    if isinstance(named, Sharing):
        return named
    return Sharing(layers=tuple(range(depth))) if named == "personal" else Sharing(scheme=named)


def _listed(given: object) -> tuple[int, ...]:
    """So many seeds from 0 on, or those that are given."""
    seeds: Any = plain(given)
    if is_integer(seeds):
        if seeds > MOST_SEEDS:
            check_count("the number of seeds", seeds, 0, MOST_SEEDS)
        return tuple(range(seeds))
    if not isinstance(seeds, list):
        raise InputError(f"seeds are an integer, or a list of them, not {seeds!r}")
    return tuple(seeds)
