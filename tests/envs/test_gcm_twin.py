"""A twin of a general circulation model with dry physics: record, forecasts, training, resuming."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fedrain
from fedrain.baselines import constant, enki, static
from fedrain.climate import GeneralCirculationModel
from fedrain.climate.models import gcm_store
from fedrain.climate.models.gcm_store import recorded
from fedrain.envs import Task, make
from fedrain.envs.records import gcm_twin_record, split
from fedrain.errors import InputError
from fedrain.experiment import Run
from fedrain.reading import read_arrays

pytest.importorskip("jcm", reason="the extra gcm is not installed", exc_type=ImportError)

MODEL = GeneralCirculationModel(physics="held-suarez", spin_up=4)
#: K, by latitude: what the truth has in place of 60 everywhere.
TRUTH = 50.0 + 20.0 * np.sin(np.deg2rad(MODEL.columns.latitude)) ** 2


def record(model, length):
    own = GeneralCirculationModel(physics="held-suarez", spin_up=4)
    truth = replace(own, table=own.table.replace(static={"dTy": TRUTH}))
    return split(recorded(truth, adjust=1, days=9), length, training=5, between=1)


TASK = Task(
    model=MODEL,
    record=record,
    agents=32,
    episode_length=2,
    learn=("dTy",),
    judge={"air_temperature": 100.0},
    observe=("place",),
    analysis_every=1,
    judged_over=2,
    overlap=True,
)
SMALL = {"preset": "forecast", "algo": "ddpg", "figures": False, "progress": False}
SETTINGS = {"warmup_steps": 1, "batch_size": 8, "width": 8}


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    """One cache folder for all of these."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FEDRAIN_CACHE", str(folder))
        gcm_store.spun_up.cache_clear()
        yield folder
    gcm_store.spun_up.cache_clear()


def test_episodes_start_on_the_days_that_are_theirs():
    """Of nine days, five are for training and the last three for tests; an episode has two."""
    environment = make(TASK)
    days = np.asarray(environment.params.record.states["day"])
    reset = jax.jit(environment.reset)
    for params, allowed in ((environment.params, {0, 1, 2}), (environment.params.test, {6})):
        found = set()
        for seed in range(20):
            state, _ = reset(jax.random.key(seed), params)
            found.add(int(state.truth[0]))
            assert int(state.climate["day"][0]) == days[int(state.truth[0])]
        assert found == allowed


def test_the_truths_parameters_forecast_the_truth():
    """To the same bits: target, analysis and reward are those of its own days."""
    environment = make(TASK)
    right = jnp.asarray(TRUTH / environment.learnt["dTy"].action_unit, jnp.float32)[:, None]
    step = jax.jit(environment.step)
    state, _ = environment.reset(jax.random.key(0))
    state, _, reward, _ = step(jax.random.key(1), state, right)
    np.testing.assert_allclose(reward, 0.0, atol=1e-6)
    wrong = jnp.asarray(environment.static_actions, jnp.float32)
    after, _, reward, _ = step(jax.random.key(1), state, wrong)
    assert (np.asarray(reward) < 0).all()
    known = environment.params.record.at(after.truth[0])
    for one, other in zip(jax.tree.leaves(after.climate), jax.tree.leaves(known), strict=True):
        np.testing.assert_array_equal(one[0], other)  # every step ends with an analysis


def test_free_runs_are_judged_by_the_mean_of_the_record():
    environment = make(TASK)
    free = environment.params.test
    state, _ = environment.reset(jax.random.key(0), free)
    target = environment.targets(state, free)["air_temperature"][0]
    every = np.asarray(environment.params.record.states["shown"]["air_temperature"])
    np.testing.assert_allclose(target, every[:3].mean(0), rtol=1e-5)
    with pytest.raises(InputError, match="that of this task changes at every step"):
        make(TASK, target={"air_temperature": np.zeros((32, 8))})


def test_six_bands_share_latitudes():
    environment = make(TASK, agents=6)
    assert environment.region_size == 6
    values = jnp.arange(32.0)
    bands = environment.division
    np.testing.assert_array_equal(bands.lay(bands.take(values)), values)
    with pytest.raises(InputError, match="6 agents do not divide 32 latitudes"):
        make(replace(TASK, overlap=False), agents=6)


def test_training_evaluation_and_a_resumed_run_are_the_same_to_the_last_bit(tmp_path):
    """One run straight through, and one that dies after an episode and is taken up again."""
    train = partial(
        fedrain.train, env=TASK, agents=32, sync_every=1, episodes=2, settings=SETTINGS, **SMALL,
        say=str,
    )  # fmt: skip
    whole = train(out=tmp_path / "whole")

    class KilledError(Exception):
        pass

    def die(episode):
        if episode.episode == 2:  # after the checkpoint of the first
            raise KilledError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fedrain.experiment.training.CHECKPOINT_SECONDS", -1.0)
        with pytest.raises(KilledError):
            train(out=tmp_path / "cut", on_episode=die)
    assert not Run.is_finished(tmp_path / "cut")
    resumed = train(out=tmp_path / "cut", resume=True)
    one, other = (read_arrays(run.folder / "weights.safetensors")[0] for run in (whole, resumed))
    assert one.keys() == other.keys()
    for name, values in one.items():
        np.testing.assert_array_equal(values, other[name], err_msg=name)
    again = Run(tmp_path / "whole", env=TASK)
    assert np.isfinite(again.results.rms_error.values).all()
    skill = float(again.skills()[0].globe)
    assert again.evaluate()["global_mean"] == pytest.approx(skill, rel=1e-3)


def test_baselines_are_judged_on_days_that_were_kept_for_it():
    environment = make(TASK)
    found = static(environment)
    assert found.fields["air_temperature"].shape == (2, 32, 8)
    inverted = enki(environment, ensemble=3, iterations=1)
    assert inverted.model_runs == 3
    assert np.isfinite(inverted.skill.globe)
    with pytest.raises(InputError, match="needs the gradient of the model"):
        constant(environment)


def test_the_truth_of_the_task_is_moist_and_its_tests_are_so_long():
    with pytest.raises(InputError, match="moist"):
        gcm_twin_record(MODEL, 30)
    with pytest.raises(InputError, match="at most 80 steps"):
        gcm_twin_record(GeneralCirculationModel(), 81)
