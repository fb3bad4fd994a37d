"""Exploration and the length of steps: set in one place, for all algorithms alike."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm

from fedrain.agents import ALGORITHMS, Batch, Losses, Schedule, load_algorithm
from fedrain.agents.schedule import are_common
from fedrain.agents.step import choose_actions, draw, learn, start_training
from fedrain.envs import AgentSpec, make

SPEC = AgentSpec(4, (-1.0, 1.4, 0.2), (1.0, 4.2, 0.3), common=(1,))
SEED, STEPS = jnp.asarray(0, jnp.uint32), 40
REGIONS = (0, 1)
every_algorithm = pytest.mark.parametrize("algo", ALGORITHMS.names())


def small(algo, **schedule):
    """A policy update at every step, so that one step shows all."""
    settings = {"width": 4, "batch_size": 4, "policy_frequency": 1}
    if algo == "tqc":
        settings |= {"quantiles": 3, "critics": 2, "evaluate_by_sampling": False}
    algorithm = load_algorithm(algo, "paper", settings=settings)
    return replace(algorithm, schedule=Schedule(warmup_steps=2, **schedule))


def transition(step):
    rng = np.random.default_rng(step)
    low, high = SPEC.bounds
    action = rng.uniform(low, high, (2, 3))
    parts = rng.normal(size=(2, 4)), action, rng.normal(size=2), rng.normal(size=(2, 4))
    return Batch(*(jnp.asarray(part, jnp.float32) for part in parts))


def one_update(algorithm, step=STEPS // 2):
    """New agents, and the same after the one update of this step."""
    before = start_training(algorithm, SPEC, REGIONS, SEED, STEPS)

    @jax.jit
    def update(step):
        draws = draw(algorithm, SPEC, REGIONS, SEED, step)
        return learn(algorithm, SPEC, before, transition(0), draws, step)[0]

    return before, update(jnp.asarray(step))


def two_agents(algo):
    """Before and after an update of some kind, which changed all weights."""
    algorithm = small(algo)
    keys = jax.random.split(jax.random.key(0), 4)
    return algorithm, *(algorithm.init(*keys[i : i + 2], SPEC) for i in (0, 2))


def change(before, after):
    return jax.tree.map(lambda a, b: np.asarray(b - a), before, after)


def close(one, other):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-3, atol=2e-7), one, other)


@every_algorithm
def test_an_algorithm_draws_no_exploration_of_its_own(algo):
    """The same numbers in give the same action out, and none is the policy itself."""
    algorithm = small(algo)
    agent = algorithm.init(jax.random.key(0), jax.random.key(1), SPEC)
    seen, noise = jnp.arange(4.0), jnp.array([0.5, -0.3, 0.1])
    first, second = (algorithm.explore(agent, seen, noise, SPEC) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    still = algorithm.explore(agent, seen, jnp.zeros(3), SPEC)
    np.testing.assert_allclose(still, algorithm.act(agent.actor, seen, noise, SPEC), rtol=1e-6)
    assert not np.allclose(first, still)


@every_algorithm
def test_exploration_falls_over_the_run(algo):
    """Halfway with final_noise 0 is half the noise; at the end there is none."""
    algorithm = small(algo, final_noise=0.0)
    training = start_training(algorithm, SPEC, REGIONS, SEED, STEPS)
    seen = jnp.asarray(np.random.default_rng(1).normal(size=(2, 4)), jnp.float32)
    uniform = jnp.full((2, 3), 0.4)
    normal = np.sqrt(2) * jax.lax.erf_inv(0.4)
    for step in (STEPS // 2, STEPS):
        found = choose_actions(algorithm, SPEC, training, seen, uniform, jnp.asarray(step))
        noise = jnp.full((2, 3), normal * (1 - step / STEPS))
        expected = jax.vmap(lambda a, o, n: algorithm.explore(a, o, n, SPEC))(
            training.agents, seen, noise
        )
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_the_first_actions_are_uniform_between_the_bounds():
    algorithm = small("sac")
    training = start_training(algorithm, SPEC, REGIONS, SEED, STEPS)
    low, high = SPEC.bounds
    for share, expected in ((-1, low), (0, (low + high) / 2), (1, high)):
        uniform = jnp.full((2, 3), float(share))
        found = choose_actions(
            algorithm, SPEC, training, jnp.zeros((2, 4)), uniform, jnp.asarray(1)
        )
        np.testing.assert_allclose(found, np.stack([expected] * 2), rtol=1e-6)


@every_algorithm
def test_steps_grow_shorter_over_the_run(algo):
    """Of actor and critics: from the whole step at first down to ``final_rate`` of it."""
    _, before, after = two_agents(algo)
    for passed, share in ((0.0, 1.0), (0.5, 0.6), (1.0, 0.2)):
        cut = Schedule(final_rate=0.2).limit(before, after, SPEC, jnp.asarray(passed))
        for name in ("actor", "critic"):
            old, new, found = (getattr(agent, name) for agent in (before, after, cut))
            close(change(old, found), jax.tree.map(lambda x, s=share: s * x, change(old, new)))


def test_a_step_of_training_is_limited_by_the_schedule():
    """The update in the middle of the run takes 0.6 of its length."""
    before, full = one_update(small("sac"))
    _, part = one_update(small("sac", final_rate=0.2))
    whole = change(before.agents.critic, full.agents.critic)
    assert max(np.abs(leaf).max() for leaf in jax.tree.leaves(whole)) > 1e-4
    expected = jax.tree.map(lambda x: 0.6 * x, whole)
    close(change(before.agents.critic, part.agents.critic), expected)


def test_nothing_is_learnt_before_the_warm_up_is_over():
    before, after = one_update(small("ddpg"), step=1)
    jax.tree.map(np.testing.assert_array_equal, after.agents, before.agents)
    assert not np.array_equal(after.rows, before.rows)


def test_several_updates_are_as_many_steps_of_adam():
    _, after = one_update(small("ddpg", updates=3))
    assert after.agents.critic_optimiser[0].count.tolist() == [3, 3]


@every_algorithm
def test_what_is_common_and_constant_depends_on_nothing_seen(algo):
    algorithm, before, after = two_agents(algo)
    schedule = Schedule(common_constant=True, common_rate=0.5, final_rate=0.1)
    before = schedule.start(before, SPEC)
    actor = schedule.limit(before, after, SPEC, jnp.asarray(0.8)).actor
    common = are_common(SPEC, actor[-1].weight.shape[-1])
    for network in (before.actor, actor):
        assert (network[-1].weight[..., common] == 0).all()
        assert (network[-1].weight[..., ~common] != 0).all()
        one, other = (algorithm.act(network, x * jnp.ones(4), jnp.zeros(3), SPEC) for x in (0, 1))
        assert one[1] == other[1]
        assert one[0] != other[0]
    # Its bias takes half the step that it would take, whatever final_rate says of the others.
    old, half, whole = (network[-1].bias[1] for network in (before.actor, actor, after.actor))
    np.testing.assert_allclose(half - old, 0.5 * (whole - old), rtol=1e-4)


def test_agents_are_pulled_to_their_last_average():
    """A pull of 1 leaves the actor where the average was; one of p takes p of the way back."""
    _, before, after = two_agents("sac")
    for pull in (0.25, 1.0):
        schedule = Schedule(proximal=pull)
        start = schedule.start(before, SPEC)
        found = schedule.limit(start, after._replace(anchor=start.anchor), SPEC, jnp.asarray(0.5))
        expected = jax.tree.map(lambda x, p=pull: (1 - p) * x, change(before.actor, after.actor))
        close(change(before.actor, found.actor), expected)


# -------------------------------------------------------------------- what is explored together


def drawn(algorithm, spec, step, regions=(0, 1, 2)):
    return np.asarray(draw(algorithm, spec, regions, SEED, jnp.asarray(step)).action)


def test_what_is_set_together_is_explored_together():
    environment = make("ebm-v3", agents=3, latitudes=12)
    spec = environment.spec
    alone, together = small("ddpg"), small("ddpg", common_noise=True)
    common = np.isin(np.arange(spec.action_size), spec.common)
    symbols = [row.symbol for row in environment.model.table if not row.by_column]
    assert common.sum() == len(symbols) == 3
    first, second = drawn(alone, spec, 7), drawn(together, spec, 7)
    np.testing.assert_array_equal(first[:, ~common], second[:, ~common])
    assert len(np.unique(second[:, common])) == 3
    assert len(np.unique(first[:, common])) == 9
    # An agent that is alone on its machine draws the same.
    np.testing.assert_array_equal(drawn(together, spec, 7, (2,))[0], second[2])


def test_what_is_set_together_is_explored_for_a_while():
    spec = make("ebm-v3", agents=3, latitudes=12).spec
    anew = small("ddpg", common_noise=True)
    held = small("ddpg", common_noise=True, common_hold=4)
    common = np.isin(np.arange(spec.action_size), spec.common)
    kept, fresh = (np.stack([drawn(a, spec, s) for s in range(8)]) for a in (held, anew))
    np.testing.assert_array_equal(kept[..., ~common], fresh[..., ~common])
    np.testing.assert_array_equal(kept[::4], fresh[::4])
    for begin in (0, 4):
        assert (kept[begin : begin + 4][..., common] == kept[begin][..., common]).all()
    assert (kept[0][:, common] != kept[4][:, common]).all()


@every_algorithm
def test_random_numbers_do_not_depend_on_who_else_is_here(algo):
    algorithm = small(algo)
    together = draw(algorithm, SPEC, (0, 1, 2), SEED, jnp.asarray(5))
    alone = draw(algorithm, SPEC, (2,), SEED, jnp.asarray(5))
    np.testing.assert_array_equal(alone.action[0], together.action[2])
    np.testing.assert_array_equal(alone.rows[0], together.rows[2])


def test_an_exploration_may_last_several_steps():
    """Drawn anew every five steps, and for each agent; batches and updates at every step."""
    algorithm = small("ddpg", hold=5)
    draws = [draw(algorithm, SPEC, REGIONS, SEED, jnp.asarray(step)) for step in range(10)]
    actions = np.stack([one.action for one in draws])
    for begin in (0, 5):
        held = actions[begin : begin + 5]
        np.testing.assert_array_equal(held, np.broadcast_to(held[0], held.shape))
    assert not np.any(actions[0] == actions[5])
    assert not np.any(actions[0, 0] == actions[0, 1])
    assert len({int(one.rows[0, 0]) for one in draws}) == len(draws)
    assert len({jax.random.key_data(one.update[0]).tobytes() for one in draws}) == len(draws)
    free = draw(small("ddpg"), SPEC, REGIONS, SEED, jnp.asarray(5))
    np.testing.assert_array_equal(actions[5], free.action)


def test_only_the_latest_steps_are_learnt_from():
    """With room for one step, the update is that of a batch of this step's transition alone."""
    algorithm = small("ddpg", memory=1)
    before = start_training(algorithm, SPEC, REGIONS, SEED, STEPS)
    step = jnp.asarray(STEPS // 2)
    draws = draw(algorithm, SPEC, REGIONS, SEED, step)
    full = before._replace(rows=before.rows + 7.0)  # what older steps have left
    after = [learn(algorithm, SPEC, one, transition(0), draws, step)[0] for one in (before, full)]
    jax.tree.map(np.testing.assert_array_equal, after[0].agents, after[1].agents)
    everything = replace(algorithm, schedule=replace(algorithm.schedule, memory=0))
    other = learn(everything, SPEC, full, transition(0), draws, step)[0]
    assert not np.allclose(other.agents.actor[0].weight, after[0].agents.actor[0].weight)


PLACES = tuple((float(x), 0.0) for x in np.linspace(-70, 70, 8))
ALIKE = replace(SPEC, places=PLACES)


def explorations(algorithm, regions, steps=range(3)):
    """``[step, region, action]``: the uniform numbers that actions are explored with."""
    at = jax.vmap(lambda step: draw(algorithm, ALIKE, regions, SEED, step).action)
    return np.asarray(at(jnp.asarray(steps)))


@pytest.mark.parametrize("hold", [1, 2])
def test_neighbours_explore_alike_wherever_the_others_are(hold):
    """An agent on a machine of its own has the numbers that it has beside all others."""
    algorithm = small("ddpg", noise_reach=20.0, hold=hold)
    together = explorations(algorithm, tuple(range(8)))
    np.testing.assert_array_equal(explorations(algorithm, (5, 2)), together[:, [5, 2]])
    assert (together[1] == together[0]).all() == (hold == 2)


def test_exploration_that_is_alike_is_a_smooth_field_of_as_much_noise():
    """Uniform everywhere; two places r apart correlate as weights exp(−r² / 2 reach²) say."""
    found = explorations(small("ddpg", noise_reach=20.0), tuple(range(8)), range(4000))
    assert np.abs(found.mean(0)).max() < 0.05
    np.testing.assert_allclose(found.var(0), 1 / 3, atol=0.03)
    normal = norm.ppf((found[..., 0] + 1) / 2)
    apart = np.subtract.outer(*[np.array(PLACES)[:, 0]] * 2)
    weight = np.exp(-((apart / 20.0) ** 2) / 2)
    overlap = weight @ weight.T
    expected = overlap / np.sqrt(np.outer(np.diag(overlap), np.diag(overlap)))
    np.testing.assert_allclose(np.corrcoef(normal.T), expected, atol=0.06)
    assert expected[0, 1] > 0.7
    assert expected[0, 7] < 0.01


def test_rows_are_drawn_for_those_that_learn():
    """One network for all has the batches of the first agent; all else is as it was."""
    algorithm, step = small("ddpg"), jnp.asarray(5)
    every = draw(algorithm, SPEC, REGIONS, SEED, step)
    one = draw(algorithm, SPEC, REGIONS, SEED, step, learners=1)
    np.testing.assert_array_equal(one.rows, every.rows[:1])
    np.testing.assert_array_equal(one.action, every.action)
    assert (one.update == every.update).all()


def test_an_actor_that_sees_its_place_alone():
    """Its first weights are none for all but the last numbers, which are its place."""
    spec = replace(SPEC, observation_size=6, place_size=2)
    algorithm = small("ddpg")
    agent = algorithm.init(jax.random.key(0), jax.random.key(1), spec)
    started = Schedule(place_only=True).start(agent, spec)
    for network in (started.actor, started.target_actor):
        assert (network[0].weight[:4] == 0).all()
        np.testing.assert_array_equal(network[0].weight[4:], agent.actor[0].weight[4:])
    np.testing.assert_array_equal(started.critic[0].weight, agent.critic[0].weight)


def learnt_from(schedule, regions, step, rewards):
    """The rewards in each batch of a step, where those of the steps before were given."""
    batches, plain = [], small("ddpg", **schedule)

    class Notes(type(plain)):
        """Learns nothing."""

        def update(self, agent, batch, key, step, spec):
            jax.debug.callback(lambda reward: batches.append(np.array(reward)), batch.reward)
            return agent, Losses(*jnp.zeros(3))

    training = start_training(plain, SPEC, regions, SEED, STEPS)
    rows = training.rows.at[:, :step, 7].set(jnp.asarray(rewards)[:, :step])
    new = jax.tree.map(lambda leaf: leaf[: len(regions)], transition(0))
    new = new._replace(reward=jnp.asarray(rewards)[:, step])
    draws = draw(plain, SPEC, regions, SEED, jnp.asarray(step))
    size = plain.batch_size * plain.schedule.updates
    every = jnp.broadcast_to(jnp.arange(size, dtype=jnp.uint32), (len(regions), size))
    training, draws = training._replace(rows=rows), draws._replace(rows=every)
    learn(Notes(**vars(plain)), SPEC, training, new, draws, jnp.asarray(step))
    jax.effects_barrier()
    return sorted(batch.tolist() for batch in batches)


def test_what_has_just_happened_is_learnt_from():
    """With room for one step a batch is this step's transition; with all, of every step so far."""
    rewards = np.array([[1.0, 2.0, 5.0, 10.0], [3.0, 4.0, 6.0, 20.0]], np.float32)
    for memory, expected in (
        (1, [[10.0] * 4, [20.0] * 4]),
        (2, [[5.0, 10.0] * 2, [6.0, 20.0] * 2]),
        (0, rewards.tolist()),
    ):
        assert learnt_from({"memory": memory}, REGIONS, 3, rewards) == expected


def test_updates_of_one_step_have_batches_of_their_own():
    """Draws are cut into as many batches as there are updates."""
    found = learnt_from({"updates": 3}, (0,), 11, np.arange(12.0, dtype=np.float32)[None])
    assert found == np.arange(12.0).reshape(3, 4).tolist()
