"""The study of when federation helps: what is shared, what is left out, and its statistics."""

from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest
from scipy import stats

from fedrain.agents.step import start_training
from fedrain.experiment import configure
from fedrain.experiment.held import hold
from fedrain.io import write_json
from fedrain.reading import read_json

STUDIES = Path(__file__).parent.parent / "studies"


@pytest.fixture
def study(monkeypatch):
    monkeypatch.syspath_prepend(STUDIES)
    import federation_trials

    return federation_trials


@pytest.fixture
def iqm(monkeypatch):
    monkeypatch.syspath_prepend(STUDIES)
    import iqm

    return iqm


def small(study, **options):
    return configure(env="ebm-v2", agents=study.AGENTS, latitudes=24, algo="td3", **options)


def test_interquartile_mean_is_scipys(iqm):
    values = np.random.default_rng(0).standard_cauchy((8, 5))
    assert iqm.interquartile_mean(values) == pytest.approx(stats.trim_mean(values, 0.25, None))


def test_intervals_hold_the_mean_as_often_as_they_say(iqm):
    """Of seeds whose agents are alike: whole seeds are drawn again, not single agents."""
    random = np.random.default_rng(1)
    iqm.DRAWS = 200
    held = []
    for _ in range(200):
        seeds = random.normal(0, 1, (20, 1)) + 0.1 * random.normal(0, 1, (20, 11))
        _, low, high = iqm.interval(seeds)
        held.append(low <= 0 <= high)
    assert 0.87 < np.mean(held) < 0.99


def test_the_late_agent_leaves_no_trace(study):
    """Training sees neither its latitudes nor its sun; all others are as they were."""
    judged = small(study).make_environment()
    training = study.learning(study.Trial("fedrain", "every1", 10), judged)
    assert study.LATE not in training.regions
    assert len(training.regions) == study.AGENTS
    sun = training.params.forcing["solar"]
    own = study.climate(judged).forcing["solar"]
    others = np.arange(study.AGENTS) != study.LATE
    np.testing.assert_array_equal(sun[others], own[others])
    np.testing.assert_array_equal(sun[study.LATE], own[study.LATE - 1])
    state, _ = jax.jit(training.reset)(jax.random.key(0), training.params)
    seen = np.asarray(training.own_fields(state)["surface_temperature"])
    climates = np.asarray(state.climate)
    for agent, region in enumerate(training.regions):
        np.testing.assert_array_equal(seen[agent], climates[agent].reshape(-1)[2 * region :][:2])


def test_an_agent_is_judged_by_its_own_latitudes_and_sun(study):
    """The static model, whose answer to a sun is known: errors of suns of its own differ."""
    environment = small(study).make_environment()
    actions = environment.static_actions

    def errors(params):
        played = hold(environment, actions, (0,), params)
        return study.by_region(environment, played)[0]

    params = study.climate(environment)
    one = errors(params)
    for agent in (0, study.MEMBER):
        solar = params.forcing["solar"].copy()
        solar[agent] += 30.0
        other = errors(params._replace(forcing=params.forcing | {"solar": solar}))
        changed = np.flatnonzero(np.abs(other - one) > 1e-6)
        assert changed.tolist() == [agent]
    weights, cells = environment.model.columns.weights, environment.division.cells
    played = hold(environment, actions, (0,), params)
    globe = played.errors(environment)["surface_temperature"][0]
    areas = weights[cells].sum(-1) / weights.sum()
    assert np.sqrt((areas * one**2).sum()) == pytest.approx(globe, rel=1e-5)


def test_a_hostile_member_changes_its_own_actor_alone(study):
    configuration = small(study)
    environment, algorithm = configuration.make_environment(), configuration.make_algorithm()
    number = np.uint32(0)
    agents = start_training(
        algorithm, environment.spec, environment.regions, jax.numpy.asarray(number), 10
    ).agents
    after = study.corrupted(agents.actor)
    for old, new in zip(jax.tree.leaves(agents.actor), jax.tree.leaves(after), strict=True):
        sign = np.where(np.arange(study.AGENTS) == study.MEMBER, -1.0, 1.0)
        np.testing.assert_array_equal(
            new, np.asarray(old) * sign.reshape(-1, *(1,) * (old.ndim - 1))
        )


def test_of_one_memory_a_member_is_absent_or_lies(study):
    """Silent: its place is held by its neighbour's. Hostile: its rewards alone change sign."""
    judged = small(study).make_environment()
    good, silent, hostile = (
        study.learning(study.Trial("fedrain", "shared", 10, member), judged)
        for member in study.MEMBERS
    )
    assert study.MEMBER in good.regions
    assert study.MEMBER in hostile.regions
    assert study.MEMBER not in silent.regions
    sun = silent.params.forcing["solar"]
    np.testing.assert_array_equal(sun[study.MEMBER], sun[study.MEMBER - 1])
    state, _ = jax.jit(good.reset)(jax.random.key(0), good.params)
    true, lied = (np.asarray(one.reward(state, one.params)) for one in (good, hostile))
    assert (true < 0).all()
    sign = np.where(np.arange(study.AGENTS) == study.MEMBER, -1.0, 1.0)
    np.testing.assert_array_equal(lied, true * sign)


