"""What the loops keep of an episode, where each step is known by hand.

The learner is a stand-in that notes what it is given: what is tested is the loop alone, in its two
forms, against sums and means in NumPy and not against each other.
"""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fedrain.agents import DDPG, Losses, Schedule, Transforms
from fedrain.agents.agent import Agent
from fedrain.agents.networks import Layer
from fedrain.agents.step import (
    ENVIRONMENT,
    EVALUATION,
    HEALTHY,
    INIT_ACTOR,
    INIT_CRITIC,
    PROMPT,
    TOGETHER,
    Draws,
    Training,
    choose_actions,
    learn,
    progress,
)
from fedrain.climate import Skill
from fedrain.envs import AgentSpec, make
from fedrain.experiment import fused, host
from fedrain.experiment.configuration import averages_after
from fedrain.experiment.evaluation import summary
from fedrain.experiment.fused import gather_losses, play_episode
from fedrain.experiment.host import Outcome, host_episode, train_on_host
from fedrain.experiment.scenarios import DOUBLED_CO2, SCENARIOS
from fedrain.experiment.trainer import Trainer
from fedrain.federation import Sharing
from tests.experiment.small import SMALL

NAN = np.nan
SPEC = AgentSpec(1, (-1.0,), (1.0,))
SETTINGS = {
    "tau": 0.1, "batch_size": 4, "width": 4, "policy_frequency": 1, "discount": 0.75,
    "learning_rate": 1e-3, "exploration_noise": 0.1,
}  # fmt: skip
SHAPING = Transforms(shaping=0.4)
#: What the stand-in says of each step: losses are NaN where no policy was updated.
CRITIC, ACTOR, Q = (
    np.array([[1.0, 2.0], [NAN, NAN], [3.0, 5.0], [NAN, NAN]]),
    np.array([[-1.0, NAN], [NAN, NAN], [NAN, -4.0], [NAN, NAN]]),
    np.array([[4.0, 1.0], [6.0, -2.0], [1.0, 8.0], [5.0, 3.0]]),
)


def shaped(rewards, share, discount):
    """r' = (1 − p) r + p (r − r₋₁)/(1 − γ), without a change in the first step of an episode."""
    change = np.diff(rewards, axis=0, prepend=rewards[:1])
    return (1 - share) * rewards + share * change / (1 - discount)


def untrained(rows, agents=2):
    """A training that nobody learns from: room for that many rows."""
    network = (Layer(jnp.zeros((agents, 1, 1)), jnp.arange(agents, dtype=jnp.float32)[:, None]),)
    agent = Agent(network, network, network, network, None, None)
    return Training(agent, jnp.zeros((agents, *rows)), jnp.full(agents, HEALTHY, jnp.int32))


class Counted:
    """Two agents whose rewards are known: of episode e and step t, −(1 + e) (t + 1) and −t²."""

    spec, agents = SPEC, 2

    def __init__(self):
        self.episode = -1

    def reset(self, seed):
        self.episode, self.time = self.episode + 1, 0
        return np.zeros((2, 1), np.float32)

    def step(self, actions):
        t = self.time
        self.time += 1
        reward = np.array([-(1 + self.episode) * (t + 1), -(t**2)], np.float32)
        return Outcome(np.full((2, 1), self.time, np.float32), reward, self.time == 4)


REWARDS = np.array([[[-(1 + e) * (t + 1), -(t**2)] for t in range(4)] for e in range(3)], float)


@pytest.fixture
def noted(monkeypatch):
    """A host loop whose learner notes the transitions, and says what stands above."""
    transitions = []

    def stand_in(algorithm, spec, training, transition, draws, step):
        transitions.append((int(step), np.asarray(transition.reward)))
        seen, after = np.asarray(transition.observation), np.asarray(transition.next_observation)
        assert seen.tolist() == [[step % 4]] * 2
        assert after.tolist() == [[step % 4 + 1]] * 2
        losses = (jnp.asarray(values[step % 4], jnp.float32) for values in (CRITIC, ACTOR, Q))
        return training, Losses(*losses)

    monkeypatch.setattr(host, "_draw", lambda *_: SimpleNamespace(action=None))
    monkeypatch.setattr(host, "_choose", lambda *_: jnp.zeros((2, 1)))
    monkeypatch.setattr(host, "_learn", stand_in)
    return transitions


