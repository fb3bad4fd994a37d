"""Regions that each have a home of their own, and the climate that they share."""

import threading
import time

import jax
import numpy as np
import pytest

from fedrain.envs import make
from fedrain.errors import InputError
from fedrain.experiment import configure, load, train
from fedrain.experiment.host import MissedStepError
from fedrain.flower.client import make_client_app
from fedrain.flower.climate import Answer, Episode, SharedClimate
from fedrain.flower.local import LocalNetwork, serve
from fedrain.flower.region import CoupledWorld, RegionHome
from fedrain.flower.server import Federation
from tests.experiment.small import OPTIONS, SMALL, small_preset

FIRST = Episode(0, 0)


class Homes:
    """The homes of all regions, as if each were on a machine of its own."""

    def __init__(self, configuration, folder, climate=None):
        self.homes = {
            region: RegionHome(configuration, region, folder / str(region), climate)
            for region in range(configuration.agents)
        }

    def train(self, region, payload, first, episodes):
        self.homes[region].train(region, payload, first, episodes)

    def payload(self, region):
        return self.homes[region].payload(region)

    def history(self, region):
        return self.homes[region].history(region)


def federate(configuration, folder, climate=None):
    homes = Homes(configuration, folder / "homes", climate)
    federation = Federation(configuration, folder / "run", False, print)
    serve(
        federation,
        LocalNetwork(make_client_app(lambda *_: homes, configuration.named), configuration.agents),
    )
    return load(folder / "run"), homes


@pytest.mark.slow
@pytest.mark.parametrize(("env", "options"), [("ebm-v2", ""), ("ebm-v3", ""), ("ebm-v3", OPTIONS)])
def test_gives_what_train_gives(tmp_path, env, options):
    """To float32 tolerance: a region alone is not computed in the same order as one of several."""
    preset = small_preset(tmp_path, options)
    configuration = configure(
        env=env, agents=3, sync_every=3, episodes=8, seeds=2, preset=preset, **SMALL
    )
    expected = train(configuration, tmp_path / "train")
    climate = None
    if env == "ebm-v3":
        climate = SharedClimate(configuration.make_environment(), 60.0, print)
    found, _ = federate(configuration, tmp_path, climate)
    np.testing.assert_allclose(found.returns.returns, expected.returns.returns, rtol=1e-3)
    np.testing.assert_allclose(found.returns.q, expected.returns.q, rtol=0.02, atol=0.1)
    np.testing.assert_allclose(found.results.areawrmse, expected.results.areawrmse, rtol=0.02)


def test_a_region_resumes_from_its_own_disk(tmp_path):
    """A home that was lost between rounds is made again with its memory and its optimiser."""
    configuration = configure(
        env="ebm-v2", agents=2, episodes=6, preset=small_preset(tmp_path), **SMALL
    )
    first = RegionHome(configuration, 1, tmp_path / "home")
    first.train(1, None, 0, 3)
    again = RegionHome(configuration, 1, tmp_path / "home")
    np.testing.assert_array_equal(again.history(1)["returns"], first.history(1)["returns"])
    before = again.payload(1)
    again.train(1, None, 0, 3)  # the server lost the reply and asks again
    assert len(again.history(1)["returns"]) == 3
    again.train(1, before, 3, 3)
    first.train(1, before, 3, 3)
    np.testing.assert_array_equal(again.history(1)["returns"], first.history(1)["returns"])
    with pytest.raises(InputError, match="is not on this machine"):
        again.train(0, None, 0, 3)
    with pytest.raises(InputError, match="no region 2"):
        RegionHome(configuration, 2, tmp_path / "home")


def test_a_shared_climate_has_to_be_named(tmp_path):
    configuration = configure(
        env="ebm-v3", agents=2, episodes=2, preset=small_preset(tmp_path), **SMALL
    )
    with pytest.raises(InputError, match="share a climate"):
        RegionHome(configuration, 0, tmp_path)
    with pytest.raises(InputError, match="do not share"):
        SharedClimate(make("ebm-v2", agents=2), 1.0, print)


