"""Each algorithm learns a linear-quadratic problem whose optimum is known."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import pytest

from fedrain.agents import DDPG, SAC, TD3, TQC, Schedule
from fedrain.agents.step import start_training
from fedrain.climate import Columns, Field, Parameter, ParameterTable
from fedrain.envs import make, rollout
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
    price: float = 1.0  # of what is to cost √0.3 u

    def init(self, key):
        return jnp.full(2, START)

    def observe(self, state):
        return {"x": state}

    def step(self, state, parameters, forcing, key):
        x, u = state[..., 0], jnp.asarray(parameters["u"])
        cost = self.price * COST**0.5 * u
        return jnp.stack([x + PULL * u, jnp.broadcast_to(cost, x.shape)], axis=-1)


def optimal_control() -> tuple[float, list[float]]:
    """Riccati's recursion: the cost to go from x is p x², u = −k x; the return, and every k."""
    p, gains = 0.0, []
    for _ in range(LENGTH):
        q = 1 + p  # cost of the state that is reached, now and later
        gain = q * PULL / (q * PULL**2 + COST)
        p = q * (1 - PULL * gain) ** 2 + COST * gain**2
        gains.insert(0, gain)
    return -p * START**2 / 2, gains  # the reward is a mean of two


def controlled_return(model: Regulator, factor: float = 1.0) -> float:
    """What the optimal gains, or others in that ratio to them, get in the environment."""
    environment = make("ebm-v1", model=model, target=[0.0, 0.0], episode_length=LENGTH)
    x, actions = START, []
    for gain in optimal_control()[1]:
        actions.append(-factor * gain * x)
        x += PULL * actions[-1]
    played = rollout(environment, jnp.asarray(actions).reshape(LENGTH, 1, 1))
    return float(played.returns[0])


def test_the_optimum_is_reached_and_not_passed():
    """Only by a reward that counts less than it should, which shows that one would see it."""
    best, _ = optimal_control()
    assert controlled_return(Regulator()) == pytest.approx(best, rel=1e-5)
    for factor in (0.9, 1.1):
        assert controlled_return(Regulator(), factor) < best * (1 + 1e-3)
    assert passes_the_optimum(controlled_return(Regulator(price=0.9)))
    assert not passes_the_optimum(controlled_return(Regulator()))


def passes_the_optimum(returns) -> bool:
    """Whether any is better than anything can be, but for rounding."""
    return bool((jnp.asarray(returns) > optimal_control()[0] * (1 - 1e-5)).any())


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
    assert not passes_the_optimum(returns)
    assert (returns >= optimal_control()[0] * 1.05).all()