def test_the_host_loop_adds_up_rewards_and_means_values(noted):
    """Returns are sums, losses the last that there were, and the value a mean over the steps."""
    algorithm, world, step = DDPG(**SETTINGS, transforms=SHAPING), Counted(), 0
    training = untrained((12, 4))
    for episode in range(3):
        training, log, step = host_episode(world, algorithm, (0, 1), training, 0, step)
        np.testing.assert_allclose(log.returns, REWARDS[episode].sum(0))
        np.testing.assert_allclose(log.losses.critic_loss, [3.0, 5.0])
        np.testing.assert_allclose(log.losses.actor_loss, [-1.0, -4.0])
        np.testing.assert_allclose(log.losses.q, Q.mean(0), rtol=1e-6)
        # Biases 0 and 1: ½ from their mean, weights 0.
        assert float(log.distance) == pytest.approx(np.sqrt((0.25 + 0.25) / 4))
    assert step == 12
    assert [one for one, _ in noted] == list(range(12))
    learnt = np.array([reward for _, reward in noted]).reshape(3, 4, 2)
    for episode in range(3):
        expected = shaped(REWARDS[episode], 0.4, 0.75)
        np.testing.assert_allclose(learnt[episode], expected, rtol=1e-5)


def test_the_fused_loop_keeps_the_same_of_every_episode(monkeypatch):
    """In the second episode, too, the first step has no change of reward."""
    environment = make("ebm-v3", agents=2, **{**SMALL, "episode_length": 4})

    def stand_in(algorithm, spec, training, transition, draws, step):
        row = jnp.stack([transition.reward, jnp.asarray(step, jnp.float32) * jnp.ones(2)], axis=-1)
        rows = training.rows.at[:, step].set(row)
        losses = (jnp.asarray(values, jnp.float32)[step % 4] for values in (CRITIC, ACTOR, Q))
        return training._replace(rows=rows), Losses(*losses)

    def static(algorithm, spec, training, observation, uniform, step):
        return (1 + 0.01 * step) * jnp.asarray(environment.static_actions, jnp.float32)

    monkeypatch.setattr(fused, "learn", stand_in)
    monkeypatch.setattr(fused, "choose_actions", static)
    algorithm = DDPG(**SETTINGS, transforms=SHAPING)
    seed, training = jnp.asarray(0, jnp.uint32), untrained((12, 2))
    play, move = jax.jit(play_episode, static_argnums=(0, 1, 2)), jax.jit(environment.step)
    for episode in range(2):
        training, log = play(
            environment, algorithm, Sharing(), environment.params, training, seed,
            jnp.asarray(episode), jnp.asarray(False),
        )  # fmt: skip
        state, _ = environment.reset(jax.random.key(0))  # nothing is random in it
        rewards = []
        for step in range(4 * episode, 4 * episode + 4):
            action = (1 + 0.01 * step) * environment.static_actions.astype(np.float32)
            state, _, reward, _ = move(jax.random.key(0), state, action)
            rewards.append(np.asarray(reward, float))
        np.testing.assert_allclose(log.returns, np.sum(rewards, axis=0), rtol=1e-5)
        np.testing.assert_allclose(log.losses.q, Q.mean(0), rtol=1e-6)
        kept = np.asarray(training.rows[:, 4 * episode : 4 * episode + 4]).transpose(1, 0, 2)
        expected = shaped(np.array(rewards), 0.4, 0.75)
        np.testing.assert_allclose(kept[..., 0], expected, rtol=1e-4)
        assert kept[:, 0, 1].tolist() == [4.0 * episode + t for t in range(4)]
    assert (training.rows[:, 8:] == 0).all()


def test_gathered_losses_are_the_last_and_the_mean():
    gathered = Losses(*(jnp.zeros(2) for _ in range(3)))
    for step in range(4):
        new = Losses(*(jnp.asarray(values[step]) for values in (CRITIC, ACTOR, Q)))
        gathered = gather_losses(gathered, new, 4)
    np.testing.assert_allclose(gathered.critic_loss, [3.0, 5.0])
    np.testing.assert_allclose(gathered.actor_loss, [-1.0, -4.0])
    np.testing.assert_allclose(gathered.q, Q.mean(0), rtol=1e-6)


