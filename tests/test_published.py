"""The published runs: what of them is known, each point as an option of its own."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.spaces import Box

from fedrain.agents import load_algorithm
from fedrain.agents.replay import Batch
from fedrain.agents.step import draw, start_training
from fedrain.climate import EnergyBalanceModel, Grid
from fedrain.climate.climatology import target_fields
from fedrain.envs import make
from fedrain.envs.tasks import TASKS, find_task
from fedrain.errors import InputError
from fedrain.experiment import configure
from fedrain.federation import Sharing, average
from tests.conftest import optimised


@pytest.mark.parametrize(
    ("unapplied", "expected"), [(("a0", "a2"), -46692.5812566441), ((), -45984.43)]
)
def test_the_published_random_episode(unapplied, expected):
    """A published notebook prints the return of random actions on 94 latitudes, 100 steps."""
    low = np.array([0.55, *[1.4] * 94, *[2.0] * 94, 0.3, 0.2], np.float32)
    high = np.array([0.65, *[4.2] * 94, *[2.0] * 94, 0.4, 0.3], np.float32)
    box = Box(low, high, dtype=np.float32)
    box.seed(1)
    actions = np.stack([box.sample() for _ in range(100)]).astype(np.float64)
    with jax.enable_x64(True):
        model = EnergyBalanceModel(grid=Grid(94))
        target = target_fields(None, model, ["surface_temperature"])["surface_temperature"]
        static = {row.symbol: jnp.asarray(row.static(94)) for row in model.table}
        state, total = model.init(jax.random.key(0), temperature=jnp.asarray(50.0)), 0.0
        for action in actions:
            parameters = {
                "D": jnp.asarray(action[0]),
                "A": jnp.asarray(action[1:95] * 100),
                "B": jnp.asarray(action[95:189]),
                "a0": jnp.asarray(action[189]),
                "a2": jnp.asarray(action[190]),
            }
            parameters |= {symbol: static[symbol] for symbol in unapplied}
            forcing = {one.name: jnp.asarray(0.0) for one in model.forcings}
            state = model.step(state, parameters, forcing, jax.random.key(0))
            temperature = np.asarray(model.observe(state)["surface_temperature"])
            total -= float(np.mean((temperature - np.asarray(target)) ** 2))
    assert total == pytest.approx(expected, rel=1e-6)


def _moved(environment, start, step, symbol):
    """By how much a parameter at the other end of its bounds changes the state after a step."""
    low, high = environment.action_bounds
    where = environment.action_slices[symbol]
    first = np.tile((low + high) / 2, (len(environment.regions), 1))
    second = first.copy()
    second[:, where] = high[where]
    after = [step(jax.random.key(0), start, a).state.climate for a in (first, second)]
    leaves = zip(*map(jax.tree.leaves, after), strict=True)
    return max(float(np.abs(np.asarray(a) - np.asarray(b)).max()) for a, b in leaves)


@pytest.mark.parametrize("task", [name for name in TASKS.names() if not find_task(name).extra])
def test_every_learnt_parameter_does_something(task):
    """The published tasks are the one exception, and only for the albedo."""
    environment = make(task)
    start, step = jax.jit(environment.reset)()[0], jax.jit(environment.step)
    for row in environment.learnt:
        moved = _moved(environment, start, step, row.symbol)
        if task.endswith("-published") and row.symbol in ("a0", "a2"):
            assert moved == 0
        else:
            assert moved > 0, row.symbol


def test_unclipped_observations_leave_their_bounds():
    for unclipped in (False, True):
        environment = make("ebm-v1", start=-89.5, unclipped=unclipped)
        state, _ = environment.reset()
        coldest = environment.action_bounds[1][None]
        seen = environment.step(jax.random.key(0), state, coldest).observation
        assert float(seen.min()) < -90 if unclipped else float(seen.min()) == -90


def test_one_seed_is_one_stream_of_random_numbers():
    environment = make("ebm-v3", agents=3)
    seed = jnp.asarray(5, jnp.uint32)
    for one_seed in (False, True):
        algorithm = load_algorithm("td3", "paper", settings={"one_seed": one_seed})
        training = start_training(algorithm, environment.spec, (0, 1, 2), seed, 10)
        draws = draw(algorithm, environment.spec, (0, 1, 2), seed, jnp.asarray(3))
        drawn = (draws.action, draws.rows, jax.random.key_data(draws.update))
        for values in (*jax.tree.leaves(training.agents.critic), *drawn):
            assert bool((values[0] == values[1]).all()) == one_seed


def test_plain_tanh_has_no_slope_where_it_is_flat():
    x = jnp.asarray([0.3, -2.0, 12.0])
    for plain, slope in ((True, 0.0), (False, 4 * np.exp(-24.0))):
        algorithm = load_algorithm("td3", "paper", settings={"plain_tanh": plain})
        slopes = optimised(jax.vmap(jax.grad(algorithm.squash)))(x)
        np.testing.assert_array_equal(optimised(algorithm.squash)(x), optimised(jnp.tanh)(x))
        np.testing.assert_allclose(slopes[:2], 1 - np.tanh(x[:2]) ** 2, rtol=1e-5)
        np.testing.assert_allclose(slopes[2], slope, rtol=1e-5)


def test_log_alpha_loss_is_its_definition():
    """The step of Adam on −log α · mean (log π + target entropy), after the actor's step."""
    environment = make("ebm-v3", agents=6)
    spec = environment.spec
    algorithm = load_algorithm("tqc", "published", spec)
    keys = jax.random.split(jax.random.key(0), 4)
    agent = jax.jit(algorithm.init, static_argnums=2)(keys[0], keys[1], spec)
    size, number = algorithm.batch_size, spec.action_size
    batch = Batch(
        jax.random.normal(keys[2], (size, spec.observation_size)),  # where tanh is not yet flat
        spec.centre + 0 * jnp.zeros((size, number)),
        -jnp.ones(size),
        jax.random.normal(keys[2], (size, spec.observation_size)),
    )
    update, sample = (
        partial(one, spec=spec) for one in (algorithm.update_policy, algorithm.sample)
    )
    after, _ = optimised(update)(agent, batch, keys[3])
    again = jax.random.normal(jax.random.fold_in(keys[3], 1), batch.action.shape)
    _, log_probability = optimised(sample)(after.actor, batch.observation, again)
    slope = jax.grad(lambda log: -log * (log_probability - number).mean())(agent.log_alpha)
    moment = np.asarray(after.alpha_optimiser[0].mu) / (1 - 0.9)
    np.testing.assert_allclose(moment, slope, rtol=1e-5)