@pytest.fixture
def environment():
    return make("ebm-v3", agents=3, **SMALL)


@pytest.mark.parametrize("told", [None, 3, 2])
def test_a_climate_tells_the_rewards_of_all_regions_or_of_none(environment, told):
    class Elsewhere(SharedClimate):
        def step(self, *_):
            rewards = None if told is None else np.zeros(told, np.float32)
            return Answer(np.zeros(environment.observation_size, np.float32), -1.0, False, rewards)

    world = CoupledWorld(Elsewhere(environment, 60.0, print), environment.spec, 0, FIRST)
    action = np.zeros((1, environment.action_size), np.float32)
    if told == 2:
        with pytest.raises(InputError, match="2 rewards of 3 regions"):
            world.step(action)
    else:
        assert world.step(action).reward.tolist() == [-1.0]


def test_the_climate_moves_in_lock_step(environment):
    """What agents in threads get is what the environment gives, in whatever order they come."""
    rng = np.random.default_rng(0)
    low, high = environment.action_bounds
    actions = rng.uniform(low, high, (10, 3, len(low))).astype(np.float32)
    climate = SharedClimate(environment, 60.0, print)
    answers = {}

    def agent(region):
        pause = np.random.default_rng(region)
        climate.begin(region, FIRST)
        for step in range(10):
            time.sleep(pause.uniform(0, 0.01))
            answers[region, step] = climate.step(region, FIRST, step, actions[step, region])

    threads = [threading.Thread(target=agent, args=(region,)) for region in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    state, _ = environment.reset()
    for step in range(10):
        key = jax.random.key(step)  # nothing is random in this environment
        state, observation, reward, ended = environment.step(key, state, actions[step])
        for region in range(3):
            answer = answers[region, step]
            np.testing.assert_allclose(answer.observation, observation[region], atol=1e-4)
            assert answer.reward == pytest.approx(float(reward[region]), rel=1e-5)
            np.testing.assert_allclose(answer.of_all, reward, rtol=1e-5)
            assert answer.ended == bool(ended)
    assert climate.late == []
    with pytest.raises(MissedStepError):
        climate.begin(0, FIRST)


@pytest.mark.parametrize("static", [False, True])
def test_the_globe_does_not_stop_for_a_late_agent(environment, static):
    high = environment.action_bounds[1]
    said = []
    climate = SharedClimate(environment, 0.05, said.append, static=static)
    for region in range(3):
        climate.begin(region, FIRST)
    given = np.asarray(high, np.float32)

    def all_of(regions, step):
        threads = [
            threading.Thread(target=climate.step, args=(region, FIRST, step, given))
            for region in regions
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    all_of((0, 1, 2), 0)
    all_of((0, 2), 1)
    assert climate.late == [(FIRST, 1, 1)]
    assert len(said) == 1
    assert "region 1" in said[0]
    stood = environment.static_actions[1] if static else given
    state, _ = environment.reset()
    for actions in (np.stack([given] * 3), np.stack([given, stood, given])):
        state = environment.step(jax.random.key(0), state, actions.astype(np.float32)).state
    seen, _ = climate._plays[0].results[1]
    np.testing.assert_allclose(seen, environment.observe(state), atol=1e-4)
    with pytest.raises(MissedStepError):
        climate.step(1, FIRST, 1, given)  # too late
    np.testing.assert_array_equal(climate.begin(1, Episode(1, 0)), np.full(4, 50.0))


@pytest.mark.slow
def test_an_agent_that_misses_an_episode_learns_on_in_the_next(tmp_path):
    configuration = configure(
        env="ebm-v3", agents=2, sync_every=2, episodes=6, preset=small_preset(tmp_path), **SMALL
    )
    climate = SharedClimate(configuration.make_environment(), 4.0, lambda _: None)
    plain = climate.step

    def slow(region, episode, step, action):
        if (region, episode.number, step) == (1, 2, 4):
            time.sleep(6.0)
        return plain(region, episode, step, action)

    climate.step = slow
    run, homes = federate(configuration, tmp_path, climate)
    lost = np.isnan(run.returns.returns.sel(seed=0))
    assert lost.values.tolist() == [[False, False]] * 2 + [[False, True]] + [[False, False]] * 3
    assert homes.homes[1].trainer.steps.tolist() == [54]
    assert homes.homes[0].trainer.steps.tolist() == [60]
    assert {(e.number, region) for e, _, region in climate.late} == {(2, 1)}


def all_agents(environment, act):
    """Every agent in a thread of its own."""
    threads = [threading.Thread(target=act, args=(r,)) for r in environment.regions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_a_climate_that_was_lost_comes_back_from_its_journal(tmp_path, environment):
    """At whatever step it dies: agents ask again, and get what an undisturbed climate gives."""
    rng = np.random.default_rng(1)
    low, high = environment.action_bounds
    actions = rng.uniform(low, high, (10, 3, len(low))).astype(np.float32)
    calm = SharedClimate(environment, 60.0, print)
    answers: dict[object, list] = {"calm": [], "lost": []}

    def play(climates, name):
        def act(region):
            got = [climates(-1).begin(region, FIRST)]
            for step in range(10):
                answer = climates(step).step(region, FIRST, step, actions[step, region])
                if step % 3 == 0:  # the answer was lost: asked again of the one that came back
                    again = climates(step + 1).step(region, FIRST, step, actions[step, region])
                    np.testing.assert_array_equal(again.observation, answer.observation)
                    assert again.reward == answer.reward
                got.append(answer.observation)
            answers[name].append((region, np.stack(got)))

        all_agents(environment, act)

    play(lambda _: calm, "calm")
    barrier = threading.Barrier(3)
    lives: dict[int, SharedClimate] = {}

    def reborn(step):
        if barrier.wait() == 0:
            lives[0] = SharedClimate(environment, 60.0, print, folder=tmp_path)
        barrier.wait()
        return lives[0]

    play(reborn, "lost")
    for (_, expected), (_, found) in zip(
        sorted(answers["calm"], key=lambda a: a[0]),
        sorted(answers["lost"], key=lambda a: a[0]),
        strict=True,
    ):
        np.testing.assert_array_equal(found, expected)


def test_an_agent_that_is_gone_is_waited_for_no_more(environment):
    """Not heard of in a whole episode: the next one does not wait, until it is back."""
    patience = 1.0
    climate = SharedClimate(environment, patience, print)
    given = environment.static_actions[0]

    def play(number, present):
        begin = time.monotonic()
        episode = Episode(number, 0)
        begun = threading.Barrier(
            len(present)
        )  # who has not begun yet may be gone, and is not waited for

        def act(region):
            if region not in present:
                return
            climate.begin(region, episode)
            begun.wait()
            for step in range(10):
                climate.step(region, episode, step, given)

        all_agents(environment, act)
        return time.monotonic() - begin

    play(0, (0, 1, 2))
    assert play(1, (0, 2)) > patience
    assert play(2, (0, 2)) < patience
    assert play(3, (0, 1, 2)) < patience
    assert {(late.episode.number, late.region) for late in climate.late} == {(1, 1), (2, 1)}


@pytest.mark.parametrize("change", [np.full(11, np.nan), np.zeros(3)])
def test_parameters_that_do_not_fit_are_refused(environment, change):
    climate = SharedClimate(environment, 1.0, print)
    climate.begin(0, FIRST)
    with pytest.raises(InputError, match="do not fit"):
        climate.step(0, FIRST, 0, change)
    with pytest.raises(InputError, match="no region 3"):
        climate.begin(3, FIRST)
