"""One climate that the agents of several regions share, in lock step.

Each agent hands in its parameters for a step and gets its slice of the state and its reward once
all have done so and the climate has moved. One that does not answer in time is given its last
parameters, or the static ones, until it begins an episode again, so that the globe does not stop;
this is recorded. Requests are idempotent: an agent may repeat one when it has lost the answer, or
when the climate was lost and came back from its journal.
"""

import csv
import threading
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, UInt32

from fedrain.agents.step import start_key, step_key
from fedrain.climate.columns import is_integer
from fedrain.envs import Environment, EnvParams, State, Transition
from fedrain.errors import InputError
from fedrain.experiment.configuration import MOST_SEEDS, MOST_STEPS
from fedrain.experiment.folder import Say
from fedrain.experiment.host import MissedStepError
from fedrain.io import flatten, unflatten, write_arrays
from fedrain.reading import read_arrays

STATE = "state/"  # before the names of what the climate's state has, in its journal


class Answer(NamedTuple):
    """What an agent gets for a step."""

    observation: Float[np.ndarray, " obs"]
    reward: float
    ended: bool
    of_all: Float[np.ndarray, " region"] | None = None  # all rewards, if the climate gives them


class Episode(NamedTuple):
    """An episode of a federation; it is not numbered by an agent, which may have missed some."""

    number: int
    seed: int
    federation_id: str = ""


class Late(NamedTuple):
    """A step for which the parameters of a region were not there."""

    episode: Episode
    step: int
    region: int


@dataclass
class _Play:
    """The latest episode of a seed."""

    episode: Episode
    state: State
    start: Float[np.ndarray, "agent obs"]
    absent: set[int]  # late, or gone: not waited for
    heard: set[int] = field(default_factory=set)  # have sent something
    time: int = 0
    over: bool = False
    actions: dict[int, Float[np.ndarray, " action"]] = field(default_factory=dict)
    #: Kept, because a thread may wake only after the next step, and an agent may ask again.
    results: dict[int, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)


def start(
    environment: Environment, seed: UInt32[Array, ""], step: Int[Array, ""], params: EnvParams
) -> tuple[State, Float[Array, "agent obs"]]:
    """The start of an episode, with the random numbers that the fused loop has."""
    return environment.reset(start_key(seed, step), params)


def advance(
    environment: Environment,
    seed: UInt32[Array, ""],
    step: Int[Array, ""],
    state: State,
    actions: Float[Array, "agent action"],
    params: EnvParams,
) -> Transition:
    """A step, with the random numbers that the fused loop has."""
    key = step_key(seed, step)
    return environment.step(key, state, actions, params)


