"""Every target and loss against a direct calculation in NumPy."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fedrain.agents import DDPG, SAC, TD3, TQC
from fedrain.agents.quantile_huber import quantile_huber
from fedrain.agents.tqc import without_largest
from tests.agents.by_hand import (
    DETERMINISTIC,
    KEY,
    QUANTILES,
    SOFT,
    SPEC,
    at_once,
    new_agent,
    policy,
    random_batch,
    squashed_normal,
    values,
)


@pytest.mark.parametrize("critics", [1, 4])
def test_ddpg_target_and_losses(critics):
    """With several critics both the target and the actor go by their mean."""
    algorithm, batch = DDPG(**DETERMINISTIC, critics=critics), random_batch()
    agent = new_agent(algorithm)
    o, a, r, o2 = (np.asarray(x, float) for x in batch)
    q2 = values(agent.target_critic, o2, policy(agent.target_actor, o2), critics)[..., 0]
    y = r + 0.9 * q2.mean(0)
    np.testing.assert_allclose(at_once(algorithm.critic_target, agent, batch, KEY), y, rtol=1e-4)
    q = values(agent.critic, o, a, critics)[..., 0]
    loss, found = jax.jit(algorithm.critic_loss)(agent.critic, batch, jnp.asarray(y, jnp.float32))
    np.testing.assert_allclose(loss, np.mean((q - y) ** 2, 1).sum(), rtol=1e-4)
    np.testing.assert_allclose(found, q, rtol=1e-4, atol=1e-6)
    expected = -values(agent.critic, o, policy(agent.actor, o), critics).mean()
    actor_loss = at_once(algorithm.actor_loss, agent.actor, agent.critic, batch)
    np.testing.assert_allclose(actor_loss, expected, rtol=1e-4)


@pytest.mark.parametrize("first", [False, True])
def test_td3_target_and_losses(first):
    algorithm = TD3(
        **DETERMINISTIC, policy_noise=1.4, noise_clip=1.2, clip_target_to_first_component=first
    )
    batch = random_batch(1)
    agent = new_agent(algorithm, 1)
    o, a, r, o2 = (np.asarray(x, float) for x in batch)
    low, high = (np.array(b, float) for b in SPEC.bounds)
    noise = 1.4 * np.asarray(jax.random.normal(KEY, (8, 3)), float)
    assert (np.abs(noise) > 1.2).any()
    noisy = policy(agent.target_actor, o2) + np.clip(noise, -1.2, 1.2) * (high - low) / 2
    assert (noisy > high).any()
    assert (noisy < low).any()
    # The published quirk: every component between the bounds of component 0.
    clipped = np.clip(noisy, low[0], high[0]) if first else np.clip(noisy, low, high)
    y = r + 0.9 * values(agent.target_critic, o2, clipped, 2)[..., 0].min(0)
    np.testing.assert_allclose(at_once(algorithm.critic_target, agent, batch, KEY), y, rtol=1e-4)
    q = values(agent.critic, o, a, 2)[..., 0]
    loss, _ = jax.jit(algorithm.critic_loss)(agent.critic, batch, jnp.asarray(y, jnp.float32))
    np.testing.assert_allclose(loss, ((q - y) ** 2).mean(1).sum(), rtol=1e-4)
    expected = -values(agent.critic, o, policy(agent.actor, o), 2)[0].mean()
    actor_loss = at_once(algorithm.actor_loss, agent.actor, agent.critic, batch)
    np.testing.assert_allclose(actor_loss, expected, rtol=1e-4)


def test_sac_target_and_losses():
    """The lowest critic, in the target and for the actor alike."""
    algorithm, batch = SAC(**SOFT), random_batch(7)
    agent = new_agent(algorithm, 7)._replace(log_alpha=jnp.asarray(-0.7))
    o, a, r, o2 = (np.asarray(x, float) for x in batch)
    alpha = np.exp(-0.7)
    action, log_p = squashed_normal(agent.actor, o2, KEY)
    q2 = values(agent.target_critic, o2, action, 3)[..., 0]
    assert len(np.unique(q2.argmin(0))) == 3  # none is the lowest everywhere
    y = r + 0.9 * (q2.min(0) - alpha * log_p)
    found = at_once(algorithm.critic_target, agent, batch, KEY)
    np.testing.assert_allclose(found[:, 0], y, rtol=1e-3, atol=1e-4)
    q = values(agent.critic, o, a, 3)[..., 0]
    loss, _ = jax.jit(algorithm.critic_loss)(
        agent.critic, batch, jnp.asarray(y, jnp.float32)[:, None]
    )
    np.testing.assert_allclose(loss, ((q - y) ** 2).mean(1).sum(), rtol=1e-4)
    action, log_p = squashed_normal(agent.actor, o, KEY)
    q = values(agent.critic, o, action, 3)[..., 0].min(0)
    noise = jax.random.normal(KEY, batch.action.shape)
    loss, log_probability = at_once(algorithm.actor_loss, agent.actor, agent, batch, noise)
    np.testing.assert_allclose(loss, (alpha * log_p - q).mean(), rtol=1e-3)
    np.testing.assert_allclose(log_probability, log_p, rtol=1e-3)


def test_tqc_of_one_critic_with_one_quantile_is_sac_but_for_the_loss():
    """The lowest of one is its mean: the same target, the same actor, half a Huber for a square."""
    sac, tqc = SAC(**{**SOFT, "critics": 1}), TQC(**{**SOFT, "critics": 1}, quantiles=1, drop=0)
    batch, agent = random_batch(4), new_agent(sac, 4)
    new = [at_once(algorithm.init, KEY, KEY) for algorithm in (sac, tqc)]
    jax.tree.map(np.testing.assert_array_equal, *new)
    y = [at_once(algorithm.critic_target, agent, batch, KEY) for algorithm in (sac, tqc)]
    np.testing.assert_allclose(*y, rtol=1e-6)
    actors = [
        at_once(algorithm.update_policy, agent, batch, KEY)[0].actor for algorithm in (sac, tqc)
    ]
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7), *actors)
    q = sac.values(agent.critic, batch.observation, batch.action)
    near = q[0] + jnp.linspace(-1, 1, 8)[:, None]
    # ρ_τ(u) = |½ − 1{u < 0}| u²/2 = u²/4
    np.testing.assert_allclose(4 * tqc.value_loss(q, near), sac.value_loss(q, near), rtol=1e-5)


@pytest.mark.parametrize("drop", [0, 2])
def test_tqc_target_and_losses(drop):
    algorithm, batch = TQC(**QUANTILES, drop=drop), random_batch(2)
    agent = new_agent(algorithm, 2)._replace(log_alpha=jnp.asarray(-0.7))
    o, _, r, o2 = (np.asarray(x, float) for x in batch)
    alpha = np.exp(-0.7)
    action, log_p = squashed_normal(agent.actor, o2, KEY)
    z = values(agent.target_critic, o2, action, 3)  # critic, batch, quantile
    pooled = np.sort(z.transpose(1, 0, 2).reshape(8, 15), axis=1)[:, : 15 - 3 * drop]
    y = r[:, None] + 0.9 * (pooled - alpha * log_p[:, None])
    found = at_once(algorithm.critic_target, agent, batch, KEY)
    np.testing.assert_allclose(np.sort(found, axis=1), np.sort(y, axis=1), rtol=1e-3, atol=1e-4)
    action, log_p = squashed_normal(agent.actor, o, KEY)
    q = values(agent.critic, o, action, 3).mean((0, 2))
    noise = jax.random.normal(KEY, batch.action.shape)
    loss, log_probability = at_once(algorithm.actor_loss, agent.actor, agent, batch, noise)
    np.testing.assert_allclose(loss, (alpha * log_p - q).mean(), rtol=1e-3)
    np.testing.assert_allclose(log_probability, log_p, rtol=1e-3)


def test_what_is_left_without_the_largest():
    """The same numbers that sorting leaves, with ties and numbers that are not finite too."""
    rng = np.random.default_rng(2)
    for number in (1, 3, 10):
        rows = rng.normal(0, 3, (25, 40)).astype(np.float32)
        rows[:, 20:] = np.round(rows[:, 20:])
        rows[3, 5:30] = np.inf
        rows[7:9, 10:25] = -np.inf
        kept = np.sort(np.asarray(without_largest(jnp.asarray(rows), number)), axis=0)
        np.testing.assert_array_equal(kept, np.sort(rows, axis=0)[:-number])
    rows[4, 0] = np.nan  # must not go unseen
    assert np.isnan(without_largest(jnp.asarray(rows), number)[:, 0]).any()


def test_quantile_huber_is_its_definition():
    """Loss and gradient, for numbers of targets that fill the passes over them and that do not."""

    def definition(theta, target):
        error = target[None, :, None, :] - theta[..., None]
        huber = jnp.where(jnp.abs(error) <= 1, error**2 / 2, jnp.abs(error) - 0.5)
        level = (jnp.arange(5) + 0.5) / 5
        return (jnp.abs(level[:, None] - (error < 0)) * huber).mean()

    rng = np.random.default_rng(0)
    for kept in (1, 7, 25, 26, 49, 50, 77):
        theta = jnp.asarray(rng.normal(0, 2, (3, 4, 5)), jnp.float32)
        target = jnp.asarray(rng.normal(0, 2, (4, kept)), jnp.float32)
        loss, gradient = jax.jit(jax.value_and_grad(quantile_huber))(theta, target)
        expected, slope = jax.jit(jax.value_and_grad(definition))(theta, target)
        np.testing.assert_allclose(loss, expected, rtol=1e-5)
        np.testing.assert_allclose(gradient, slope, rtol=1e-4, atol=1e-7)


def test_quantile_huber_finds_quantiles():
    """Its minimum over many draws is the quantiles of what they are drawn from."""
    draws = jnp.asarray(np.random.default_rng(1).normal(0, 50, (1, 4000)), jnp.float32)
    theta = jnp.zeros((1, 1, 3))
    gradient = jax.jit(jax.grad(lambda t: quantile_huber(t, draws)))
    for _ in range(4000):
        theta -= 100 * gradient(theta)
    expected = np.quantile(np.asarray(draws), [1 / 6, 1 / 2, 5 / 6])
    np.testing.assert_allclose(theta[0, 0], expected, atol=2.0)


@pytest.mark.parametrize("algorithm", [SAC(**SOFT), TQC(**QUANTILES)], ids=["sac", "tqc"])
def test_alpha_moves_towards_the_target_entropy(algorithm):
    """log α falls where the entropy is above its target, −dim(a), and rises below."""
    agent = new_agent(algorithm, 3)
    batch = random_batch(3)
    for bias, rises in ((-8.0, True), (0.458, False)):  # log-std −5 and 0
        *hidden, last = agent.actor
        shifted = last._replace(
            bias=last.bias.at[3:].set(bias), weight=last.weight.at[:, 3:].set(0)
        )
        changed = agent._replace(actor=(*hidden, shifted))
        after, _ = at_once(algorithm.update_policy, changed, batch, KEY)
        assert (after.log_alpha > agent.log_alpha) == rises


def test_td3_without_its_additions_is_ddpg():
    ddpg = DDPG(**DETERMINISTIC)
    td3 = TD3(**DETERMINISTIC, critics=1, policy_noise=0.0, noise_clip=0.0)
    agents = [at_once(algorithm.init, KEY, KEY) for algorithm in (ddpg, td3)]
    updates = [jax.jit(algorithm.update, static_argnums=4) for algorithm in (ddpg, td3)]
    for step in range(4):
        batch = random_batch(step)
        agents = [
            update(agent, batch, KEY, jnp.asarray(step), SPEC)[0]
            for update, agent in zip(updates, agents, strict=True)
        ]
    jax.tree.map(np.testing.assert_array_equal, *agents)


def test_policy_and_targets_wait_for_their_turn():
    algorithm = TD3(**{**DETERMINISTIC, "policy_frequency": 3})
    agent, update = at_once(algorithm.init, KEY, KEY), jax.jit(algorithm.update, static_argnums=4)
    for step in range(1, 7):
        after, losses = update(agent, random_batch(), KEY, jnp.asarray(step), SPEC)
        moved = not np.array_equal(after.actor[0].weight, agent.actor[0].weight)
        target_moved = not np.array_equal(
            after.target_critic[0].weight, agent.target_critic[0].weight
        )
        assert moved == target_moved == (step % 3 == 0)
        assert np.isnan(losses.actor_loss) == (step % 3 != 0)


@pytest.mark.parametrize("kind", [SAC, partial(TQC, quantiles=5)], ids=["sac", "tqc"])
def test_soft_policies_catch_up_and_targets_keep_their_own_time(kind):
    algorithm = kind(**{**SOFT, "policy_frequency": 3})
    update = jax.jit(lambda agent, step: algorithm.update(agent, random_batch(), KEY, step, SPEC))
    agent = at_once(algorithm.init, KEY, KEY)
    for step in range(1, 13):
        after, _ = update(agent, jnp.asarray(step))
        counts = (after.actor_optimiser[0].count, after.alpha_optimiser[0].count)
        assert counts == ((3, 3) if step % 3 == 0 else (0, 0))
        target_moved = not np.array_equal(
            after.target_critic[0].weight, agent.target_critic[0].weight
        )
        assert target_moved == (step % 4 == 0)


def test_first_step_of_adam_is_the_learning_rate():
    """After one step m/√v is the sign of the gradient."""
    algorithm = DDPG(**DETERMINISTIC)
    agent = new_agent(algorithm)
    after, _ = at_once(algorithm.update, agent, random_batch(), KEY, jnp.asarray(1))
    change = np.abs(np.asarray(after.critic[1].weight - agent.critic[1].weight))
    active = change > 1e-4
    assert active.mean() > 0.3
    np.testing.assert_allclose(change[active], 1e-3, rtol=1e-2)


def test_actions_stay_within_bounds():
    soft = SAC(**SOFT), TQC(**QUANTILES)
    for algorithm in (DDPG(**DETERMINISTIC), TD3(**DETERMINISTIC), *soft):
        agent = at_once(algorithm.init, KEY, KEY)
        low, high = SPEC.bounds
        rng = np.random.default_rng(0)
        observations = rng.normal(0, 100, (50, 4)).astype(np.float32)
        noises = rng.normal(size=(50, 3)).astype(np.float32)
        explore = partial(algorithm.explore, agent, spec=SPEC)
        act = partial(algorithm.act, agent.actor, spec=SPEC)
        for choose in (explore, act):
            actions = jax.jit(jax.vmap(choose))(observations, noises)
            assert (actions >= low - 1e-6).all()
            assert (actions <= high + 1e-6).all()
