"""Options, shared policies and extensions of a run: the same bits however it is run."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

from fedrain.agents import Batch, Transforms, View, load_algorithm
from fedrain.agents.networks import Layer
from fedrain.agents.presets import make_algorithm
from fedrain.agents.schedule import shorten, slow
from fedrain.agents.step import draw, learn, start_training
from fedrain.envs import AgentSpec, parallel_env
from fedrain.errors import InputError
from fedrain.experiment import configure, load, train, training
from fedrain.experiment.configuration import difference
from fedrain.experiment.folder import open_folder
from fedrain.experiment.host import Shared, train_on_host
from fedrain.experiment.resolve import from_dict
from fedrain.experiment.trainer import Trainer
from fedrain.experiment.training import Session
from fedrain.federation import Sharing
from fedrain.reading import read_arrays
from tests.experiment.small import OPTIONS, SMALL, small_preset


@pytest.fixture
def preset(tmp_path):
    return small_preset(tmp_path, OPTIONS)


@pytest.mark.parametrize("sharing", [pytest.param("all", marks=pytest.mark.slow), "shared"])
def test_a_run_that_was_interrupted_has_the_same_bits(tmp_path, preset, monkeypatch, sharing):
    configuration = configure(preset=preset, agents=4, episodes=6, sharing=sharing, **SMALL)
    train(configuration, tmp_path / "whole")
    monkeypatch.setattr(training, "CHECKPOINT_SECONDS", 0.0)

    def stop(trainer, synchronise, play=Trainer.play):
        if trainer.episode == 4:
            raise KeyboardInterrupt
        return play(trainer, synchronise)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "play", stop)
        with pytest.raises(KeyboardInterrupt):
            train(configuration, tmp_path / "cut")
    train(configuration, tmp_path / "cut", resume=True)
    whole, cut = (read_arrays(tmp_path / n / "weights.safetensors")[0] for n in ("whole", "cut"))
    for name, weights in whole.items():
        np.testing.assert_array_equal(weights, cut[name], err_msg=name)
    if sharing == "shared":
        assert all((w == w[:, :1]).all() for w in whole.values())
        run = load(tmp_path / "whole")
        assert run.configuration.scheme == "shared"
        assert (run.returns.actor_distance == 0).all()
    else:
        assert not np.array_equal(whole["local/0/weight"][:, 0], whole["local/0/weight"][:, 1])


@pytest.mark.slow
def test_the_loaded_policy_speaks_of_the_climate(tmp_path, preset):
    """Observations in °C and physical actions, whatever the learner saw."""
    configuration = configure(preset=preset, agents=4, episodes=3, sharing="shared", **SMALL)
    run = train(configuration, tmp_path / "run")
    env = configuration.make_environment()
    policies = [run.policy(agent=agent) for agent in range(4)]
    state, observation = env.reset()
    low, high = env.action_bounds
    for _ in range(10):
        action = jnp.stack([p(o) for p, o in zip(policies, observation, strict=True)])
        assert ((low - 1e-6 <= action) & (action <= high + 1e-6)).all()
        state, observation, _, _ = env.step(jax.random.key(0), state, action)
    stored = run.results.surface_temperature.sel(policy="local", seed=0).values[-1]
    np.testing.assert_allclose(env.fields(state)["surface_temperature"], stored, atol=1e-3)


def test_host_loop_has_every_option(tmp_path, preset):
    """Of an environment of the package it knows all that the fused loop knows."""
    configuration = configure(preset=preset, agents=3, episodes=5, sync_every=2, **SMALL)
    fused = train(configuration, tmp_path / "run").returns.returns.values[:, 0]
    world = Shared(parallel_env(agents=3, **SMALL))
    _, returns = train_on_host(world, configuration.make_algorithm(), 5, sync_every=2, capacity=50)
    np.testing.assert_allclose(returns, fused, rtol=1e-3)


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("discount", [0.5, 0.75, 0.99])
def test_shaping_changes_returns_by_a_potential_alone(share, discount):
    """Σ γᵏ r'ₖ − Σ γᵏ rₖ depends on the two ends of an episode, and on nothing in between."""
    view = View(Transforms(shaping=share), AgentSpec(1, (0.0,), (1.0,)))
    rewards = jnp.asarray(np.random.default_rng(0).normal(size=(30, 4)))
    before = jnp.concatenate([jnp.zeros((1, 4)), rewards[:-1]])
    learnt = jax.vmap(lambda *now: view.shaped(*now, discount))(
        rewards, before, jnp.arange(30) == 0
    )
    weights = discount ** np.arange(30)
    potential = share * rewards / (1 - discount)
    expected = weights @ rewards + discount**30 * potential[-1] - potential[0]
    np.testing.assert_allclose(weights @ learnt, expected, rtol=1e-3, atol=1e-3)
    if not share:
        np.testing.assert_array_equal(learnt, rewards)


