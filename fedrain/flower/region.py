"""The home of one region: its agent, its memory and its optimiser, kept from round to round."""

from dataclasses import replace
from pathlib import Path
from typing import Protocol, runtime_checkable

import jax
import numpy as np
from jaxtyping import Float

from fedrain.agents.step import Training
from fedrain.envs import AgentSpec, Environment
from fedrain.errors import InputError
from fedrain.experiment.checkpoint import Checkpoints
from fedrain.experiment.configuration import Configuration
from fedrain.experiment.folder import Say
from fedrain.experiment.fused import EpisodeLog
from fedrain.experiment.host import MissedStepError, Outcome, host_episode
from fedrain.experiment.trainer import History, Trainer
from fedrain.flower.climate import Answer, Episode
from fedrain.flower.messages import Payload, adopt_all, take_payload


@runtime_checkable
class Climate(Protocol):
    """A shared climate, on this machine or another."""

    def begin(self, region: int, episode: Episode) -> Float[np.ndarray, " obs"]:
        """The start of an episode."""

    def step(
        self, region: int, episode: Episode, time: int, action: Float[np.ndarray, " action"]
    ) -> Answer:
        """One step."""


def keep_compiled(folder: Path) -> None:
    """Keep compiled code, so that a region that comes back need not compile again."""
    if jax.config.values["jax_compilation_cache_dir"] is None:
        jax.config.update("jax_compilation_cache_dir", str(folder.absolute() / "compiled"))


class RegionHome:
    """The home of one region: what ``Fleet`` is to all of them, for one agent."""

    def __init__(
        self,
        configuration: Configuration,
        region: int,
        folder: Path,
        climate: Climate | None = None,
        federation_id: str = "",
        say: Say = print,
    ) -> None:
        environment = configuration.make_environment()
        if region not in environment.regions:
            raise InputError(
                f"there is no region {region}: regions are 0 to {environment.agents - 1}"
            )
        self.configuration, self.region, self.say = configuration, region, say
        self.foreign = bool(getattr(climate, "foreign", False))
        if environment.shared_climate:
            if climate is None:
                raise InputError(
                    "the agents of this environment share a climate: say where it is (--climate)"
                )
            self.trainer: Trainer = CoupledTrainer(
                configuration, environment, region, climate, federation_id
            )
        else:
            self.trainer = Trainer(configuration, replace(environment, only_region=region))
        name = f"{configuration.identity}-{federation_id}-{region}"
        self._checkpoints = Checkpoints(folder / "checkpoint", name)
        if (found := self._checkpoints.load(self.trainer.trainings)) is not None:
            self.trainer.restore(*found)
        self.trainer.begin()
        self.rounds_played = self.trainer.history.pop("rounds", np.zeros(0, int)).tolist()

    def train(self, region: int, payload: Payload | None, first: int, episodes: int) -> None:
        """Play a round, once."""
        if region != self.region:
            raise InputError(
                f"region {region} is not on this machine, which has region {self.region}"
            )
        trainer = self.trainer
        if first in self.rounds_played:
            return  # played before; the server lost the reply
        if first and not self.rounds_played:
            self.say(f"region {region} joins at episode {first}: its memory is empty")
        if payload is not None:
            adopt_all(trainer, [payload])
        for episode in range(first, first + episodes):
            if isinstance(trainer, CoupledTrainer):
                trainer.number = episode
            trainer.play(synchronise=False)
            for message in trainer.newly_diverged():
                self.say(message)
        self.rounds_played.append(first)
        trainer.save(self._checkpoints, rounds=np.array(self.rounds_played))

    def payload(self, region: int) -> Payload:
        """What the region has to send."""
        assert region == self.region
        return take_payload(self.trainer.trainings, 0, self.trainer.sharing)

    def history(self, region: int) -> dict[str, np.ndarray]:
        """What the region has done."""
        assert region == self.region
        return {
            name: values[..., 0] if values.ndim == 3 else values
            for name, values in self.trainer.history.items()
        }


class CoupledTrainer(Trainer):
    """One agent of a shared climate: what the others do comes with the climate."""

    in_turn = True  # as on all other machines, whatever their cores, or they would deadlock

    def __init__(
        self,
        configuration: Configuration,
        environment: Environment,
        region: int,
        climate: Climate,
        federation_id: str,
    ) -> None:
        self.region, self.climate, self.federation_id = region, climate, federation_id
        self.number = 0  # of the federation's episode
        self.steps = np.zeros(len(configuration.seeds), int)  # taken; some may have been missed
        super().__init__(configuration, environment, (region,))

    def restore(self, episode: int, trainings: list[Training], history: History) -> None:
        """Resume from a checkpoint, with the steps that it records."""
        self.steps = history.pop("steps")
        super().restore(episode, trainings, history)

    def save(self, checkpoints: Checkpoints, **more: np.ndarray) -> None:
        """Write a checkpoint, with the steps taken."""
        super().save(checkpoints, steps=self.steps, **more)

    @property
    def rows_filled(self) -> tuple[int, int]:
        """Steps in the memory of the seed that has missed the most, and of the one with fewest."""
        return int(self.steps.min()), int(self.steps.max())

    def _episode(
        self,
        index: int,
        training: Training,
        synchronise: bool,  # noqa: ARG002
    ) -> tuple[Training, EpisodeLog]:
        seed = self.configuration.seeds[index]
        episode = Episode(self.number, seed, self.federation_id)
        world = CoupledWorld(self.climate, self.environment.spec, self.region, episode)
        training, log, self.steps[index] = host_episode(
            world,
            self.algorithm,
            (self.region,),
            training,
            seed,
            int(self.steps[index]),
        )
        return training, log


class CoupledWorld:
    """The shared climate as the world of one agent."""

    agents = 1

    def __init__(self, climate: Climate, spec: AgentSpec, region: int, episode: Episode) -> None:
        self.climate, self.spec, self.region, self.episode = climate, spec, region, episode
        self.time = 0

    def reset(self, seed: int) -> Float[np.ndarray, "agent obs"]:  # noqa: ARG002
        """Start the episode, or find it started."""
        self.time = 0
        return self.climate.begin(self.region, self.episode)[None]

    def step(self, actions: Float[np.ndarray, "agent action"]) -> Outcome:
        """One step along with all others; they continue without an agent that has diverged."""
        if not np.isfinite(actions).all():
            raise MissedStepError(
                f"region {self.region} has diverged: its parameters are not finite"
            )
        answer = self.climate.step(self.region, self.episode, self.time, actions[0])
        self.time += 1
        number = len(self.spec.places or ())
        if answer.of_all is not None and len(answer.of_all) != number:
            raise InputError(f"the climate gives {len(answer.of_all)} rewards of {number} regions")
        reward = np.array([answer.reward], np.float32)
        return Outcome(answer.observation[None], reward, answer.ended, answer.of_all)
