"""Runs: the same bits however they were interrupted, in folders that explain themselves."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from tensorboardX.proto.event_pb2 import Event, SessionLog

import fedrain
from fedrain.agents import DDPG, Batch
from fedrain.agents.step import Draws, draw, learn, start_training
from fedrain.climate import BAND_NAMES
from fedrain.errors import FailureError, InputError
from fedrain.experiment import configure, load, train
from fedrain.experiment.folder import checkpoints_of
from fedrain.experiment.fused import run_episode
from fedrain.experiment.progress import Progress
from fedrain.experiment.scenarios import evaluate_forced
from fedrain.experiment.trainer import Trainer
from fedrain.experiment.training import Session
from fedrain.federation import Sharing, average
from fedrain.plotting import interval
from fedrain.reading import read_arrays
from tests.climate.models import Layered
from tests.experiment.small import SMALL, small_preset

KEY = jax.random.key(0)  # nothing is random in these environments


def temperature(environment, state):
    return environment.fields(state)["surface_temperature"]


@pytest.fixture
def preset(tmp_path):
    return small_preset(tmp_path)


def contents(folder):
    weights, _ = read_arrays(folder / "weights.safetensors")
    return weights, load(folder).returns.returns.values, load(folder).results


def assert_same(first, second):
    (w1, r1, s1), (w2, r2, s2) = contents(first), contents(second)
    for name, weights in w1.items():
        np.testing.assert_array_equal(weights, w2[name], err_msg=name)
    np.testing.assert_array_equal(r1, r2)
    xr.testing.assert_equal(s1, s2)


@pytest.mark.parametrize(
    ("env", "algo"),
    [
        ("ebm-v1", "td3"),
        pytest.param("ebm-v2", "tqc", marks=pytest.mark.slow),
        ("ebm-v3", "ddpg"),
    ],
)
def test_the_same_bits_twice(tmp_path, preset, env, algo):
    configuration = configure(env=env, algo=algo, preset=preset, seeds=2, episodes=5, **SMALL)
    for name in ("a", "b"):
        train(configuration, tmp_path / name)
    assert_same(tmp_path / "a", tmp_path / "b")


def test_seeds_do_not_depend_on_their_company(tmp_path, preset):
    for name, seeds in (("alone", [3]), ("together", [1, 3])):
        train(configure(preset=preset, seeds=seeds, episodes=4, **SMALL), tmp_path / name)
    alone, together = (contents(tmp_path / n)[1] for n in ("alone", "together"))
    np.testing.assert_array_equal(together[:, 1], alone[:, 0])
    assert not np.allclose(together[:, 0], together[:, 1], rtol=1e-3)


def test_agents_start_alike_and_are_averaged_on_time(tmp_path, preset):
    run = train(configure(preset=preset, episodes=6, sync_every=3, **SMALL), tmp_path / "run")
    distance = run.returns.actor_distance.values[:, 0]
    assert distance[:2] == pytest.approx(0, abs=1e-6)  # warm-up: no agent has learnt
    assert (distance[2:] > 0).all()
    assert distance[3] < distance[2]  # after the average of episode 3
    weights, _ = read_arrays(run.folder / "weights.safetensors")
    local, whole = weights["local/0/weight"][0], weights["global/0/weight"][0]
    assert not np.allclose(local[0], local[1])
    for agent in range(6):
        np.testing.assert_allclose(whole[agent], local.mean(0), atol=1e-6)


def test_identical_agents_stay_identical(preset):
    """n copies of one agent, fed the same, are one agent, averaged or not."""
    configuration = configure(env="ebm-v2", preset=preset, agents=2, **SMALL)
    environment, algorithm = configuration.make_environment(), configuration.make_algorithm()
    spec = environment.spec
    seed = jnp.asarray(0, jnp.uint32)

    def twin(tree):
        return jax.tree.map(lambda x: jnp.repeat(x[:1], 2, axis=0), tree)

    training = twin(start_training(algorithm, spec, (0, 1), seed, 40))
    learning = jax.jit(learn, static_argnums=(0, 1))
    rng = np.random.default_rng(0)
    for step in range(40):
        shapes = ((12,), (spec.action_size,), (), (12,))
        row = Batch(
            *(jnp.asarray(np.repeat(rng.normal(size=(1, *s)), 2, 0), jnp.float32) for s in shapes)
        )
        draws = Draws(*twin(tuple(draw(algorithm, spec, (0, 1), seed, jnp.asarray(step)))))
        training, _ = learning(algorithm, spec, training, row, draws, jnp.asarray(step))
    averaged = average(training.agents, Sharing(), jnp.asarray(True))
    for agents in (training.agents, averaged):
        jax.tree.map(lambda x: np.testing.assert_allclose(x[0], x[1], atol=1e-7), agents)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, atol=1e-7), averaged, training.agents
    )


COMMAND = """
import sys
from fedrain.experiment import configure, training
training.CHECKPOINT_SECONDS = 0.0
c = configure(preset=sys.argv[1], seeds=2, episodes=12, latitudes=12, episode_length=10)
training.train(c, sys.argv[2], resume=True, say=lambda message: None)
"""


@pytest.mark.slow
def test_killed_again_and_again(tmp_path, preset):
    """SIGKILL at random moments; what is left in the end is what an undisturbed run leaves."""
    configuration = configure(preset=preset, seeds=2, episodes=12, **SMALL)
    train(configuration, tmp_path / "whole")
    killed = tmp_path / "killed"
    rng = random.Random(0)
    cache = {
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path / "compiled"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }

    def checkpoint():
        return max(killed.glob("checkpoint/state-*"), default=None)

    for _ in range(3):
        process = subprocess.Popen(
            [sys.executable, "-c", COMMAND, str(preset), str(killed)],
            stderr=subprocess.DEVNULL,
            env={**os.environ, **cache},
        )
        begin, deadline = checkpoint(), time.monotonic() + 90
        while checkpoint() == begin and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.001)
        time.sleep(rng.uniform(0, 0.03))
        process.kill()
        assert process.wait() == -signal.SIGKILL
        assert checkpoint() != begin
    train(configuration, killed, resume=True)
    assert_same(tmp_path / "whole", killed)
    assert not list(killed.rglob("*.partial"))


def test_half_a_checkpoint_is_removed(tmp_path, preset):
    """What a process that was killed had begun to write goes with the next checkpoint."""
    configuration = configure(preset=preset, episodes=2, **SMALL)
    left = tmp_path / "run" / "checkpoint" / ".state-000001.safetensors.partial"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"half")
    trainer = Trainer(configuration, configuration.make_environment())
    trainer.save(checkpoints_of(configuration, tmp_path / "run"))
    assert [path.name for path in left.parent.iterdir()] == ["state-000000.safetensors"]


def test_compiled_once(tmp_path, preset):
    run_episode.clear_cache()
    train(configure(preset=preset, episodes=6, sync_every=2, **SMALL), tmp_path / "a")
    train(configure(preset=preset, episodes=6, sync_every=3, **SMALL), tmp_path / "b")
    assert run_episode._cache_size() == 1


def test_a_run_explains_itself(tmp_path, preset):
    configuration = configure(preset=preset, seeds=2, episodes=4, **SMALL)
    run = train(configuration, tmp_path / "run")
    stored = json.loads((run.folder / "configuration.json").read_text(encoding="utf-8"))
    assert stored["hyperparameters"]["width"] == 16
    assert stored["versions"]["fedrain"] == fedrain.__version__
    assert run.configuration == configuration
    assert run.returns.returns.dims == ("episode", "seed", "agent")
    assert run.results.band.values.tolist() == list(BAND_NAMES)
    assert list((run.folder / "events").iterdir())
    assert list((run.folder / "checkpoint").iterdir())  # it can be extended
    for dataset in (run.returns, run.results):
        assert dataset.attrs["Conventions"].startswith("CF-")
    summary = run.summary()
    np.testing.assert_allclose(
        summary["bands_mean"], np.mean([s["bands"] for s in summary["per_seed"]], axis=0)
    )


@pytest.mark.parametrize(
    ("options", "silent"),
    [({"say": lambda _: None}, True), ({}, False), ({"progress": False}, True)],
)
def test_progress_is_shown_to_those_who_want_it(tmp_path, preset, capsys, options, silent):
    """Not to a caller who listens himself."""
    train(configure(preset=preset, episodes=2, **SMALL), tmp_path / "run", figures=False, **options)
    told = capsys.readouterr()
    assert ("episode 2/2" not in told.err) == silent
    assert bool(told.out) == ("say" not in options)


def test_an_experiment_that_starts_from_a_run_needs_it(tmp_path, preset, capsys):
    first = train(configure(preset=preset, episodes=2, **SMALL), tmp_path / "a")
    second = train(first.configuration, tmp_path / "b", start_from=first)
    with pytest.raises(InputError, match="name it with --from"):
        train(second.configuration, tmp_path / "c")
    assert not (tmp_path / "c").exists()
    again = train(second.configuration, tmp_path / "c", start_from=first)
    np.testing.assert_array_equal(again.returns.returns, second.returns.returns)


def test_policy_is_a_plain_function(tmp_path, preset):
    """Played through the environment, the loaded policies give the stored skill."""
    run = train(configure(preset=preset, agents=2, seeds=2, episodes=4, **SMALL), tmp_path / "run")
    env = run.configuration.make_environment()
    policies = [run.policy(seed=1, agent=agent) for agent in range(2)]
    state, observation = env.reset()
    for _ in range(10):
        action = jnp.stack([p(o) for p, o in zip(policies, observation, strict=True)])
        state, observation, _, _ = env.step(KEY, state, action)
    stored = run.results.surface_temperature.sel(policy="local", seed=1).values[-1]
    np.testing.assert_allclose(temperature(env, state), stored, atol=1e-4)
    with pytest.raises(InputError, match="no agent 2"):
        run.policy(agent=2)
    assert policies[0](np.zeros((5, 3, 6))).shape == (5, 3, env.spec.action_size)
    for shape in ((12,), (6, 3), (2, 18), (4, 3, 3), ()):  # of as many numbers, some of them
        wrong = shape[-1] if shape else 1
        with pytest.raises(InputError, match=f"of this agent has 6 numbers, not {wrong}$"):
            policies[0](np.zeros(shape))
    assert policies[0].outputs[:3] == ("D", "A at 82.5°S", "A at 67.5°S")
    assert policies[1].outputs[-3] == "B at 82.5°N"
    assert "4 episodes, 2 seeds, " in repr(run)


def test_sampled_policy_is_a_plain_function_of_the_step(tmp_path, preset):
    """A new draw at each step, as in the stored episode."""
    text = preset.read_text(encoding="utf-8")
    preset.write_text(text + "evaluate_by_sampling = true\n", encoding="utf-8")
    configuration = configure(env="ebm-v1", algo="tqc", preset=preset, episodes=3, **SMALL)
    run = train(configuration, tmp_path / "run")
    env, policy = configuration.make_environment(), run.policy()
    state, observation = env.reset()
    assert not np.allclose(policy(observation[0], 0), policy(observation[0], 1))
    for step in range(10):
        state, observation, _, _ = env.step(KEY, state, policy(observation[0], step)[None])
    stored = run.results.surface_temperature.sel(policy="local", seed=0).values[-1]
    np.testing.assert_allclose(temperature(env, state), stored, atol=1e-4)


def events_in(folder):
    """Records of a length in eight bytes, its checksum in four, the event, and its checksum."""
    (path,) = folder.iterdir()
    content, at = path.read_bytes(), 0
    while at < len(content):
        size = int.from_bytes(content[at : at + 8], "little")
        yield Event.FromString(content[at + 12 : at + 12 + size])
        at += size + 16


def test_every_episode_is_in_the_events(tmp_path, preset):
    """Those before a checkpoint too, whatever a process that was killed has left of them."""
    configuration = configure(preset=preset, episodes=4, **SMALL)
    session = Session(configuration, tmp_path / "run", print)
    session.trainer.play(False)
    session.trainer.play(False)
    session._save()
    train(configuration, tmp_path / "run", resume=True)
    events = list(events_in(tmp_path / "run" / "events"))
    (begun,) = [e.step for e in events if e.session_log.status == SessionLog.START]
    assert begun == 0  # what is older does not count
    shown = [e.step for e in events for v in e.summary.value if v.tag == "returns/seed_0/region_5"]
    assert shown == [10, 20, 30, 40]


def test_a_diverged_seed_is_left_out(tmp_path, preset, capsys):
    """Of skill, figures, progress and forced climates; the other is as it is alone."""
    options = {"preset": preset, "agents": 2, "episodes": 3, **SMALL}
    session = Session(configure(seeds=2, **options), tmp_path / "run", print)
    first = session.trainer.trainings[0]
    actor = jax.tree.map(lambda leaf: leaf * jnp.nan, first.agents.actor)
    session.trainer.trainings[0] = first._replace(agents=first.agents._replace(actor=actor))
    session.run()
    run = load(tmp_path / "run")
    assert run.summary()["diverged_seeds"] == [0]
    whole = train(configure(seeds=[1], **options), tmp_path / "1")
    assert run.summary()["global_mean"] == pytest.approx(whole.summary()["global_mean"], rel=1e-5)
    mean, half = interval(run.returns.returns.transpose("seed", ...).values)
    np.testing.assert_allclose(mean, whole.returns.returns.isel(seed=0), rtol=1e-6)
    assert (half == 0).all()
    for forced in evaluate_forced(run).values():
        assert len(forced.policy) == 1
        json.dumps(forced.as_dict(), allow_nan=False)
    Progress(3, 20).show(1, run.returns.returns.values[-1], 1.0)
    assert "nan" not in capsys.readouterr().err


def test_a_seed_that_diverges_stops_alone(tmp_path, preset):
    """A learning rate that overflows: named, and the rest continues."""
    text = preset.read_text(encoding="utf-8").replace(
        "learning_rate = 1e-3", "learning_rate = 1e30"
    )
    preset.write_text(text, encoding="utf-8")
    said = []
    configuration = configure(preset=preset, seeds=1, agents=2, episodes=5, **SMALL)
    run = train(configuration, tmp_path / "run", say=said.append)
    assert any("seed 0 stops: agent" in line and "at step" in line for line in said)
    assert not any("continue" in line for line in said)
    with pytest.raises(FailureError, match="no seed has finite results"):
        run.summary()


def test_a_diverged_seed_is_left_out_however_its_climate_looks(tmp_path, preset):
    """What is evaluated may be finite: it was not trained to the end."""
    said = []
    configuration = configure(preset=preset, agents=2, seeds=2, episodes=3, **SMALL)
    session = Session(configuration, tmp_path / "run", said.append)
    first = session.trainer.trainings[0]
    session.trainer.trainings[0] = first._replace(diverged_at=first.diverged_at.at[1].set(7))
    session.run()
    run = load(tmp_path / "run")
    assert said[-1].startswith("seed 0 stops: agent 1 ")
    assert said[-1].endswith("at step 7; the other seeds continue")
    assert np.isnan(run.returns.returns.sel(seed=0)).all()
    assert np.isfinite(run.skills()[0].globe)
    for found in (run.summary(), run.evaluate(start=10.0)):
        assert found["diverged_seeds"] == [0]
        assert len(found["per_seed"]) == 1
    assert run.whole_seeds("global") == [1]


@dataclass(frozen=True, kw_only=True)
class Silent(DDPG):
    """Has no loss to log."""

    def update(self, agent, batch, key, step, spec):
        after, losses = super().update(agent, batch, key, step, spec)
        return after, losses._replace(critic_loss=losses.q * jnp.nan)


def test_what_is_not_there_is_not_logged(tmp_path, preset, caplog):
    configuration = configure(algo=Silent, preset=preset, agents=2, episodes=4, **SMALL)
    session = Session(configuration, tmp_path / "run", print)
    session.trainer.play(False)
    session.trainer.history["critic_loss"] *= np.nan
    with caplog.at_level("WARNING"):
        session.run()
    assert "NaN" not in caplog.text
    shown = {v.tag for e in events_in(tmp_path / "run" / "events") for v in e.summary.value}
    assert "actor_loss/seed_0/region_1" in shown


def test_a_run_to_start_from_gets_what_was_named(tmp_path, preset):
    options = {"model": Layered, "agents": 2, "episodes": 2, "episode_length": 5, "preset": preset}
    options |= {"target": np.zeros(6), "figures": False, "say": lambda _: None}
    train(out=tmp_path / "a", **options)
    second = train(out=tmp_path / "b", start_from=tmp_path / "a", **options)
    assert second.configuration.start_from is not None
    assert "2 episodes, 1 seed, " in repr(second)
    third = train(
        out=tmp_path / "c", start_from=str(tmp_path / "a"), **options | {"model": Layered()}
    )
    np.testing.assert_array_equal(third.returns.returns, second.returns.returns)
    with pytest.raises(InputError, match="name it again with --model"):
        train(out=tmp_path / "d", start_from=tmp_path / "a", preset=preset, figures=False)