class SharedClimate:
    """The climate, for agents in threads of this process or behind a connection."""

    def __init__(
        self,
        environment: Environment,
        patience: float,
        say: Say,
        static: bool = False,
        folder: Path | None = None,
    ) -> None:
        if not environment.shared_climate:
            raise InputError("the agents of this environment do not share a climate")
        self.environment, self.patience, self.say = environment, patience, say
        self.substitute_static, self.folder = static, folder
        self.late: list[Late] = []
        self._federation_id = ""
        self._gone: set[int] = set()  # silent throughout the latest episode
        self._last = self._static()
        self._last_number = MOST_STEPS // environment.episode_length - 1
        self._condition = threading.Condition()
        self._plays: dict[int, _Play] = {}  # by seed
        self._params = jax.tree.map(jnp.asarray, environment.params)
        self._reset = jax.jit(partial(start, environment))
        self._advance = jax.jit(partial(advance, environment))
        if folder is not None:
            for path in sorted(folder.glob("seed-*.safetensors")):
                self._load(path)

    def begin(self, region: int, episode: Episode) -> Float[np.ndarray, " obs"]:
        """The start of an episode; the first agent to ask for it starts it for all.

        An agent that was late waits until the others have finished the episode before.
        """
        self._check(region)
        if not 0 <= episode.number <= self._last_number:
            raise InputError(f"episode {episode.number}: a run has at most {MOST_STEPS} steps")
        with self._condition:
            if episode.federation_id != self._federation_id:
                self._federation_id = episode.federation_id
                self._plays, self._gone, self._last = {}, set(), self._static()
            self._gone.discard(region)
            while (play := self._plays.get(episode.seed)) and self._is_before(play, episode):
                time = play.time
                if not self._condition.wait(3 * self.patience) and play.time == time:
                    play.over = True  # no agent plays it any more
            if play is None and len(self._plays) >= MOST_SEEDS:
                raise InputError(f"the number of seeds is at most {MOST_SEEDS}")
            if play is None or play.episode.number < episode.number:
                play = self._start(episode)
            if play.episode != episode or play.time:
                at = f"episode {play.episode.number} is at step {play.time}"
                raise MissedStepError(f"episode {episode.number} cannot be started: {at}")
            play.absent.discard(region)
            return play.start[region]

    def step(
        self, region: int, episode: Episode, time: int, action: Float[np.ndarray, " action"]
    ) -> Answer:
        """Hand in the parameters of a step, and wait for the climate to move."""
        self._check(region)
        action = np.asarray(action, np.float32)
        if action.shape != (self.environment.action_size,) or not np.isfinite(action).all():
            raise InputError(f"region {region}: its parameters do not fit, or are not finite")
        with self._condition:
            play = self._plays.get(episode.seed)
            if play is None or play.episode != episode or region in play.absent:
                raise MissedStepError(f"episode {episode.number} continues without region {region}")
            if time == play.time:
                self._hand_in(play, region, action)
            if time not in play.results:
                raise MissedStepError(f"the climate is at step {play.time}, not {time}")
            observation, reward = play.results[time]
            ended = time + 1 >= self.environment.episode_length
            return Answer(observation[region], float(reward[region]), ended, reward)

    def _static(self) -> dict[int, Float[np.ndarray, " action"]]:
        return dict(enumerate(self.environment.static_actions))

    def _when(self, episode: Episode, time: int) -> tuple[UInt32[Array, ""], Int[Array, ""]]:
        """Seed and step, counted from the first of the run, of a step of an episode."""
        step = episode.number * self.environment.episode_length + time
        return jnp.asarray(episode.seed, jnp.uint32), jnp.asarray(step)

    def _check(self, region: int) -> None:
        if region not in self.environment.regions:
            raise InputError(f"there is no region {region}: regions are 0 to {len(self._last) - 1}")

    @staticmethod
    def _is_before(play: _Play, episode: Episode) -> bool:
        return play.episode.number < episode.number and not play.over

    def _start(self, episode: Episode) -> _Play:
        state, observation = self._reset(*self._when(episode, 0), self._params)
        play = _Play(episode, state, np.asarray(observation), set(self._gone))
        self._plays[episode.seed] = play
        self._save(play)
        return play

    def _hand_in(self, play: _Play, region: int, action: Float[np.ndarray, " action"]) -> None:
        time = play.time
        play.actions[region] = action
        play.heard.add(region)
        complete = play.actions.keys() | play.absent >= set(self.environment.regions)
        if complete or not self._condition.wait_for(lambda: play.time > time, self.patience):
            self._move(play)

    def _move(self, play: _Play) -> None:
        """Take a step, with substitutes for missing parameters."""
        for region in self.environment.regions:
            if region not in play.actions:
                self._substitute(play, region)
        actions = np.stack([play.actions[region] for region in self.environment.regions])
        self._last.update(play.actions)
        seed, step = self._when(play.episode, play.time)
        state, observation, reward, _ = self._advance(
            seed, step, play.state, actions.astype(np.float32), self._params
        )
        play.results[play.time] = (np.asarray(observation), np.asarray(reward))
        play.state, play.actions = state, {}
        play.time += 1
        if play.time >= self.environment.episode_length:
            play.over, self._gone = True, play.absent - play.heard
        self._save(play)
        self._condition.notify_all()

    def _substitute(self, play: _Play, region: int) -> None:
        static = self.environment.static_actions[region]
        play.actions[region] = static if self.substitute_static else self._last[region]
        late = Late(play.episode, play.time, region)
        self.late.append(late)
        kind = "static" if self.substitute_static else "last"
        if self.folder is not None:
            with (self.folder / "late.csv").open("a", newline="", encoding="utf-8") as file:
                csv.writer(file).writerow([*late.episode, late.step, late.region, kind])
        if region not in play.absent:
            play.absent.add(region)
            self.say(
                f"region {region} is late at step {play.time} of episode "
                f"{play.episode.number}: its {kind} parameters are used until it starts again"
            )

    def _save(self, play: _Play) -> None:
        if self.folder is None:
            return
        observation, reward = play.results.get(play.time - 1, (play.start, np.zeros(0)))
        arrays: dict[str, np.ndarray] = {
            **{f"{STATE}{name}": leaf for name, leaf in flatten(_kept(play.state)).items()},
            "start": play.start,
            "observation": observation,
            "reward": reward,
            "last": np.stack([self._last[region] for region in self.environment.regions]),
        }
        note: dict[str, Any] = {
            "episode": list(play.episode),
            "time": play.time,
            "over": play.over,
            "absent": sorted(play.absent),
            "heard": sorted(play.heard),
            "gone": sorted(self._gone),
        }
        path = self.folder / f"seed-{play.episode.seed}.safetensors"
        write_arrays(path, arrays, note, durable=False)

    def _load(self, path: Path) -> None:
        arrays, note = read_arrays(path)
        episode = self._read_episode(path, note)
        like, start = jax.eval_shape(self._reset, *self._when(episode, 0), self._params)
        kept = {n.removeprefix(STATE): a for n, a in arrays.items() if n.startswith(STATE)}
        try:
            climate, forcing, truth = unflatten(_kept(like), kept, str(path))
        except InputError:
            climate = None
        agents, time = self.environment.agents, note["time"]
        known = {
            "start": start.shape,
            "last": (agents, self.environment.action_size),
            "observation": start.shape,
            "reward": (agents,) if time else (0,),
        }
        if climate is None or any(
            name not in arrays or arrays[name].shape != shape or arrays[name].dtype.kind != "f"
            for name, shape in known.items()
        ):
            raise InputError(f"{path}: is the journal of another climate: choose another folder")
        now = np.asarray(time, np.int32)
        state = State(climate, forcing, now, truth)  # type: ignore[arg-type]
        absent, heard = set(note["absent"]), set(note["heard"])
        play = _Play(episode, state, arrays["start"], absent, heard, time, note["over"])
        if play.time:
            play.results[play.time - 1] = (arrays["observation"], arrays["reward"])
        self._federation_id, self._gone = episode.federation_id, set(note["gone"])
        self._last = dict(enumerate(arrays["last"]))
        self._plays[episode.seed] = play

    def _read_episode(self, path: Path, note: dict[str, Any]) -> Episode:
        """The episode of a journal, if all that its note tells can be."""
        try:
            episode = Episode(*note["episode"])
            sets = [*note["absent"], *note["heard"], *note["gone"]]
            right = (
                all(is_integer(one) for one in (episode.number, episode.seed, note["time"]))
                and 0 <= episode.number <= self._last_number
                and 0 <= episode.seed < 2**32
                and isinstance(episode.federation_id, str)
                and 0 <= note["time"] <= self.environment.episode_length
                and isinstance(note["over"], bool)
                and all(is_integer(r) and r in self.environment.regions for r in sets)
            )
        except (KeyError, TypeError):
            right = False
        if not right:
            raise InputError(f"{path}: the journal is damaged: remove it to start a new climate")
        return episode


def _kept(state: State) -> tuple[Any, ...]:
    """What a journal keeps of the state; the time stands in its note."""
    return state.climate, state.forcing, state.truth
