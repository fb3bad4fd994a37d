"""What an experiment is, whole: enough to run it again anywhere.

Models, tasks and algorithms of one's own are stored as references, with a hash of their source and
their fields; :mod:`fedrain.experiment.resolve` says how they are found again.
"""

import hashlib
import json
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import Any

from fedrain.agents import ALGORITHMS, Algorithm, make_algorithm
from fedrain.agents.presets import hyperparameters_of, redeclared
from fedrain.climate.columns import check_count, is_integer
from fedrain.envs import TASKS, Environment, make
from fedrain.envs.tasks import MODELS, find_task
from fedrain.errors import InputError
from fedrain.experiment.cores import open_cores
from fedrain.federation import Sharing
from fedrain.references import Registry
from fedrain.tables import counted

PACKAGES = ("fedrain", "jax", "jaxlib", "numpy", "optax", "gymnasium", "safetensors", "xarray")

#: What a run may have at most. Steps are counted in 32 bits, with a sign.
MOST_SEEDS, MOST_EPISODES, MOST_STEPS = 1000, 1_000_000, 2**31 - 1

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
    of its source, its fields, and hashes of later sources that its user has accepted. ``named``
    are the things themselves, which are not stored. ``extended_from`` has the numbers of episodes
    that a run had before it was extended: ``4``, or ``(2, 4)`` if it was after 2 of them.

    Args:
        env: The task, by name or reference.
        agents: How many.
        sync_every: Episodes between averages; 0: never.
        algo: By name or reference.
        preset: Where the hyperparameters came from, for people.
        hyperparameters: All of them, with those of ``transforms`` and ``schedule`` under these
            names.
        seeds: Which.
        episodes: How many.
        environment: Options of :func:`fedrain.envs.make`.
        sharing: Fields of :class:`fedrain.federation.Sharing`.
        model: A climate model in place of the task's, by reference.
        sources: See above.
        start_from: Hash of the weights that the actors start from, if they are of another run.
        extended_from: See above.
        named: See above.
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
    extended_from: tuple[int | tuple[int, int], ...] = ()
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
        open_cores()  # while JAX still lets us: making an environment sets it to work
        task = self.env if self.named.env is None else self.named.env
        agents = self.agents if self.is_multi_agent else None
        options = dict(self.environment)
        model: Any = self.model
        if self.named.model is not None:
            model = self.named.model
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
        check_count("the number of seeds", len(self.seeds), 0, MOST_SEEDS)
        distinct = set(self.seeds)
        if not distinct or len(distinct) < len(self.seeds) or not all(map(_is_seed, distinct)):
            raise InputError("seeds are one or more different integers from 0 to 4294967295")
        for name, least in (("episodes", 1), ("sync_every", 0)):
            check_count(name, getattr(self, name), least, MOST_EPISODES)
        environment = self.make_environment()
        if (steps := self.episodes * environment.episode_length) > MOST_STEPS:
            raise InputError(
                f"{self.episodes} episodes of {environment.episode_length} steps are {steps}: "
                f"a run has at most {MOST_STEPS}"
            )
        if environment.agents != self.agents:
            raise InputError(f"{self.env} has one agent, not {self.agents}")
        algorithm, sharing = self.make_algorithm(), self.make_sharing()
        algorithm.check(environment.spec)
        sharing.check(self.agents, algorithm.depth + 1)
        in_rows = environment.division.layout is None or environment.division.layout[1] == 1
        if sharing.scheme in ("zones", "neighbours") and not in_rows:
            raise InputError(f"sharing {sharing.scheme!r} cannot apply: the regions are tiles")
        of_all = replace(sharing, weights=None) == Sharing()
        if algorithm.schedule.stale_averages and self.sync_every and not of_all:
            raise InputError(
                "stale_averages cannot apply unless the actors of all agents are averaged"
            )
        if algorithm.schedule.proximal and (sharing.one_policy or not self.sync_every):
            raise InputError("proximal pulls agents towards their average: there is none")

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
                f"{counted(self.episodes, 'episode')} {'is' if self.episodes == 1 else 'are'} "
                f"{counted(steps, 'step')}: too short to learn, since learning starts after "
                f"{counted(warmup, 'step')} of random actions"
            )
        return None

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        kept = replace(self, named=Named())
        return json.loads(json.dumps({k: v for k, v in asdict(kept).items() if k != "named"}))

    @cached_property
    def identity(self) -> str:
        """A hash of everything that the result depends on."""
        return _hash(_essence(self))

    @cached_property
    def lineage(self) -> str:
        """A hash of all but the numbers of episodes: what a run stays when it is extended."""
        length = ("episodes", "extended_from")
        return _hash({k: v for k, v in _essence(self).items() if k not in length})

    @property
    def depends_on_length(self) -> bool:
        """Whether exploration or learning steps fall over the run, so that its length matters."""
        schedule = self.make_algorithm().schedule
        return schedule.final_noise != 1 or schedule.final_rate != 1


