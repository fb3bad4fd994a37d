"""Place, truth, analyses, smooth parameters and the logarithmic reward."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fedrain.climate import EnergyBudgetModel, IceAlbedoModel
from fedrain.envs import TASKS, Task, make
from fedrain.envs.options import around_of, changed_params
from fedrain.errors import InputError


def play(environment, actions, params=None, steps=10, seed=0):
    """States, rewards and observations of constant actions."""
    params = environment.params if params is None else params
    key = jax.random.key(seed)
    step = jax.jit(environment.step)
    state, observation = environment.reset(jax.random.fold_in(key, 0), params)
    states, rewards, seen = [state], [], [observation]
    for i in range(steps):
        after = step(jax.random.fold_in(key, i + 1), state, actions, params)
        state = after.state
        states.append(state)
        rewards.append(after.reward)
        seen.append(after.observation)
    return states, np.array(rewards), seen


def static(environment):
    return jnp.asarray(environment.static_actions, jnp.float32)


def test_an_agent_may_see_its_place_alone():
    environment = make("ebm-energy")
    _, _, seen = play(environment, static(environment), steps=2)
    latitude = environment.model.columns.latitude
    for observation in seen:  # whatever happens
        np.testing.assert_allclose(observation[:, 0], latitude / 90, rtol=1e-6)
    regions = make("ebm-v3", observe="place,surface_temperature")
    assert regions.observation_size == 32
    np.testing.assert_allclose(regions.reset()[1][2, :16], latitude[32:48] / 90, rtol=1e-6)


def test_a_truth_beside_the_model_is_its_target():
    environment = make("ebm-twin", analysis_every=0)
    states, rewards, _ = play(environment, static(environment))
    for state, reward in zip(states[1:], rewards, strict=True):
        model, truth = state.climate.temperature[0], state.truth.temperature[0]
        expected = -1000 * (model - truth) ** 2
        np.testing.assert_allclose(reward, expected, rtol=1e-3, atol=1e-6)
    np.testing.assert_array_equal(states[0].climate.temperature, states[0].truth.temperature)


def test_the_truth_has_the_weather_and_the_forcing_of_the_model():
    """Agents that knew the albedo of the truth would make no error."""
    environment = make("ebm-twin", analysis_every=0, forcing={"longwave": -3.0})
    truth, key = IceAlbedoModel(), jax.random.key(0)
    state, _ = environment.reset(jax.random.fold_in(key, 0))
    step = jax.jit(environment.step)
    for i in range(20):
        albedo = truth.albedo(state.climate.temperature[0], {})
        actions = albedo[:, None]
        state = step(jax.random.fold_in(key, i + 1), state, actions).state
    error = state.climate.temperature - state.truth.temperature
    assert np.abs(error).max() < 1e-3
    assert np.ptp(np.asarray(state.climate.temperature)) > 10


@pytest.mark.parametrize("every", [1, 3])
def test_analyses_set_the_model_to_the_truth_after_it_was_judged(every):
    environment = make("ebm-twin", analysis_every=every)
    states, rewards, _ = play(environment, static(environment), steps=7)
    for state, reward in zip(states[1:], rewards, strict=True):
        same = np.array_equal(state.climate.temperature, state.truth.temperature)
        assert same == (int(state.time) % every == 0)
        assert (reward < 0).any()  # the forecast is judged, not the analysis


def test_without_a_truth_an_analysis_is_the_target():
    environment = make("ebm-energy", analysis_every=4)
    states, _, _ = play(environment, static(environment), steps=4)
    target = environment.params.target["surface_temperature"]
    np.testing.assert_allclose(states[0].climate.temperature[0], target, rtol=1e-6)
    np.testing.assert_allclose(states[4].climate.temperature[0], target, rtol=1e-6)
    assert np.abs(states[3].climate.temperature[0] - target).max() > 0.1


def test_one_compilation_serves_all_times_between_analyses():
    environment = make("ebm-twin", analysis_every=5)
    traced = []

    @jax.jit
    def step(params):
        traced.append(1)
        state, _ = environment.reset(jax.random.key(0), params)
        return environment.step(jax.random.key(1), state, static(environment), params).reward

    for every in (1, 5, 20):
        step(jax.tree.map(jnp.asarray, changed_params(environment, {"analysis_every": every})))
    assert len(traced) == 1


def test_rough_parameters_cost_as_much_as_they_should():
    rough, plain = make("ebm-energy", smooth=7.0), make("ebm-energy", smooth=0)
    low, high = rough.action_bounds
    actions = np.random.default_rng(0).uniform(low, high, (96, len(low))).astype(np.float32)
    costs = play(plain, jnp.asarray(actions), steps=1)[1] - play(rough, actions, steps=1)[1]
    scaled = (actions - low) / (high - low)
    squares = np.diff(scaled, axis=0) ** 2
    first = squares[0].mean()  # of the southernmost column: it has one neighbour
    inner = (squares[10] + squares[11]).mean() / 2
    np.testing.assert_allclose(costs[0][[0, 11]], [7 * first, 7 * inner], rtol=1e-3)


def test_a_logarithmic_reward_adds_up_the_fields():
    options = {"around": {}, "analysis_every": 0, "judge": "surface_temperature,outgoing_longwave"}
    log, square = (make("ebm-energy", reward_shape=s, **options) for s in ("log", "square"))
    states, rewards, _ = play(log, static(log), steps=3)
    errors = log.errors(states[-1], log.params)
    expected = -sum(
        np.log1p(np.sqrt(weight) * np.abs(errors[name][:, 0])) for name, weight in log.judged
    )
    np.testing.assert_allclose(rewards[-1], expected, rtol=1e-4)
    plain = play(square, static(square), steps=3)[1][-1]
    np.testing.assert_allclose(plain, -sum(np.square(errors[n][:, 0]) for n, _ in log.judged), 1e-4)


@pytest.mark.parametrize("agents", [96, 6])
def test_errors_nearby_count_by_their_distance(agents):
    options = {"agents": agents, "smooth": 0, "judge": {"surface_temperature": 2.0}}
    environment = make("ebm-energy", around={"surface_temperature": 15.0}, **options)
    alone = make("ebm-energy", around={"surface_temperature": 0}, **options)
    states, rewards, _ = play(environment, static(environment), steps=3)
    latitude = environment.model.columns.latitude
    error = (
        np.asarray(states[-1].climate.temperature[0])
        - environment.params.target["surface_temperature"]
    )
    each = []
    for here in latitude:
        weights = np.exp(-np.abs(latitude - here) / 15)
        each.append((weights * error**2).sum() / weights.sum())
    expected = -2 * np.reshape(each, (agents, -1)).mean(1)
    np.testing.assert_allclose(rewards[-1], expected, rtol=1e-4)
    own = -2 * (error**2).reshape(agents, -1).mean(1)
    np.testing.assert_allclose(play(alone, static(alone), steps=3)[1][-1], own, rtol=1e-4)


def test_every_learnt_parameter_changes_the_state():
    """One that does nothing would be learnt for nothing, as a0 and a2 were in the published runs.

    Every task that is registered; those of the circulation model are in ``test_gcm.py``.
    """
    published = {f"ebm-v{n}-published" for n in (1, 2, 3)}
    assert published < set(TASKS.builtin)
    for name in TASKS.builtin:
        if name.startswith("gcm-"):
            continue
        environment = make(name)
        dead = {"a0", "a2"} if name in published else set()
        found = set()
        actions = static(environment)
        low, high = environment.action_bounds
        key = jax.random.key(0)
        state, _ = environment.reset(key)
        step = jax.jit(environment.step)

        def end(actions, state=state, step=step, key=key):
            for _ in range(3):
                state = step(key, state, actions).state
            return jax.tree.leaves(state.climate)

        before = end(actions)
        for symbol, part in environment.action_slices.items():
            moved = jnp.asarray(
                np.where(actions[:, part] > (low + high)[part] / 2, low[part], high[part])
            )
            after = end(actions.at[:, part].set(moved.astype(jnp.float32)))
            differs = [np.abs(a - b).max() for a, b in zip(before, after, strict=True)]
            if max(differs) == 0:
                found.add(symbol)
            else:
                assert max(differs) > 1e-4, f"{symbol} of {name} does next to nothing"
        assert found == dead, name


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"name": "ebm-v3", "analysis_every": 5}, "EnergyBalanceModel has no `analyse`"),
        ({"name": "ebm-twin", "analysis_every": -1}, "must be an integer from 0, not -1"),
        ({"name": "ebm-twin", "target": np.zeros(96)}, "changes at every step"),
        ({"name": "ebm-energy", "smooth": -1.0}, "smooth must be a number from 0"),
        ({"name": "ebm-energy", "around": {"ozone": 3.0}}, "no judged field 'ozone'"),
        ({"name": "ebm-energy", "around": {"surface_temperature": -3}}, "a number from 0, not -3"),
        ({"name": "ebm-energy", "reward_shape": "cube"}, "there is no reward shape 'cube'"),
        ({"name": "ebm-v3", "ramp": 10}, "ramp cannot apply"),
        ({"name": "ebm-v3", "learn": "A,A"}, "a name is given twice"),
        ({"name": "ebm-v3", "noise": -0.1}, "noise must be a number from 0"),
        ({"name": "ebm-energy", "forcing": {"ozone": 1.0}}, "ozone"),
    ],
)
def test_what_cannot_apply_is_refused(options, said):
    with pytest.raises(InputError, match=said):
        make(**options)


def test_around_is_given_by_field():
    with pytest.raises(InputError, match="around is given by field"):
        around_of(10.0)


def test_a_truth_must_suit_the_model():
    task = Task(model=EnergyBudgetModel(), truth=make("ebm-v3", latitudes=48).model)
    with pytest.raises(InputError, match="the truth of a task has the columns"):
        make(task)


def test_one_target_is_given_and_the_others_stay():
    profile = np.linspace(-10.0, 10.0, 96)
    environment = make("ebm-energy", target=profile)
    np.testing.assert_array_equal(environment.params.target["surface_temperature"], profile)
    own = environment.model.target["outgoing_longwave"]
    np.testing.assert_array_equal(environment.params.target["outgoing_longwave"], own)
