"""Episodes that a task keeps from training."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fedrain
from fedrain.agents.step import EVALUATION, environment_key
from fedrain.cli import main
from fedrain.climate import band_skill
from fedrain.envs import Task, make
from fedrain.envs.catalogue import OPEN
from fedrain.errors import InputError
from fedrain.experiment import configure
from fedrain.experiment.held_out import _numbers

SMALL = {"latitudes": 12, "agents": 12, "sync_every": 0, "sharing": "shared", "episode_length": 5}
KEPT = ("latitudes", "agents", "episode_length")
QUICK = {"width": 4, "batch_size": 4, "critics": 1, "warmup_steps": 2, "place": 3}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    configuration = configure(
        env="ebm-twin", episodes=2, seeds=[3, 4], preset="forecast", settings=QUICK, **SMALL
    )
    out = tmp_path_factory.mktemp("run") / "run"
    return fedrain.train(configuration, out, say=lambda _: None, figures=False)


@pytest.mark.parametrize("name", OPEN)
def test_every_stochastic_task_keeps_episodes_from_training(name):
    """What is drawn from in one split is drawn from in no other, in one quantity at least."""
    found = [make(name, split=split).params for split in ("train", "validation", "test")]
    for one, other in ((0, 1), (0, 2), (1, 2)):
        apart = []
        for part in ("start", "forcing"):
            for key, bounds in getattr(found[one], part).items():
                low, high = getattr(found[other], part)[key]
                apart.append(bool(np.all((bounds[1] <= low) | (high <= bounds[0])) and low < high))
        assert any(apart)


def test_train_is_the_task_as_it_is():
    plain, named = make("ebm-twin").params, make("ebm-twin", split="train").params
    assert str(plain) == str(named)


def test_what_is_given_counts_more():
    params = make("ebm-twin", split="test", forcing={"longwave": (-1.0, 1.0)}).params
    np.testing.assert_array_equal(params.forcing["longwave"], (-1, 1))
    np.testing.assert_array_equal(params.start["offset"], (10, 15))


def test_a_split_that_does_not_exist(run, capsys):
    with pytest.raises(InputError, match="ebm-v1 has no split 'test'; it has train"):
        make("ebm-v1", split="test")
    assert main(["evaluate", str(run.folder), "--split", "exam"]) == 2
    said = capsys.readouterr().err
    assert "has no split 'exam'; it has train, validation, test" in said
    assert main(["evaluate", str(run.folder), "--split", "test", "--response"]) == 2
    assert "choose one of" in capsys.readouterr().err


def test_a_task_of_ones_own_may_have_splits():
    task = Task(agents=1, splits={"cold": {"start": {"temperature": (0.0, 1.0)}}})
    np.testing.assert_array_equal(make(task, split="cold").params.start["temperature"], (0, 1))


def test_the_static_model_is_played_in_episodes_of_the_split(run):
    """Step by step, with the random numbers of the environment: no loop of ours but this one."""
    environment = run.configuration.make_environment()
    params = make("ebm-twin", split="test", **{k: SMALL[k] for k in KEPT}).params.free
    action = jnp.asarray(environment.static_actions, jnp.float32)
    errors = []
    for seed in (3, 4):
        for number in _numbers(seed, 2):
            key = environment_key(jnp.asarray(number, jnp.uint32), EVALUATION)
            state, _ = environment.reset(jax.random.fold_in(key, 0), params)
            for step in range(5):
                own = jax.random.fold_in(key, step + 1)
                state = environment.step(own, state, action, params).state
            shown = environment.fields(state)["surface_temperature"]
            target = environment.target(state, params)["surface_temperature"]
            skill = band_skill(environment.model.columns, np.asarray(shown), np.asarray(target))
            errors.append(skill.globe)
    found = run.held_out("test", episodes=2)["test"]["static"]["surface_temperature"]
    assert found == pytest.approx(np.mean(errors), rel=1e-3)
    assert len({round(error, 6) for error in errors}) == 4


def test_errors_and_gap(run, capsys):
    assert main(["evaluate", str(run.folder), "--split", "test", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["split"] == "test"
    assert found["seeds"] == [3, 4]
    for name, gap in found["gap"].items():
        ours = found["test"]["policy"][name] - found["train"]["policy"][name]
        assert gap == pytest.approx(ours)
        assert found["test"]["policy"][name] == pytest.approx(
            np.mean(found["test"]["per_seed"][name])
        )
