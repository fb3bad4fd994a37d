"""What an experiment is, whole: enough to run it again anywhere.

Models, tasks and algorithms of one's own are stored as references, with a hash of their source and
their fields. A stored reference is never imported on the word of the file that holds it: whoever
opens the experiment names it again (:class:`Named`), and what differs is said.
"""

import hashlib
import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int

from fedrain.agents import ALGORITHMS, Algorithm, load_algorithm, make_algorithm
from fedrain.agents.presets import find_algorithm, hyperparameters_of, modernised
from fedrain.envs import TASKS, Environment, Task, make
from fedrain.envs.environment import is_integer
from fedrain.envs.tasks import MODELS, find_model, find_task
from fedrain.errors import InputError, unknown
from fedrain.federation import Sharing
from fedrain.references import (
    Registry,
    check_same,
    fingerprint,
    is_ours,
    is_reference,
    reference_to,
)

PACKAGES = ("fedrain", "jax", "jaxlib", "numpy", "optax", "gymnasium", "safetensors", "xarray")

#: What an experiment may take from outside the package, and where names of it are known.
KINDS: dict[str, Registry] = {"env": TASKS, "model": MODELS, "algo": ALGORITHMS}


@dataclass(frozen=True)
class Named:
    """Models, tasks and algorithms that a person has named, as references or as they are."""

    env: Any = None
    model: Any = None
    algo: Any = None


@dataclass(frozen=True)
class Configuration:
    """An experiment. Everything is resolved: no name in it stands for values elsewhere.

    ``sources`` has, for each of ``env``, ``model`` and ``algo`` that is not of the package, a hash
    of its source and its fields. ``named`` are the things themselves, which are not stored.
    """

    env: str
    agents: int
    sync_every: int  # episodes between averages; 0: never
    algo: str
    preset: str  # where the hyperparameters came from, for people
    hyperparameters: dict[str, Any]
    seeds: tuple[int, ...]
    episodes: int
    environment: dict[str, Any] = field(default_factory=dict)  # options of fedrain.envs.make
    sharing: dict[str, Any] = field(default_factory=dict)  # fields of Sharing
    model: str | None = None
    sources: dict[str, Any] = field(default_factory=dict)
    start_from: str | None = None  # hash of the weights that the actors start from
    named: Named = field(default=Named(), repr=False, compare=False)

    @property
    def scheme(self) -> str:
        """The paper's name of the federation scheme, and ours of what it does not have."""
        sharing = self.make_sharing()
        if sharing.one_policy:
            return sharing.scheme
        if not self.sync_every:
            return "nofed"
        parts = [f"fed{self.sync_every:02d}"]
        if sharing.scheme != Sharing.scheme:
            parts.append(sharing.scheme)
        return "-".join(parts + ["personal"] * (sharing.layers is not None))

    @property
    def name(self) -> str:
        """A name for people and folders."""
        parts = [_short(self.env)]
        if self.model is not None:
            parts.append(_short(self.model))
        if self.is_multi_agent:
            parts += [f"a{self.agents}", self.scheme]
        return "-".join([*parts, _short(self.algo), Path(self.preset).stem])

    @cached_property
    def is_multi_agent(self) -> bool:
        """Whether the task can have several agents."""
        return find_task(self.env if self.named.env is None else self.named.env).multi_agent

    def make_environment(self) -> Environment:
        """The environment."""
        return self._environment

    @cached_property
    def _environment(self) -> Environment:
        task = self.env if self.named.env is None else self.named.env
        model = self.model if self.named.model is None else self.named.model
        agents = self.agents if self.is_multi_agent else None
        options = dict(self.environment)
        if not isinstance(model, str | type) and model is not None:
            options.pop("model_options", None)  # it is made already
        return make(task, agents=agents, model=model, **options)

    def make_algorithm(self) -> Algorithm:
        """The algorithm."""
        return self._algorithm

    @cached_property
    def _algorithm(self) -> Algorithm:
        kind = self.algo if self.named.algo is None else self.named.algo
        return make_algorithm(kind, self.hyperparameters)

    def make_sharing(self) -> Sharing:
        """What is averaged."""
        values: dict[str, Any] = {
            k: tuple(v) if isinstance(v, list) else v for k, v in self.sharing.items()
        }
        return Sharing(**values)

    def check(self) -> None:
        """Refuse what cannot be run."""
        distinct = set(self.seeds)
        if not distinct or len(distinct) < len(self.seeds) or not all(map(_is_seed, distinct)):
            raise InputError("seeds are one or more different integers from 0 to 4294967295")
        for name, least in (("episodes", 1), ("sync_every", 0)):
            if not is_integer(value := getattr(self, name)) or value < least:
                raise InputError(f"{name} must be an integer from {least}, not {value!r}")
        environment = self.make_environment()
        if environment.agents != self.agents:
            raise InputError(f"{self.env} has one agent, not {self.agents}")
        algorithm, sharing = self.make_algorithm(), self.make_sharing()
        algorithm.check(environment.spec)
        sharing.check(self.agents, algorithm.depth + 1)
        in_rows = environment.division.layout is None or environment.division.layout[1] == 1
        if sharing.scheme in ("zones", "neighbours") and not in_rows:
            raise InputError(f"sharing {sharing.scheme!r} cannot apply: the regions are tiles")
        if algorithm.schedule.proximal and (sharing.one_policy or not self.sync_every):
            raise InputError("proximal pulls agents to their average: they must have one")

    def averages_after(self, episode: int) -> bool:
        """Whether the agents are averaged after this episode, counted from 0."""
        return averages_after(episode, self.episodes, self.sync_every)

    @property
    def steps_of_an_episode(self) -> int:
        """Steps of all agents and seeds together."""
        return self.make_environment().episode_length * len(self.seeds) * self.agents

    @property
    def warning(self) -> str | None:
        """What a person should know before it runs, if anything."""
        steps = self.episodes * self.make_environment().episode_length
        warmup = self.make_algorithm().schedule.warmup_steps
        if steps <= warmup:
            return (
                f"{self.episodes} episodes are {steps} steps: too short to learn, which starts "
                f"after {warmup} steps of random actions"
            )
        return None

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        kept = replace(self, named=Named())
        return json.loads(json.dumps({k: v for k, v in asdict(kept).items() if k != "named"}))

    @cached_property
    def identity(self) -> str:
        """A hash of everything that the result depends on."""
        return hashlib.sha256(json.dumps(_essence(self), sort_keys=True).encode()).hexdigest()