def test_stale_averages_are_those_of_rounds_in_which_one_message_is_a_round_ahead():
    """An account of the messages themselves: queues, a first request out of turn, then rounds."""
    agents, rounds = 4, 5
    environment = make("ebm-v3", agents=agents)
    algorithm = load_algorithm("ddpg", "published", environment.spec, {"width": 4})
    number = jnp.asarray(3, jnp.uint32)
    stack = start_training(algorithm, environment.spec, tuple(range(agents)), number, 10).agents
    prompt = int(np.flatnonzero(stack.prompt)[0])
    assert np.sum(stack.prompt) == 1
    rng = np.random.default_rng(0)
    drift = rng.normal(size=(rounds, agents)).astype(np.float32)

    actors = [0.0] * agents  # of one number each, to begin with alike
    queues = [[actor] for actor in actors]  # each has sent its first
    given = queues[prompt].pop(0)  # the server asks one for the weights to start with
    expected = []
    for r in range(rounds):
        actors = [given] * agents  # every agent waits for what the server gives
        actors = [actor + drift[r, i] for i, actor in enumerate(actors)]
        # The server takes the oldest message of each, and waits where there is none yet.
        queues[prompt].append(actors[prompt])
        replies = [queue.pop(0) for queue in queues]
        for i in set(range(agents)) - {prompt}:
            queues[i].append(actors[i])
        given = np.mean(replies)
        expected.append(given)

    def put(values):
        return jax.tree.map(lambda leaf: jnp.zeros_like(leaf) + _column(values, leaf), stack.actor)

    stack = stack._replace(actor=put(np.zeros(agents)), sent=put(np.zeros(agents)))
    for r in range(rounds):
        moved = jax.tree.map(lambda leaf, r=r: leaf + _column(drift[r], leaf), stack.actor)
        kept = average(stack._replace(actor=moved), Sharing(), jnp.asarray(False))
        assert kept.actor[0].bias.tolist() == moved[0].bias.tolist()
        assert kept.sent[0].bias.tolist() == stack.sent[0].bias.tolist()
        stack = average(stack._replace(actor=moved), Sharing(), jnp.asarray(True))
        for leaf in jax.tree.leaves(stack.actor):
            np.testing.assert_allclose(leaf, expected[r], rtol=1e-5, atol=1e-6)


def _column(values, leaf):
    return jnp.asarray(values, leaf.dtype).reshape(-1, *(1,) * (leaf.ndim - 1))


def test_stale_averages_are_of_all_agents():
    with pytest.raises(InputError, match="stale_averages"):
        configure(preset="published", algo="td3", sharing="neighbours")


def test_an_evaluation_is_judged_one_step_early():
    early, usual = make("ebm-v3-published"), make("ebm-v3")
    assert (early.last_judged, usual.last_judged) == (198, 199)
    with pytest.raises(InputError, match="judged_early"):
        make("ebm-v3", judged_early=200)