def test_one_memory_holds_what_all_agents_did():
    environment = configure(agents=4, **SMALL).make_environment()
    algorithm = load_algorithm("ddpg", "fedrain")
    spec, seed = environment.spec, jnp.asarray(0, jnp.uint32)
    new = start_training(algorithm, spec, environment.regions, seed, 5, one_policy=True)
    seen = View(algorithm.transforms, spec).spec
    size = seen.observation_size
    assert size == spec.observation_size + algorithm.transforms.place
    assert new.rows.shape[:2] == (1, 20)
    rng = np.random.default_rng(0)
    for step in range(2):
        shapes = ((size,), (seen.action_size,), (), (size,))
        row = Batch(*(jnp.asarray(rng.normal(size=(4, *s)), jnp.float32) for s in shapes))
        draws = draw(algorithm, seen, environment.regions, seed, jnp.asarray(step))
        new, _ = learn(algorithm, seen, new, row, draws, jnp.asarray(step))
        np.testing.assert_array_equal(new.rows[0, 4 * step : 4 * step + 4, :size], row.observation)
    assert (new.rows[0, 8:] == 0).all()


@pytest.mark.parametrize("algo", ["ddpg", "tqc"])
def test_what_is_set_together_depends_on_nothing_that_is_seen(algo):
    """Before and after an update, for actors and their targets; it is learnt all the same."""
    environment = configure(agents=4, **SMALL).make_environment()
    outside, seed = environment.spec, jnp.asarray(0, jnp.uint32)
    values = {"common_constant": True, "warmup_steps": 0, "batch_size": 4}
    algorithm = load_algorithm(algo, "fedrain", outside, values)
    spec = View(algorithm.transforms, outside).spec
    old = start_training(algorithm, outside, environment.regions, seed, 5)
    rng = np.random.default_rng(0)
    shapes = ((spec.observation_size,), (spec.action_size,), (), (spec.observation_size,))
    row = Batch(*(jnp.asarray(rng.normal(size=(4, *s)), jnp.float32) for s in shapes))
    draws = draw(algorithm, spec, environment.regions, seed, jnp.asarray(0))
    new, _ = learn(algorithm, spec, old, row, draws, jnp.asarray(0))
    common = np.isin(np.arange(spec.action_size), spec.common)

    noise = jnp.zeros(spec.action_size)

    def actions(network, agent=1):
        actor = jax.tree.map(lambda leaf: leaf[agent], network)
        return np.asarray(jax.vmap(lambda o: algorithm.act(actor, o, noise, spec))(row.observation))

    for agents in (old.agents, new.agents):
        for network in filter(None, (agents.actor, agents.target_actor)):
            assert np.ptp(actions(network)[:, common], axis=0).max() == 0
            assert np.ptp(actions(network)[:, ~common], axis=0).min() > 0
    assert (actions(new.agents.actor)[0] != actions(old.agents.actor)[0])[common].all()


def test_what_is_set_together_is_learnt_more_slowly():
    """A share of the step for its biases, however short the steps of the rest are by now."""
    spec = AgentSpec(2, (0.0,) * 3, (1.0,) * 3, common=(0, 2))
    rng = np.random.default_rng(0)
    before, full, after = (
        (Layer(*(jnp.asarray(rng.normal(size=s), jnp.float32) for s in ((4, 2, 6), (4, 6)))),)
        for _ in range(3)
    )
    found = slow(before, full, after, 0.25, spec)
    np.testing.assert_array_equal(found[0].weight, after[0].weight)
    expected = np.array(after[0].bias)
    for i in (0, 2):
        expected[:, i] = 0.75 * before[0].bias[:, i] + 0.25 * full[0].bias[:, i]
    np.testing.assert_allclose(found[0].bias, expected, rtol=1e-5)