def averages_after(episode: int, episodes: int, sync_every: int) -> bool:
    """Whether agents are averaged after this episode, counted from 0: every K, but the last.

    The last average makes the global policy; the local ones are those before it.
    """
    return sync_every > 0 and (episode + 1) % sync_every == 0 and episode + 1 < episodes


def _essence(configuration: Configuration) -> dict[str, Any]:
    """What the result depends on.

    What is off is left out: a run stays what it is when options are added to the package. A thing
    from outside counts by its source, wherever the file lies.
    """
    values = {**configuration.as_dict(), "preset": None}
    algorithm = configuration.make_algorithm()
    own = hyperparameters_of(algorithm)
    defaults = {f.name: f.default for f in fields(algorithm)}
    for part in ("transforms", "schedule"):
        off = hyperparameters_of(algorithm)[part]
        usual = asdict(type(getattr(algorithm, part))())
        own[part] = {k: v for k, v in off.items() if v != usual[k]}
    values["hyperparameters"] = {k: v for k, v in own.items() if v != defaults.get(k)}
    values["sharing"] = {k: v for k, v in asdict(configuration.make_sharing()).items() if v}
    if values["sharing"].get("scheme") == Sharing.scheme:
        del values["sharing"]["scheme"]
    for kind in KINDS:
        if (text := values.get(kind)) is not None and kind in configuration.sources:
            values[kind] = str(text).rpartition(":")[2]
    return {k: v for k, v in values.items() if v not in (None, {})}


def difference(one: Configuration, other: Configuration) -> list[str]:
    """The fields in which two experiments differ, by name."""
    first, second = _leaves(_essence(one)), _leaves(_essence(other))
    return sorted(k for k in {*first, *second} if first.get(k) != second.get(k))