def _hash(values: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def references(configuration: Configuration) -> Named:
    """What an experiment takes from outside, as another process of this machine can name it."""
    return Named(**{kind: getattr(configuration, kind) for kind in configuration.sources})


def averages_after(episode: int, episodes: int, sync_every: int) -> bool:
    """Whether agents are averaged after this episode, counted from 0: every K, but the last.

    The last average makes the global policy; the local ones are those before it.
    """
    return sync_every > 0 and (episode + 1) % sync_every == 0 and episode + 1 < episodes


def _essence(configuration: Configuration) -> dict[str, Any]:
    """What the result depends on.

    What is off is left out: a run stays what it is when options are added to the package. A thing
    from outside counts by its source, wherever the file lies; what its class has as a default may
    be another tomorrow, so that all that it declares counts.
    """
    values = {**configuration.as_dict(), "preset": None}
    algorithm = configuration.make_algorithm()
    own = hyperparameters_of(algorithm)
    defaults = {f.name: f.default for f in fields(algorithm)}
    for part in ("transforms", "schedule"):
        off = hyperparameters_of(algorithm)[part]
        usual = asdict(type(getattr(algorithm, part))())
        own[part] = {k: v for k, v in off.items() if v != usual[k]}
    declared = redeclared(type(algorithm))
    values["hyperparameters"] = {
        k: v for k, v in own.items() if k in declared or v != defaults.get(k)
    }
    values["sharing"] = {k: v for k, v in asdict(configuration.make_sharing()).items() if v}
    if values["sharing"].get("scheme") == Sharing.scheme:
        del values["sharing"]["scheme"]
    for kind in KINDS:
        if (text := values.get(kind)) is not None and kind in configuration.sources:
            values[kind] = str(text).rpartition(":")[2]
            values["sources"][kind].pop("accepted", None)
    if not configuration.depends_on_length:
        del values["extended_from"]  # as trained at once
    return {k: v for k, v in values.items() if v not in (None, {}, [])}


def difference(one: Configuration, other: Configuration) -> list[str]:
    """The fields in which two experiments differ, by name."""
    first, second = _leaves(_essence(one)), _leaves(_essence(other))
    return sorted(k for k in {*first, *second} if first.get(k) != second.get(k))


def digests(configuration: Configuration) -> dict[str, str]:
    """A short hash of each field that the result depends on, to tell later which differ."""
    return {k: _hash({k: v})[:16] for k, v in _leaves(_essence(configuration)).items()}


def _leaves(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in values.items():
        name = f"{prefix}{key}"
        found |= _leaves(value, f"{name}.") if isinstance(value, Mapping) else {name: value}
    return found


def versions() -> dict[str, str]:
    """What the results depend on."""
    return {
        "python": platform.python_version(),
        "machine": platform.machine(),
        **{package: metadata.version(package) for package in PACKAGES},
    }


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


def _short(text: str) -> str:
    """A reference's own name, for folders; what is just called ``task`` goes by its file."""
    where, _, name = text.rpartition(":")
    return (Path(where).stem if name == "task" else name).lower()