def test_agents_are_averaged_every_so_often_and_not_at_the_end(monkeypatch):
    """After episodes 2 and 4 of 6, every two: the last average makes the global policy."""
    assert [e for e in range(6) if averages_after(e, 6, 2)] == [1, 3]
    assert [e for e in range(6) if averages_after(e, 6, 3)] == [2]
    assert [e for e in range(7) if averages_after(e, 7, 3)] == [2, 5]
    assert not any(averages_after(e, 6, 0) for e in range(6))
    played, averaged = [], []

    def episode(world, algorithm, regions, training, seed, step):
        played.append(step)
        log = SimpleNamespace(returns=np.array([-1.0, -2.0]) * (1 + len(played)))
        return training, log, step + 1

    def average(agents, sharing, synchronise):
        averaged.append(len(played))
        return agents

    monkeypatch.setattr(host, "host_episode", episode)
    monkeypatch.setattr(host, "_average", average)
    monkeypatch.setattr(host, "start_training", lambda *_: untrained((6, 4)))
    _, returns = train_on_host(Counted(), DDPG(**SETTINGS), 6, sync_every=2)
    assert averaged == [2, 4]
    assert played == list(range(6))
    np.testing.assert_array_equal(returns[:, 1], -2.0 * np.arange(2, 8))


# ---------------------------------------------------------------------- the first steps of a run


class Tally(DDPG):
    """Counts its updates, and shows the bias of its first critic as the value."""

    def update(self, agent, batch, key, step, spec):
        nothing = jnp.zeros(())
        losses = Losses(nothing, nothing, agent.critic[0].bias[0, 0])
        return agent._replace(more=agent.more + 1), losses


def tallied(algorithm, agents):
    """New agents that have learnt nothing yet."""
    agent = jax.jit(lambda key: algorithm.init(key, key, SPEC))(jax.random.key(0))
    own = jax.tree.map(lambda leaf: jnp.stack([leaf] * agents), agent)
    own = own._replace(more=jnp.zeros(agents, jnp.int32))
    return Training(own, jnp.zeros((agents, 8, 4)), jnp.full(agents, HEALTHY, jnp.int32))


def draws_of(agents):
    keys = jax.random.split(jax.random.key(1), agents)
    return Draws(jnp.zeros((agents, 1)), jnp.zeros((agents, 4), jnp.uint32), keys)


def test_learning_begins_with_the_step_after_the_last_random_one():
    """Steps are counted from 0: of a warm-up of 3 steps, 3 are random, and the 4th learns."""
    algorithm = Tally(**SETTINGS, schedule=Schedule(warmup_steps=3))
    training = tallied(algorithm, 1)
    agent = jax.tree.map(lambda leaf: leaf[0], training.agents)
    seen, uniform = jnp.full((1, 1), 0.3), jnp.full((1, 1), 0.5)
    choose = jax.jit(lambda step: choose_actions(algorithm, SPEC, training, seen, uniform, step))
    found = [float(choose(jnp.asarray(step))[0, 0]) for step in range(5)]
    policy = float(algorithm.act(agent.actor, seen[0], None, SPEC)[0])
    learnt = policy + 0.1 * np.sqrt(2) * float(jax.scipy.special.erfinv(0.5))
    np.testing.assert_allclose(found, [0.5] * 3 + [learnt] * 2, rtol=1e-5)

    row, draws = fused.Batch(seen, uniform, jnp.ones(1), seen), draws_of(1)
    update = jax.jit(lambda step: learn(algorithm, SPEC, training, row, draws, step)[0])
    counts = [int(update(jnp.asarray(step)).agents.more[0]) for step in range(5)]
    assert counts == [0, 0, 0, 1, 1]


def test_how_much_of_a_run_has_passed():
    """In steps of each agent, whether or not all share one memory."""
    own = untrained((40, 4))
    shared = own._replace(rows=jnp.zeros((1, 80, 4)))
    for training in (own, shared):
        assert float(progress(training, jnp.asarray(10))) == pytest.approx(0.25)


@pytest.mark.parametrize(("final", "passed", "left"), [(0.2, 0.25, 0.8), (0.5, 1.0, 0.5)])
def test_noise_falls_in_a_line(final, passed, left):
    normal = jnp.array([[1.0, -2.0]])
    found = Schedule(final_noise=final).noise(normal, jnp.asarray(passed))
    np.testing.assert_allclose(found, left * normal, rtol=1e-6)


# ---------------------------------------------------------------------- what is told of many seeds


