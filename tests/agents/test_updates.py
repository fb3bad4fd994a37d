"""What an update does beside its loss, against NumPy: penalties, rates, followers and keys."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fedrain.agents import DDPG, SAC, TD3, TQC
from fedrain.agents.sac import alpha_gradient
from fedrain.agents.step import draw
from tests.agents.by_hand import (
    DETERMINISTIC,
    KEY,
    QUANTILES,
    SOFT,
    SPEC,
    at_once,
    forward,
    new_agent,
    policy,
    random_batch,
    squashed_normal,
    values,
)

NOISE = np.array([0.7, -1.3, 0.4])


def with_last_bias(agent, bias):
    """Its actor's last biases set, which shifts its outputs."""
    *hidden, last = agent.actor
    shifted = last._replace(bias=jnp.asarray(bias, jnp.float32))
    return agent._replace(actor=(*hidden, shifted))


def test_saturated_actors_of_td3_pay_for_it():
    """The loss has the weight times the mean square by which outputs lie beyond ±3."""
    plain, strict = (TD3(**DETERMINISTIC, restraint=r) for r in (0.0, 0.7))
    batch = random_batch(5)
    agent = with_last_bias(new_agent(plain, 5), [6.0, -5.0, 0.0])
    outputs = forward(agent.actor, np.asarray(batch.observation, float))
    penalty = 0.7 * (np.maximum(np.abs(outputs) - 3, 0) ** 2).mean()
    losses = [at_once(a.actor_loss, agent.actor, agent.critic, batch) for a in (plain, strict)]
    assert penalty > 1
    assert losses[1] - losses[0] == pytest.approx(penalty, rel=1e-4)


@pytest.mark.parametrize("algorithm", [SAC(**SOFT), TQC(**QUANTILES)], ids=["sac", "tqc"])
def test_saturated_actors_of_soft_policies_pay_for_their_mean(algorithm):
    """Only the means of the actions are pulled back: the log-std is squashed by itself."""
    batch = random_batch(6)
    agent = with_last_bias(new_agent(algorithm, 6), [6.0, -5.0, 0.0, 9.0, 9.0, 9.0])
    outputs = forward(agent.actor, np.asarray(batch.observation, float))[:, :3]
    penalty = (np.maximum(np.abs(outputs) - 3, 0) ** 2).mean()
    strict = type(algorithm)(**{**vars(algorithm), "restraint": 0.7})
    noise = jnp.zeros(batch.action.shape)
    losses = [
        at_once(a.actor_loss, agent.actor, agent, batch, noise)[0] for a in (algorithm, strict)
    ]
    assert losses[1] - losses[0] == pytest.approx(0.7 * penalty, rel=1e-3)


def test_exploration_is_in_half_ranges_of_each_number():
    """π(s) + σ · half-range · ε, and no further than the bounds."""
    algorithm, seen = TD3(**DETERMINISTIC), np.arange(4.0, dtype=np.float32)
    agent = new_agent(algorithm)
    low, high = (np.array(bound, float) for bound in SPEC.bounds)
    for size in (1.0, 30.0):
        found = at_once(algorithm.explore, agent, seen, jnp.asarray(size * NOISE, jnp.float32))
        wanted = policy(agent.actor, seen) + 0.1 * (high - low) / 2 * size * NOISE
        np.testing.assert_allclose(found, np.clip(wanted, low, high), rtol=1e-5)


def test_soft_exploration_is_a_draw_from_the_policy():
    """And log π is the density of that draw, by the change of variables."""
    algorithm, batch = SAC(**SOFT), random_batch(8)
    agent = new_agent(algorithm, 8)
    noise = jax.random.normal(KEY, batch.action.shape)
    action, log_p = squashed_normal(agent.actor, np.asarray(batch.observation, float), KEY)
    drawn = jax.jit(jax.vmap(lambda o, n: algorithm.explore(agent, o, n, SPEC)))
    np.testing.assert_allclose(drawn(batch.observation, noise), action, rtol=1e-4, atol=1e-5)
    found = at_once(algorithm.sample, agent.actor, batch.observation, noise)
    np.testing.assert_allclose(found[1], log_p, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("kind", [DDPG, TD3])
def test_targets_follow_what_has_just_been_learnt(kind):
    """θ' ← (1 − τ) θ' + τ θ, with the actor after its step."""
    algorithm = kind(**DETERMINISTIC)
    agent = new_agent(algorithm, 9)
    after, _ = at_once(algorithm.update_policy, agent, random_batch(9), KEY)
    for old, new, follower in (
        (agent.target_actor, after.actor, after.target_actor),
        (agent.target_critic, agent.critic, after.target_critic),
    ):
        expected = jax.tree.map(
            lambda t, o: 0.9 * np.asarray(t, float) + 0.1 * np.asarray(o, float), old, new
        )
        jax.tree.map(
            lambda e, f: np.testing.assert_allclose(f, e, rtol=1e-5, atol=1e-7), expected, follower
        )


def first_steps(before, after):
    """How far the weights moved that have a gradient worth the name, typically."""
    moved = [
        np.abs(np.asarray(b, float) - np.asarray(a, float)).ravel()
        for a, b in zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True)
    ]
    every = np.concatenate(moved)
    return np.median(every[every > 1e-5])


