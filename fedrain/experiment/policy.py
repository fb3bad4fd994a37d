"""One agent's policy, as a plain function."""

import reprlib
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from fedrain.agents import View
from fedrain.agents.networks import Network
from fedrain.agents.step import EVALUATION, agent_keys
from fedrain.climate.columns import is_integer
from fedrain.errors import InputError
from fedrain.experiment.configuration import Configuration
from fedrain.experiment.evaluation import evaluation_noise


class Policy:
    """One agent's policy, a plain function of what the agent sees.

    ``outputs`` tells, for each number of an action, which parameter it sets and where.
    :meth:`Run.policy` makes it.

    Args:
        outputs: For each number of an action, the parameter that it sets, and where.
        slices: Where in an action each parameter is, by its symbol.
        act: A function of observation and step that gives an action.
        observation_size: How many numbers an observation has.
    """

    def __init__(
        self,
        outputs: tuple[str, ...],
        slices: dict[str, slice],
        act: Callable[..., Any],
        observation_size: int,
    ) -> None:
        self.outputs = outputs
        self._slices = slices
        self._act = act
        self._observation_size = observation_size

    def __call__(
        self, observation: Any, step: int | Int[Array, ""] = 0
    ) -> Float[Array, "*batch action"]:
        """An action for an observation, or for a batch of them, in action units.

        Args:
            observation: ``[..., observation]``, in the units of the fields.
            step: Of the episode; a policy that draws its actions (``evaluate_by_sampling``) draws
                anew for each.

        Returns:
            ``[..., output]``: what :attr:`outputs` names.
        """
        try:
            seen = jnp.asarray(observation, jnp.float32)
        except (TypeError, ValueError):
            raise InputError(
                f"an observation is an array of numbers, not {reprlib.repr(observation)}"
            ) from None
        if (found := seen.shape[-1] if seen.ndim else 1) != self._observation_size or not seen.ndim:
            raise InputError(
                f"an observation of this agent has {self._observation_size} numbers, not {found}"
            )
        if not seen.size:
            raise InputError(f"there is no observation in an array of shape {seen.shape}")
        return self._act(seen, step)

    def parameters(
        self, observation: Any, step: int = 0
    ) -> dict[str, Float[np.ndarray, "*batch value"]]:
        """The same by symbol of the parameter.

        Args:
            observation: ``[..., observation]``, in the units of the fields.
            step: Of the episode.

        Returns:
            By symbol, ``[..., value]``: one number, or one for each column of the agent's region.
        """
        action = np.asarray(self(observation, step))
        return {symbol: action[..., part] for symbol, part in self._slices.items()}

    def __repr__(self) -> str:
        parts = ", ".join(f"{s}: {p.stop - p.start}" for s, p in self._slices.items())
        return f"Policy(sets {len(self.outputs)} numbers: {parts})"


def output_names(environment: Any, agent: int) -> tuple[str, ...]:
    """For each number of an agent's action, the parameter that it sets, and where."""
    names = []
    columns = environment.model.columns
    cells = environment.division.cells[agent] if environment.shared_climate else range(len(columns))
    for row in environment.learnt:
        if not row.by_column:
            names.append(row.symbol)
            continue
        for cell in cells:
            latitude = columns.latitude[cell]
            place = f"{row.symbol} at {abs(latitude):.4g}°{'S' if latitude < 0 else 'N'}"
            if columns.longitude is not None:
                place += f" {columns.longitude[cell]:.4g}°E"
            levels = range(row.levels) if row.scope == "level" else (None,)
            names += [place if level is None else f"{place}, level {level}" for level in levels]
    return tuple(names)


def make_policy(configuration: Configuration, actors: Network, seed: int, agent: int) -> Policy:
    """The policy of one agent of an experiment, whose actors are stacked as seed, agent."""
    seeds, agents = configuration.seeds, range(configuration.agents)
    if not (is_integer(seed) and is_integer(agent) and seed in seeds and agent in agents):
        raise InputError(f"the run has no agent {agent!r} of seed {seed!r}")
    actor = jax.tree.map(lambda leaf: leaf[seeds.index(seed), agent], actors)
    environment, algorithm = configuration.make_environment(), configuration.make_algorithm()
    view = View(algorithm.transforms, environment.spec)
    stream = algorithm.schedule.streams((agent,))
    key = agent_keys(jnp.asarray(seed, jnp.uint32), EVALUATION, stream)[0]

    @jax.jit
    def act(observation: Float[Array, "*batch obs"], step: Int[Array, ""]) -> Array:
        flat = observation.reshape(-1, observation.shape[-1])
        seen = view.observation(flat, (agent,) * len(flat))
        noise = evaluation_noise(key, step, view.spec)
        one = jax.vmap(lambda seen: algorithm.act(actor, seen, noise, view.spec))
        action = view.action(one(seen))
        return action.reshape(*observation.shape[:-1], action.shape[-1])

    size = environment.observation_size
    return Policy(output_names(environment, agent), environment.action_slices, act, size)
