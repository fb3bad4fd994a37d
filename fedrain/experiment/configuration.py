"""What an experiment is, whole: enough to run it again anywhere."""

import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int

from fedrain.agents import Algorithm, load_algorithm
from fedrain.agents.presets import ALGORITHMS, make_algorithm, unknown
from fedrain.climate import Grid, target_profile
from fedrain.envs import SETTINGS, Environment, make
from fedrain.envs.environment import is_whole
from fedrain.errors import InputError
from fedrain.federation import Sharing

PACKAGES = ("fedrain", "jax", "jaxlib", "numpy", "optax", "gymnasium", "safetensors", "xarray")


@dataclass(frozen=True)
class Configuration:
    """An experiment. Everything is resolved: no name in it stands for values elsewhere."""

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
        parts = [self.env]
        if self.env != "ebm-v1":
            parts += [f"a{self.agents}", self.scheme]
        return "-".join([*parts, self.algo, Path(self.preset).stem])

    def make_environment(self) -> Environment:
        """The environment."""
        agents = None if self.env == "ebm-v1" else self.agents
        return make(self.env, agents=agents, **self.environment)

    def make_algorithm(self) -> Algorithm:
        """The algorithm."""
        return make_algorithm(self.algo, self.hyperparameters)

    def make_sharing(self) -> Sharing:
        """What is averaged."""
        values: dict[str, Any] = {
            k: tuple(v) if isinstance(v, list) else v for k, v in self.sharing.items()
        }
        return Sharing(**values)

    def check(self) -> None:
        """Refuse what cannot be run."""
        if self.env not in SETTINGS:
            raise unknown("environment", self.env, list(SETTINGS))
        if self.algo not in ALGORITHMS:
            raise unknown("algorithm", self.algo, list(ALGORITHMS))
        distinct = set(self.seeds)
        if not distinct or len(distinct) < len(self.seeds) or not all(map(_is_seed, distinct)):
            raise InputError("seeds are one or more different whole numbers from 0 to 4294967295")
        for name, least in (("episodes", 1), ("sync_every", 0)):
            if not is_whole(value := getattr(self, name)) or value < least:
                raise InputError(f"{name} must be a whole number from {least}, not {value!r}")
        if self.make_environment().agents != self.agents:
            raise InputError(f"{self.env} has one agent, not {self.agents}")
        algorithm, sharing = self.make_algorithm(), self.make_sharing()
        sharing.check(self.agents, algorithm.depth + 1)
        if algorithm.proximal and (sharing.one_policy or not self.sync_every):
            raise InputError("proximal pulls agents to their average: they must have one")

    def synchronises_after(self, episode: int) -> bool:
        """Whether the agents are averaged after this episode, counted from 0."""
        return self.sync_every > 0 and (episode + 1) % self.sync_every == 0

    @property
    def steps_of_an_episode(self) -> int:
        """Steps of all agents and seeds together."""
        return self.make_environment().episode_length * len(self.seeds) * self.agents

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return json.loads(json.dumps(asdict(self)))


def configure(
    env: str = "ebm-v3",
    agents: int | None = None,
    sync_every: int = 5,
    algo: str = "ddpg",
    preset: str | Path = "fedrain",
    seeds: int | Sequence[int] | Int[np.ndarray, " seed"] = 1,
    episodes: int = 100,
    sharing: Sharing | str = "all",
    **environment: Any,
) -> Configuration:
    """Check and resolve an experiment. ``seeds`` is a number of them, or the seeds themselves.

    Args:
        env: ``ebm-v1``, ``ebm-v2`` or ``ebm-v3``.
        agents: Number of agents; 6 by default (v1: always 1).
        sync_every: Average the agents every so many episodes; 0: never.
        algo: ``ddpg``, ``td3`` or ``tqc``.
        preset: Name of a preset, or a TOML file.
        seeds: How many seeds, or which.
        episodes: How many episodes.
        sharing: What is averaged and with whom: the actors of ``all``, of ``zones`` or of
            ``neighbours``; all but their last layer (``personal``); ``shared``, one policy for all
            agents; or a :class:`fedrain.federation.Sharing`.
        environment: Options of :func:`fedrain.envs.make`.
    """
    if env not in SETTINGS:
        raise unknown("environment", env, list(SETTINGS))
    if "model" in environment:
        raise InputError(
            "an experiment is stored, and a model of your own cannot be: use the host loop"
        )
    if agents is None:
        agents = 6 if SETTINGS[env].multi_agent else 1
    algorithm = load_algorithm(algo, preset)
    if environment.get("target") is not None:
        grid = Grid(environment.get("latitudes", 96))
        environment["target"] = target_profile(environment["target"], grid).tolist()
    configuration = Configuration(
        env=env,
        agents=_plain(agents),
        sync_every=_plain(sync_every) if SETTINGS[env].multi_agent else 0,
        algo=algo,
        preset=str(preset),
        hyperparameters={f.name: getattr(algorithm, f.name) for f in fields(algorithm) if f.init},
        seeds=_listed(seeds),
        episodes=_plain(episodes),
        environment={name: _plain(value) for name, value in environment.items()},
        sharing=asdict(_sharing(sharing, algorithm.depth)),
    )
    configuration.check()
    return configuration


def from_dict(values: dict[str, Any]) -> Configuration:
    """A configuration from JSON."""
    try:
        known = {f.name for f in fields(Configuration)}
        picked = {key: value for key, value in values.items() if key in known}
        configuration = Configuration(**{**picked, "seeds": tuple(values["seeds"])})
        configuration.check()
    except (KeyError, TypeError, AttributeError):
        raise InputError("this is not the configuration of an experiment") from None
    return configuration


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
    seeds = _plain(seeds)
    if is_whole(seeds):
        return tuple(range(seeds))  # type: ignore[call-overload]
    if not isinstance(seeds, list):
        raise InputError(f"seeds are a whole number, or a list of them, not {seeds!r}")
    return tuple(seeds)


def _plain(value: Any) -> Any:
    """What JSON can hold, in place of NumPy's numbers and arrays, and of tuples."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple | range):
        return [_plain(one) for one in value]
    return value


def _is_seed(value: object) -> bool:
    return is_whole(value) and 0 <= int(value) < 2**32  # type: ignore[call-overload]
