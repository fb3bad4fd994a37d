"""One climate that the agents of several regions share, in lock step.

Each agent hands in its parameters for a step and gets its slice of the state and its reward once
all have done so and the climate has moved. One that does not answer in time is given its last
parameters, or the static ones, until the end of the episode, so that the globe does not stop; this
is recorded. The next episode has it again.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from fedrain.envs import Environment, State
from fedrain.errors import InputError
from fedrain.experiment.host import MissedStepError

Say = Callable[[str], None]


class Answer(NamedTuple):
    """What an agent gets for a step."""

    observation: Float[np.ndarray, " obs"]
    reward: float
    ended: bool


class Episode(NamedTuple):
    """Which episode is played: of the federation, not of an agent, which may have missed some."""

    number: int
    seed: int


@dataclass
class _Play:
    """An episode under way."""

    episode: Episode
    state: State
    start: Float[np.ndarray, "agent obs"]
    time: int = 0
    actions: dict[int, Float[np.ndarray, " action"]] = field(default_factory=dict)
    absent: set[int] = field(default_factory=set)  # late once: not waited for again
    results: list[tuple[Float[np.ndarray, "agent obs"], Float[np.ndarray, " agent"]]] = field(
        default_factory=list
    )


class SharedClimate:
    """The climate, for agents in threads of this process or behind a connection."""

    def __init__(
        self, environment: Environment, patience: float, say: Say, static: bool = False
    ) -> None:
        if not environment.shared_climate:
            raise InputError("the agents of this environment do not share a climate")
        self.environment, self.patience, self.say = environment, patience, say
        self.substitute_static = static
        self.late: list[tuple[Episode, int, int]] = []  # episode, step, region
        self._last = dict.fromkeys(environment.regions, environment.static_action)
        self._condition = threading.Condition()
        self._plays: dict[Episode, _Play] = {}
        self._finished: set[Episode] = set()
        self._advance = jax.jit(environment.step)

    def begin(self, region: int, episode: Episode) -> Float[np.ndarray, " obs"]:
        """The start of an episode; the first agent to ask for it starts it for all.

        An agent that was late waits until the others have finished the episode before.
        """
        with self._condition:
            while older := [e for e in self._plays if e.seed == episode.seed and e < episode]:
                moved = sum(self._plays[e].time for e in older)
                if not self._condition.wait(3 * self.patience) and moved == sum(
                    self._plays[e].time for e in older
                ):
                    for left in older:  # nobody plays it any more
                        self._finish(left)
            if episode not in self._plays and episode not in self._finished:
                state, observation = self.environment.reset()
                self._plays[episode] = _Play(episode, state, np.asarray(observation))
            play = self._current(episode)
            if play.time:
                raise MissedStepError(f"episode {episode.number} is at step {play.time} already")
            return play.start[region]

    def step(
        self, region: int, episode: Episode, time: int, action: Float[np.ndarray, " action"]
    ) -> Answer:
        """Hand in the parameters of a step, and wait for the climate to move."""
        with self._condition:
            play = self._current(episode)
            if play.time != time or region in play.absent:
                raise MissedStepError(f"the climate is at step {play.time}, not {time}")
            play.actions[region] = np.asarray(action, np.float32)
            complete = play.actions.keys() | play.absent >= set(self.environment.regions)
            if complete or not self._condition.wait_for(lambda: play.time > time, self.patience):
                self._substitute(play)
            observation, reward = play.results[time]
            ended = time + 1 >= self.environment.episode_length
            return Answer(observation[region], float(reward[region]), ended)

    def _current(self, episode: Episode) -> _Play:
        if episode not in self._plays:
            raise MissedStepError(f"episode {episode.number} is not played now")
        return self._plays[episode]

    def _substitute(self, play: _Play) -> None:
        """Move, with something in place of what is missing."""
        kind = "static" if self.substitute_static else "last"
        static = self.environment.static_action
        for region in self.environment.regions:
            if region not in play.actions:
                play.actions[region] = static if self.substitute_static else self._last[region]
                self.late.append((play.episode, play.time, region))
                if region not in play.absent:
                    play.absent.add(region)
                    self.say(
                        f"region {region} is late at step {play.time} of episode "
                        f"{play.episode.number}: its {kind} parameters stand until the end"
                    )
        self._move(play)

    def _finish(self, episode: Episode) -> None:
        self._finished.add(episode)
        del self._plays[episode]

    def _move(self, play: _Play) -> None:
        actions = np.stack([play.actions[region] for region in self.environment.regions])
        self._last.update(play.actions)
        state, observation, reward, _ = self._advance(play.state, actions.astype(np.float32))
        # A thread may wake only after the next step, so what it waited for is kept.
        play.results.append((np.asarray(observation), np.asarray(reward)))
        play.state, play.actions = state, {}
        play.time += 1
        if play.time >= self.environment.episode_length:
            self._finish(play.episode)
        self._condition.notify_all()