def _leaves(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in values.items():
        name = f"{prefix}{key}"
        found |= _leaves(value, f"{name}.") if isinstance(value, Mapping) else {name: value}
    return found


def configure(
    env: str | Task = "ebm-v3",
    agents: int | None = None,
    sync_every: int = 5,
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
        sync_every: Average the agents every so many episodes; 0: never.
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
    task = find_task(env)
    if "region" in environment:
        raise InputError("an experiment trains all regions: region is for environments")
    chosen, options = _split(settings or {})
    if options:
        environment["model_options"] = options
    if agents is None:
        agents = task.agents
    found = None if model is None else find_model(model, environment.get("model_options"))
    kind = find_algorithm(algo)
    sources, named = {}, {}
    for name, given, thing in (("env", env, task), ("model", model, found), ("algo", algo, kind)):
        if thing is not None and not _is_known(name, given):
            sources[name] = fingerprint(thing)
            named[name] = thing
    if found is None:
        environment.pop("model_options", None)
        environment |= {"model_options": options} if options else {}
    trial = make(
        task, agents=agents if task.multi_agent else None, model=found,
        **{k: v for k, v in environment.items() if found is None or k != "model_options"},
    )  # fmt: skip
    if environment.get("target") is not None:
        environment["target"] = {k: np.asarray(v) for k, v in trial.params.target.items()}
    algorithm = load_algorithm(kind, preset, trial.spec, chosen)
    configuration = Configuration(
        env=_text(env),
        agents=plain(agents),
        sync_every=plain(sync_every) if task.multi_agent else 0,
        algo=_text(algo),
        preset=str(preset),
        hyperparameters=hyperparameters_of(algorithm),
        seeds=_listed(seeds),
        episodes=plain(episodes),
        environment={name: plain(value) for name, value in environment.items()},
        sharing=asdict(_sharing(sharing, algorithm.depth)),
        model=None if model is None else _text(model),
        sources=plain(sources),
        named=Named(**named),
    )
    configuration.check()
    return configuration


def _split(settings: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Hyperparameters, and options of the model, which are called ``model.NAME``."""
    own = {k.removeprefix("model."): v for k, v in settings.items() if k.startswith("model.")}
    return {k: v for k, v in settings.items() if not k.startswith("model.")}, own


def _is_known(kind: str, given: Any) -> bool:
    """Whether what was given is of the package, or of a plug-in, by its name alone."""
    if isinstance(given, str):
        return KINDS[kind].is_known(given)
    return kind == "algo" and is_ours(given)


def _text(given: Any) -> str:
    if isinstance(given, str):
        return given
    for registry in KINDS.values():
        for name, thing in registry.builtin.items():
            if thing is given:
                return name
    return reference_to(given)


def _short(text: str) -> str:
    """A reference's own name, for folders."""
    return text.rpartition(":")[2].lower()


def from_dict(values: Mapping[str, Any], named: Named | None = None) -> Configuration:
    """A configuration from JSON, which may come from anybody.

    Args:
        values: What :meth:`Configuration.as_dict` gave.
        named: Whatever of it is not of the package, named again by the person who opens it.
    """
    given = named or Named()
    try:
        known = {f.name for f in fields(Configuration)} - {"named"}
        picked = {key: value for key, value in values.items() if key in known}
        picked["seeds"] = tuple(values["seeds"])
        picked["hyperparameters"] = modernised(values["hyperparameters"])
        configuration = Configuration(**picked)
        configuration = replace(configuration, named=_recognised(configuration, given))
        configuration.check()
    except (KeyError, TypeError, AttributeError):
        raise InputError("this is not the configuration of an experiment") from None
    return configuration


def _recognised(configuration: Configuration, named: Named) -> Named:
    """The things from outside that an experiment needs, each as a person has named it."""
    found: dict[str, Any] = {}
    for kind, registry in KINDS.items():
        stored, given = getattr(configuration, kind), getattr(named, kind)
        if stored is None or registry.is_known(stored):
            continue
        if not isinstance(stored, str) or not is_reference(stored):
            raise unknown(registry.kind, stored, registry.names())
        if given is None:
            raise InputError(
                f"the {registry.kind} of this experiment, {stored!r}, is not part of FedRAIN: "
                f"name it again with --{kind} {stored}"
            )
        options = configuration.environment.get("model_options")
        find = {"env": find_task, "algo": find_algorithm}.get(kind)
        thing = find_model(given, options) if find is None else find(given)
        check_same(registry.kind, configuration.sources.get(kind, {}), thing)
        found[kind] = thing
    return Named(**found)


def versions() -> dict[str, str]:
    """What the results depend on."""
    return {
        "python": platform.python_version(),
        "machine": platform.machine(),
        **{package: metadata.version(package) for package in PACKAGES},
    }


def _sharing(named: Sharing | str, depth: int) -> Sharing:
    if isinstance(named, Sharing):
        return named
    return Sharing(layers=tuple(range(depth))) if named == "personal" else Sharing(scheme=named)


def _listed(seeds: object) -> tuple[int, ...]:
    """So many seeds from 0 on, or those that are given."""
    seeds = plain(seeds)
    if is_integer(seeds):
        return tuple(range(seeds))  # type: ignore[call-overload]
    if not isinstance(seeds, list):
        raise InputError(f"seeds are an integer, or a list of them, not {seeds!r}")
    return tuple(seeds)


def plain(value: Any) -> Any:
    """What JSON can hold, in place of NumPy's numbers and arrays, and of tuples."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, Mapping):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple | range):
        return [plain(one) for one in value]
    return value


def _is_seed(value: object) -> bool:
    return is_integer(value) and 0 <= int(value) < 2**32  # type: ignore[call-overload]