@pytest.mark.parametrize("kind", ["td3", "sac", "tqc"])
def test_each_part_learns_at_its_own_rate(kind):
    """The first step of Adam is as long as its rate, whatever the gradient."""
    algorithm = {
        "td3": TD3(**{**DETERMINISTIC, "policy_frequency": 1}),
        "sac": SAC(**{**SOFT, "policy_frequency": 1}),
        "tqc": TQC(**{**QUANTILES, "policy_frequency": 1}),
    }[kind]
    agent = new_agent(algorithm, 11)
    after, _ = at_once(algorithm.update, agent, random_batch(11), KEY, jnp.asarray(1))
    rates = (1e-3, 1e-3) if kind == "td3" else (1e-3, 2e-3)
    for name, rate in zip(("actor", "critic"), rates, strict=True):
        step = first_steps(getattr(agent, name), getattr(after, name))
        assert step == pytest.approx(rate, rel=0.02), name
    if kind != "td3":
        step = abs(float(after.log_alpha - agent.log_alpha))
        assert step == pytest.approx(3e-3, rel=0.01)


def test_the_slope_of_the_entropy_coefficient():
    """∂/∂log α of −α · mean (log π − dim a)."""
    log_p = np.array([1.5, -0.5, 4.0, 2.0])
    slope = alpha_gradient(jnp.asarray(-0.7), jnp.asarray(log_p, jnp.float32), 3)
    assert float(slope) == pytest.approx(-np.exp(-0.7) * (log_p.mean() - 3), rel=1e-5)


class Keys:
    """Keys that numbers are drawn from, and keys that others are derived from."""

    def __init__(self, monkeypatch):
        self.drawn, self.parents = [], []
        for names, kept in (
            (("normal", "uniform", "bits", "randint"), self.drawn),
            (("split", "fold_in"), self.parents),
        ):
            for name in names:
                monkeypatch.setattr(jax.random, name, self._noted(getattr(jax.random, name), kept))

    def _noted(self, function, kept):
        def noted(key, *args, **kwargs):
            jax.debug.callback(lambda data: kept.append(bytes(data)), jax.random.key_data(key))
            return function(key, *args, **kwargs)

        return noted


@pytest.mark.parametrize("kind", ["td3", "sac"])
def test_critic_and_policy_draw_from_keys_of_their_own(monkeypatch, kind):
    """No key is drawn from twice; in TD3 none is both drawn from and derived from."""
    algorithm = {
        "td3": TD3(**{**DETERMINISTIC, "policy_frequency": 1}),
        "sac": SAC(**{**SOFT, "policy_frequency": 3}, log_alpha_loss=True),
    }[kind]
    agent, keys = new_agent(algorithm), Keys(monkeypatch)
    at_once(algorithm.update, agent, random_batch(), KEY, jnp.asarray(3))
    jax.effects_barrier()
    # Of the critics' target; and for SAC of three policy steps, with a second draw in each.
    assert len(keys.drawn) == {"td3": 1, "sac": 7}[kind]
    assert len(set(keys.drawn)) == len(keys.drawn)
    if kind == "td3":
        assert not set(keys.drawn) & set(keys.parents)


def test_action_rows_and_update_have_a_key_each(monkeypatch):
    """The numbers of one step are drawn from different keys, agent by agent."""
    keys = Keys(monkeypatch)
    algorithm = TD3(**DETERMINISTIC)
    found = draw(algorithm, SPEC, (0, 1, 2), jnp.asarray(5, jnp.uint32), jnp.asarray(7))
    jax.effects_barrier()
    update = [bytes(np.asarray(data)) for data in jax.random.key_data(found.update)]
    used = [*keys.drawn, *update]
    assert len(used) == 9
    assert len(set(used)) == 9
    assert not set(used) & set(keys.parents)


def test_values_are_those_of_every_critic():
    """The mean that is logged, and the losses, are of the batch that was learnt from."""
    algorithm, batch = TD3(**{**DETERMINISTIC, "policy_frequency": 1}), random_batch(12)
    agent = new_agent(algorithm, 12)
    _, losses = at_once(algorithm.update, agent, batch, KEY, jnp.asarray(1))
    o, a, *_ = (np.asarray(x, float) for x in batch)
    q = values(agent.critic, o, a, 2)
    assert float(losses.q) == pytest.approx(q.mean(), rel=1e-4)