def test_a_silent_member_counts_nothing_in_the_average(study):
    """With all but one network zero, the mean is a twelfth of it, or nothing if it is silent."""
    from fedrain.agents.networks import Layer
    from fedrain.federation import Sharing

    own = np.zeros((1, study.AGENTS, 2, 3))
    own[0, study.MEMBER] = 12.0
    actors = (Layer(jax.numpy.asarray(own), jax.numpy.asarray(own[..., 0])),)
    every = study.averaged(actors, Sharing())
    silent = study.averaged(actors, Sharing(weights=study.present()))
    np.testing.assert_allclose(every[0][0], 1.0, rtol=1e-6)
    np.testing.assert_array_equal(silent[0][0], 0.0)


def test_every_preset_and_kind_of_scheme_is_tuned_by_the_same_trials(study, monkeypatch, tmp_path):
    """Nine each, none on a seed that is reported; what is best in its own climate is chosen."""
    import federation_tuning as tuning

    asked = []
    assert min(tuning.SEEDS) >= 100

    def reached(trial, algo, seeds, latitudes, values):
        asked.append((trial.preset, trial.tuned_as, values["learning_rate"]))
        wrong = abs(np.log(values["learning_rate"] / 0.0034 / 3)) + values["exploration_noise"]
        return {"own": float(wrong), "unseen": 0.0, "late": 0.0}

    monkeypatch.setattr(tuning, "reached", reached)
    trial = study.Trial("fedrain", "zones", 2)
    setting = "td3", 20, 24
    assert tuning.tuned(tmp_path, trial, *setting, None) is None
    chosen = tuning.tuned(tmp_path, trial, *setting, lambda _: None)
    assert chosen == {"learning_rate": pytest.approx(0.0102), "exploration_noise": 0.5}
    assert len(asked) == 9
    assert {one[1] for one in asked} == {"every1"}
    assert tuning.tuned(tmp_path, trial, *setting, None) == chosen  # kept, and not tried again
    for other in (study.Trial("paper", "never", 5), study.Trial("published", "every5", 10)):
        before = len(asked)
        tuning.tuned(tmp_path, other, *setting, lambda _: None)
        assert len(asked) - before == 9
    made = trial.configuration(*setting, chosen)
    assert made.hyperparameters["learning_rate"] == chosen["learning_rate"]


def test_every_trial_is_another_experiment(study):
    """And those that would be the same, since nothing is averaged in time, are not there."""
    trials = study.trials()
    assert len({one.name for one in trials}) == len(trials)
    some = [one for one in trials if one.data == 10 and one.preset == "fedrain"]
    seen = {one.name: one.configuration("td3", 1, 24, {}).identity for one in some}
    by_hand = {
        name: identity
        for name, identity in seen.items()
        if "hostile" not in name and name != "fedrain-shared-d10-silent"
    }
    assert len(set(by_hand.values())) == len(by_hand) > 8
    assert all(one.data > study.SCHEMES[one.scheme][0] for one in trials)
    assert (
        replace(trials[0], scheme="every1", member="silent")
        .configuration("td3", 1, 24, {})
        .sharing["weights"]
    )


def test_tables_and_figure_of_whatever_is_there(study, tmp_path, capsys):
    """Gains are against agents on their own; what one average at the end does is of those, too."""
    from federation_tables import gains, show

    random = np.random.default_rng(0)

    def made(shift):
        return {
            kind: (10 + shift + random.normal(0, 0.01, (4, 1 if kind == "late" else 11))).tolist()
            for kind in study.KINDS
        }

    for name, shift in (
        ("never-d10-good", 0.0), ("every1-d10-good", -3.0), ("every1-d10-silent", -2.0),
        ("every1-d10-hostile", 20.0), ("shared-d2-good", 1.0),
    ):  # fmt: skip
        result = {"policy": made(shift), "static": made(20.0), "bytes": 3000.0}
        result |= {"once": made(shift + 5), "once-bytes": 100.0, "average": made(shift + 1)}
        write_json(tmp_path / f"fedrain-{name}.json", result)
    show(tmp_path, tmp_path)
    told = capsys.readouterr().out
    assert "| averaged after every episode | – | – | 7.00 [" in told
    assert "| averaged once, at the end | – | – | 15.00 [" in told
    assert "| averaged after every episode | 3 | 7.00 [" in told
    assert "| 8.00 [" in told.partition("that misbehaves")[2]
    assert "| 30.0" in told.partition("that misbehaves")[2]
    assert "| averaged after every episode | – | – | 3.0" in told.partition("gain in K")[2]
    assert "(11 up, 0 down)" in told
    assert (tmp_path / "federation-fedrain.png").exists()
    stored = {path.stem: read_json(path) for path in tmp_path.glob("*.json")}
    found = gains(stored, "fedrain", "every1", 10, "own")
    np.testing.assert_allclose(found, 3.0, atol=0.1)
    np.testing.assert_allclose(gains(stored, "fedrain", "once", 10, "own"), -5.0, atol=0.1)
    assert gains(stored, "fedrain", "shared", 2, "own") is None
