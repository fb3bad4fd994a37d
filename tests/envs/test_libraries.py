"""Other people's learners on the environments; ``make test-libraries`` installs them."""

import sys
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import fedrain
from fedrain.envs import make
from fedrain.registration import IDS

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT / "studies"))

import libraries  # noqa: E402
from learners import COPIES, LEARNERS, unit_id  # noqa: E402

#: One of each kind that is new to them: seen by all columns at once, and by their place alone.
TASKS = ("ebm-twin", "ebm-energy")
STEPS = 40 * COPIES


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # what they warn of is theirs to mend
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("name", LEARNERS)
def test_learners_of_others_run(name, task, tmp_path, monkeypatch):
    """Each learns for some hundred steps, and its policy plays an episode to the end."""
    learner = LEARNERS[name]
    if learner.missing:
        pytest.skip(f"{', '.join(learner.missing)} not installed: make test-libraries")
    monkeypatch.chdir(tmp_path)  # some leave folders behind
    environment = libraries.environment_of(task, learner.several)
    policy = learner.train(task, 0, STEPS)
    shape = (len(environment.regions), environment.observation_size)
    rng = np.random.default_rng(0)
    low, high = environment.observation_bounds
    one, other = (rng.uniform(low, high, shape).astype("f4") for _ in range(2))
    actions = policy(one, 0)
    assert np.shape(actions) == environment.static_actions.shape
    assert np.isfinite(actions).all()
    np.testing.assert_array_equal(policy(one, 0), actions)  # it does not draw
    assert (policy(other, 0) != actions).any()  # and does see something
    returned = libraries.episode_return(environment, policy, learner.physical)
    assert np.isfinite(returned)
    assert returned < 0


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in IDS if "gcm" not in name])
def test_the_checker_of_stable_baselines3_finds_nothing_wrong(name, recwarn):
    """Nor has it a warning for actions from −1 to 1; agents are an axis that it does not know."""
    checker = pytest.importorskip(
        "stable_baselines3.common.env_checker",
        reason="stable_baselines3 not installed: make test-libraries",
    )
    checker.check_env(gymnasium.make(name))
    told = {str(warning.message)[:60] for warning in recwarn}
    if name.endswith("-unit") and "-v3" not in name:
        assert not told


def test_the_ids_of_the_study_are_ours():
    for task in libraries.TASKS:
        assert unit_id(task) in fedrain.registration.IDS


def test_a_known_policy_has_the_return_of_the_baseline():
    """The same episode as that of static and limit, whose returns make the scores."""
    environment = make("ebm-twin", latitudes=12, agents=12, episode_length=10)
    low, high = environment.action_bounds
    unit = (environment.static_actions - low) / (high - low) * 2 - 1
    expected = fedrain.baselines.static(environment, libraries.EPISODE).returns.mean()
    for action, physical in ((unit, False), (environment.static_actions, True)):
        found = libraries.episode_return(environment, lambda *_, a=action: a, physical)
        assert found == pytest.approx(expected, rel=1e-4)


def test_halfway_from_static_to_limit_is_halfway_in_kelvin():
    """Returns are minus squares: errors of 10, 6 and 2 K have −100, −36 and −4."""
    ends = {"static": -100.0, "limit": -4.0}
    returned = np.array([-100.0, -36.0, -4.0, -324.0])
    np.testing.assert_allclose(libraries.score(returned, ends), [0, 50, 100, -100])


def test_the_seeds_of_each_task_are_drawn_by_themselves():
    """Tasks that differ and seeds that do not: together they leave nothing to chance."""
    same = [np.full(5, value) for value in (0.0, 10.0, 20.0, 90.0)]
    assert libraries.interquartile_mean(*same) == 15
    assert libraries.interval(*same) == (15, 15)
    low, high = libraries.interval(np.array([1.0, 2.0, 3.0, 4.0, 100.0]))
    assert 1 <= low < 3 < high <= 100


def test_the_table_of_the_documents_is_that_of_the_results():
    page = (ROOT / "docs" / "environments.md").read_text("utf-8")
    assert libraries.table() in page
    held = libraries.read_json(libraries.FOLDER / "ebm-v1.json")
    told = [libraries.STEPS, round(held["static"]), round(held["limit"])]
    for number in told:
        assert f"{number:,}".replace(",", " ").replace("-", "−") in page


def test_results_are_of_one_budget_and_of_ebm_v1_as_it_is():
    for path in libraries.FOLDER.glob("ebm-v1-*.json"):
        held = libraries.read_json(path)
        several = LEARNERS[held["learner"]].several
        expected = libraries.described(libraries.environment_of("ebm-v1", several))
        assert held["environment"] == expected
        assert held["steps"] == libraries.STEPS
