"""Each algorithm learns a linear-quadratic problem whose optimum is known."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import pytest

from fedrain.agents import DDPG, SAC, TD3, TQC, Schedule
from fedrain.agents.step import start_training
from fedrain.climate import Columns, Field, Parameter, ParameterTable
from fedrain.envs import make
from fedrain.experiment.evaluation import evaluate
from fedrain.experiment.fused import run_episode
from fedrain.federation import Sharing

PULL, COST, START, LENGTH = 0.5, 0.3, 2.0, 5


@dataclass(frozen=True)
class Regulator:
    """x' = x + ½ u beside √0.3 u: the reward is − mean (x'², 0.3 u²), a linear regulator's."""

    columns: Columns = Columns.zonal(2)
    table: ParameterTable = ParameterTable((Parameter("u", "control", "1", 0.0, -4.0, 4.0),))
    fields: tuple[Field, ...] = (Field("x", "1"),)
    forcings: tuple = ()

    def init(self, key):
        return jnp.full(2, START)

    def observe(self, state):
        return {"x": state}

    def step(self, state, parameters, forcing, key):
        x, u = state[..., 0], jnp.asarray(parameters["u"])
        return jnp.stack([x + PULL * u, jnp.broadcast_to(COST**0.5 * u, x.shape)], axis=-1)


def optimal_return() -> float:
    """Riccati's recursion: the cost to go from x is p x², u = −k x."""
    p = 0.0
    for _ in range(LENGTH):
        q = 1 + p  # cost of the state that is reached, now and later
        gain = q * PULL / (q * PULL**2 + COST)
        p = q * (1 - PULL * gain) ** 2 + COST * gain**2
    return -p * START**2 / 2  # the reward is a mean of two


COMMON = {"tau": 0.005, "batch_size": 128, "width": 64, "discount": 0.95}
COMMON["schedule"] = Schedule(warmup_steps=300)
DETERMINISTIC = {"learning_rate": 1e-3, "exploration_noise": 0.1, "policy_frequency": 2}
#: Each algorithm and the episodes that it needs.
ALGORITHMS = {
    "ddpg": (DDPG(**COMMON, **DETERMINISTIC), 1200),
    "td3": (TD3(**COMMON, **DETERMINISTIC, policy_noise=0.05, noise_clip=0.1), 1200),
    "tqc": (
        TQC(
            **COMMON,
            actor_learning_rate=1e-3,
            critic_learning_rate=1e-3,
            alpha_learning_rate=5e-3,
            quantiles=10,
            critics=2,
            policy_frequency=1,
            target_frequency=1,
        ),
        500,
    ),
    "sac": (
        SAC(
            **COMMON,
            actor_learning_rate=1e-3,
            critic_learning_rate=2e-3,
            alpha_learning_rate=5e-3,
            policy_frequency=1,
            target_frequency=1,
        ),
        500,
    ),
}


@pytest.mark.parametrize(
    "name",
    ["sac", *(pytest.param(name, marks=pytest.mark.slow) for name in ("ddpg", "td3", "tqc"))],
)
def test_reaches_the_optimum(name):
    (algorithm, episodes), seeds = ALGORITHMS[name], (0, 1)
    environment = make(
        "ebm-v1",
        model=Regulator(),
        target=[0.0, 0.0],
        episode_length=LENGTH,
    )

    def learnt(seed):
        number = jnp.asarray(seed, jnp.uint32)
        training = start_training(algorithm, environment.spec, (0,), number, episodes * LENGTH)
        for episode in range(episodes):
            training, _ = run_episode(
                environment,
                algorithm,
                Sharing(),
                environment.params,
                training,
                number,
                jnp.asarray(episode),
                jnp.asarray(False),
            )
        return training.agents.actor

    actors = jax.tree.map(lambda *leaves: jnp.stack(leaves), *map(learnt, seeds))
    returns = evaluate(environment, algorithm, actors, seeds).returns[:, 0]
    best = optimal_return()
    assert (returns <= best * (1 - 1e-5)).all()  # nothing beats the optimum
    assert (returns >= best * 1.05).all()
