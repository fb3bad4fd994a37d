"""Skill of learnt policies: one episode from the standard start, without exploration."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key, UInt32

from fedrain.agents import Algorithm, Lens, Spaces
from fedrain.agents.networks import Network
from fedrain.agents.step import EVALUATION, agent_keys, spaces_of
from fedrain.climate import BAND_NAMES, Skill, band_skill
from fedrain.envs import Environment, State


class Evaluation(NamedTuple):
    """One episode of the policies of every seed."""

    profile: Float[np.ndarray, "seed step lat"]  # °C, each agent's own cells
    returns: Float[np.ndarray, "seed agent"]
    parameters: dict[str, Float[np.ndarray, "seed step ..."]]

    def skill(self, environment: Environment) -> list[Skill]:
        """Skill of every seed after the last step."""
        target = np.array(environment.target)
        return [band_skill(environment.model.grid, p[-1], target) for p in self.profile]


def evaluate(
    environment: Environment, algorithm: Algorithm, actors: Network, seeds: tuple[int, ...]
) -> Evaluation:
    """Play the actors, stacked as seed, agent."""
    numbers = jnp.asarray(seeds, jnp.uint32)
    profile, returns, parameters = jax.device_get(_play(environment, algorithm, actors, numbers))
    return Evaluation(profile, returns, parameters)


@partial(jax.jit, static_argnames=("environment", "algorithm"))
def _play(
    environment: Environment, algorithm: Algorithm, actors: Network, seeds: UInt32[Array, " seed"]
) -> tuple[Array, Array, dict[str, Array]]:

    def one(actor: Network, seed: Array) -> tuple[Array, Array, dict[str, Array]]:
        keys = agent_keys(seed, EVALUATION, environment.regions)

        def advance(carry: tuple[State, Array], index: Array) -> tuple[tuple[State, Array], Any]:
            state, observation = carry
            action = policy_actions(environment, algorithm, actor, observation, keys, index)
            state, observation, reward, _ = environment.step(state, action)
            parameters = environment.own_parameters(action)
            return (state, observation), (environment.profile(state), reward, parameters)

        _, (profile, reward, parameters) = jax.lax.scan(
            advance, environment.reset(), jnp.arange(environment.episode_length)
        )
        return profile, reward.sum(0), parameters

    return jax.vmap(one)(actors, seeds)


def policy_actions(
    environment: Environment,
    algorithm: Algorithm,
    actor: Network,
    observation: Float[Array, "agent obs"],
    keys: Key[Array, " agent"],
    step: Int[Array, ""],
) -> Float[Array, "agent action"]:
    """What the learnt policies of all agents do at one step, without exploration."""
    lens = Lens(algorithm, spaces_of(environment))
    noise = jax.vmap(lambda key: evaluation_noise(key, step, lens.spaces))(keys)
    seen = lens.observation(observation, environment.regions)
    act = jax.vmap(lambda a, o, n: algorithm.act(a, o, n, lens.spaces))
    return lens.action(act(actor, seen, noise))


def evaluation_noise(
    key: Key[Array, ""], step: Int[Array, ""] | int, spaces: Spaces
) -> Float[Array, " action"]:
    """Standard normal numbers, for policies that draw their actions."""
    return jax.random.normal(jax.random.fold_in(key, step), (spaces.action_size,))


def summary(skills: list[Skill]) -> dict[str, Any]:
    """Mean and population spread over the seeds, and each seed; for one seed, just its skill."""
    bands = np.array([skill.bands for skill in skills])
    globe = np.array([skill.globe for skill in skills])
    mean = Skill(tuple(bands.mean(0).tolist()), float(globe.mean()))
    return {
        **mean.as_dict(),
        "band_names": list(BAND_NAMES),
        "bands_mean": bands.mean(0).tolist(),
        "bands_std": bands.std(0).tolist(),
        "global_mean": float(globe.mean()),
        "global_std": float(globe.std()),
        "per_seed": [skill.as_dict() for skill in skills],
    }
