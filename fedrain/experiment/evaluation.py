"""Skill of learnt policies: one episode, without exploration."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key, UInt32

from fedrain.agents import Algorithm, View
from fedrain.agents.networks import Network
from fedrain.agents.step import EVALUATION, agent_keys, environment_key
from fedrain.climate import BAND_NAMES, Physics, Skill, band_skill
from fedrain.climate.model import over_climates
from fedrain.envs import AgentSpec, Environment, EnvParams, State


class Evaluation(NamedTuple):
    """One episode of the policies of every seed, that runs free.

    ``target`` and ``fluxes`` are those of the step that is judged, the last, or the mean over the
    last few; fluxes where the model has them.
    """

    fields: dict[str, Float[np.ndarray, "seed step column ..."]]  # judged; each agent's own columns
    returns: Float[np.ndarray, "seed agent"]
    parameters: dict[str, Float[np.ndarray, "seed step ..."]]
    target: dict[str, Float[np.ndarray, "seed column ..."]]
    fluxes: dict[str, Float[np.ndarray, "seed column"]]

    def skill(self, environment: Environment) -> list[Skill]:
        """Skill of every seed after the last step, of the first of the judged fields."""
        return self._skills(environment, environment.judged[0][0])

    def _skills(self, environment: Environment, name: str) -> list[Skill]:
        columns, judged = environment.model.columns, environment.judged_mean
        pairs = zip(self.fields[name], self.target[name], strict=True)
        return [band_skill(columns, judged(values), target) for values, target in pairs]

    def errors(self, environment: Environment) -> dict[str, Float[np.ndarray, " seed"]]:
        """Area-weighted root mean square error after the last step: judged fields, then fluxes.

        Fluxes that are not judged are held against the reanalysis, where the model has it as its
        ``target``.
        """
        found = {
            name: np.array([skill.globe for skill in self._skills(environment, name)])
            for name, _ in environment.judged  # JAX sorts the fields by name
        }
        for name, reference in environment.flux_references.items():
            columns = environment.model.columns
            skills = [band_skill(columns, values, reference) for values in self.fluxes[name]]
            found[name] = np.array([skill.globe for skill in skills])
        return found

    def physics(self, environment: Environment) -> list[Physics]:
        """Energy budget and parameters of every seed after the last step."""
        last = environment.last_judged
        return [
            environment.physics(
                {symbol: values[i, last] for symbol, values in self.parameters.items()},
                {name: values[i, last] for name, values in self.fields.items()},
                {name: values[i] for name, values in self.fluxes.items()},
            )
            for i in range(len(self.returns))
        ]


def evaluate(
    environment: Environment,
    algorithm: Algorithm,
    actors: Network,
    seeds: tuple[int, ...],
    params: EnvParams | None = None,
) -> Evaluation:
    """Play the actors, stacked as seed, agent.

    Args:
        environment: Where they play.
        algorithm: What they were trained with.
        actors: Their weights.
        seeds: Whatever is random is derived from these.
        params: Start, target, forcing and noise, if they are not the environment's own.
    """
    given = jax.tree.map(jnp.asarray, (params or environment.params).test)
    numbers = jnp.asarray(seeds, jnp.uint32)
    played = _play(environment, algorithm, given, actors, numbers)
    return Evaluation(*jax.device_get(played))


@partial(jax.jit, static_argnames=("environment", "algorithm"))
def _play(
    environment: Environment,
    algorithm: Algorithm,
    params: EnvParams,
    actors: Network,
    seeds: UInt32[Array, " seed"],
) -> tuple[Any, ...]:
    def one(actor: Network, seed: Array) -> tuple[Any, ...]:
        keys = agent_keys(seed, EVALUATION, algorithm.schedule.streams(environment.regions))
        key = environment_key(seed, EVALUATION)

        def advance(carry: tuple[State, Array], index: Array) -> tuple[tuple[State, Array], Any]:
            state, observation = carry
            action = policy_actions(environment, algorithm, actor, observation, keys, index)
            state, observation, reward, _ = environment.step(
                jax.random.fold_in(key, index + 1), state, action, params
            )
            shown = environment.fields(state)
            judged = {name: shown[name] for name, _ in environment.judged}
            more = environment.judged_against(state, action, params)
            own = environment.own_parameters(action)
            return (state, observation), (judged, reward, own, *more)

        begin = environment.reset(jax.random.fold_in(key, 0), params)
        _, (fields, reward, parameters, *more) = jax.lax.scan(
            advance, begin, jnp.arange(environment.episode_length)
        )
        last = jax.tree.map(environment.judged_mean, more)
        return fields, reward.sum(0), parameters, *last

    return over_climates(environment.model, one)(actors, seeds)


def policy_actions(
    environment: Environment,
    algorithm: Algorithm,
    actor: Network,
    observation: Float[Array, "agent obs"],
    keys: Key[Array, " agent"],
    step: Int[Array, ""],
) -> Float[Array, "agent action"]:
    """What the learnt policies of all agents do at one step, without exploration."""
    view = View(algorithm.transforms, environment.spec)
    noise = jax.vmap(lambda key: evaluation_noise(key, step, view.spec))(keys)
    seen = view.observation(observation, environment.regions)
    act = jax.vmap(lambda a, o, n: algorithm.act(a, o, n, view.spec))
    return view.action(act(actor, seen, noise))


def evaluation_noise(
    key: Key[Array, ""], step: Int[Array, ""] | int, spec: AgentSpec
) -> Float[Array, " action"]:
    """Standard normal numbers, for policies that draw their actions."""
    return jax.random.normal(jax.random.fold_in(key, step), (spec.action_size,))


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