@pytest.mark.slow
def test_a_shorter_step_is_a_smaller_rate():
    """Cutting Adam's step to a share is Adam with that share of its rate."""
    values = {"tau": 0.02, "batch_size": 8, "width": 8, "exploration_noise": 0.1}
    values["policy_frequency"] = 1
    spec = configure(agents=4, **SMALL).make_environment().spec
    rng = np.random.default_rng(0)
    shapes = ((8, 3), (8, spec.action_size), (8,), (8, 3))
    batch = Batch(*(jnp.asarray(rng.normal(size=s), jnp.float32) for s in shapes))
    key, step = jax.random.key(1), jnp.asarray(0)
    whole, slow = (make_algorithm("ddpg", {**values, "learning_rate": r}) for r in (1e-3, 1e-4))
    agent = whole.init(key, key, spec)
    after, _ = whole.update(agent, batch, key, step, spec)
    expected, _ = slow.update(agent, batch, key, step, spec)
    cut = shorten(agent, after, jnp.asarray(0.1))
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), cut.critic, expected.critic
    )


def test_an_option_that_is_off_leaves_a_run_what_it_was():
    configuration = configure(preset="paper")
    stored = configuration.as_dict()
    del stored["hyperparameters"]["transforms"]["knots"]
    del stored["sharing"]["scheme"]
    assert from_dict(stored).identity == configuration.identity


def test_an_extended_run_is_told_from_one_in_one_go(tmp_path):
    """Where noise and rates fall over the run; otherwise it has the same bits."""
    for name, more in (("steady", ""), ("falling", "final_noise = 0.1\nfinal_rate = 0.2\n")):
        out, said = tmp_path / name / "run", []
        out.parent.mkdir()
        options = {"preset": small_preset(out.parent, more), "agents": 2, **SMALL}
        straight = configure(episodes=5, **options)
        train(straight, tmp_path / name / "straight", figures=False)
        train(configure(episodes=3, **options), out, figures=False)
        run = train(episodes=5, out=out, resume=True, say=said.append, figures=False)
        assert json.loads((out / "configuration.json").read_text())["extended_from"] == [3]
        assert said[0].startswith("extended from 3 to 5 episodes")
        assert run.configuration.lineage == straight.lineage
        assert load(out).configuration == run.configuration
        if name == "steady":
            assert run.configuration.identity == straight.identity
            xr.testing.assert_equal(
                *(load(tmp_path / name / d).results for d in ("run", "straight"))
            )
        else:
            assert "unlike 5 trained at once" in said[0]
            assert difference(run.configuration, straight) == ["extended_from"]
            assert run.configuration.identity != straight.identity
            returns = [load(tmp_path / name / d).returns.returns for d in ("run", "straight")]
            assert not np.array_equal(*returns)
            with pytest.raises(
                InputError, match="extended: train 3 episodes, then --resume with 5"
            ):
                train(run.configuration, tmp_path / "new")
            again = train(straight, out, resume=True, figures=False)
            assert again.configuration == run.configuration


def test_a_run_extended_on_its_way(tmp_path):
    """What it had played, and of how many; an end that no episode was played for is none."""
    options = {"preset": small_preset(tmp_path, "final_rate = 0.2\n"), "agents": 2, **SMALL}
    out = tmp_path / "run"
    session = Session(configure(episodes=4, **options), out, print)

    def ends(episodes):
        open_folder(configure(episodes=episodes, **options), out, resume=True)
        return json.loads((out / "configuration.json").read_text())["extended_from"]

    assert ends(5) == []
    for _ in range(2):
        session.trainer.play(False)
    session._save()
    assert ends(6) == ends(7) == [[2, 5]]
    assert train(out=out, resume=True, figures=False).configuration.extended_from == ((2, 5),)
    assert ends(8) == [[2, 5], 7]


def test_an_identity_of_before_stays_what_it_was(preset):
    configuration = configure(preset=preset, **SMALL)
    stored = configuration.as_dict()
    assert stored.pop("extended_from") == []
    assert from_dict(stored).identity == configuration.identity
    for damaged in ("many", [1.5], [[1, 2, 3]], 3):
        with pytest.raises(InputError, match="not the configuration of an experiment"):
            from_dict({**stored, "extended_from": damaged})


@pytest.mark.parametrize("agents", [12, 24, 48, 96])
def test_decompositions_up_to_one_agent_a_latitude(agents):
    configuration = configure(agents=agents, sharing="zones")
    environment = configuration.make_environment()
    matrix = Sharing(scheme="zones").matrix(agents)
    assert environment.region_size == 96 // agents
    np.testing.assert_allclose(matrix.sum(1), 1)
    assert (matrix > 0).sum() == agents * agents / 6