def test_the_spread_of_seeds_is_that_of_the_population():
    bands = np.random.default_rng(0).uniform(1, 9, (3, 6))
    skills = [Skill(tuple(row.tolist()), float(row.mean() + 1)) for row in bands]
    told = summary(skills)
    np.testing.assert_allclose(told["bands_mean"], bands.sum(0) / 3)
    deviations = bands - bands.sum(0) / 3
    np.testing.assert_allclose(told["bands_std"], np.sqrt((deviations**2).sum(0) / 3))
    globe = bands.mean(1) + 1
    assert told["global_mean"] == pytest.approx(globe.sum() / 3)
    assert told["global_std"] == pytest.approx(np.sqrt(((globe - globe.mean()) ** 2).sum() / 3))


def test_scenarios_force_the_climate_as_they_are_called():
    """More CO₂ lets less longwave out; the sun changes in per cent of itself; a ramp takes an
    episode."""
    environment = make("ebm-v3", agents=2, **SMALL)
    own, sun = environment.params, environment.model.solar_constant
    params = {name: one.params(environment) for name, one in SCENARIOS.items()}
    assert DOUBLED_CO2 == -3.7
    for name, longwave, solar, ramp in (
        ("standard", 0.0, 0.0, 0),
        ("co2 step", -3.7, 0.0, 0),
        ("co2 ramp", -3.7, 0.0, 10),
        ("sun -2%", 0.0, -0.02 * sun, 0),
        ("sun +2%", 0.0, 0.02 * sun, 0),
        ("warmer target", 0.0, 0.0, 0),
    ):
        forcing = params[name].forcing
        np.testing.assert_allclose(forcing["longwave"], [longwave] * 2, err_msg=name)
        np.testing.assert_allclose(forcing["solar"], [solar] * 2, rtol=1e-6, err_msg=name)
        assert float(params[name].ramp) == ramp, name
    for degrees in (0.0, 20.0, 60.0):
        start = params[f"start {degrees:g}"].start["temperature"]
        np.testing.assert_array_equal(start, [degrees] * 2)
    target = "surface_temperature"
    np.testing.assert_allclose(params["warmer target"].target[target], own.target[target] + 3.0)
    np.testing.assert_array_equal(params["co2 step"].target[target], own.target[target])


# ---------------------------------------------------------------------- numbers that are not finite


def test_an_agent_diverges_at_its_first_number_that_is_not_finite():
    """A reward or a value, of its own; later ones change nothing."""
    learning = Tally(**SETTINGS, schedule=Schedule(warmup_steps=2))
    training, draws = tallied(learning, 3), draws_of(3)
    critic = jax.tree.map(lambda leaf: leaf.at[2].set(jnp.nan), training.agents.critic)
    training = training._replace(agents=training.agents._replace(critic=critic))

    @jax.jit
    def step(training, number, rewards):
        row = fused.Batch(jnp.ones((3, 1)), jnp.zeros((3, 1)), rewards, jnp.ones((3, 1)))
        return learn(learning, SPEC, training, row, draws, number)[0]

    for number, rewards in enumerate([(1, 1, 1), (1, NAN, 1), (1, 1, 1), (1, NAN, 1)]):
        training = step(training, jnp.asarray(number), jnp.asarray(rewards, jnp.float32))
    # The second by its reward at step 1; the third by its critic, as soon as that is asked.
    assert training.diverged_at.tolist() == [HEALTHY, 1, 2]


def test_the_agent_that_diverged_first_is_named():
    """Of each seed: the earliest step, whoever else has none; a healthy seed is not named."""
    steps = ([HEALTHY, 7, 5], [HEALTHY] * 3, [4, HEALTHY, HEALTHY])
    trainer = Trainer.__new__(Trainer)
    own = untrained((1, 4), agents=3)
    trainer.trainings = [own._replace(diverged_at=jnp.asarray(one, jnp.int32)) for one in steps]
    trainer.diverged, trainer.regions = set(), (0, 1, 2)
    trainer.configuration = SimpleNamespace(seeds=(10, 11, 12))
    first, second = trainer.newly_diverged()
    assert first.startswith("seed 10 stops: agent 2 has")
    assert "at step 5" in first
    assert second.startswith("seed 12 stops: agent 0 has")
    assert "at step 4; the other seeds continue" in second
    assert trainer.diverged == {0, 2}
    assert trainer.newly_diverged() == []


def test_no_step_of_a_run_has_the_keys_of_its_start_or_end():
    """What comes before the first step, and after the last, is not a step that there may be."""
    for apart in ((INIT_CRITIC, INIT_ACTOR, EVALUATION, PROMPT), (TOGETHER, ENVIRONMENT)):
        assert len(set(apart)) == len(apart)
        assert min(apart) > 2**31  # steps are counted in 32 bits with a sign
        assert max(apart) < 2**32
