"""Constant parameters, ensemble Kalman inversion and optimal control."""

from functools import partial

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import fedrain  # noqa: F401  registers the environments
from fedrain.baselines import (
    constant,
    enki,
    known_limit,
    limit,
    random,
    sequence_dataset,
    share_reached,
    static,
)
from fedrain.cli import main
from fedrain.climate import band_skill
from fedrain.envs import make
from fedrain.envs.rollout import rollout
from fedrain.errors import InputError


@pytest.fixture(scope="module")
def best():
    return limit(make("ebm-v1"), iterations=250)


def test_limit_reaches_the_known_return(best):
    assert best.returns.mean() >= -15_800
    assert best.returns.mean() <= known_limit(make("ebm-v1")) + 1e-6
    low, high = make("ebm-v1").action_bounds
    assert (best.actions >= low - 1e-12).all()
    assert (best.actions <= high + 1e-12).all()


def test_limit_played_through_climlab(best):
    """The same actions in the Gymnasium environment that steps climlab."""
    env = gymnasium.make("fedrain/EnergyBalance-v1", backend="climlab")
    env.reset(seed=0)
    total = sum(float(env.step(action[0])[1]) for action in best.actions)
    assert total == pytest.approx(best.returns.mean(), rel=1e-6)


@partial(jax.jit, static_argnums=0)
def value_and_slope(environment, scaled):
    """The return of actions in units of their bounds, and its gradient."""
    low, high = environment.action_bounds

    def value(scaled):
        return rollout(environment, low + (high - low) * scaled).returns.mean()

    return jax.value_and_grad(value)(scaled)


def left_to_gain(environment, actions):
    """Share of the return that a step of any length up the gradient, within the bounds, gains."""
    low, high = environment.action_bounds
    with jax.enable_x64(True):
        scaled = jnp.asarray((actions - low) / (high - low))
        now, slope = value_and_slope(environment, scaled)
        free = ~((scaled <= 0) & (slope < 0) | (scaled >= 1) & (slope > 0))
        way = jnp.where(free, slope, 0.0)
        way = way / jnp.abs(way).max()
        tried = [
            value_and_slope(environment, jnp.clip(scaled + length * way, 0, 1))[0]
            for length in 10.0 ** np.arange(-6, 1)
        ]
        return max(0.0, float((max(tried) - now) / abs(now)))


def test_limit_is_an_optimum(best):
    """The gradient leads no farther; where the search was cut short, it does."""
    environment = make("ebm-v1")
    assert left_to_gain(environment, best.actions) < 3e-7
    early = limit(environment, iterations=30)
    assert not early.converged
    assert left_to_gain(environment, early.actions) > 1e-6


def test_a_search_says_whether_it_has_converged(capsys):
    small = {"latitudes": 12, "episode_length": 5}
    for iterations, converged in ((2, False), (5000, True)):
        for find in (limit, constant):
            found = find(make("ebm-v1", **small), iterations=iterations)
            assert found.converged is converged, (find, iterations)
            assert found.as_dict()["converged"] is converged
            options = ["--latitudes", "12", "--episode-length", "5", "--iterations", iterations]
            assert main(["baseline", found.name, *map(str, options)]) == 0
            assert ("has not converged" in capsys.readouterr().err) is not converged
    assert "converged" not in static(make("ebm-v1", **small)).as_dict()


def test_own_climates_allow_more_than_a_shared_one():
    """In v2 each region has D, a0 and a2 to itself."""
    options = {"agents": 2, "latitudes": 12, "episode_length": 30}
    shared = limit(make("ebm-v3", **options), iterations=300)
    own = limit(make("ebm-v2", **options), iterations=300)
    assert (own.returns > 1.01 * shared.returns).all()  # but for what the search leaves
    assert own.returns.mean() > (1 + 1e-5) * shared.returns.mean()


def test_same_twice():
    small = make("ebm-v1", latitudes=12, episode_length=20)
    for find in (lambda: limit(small, 50), lambda: enki(small, 3, 20, 2), lambda: random(small, 3)):
        first, second = find(), find()
        np.testing.assert_array_equal(first.actions, second.actions)


def test_constant_reaches_the_known_error():
    result = constant(make("ebm-v1"))
    assert result.skill.globe <= 1.375
    assert constant(make("ebm-v1"), "return").returns.mean() > result.returns.mean()


def test_enki_comes_near_without_gradients():
    environment = make("ebm-v1")
    result = enki(environment)
    assert result.model_runs < 10_000
    assert result.skill.globe <= 1.25 * 1.3733
    low, high = environment.action_bounds
    assert (result.actions > low).all()
    assert (result.actions < high).all()


def test_order_of_the_baselines():
    """random < static < constant for the return < limit, in return."""
    small = make("ebm-v3", agents=2, latitudes=12)
    found = [random(small), static(small), constant(small, "return"), limit(small, 200)]
    returns = [float(b.returns.mean()) for b in found]
    assert returns == sorted(returns)


def test_random_return():
    returns = [random(make("ebm-v1"), seed).returns.mean() for seed in range(10)]
    assert np.mean(returns) == pytest.approx(-155_000, rel=0.05)


def test_share_of_the_way():
    environment = make("ebm-v3", agents=6)
    best, worst = known_limit(environment), static(environment).returns.mean()
    assert share_reached(environment, worst) == pytest.approx(0)
    assert share_reached(environment, best) == pytest.approx(1)
    assert share_reached(make("ebm-v1", latitudes=12), -1.0) is None


@pytest.mark.parametrize(("env", "agents"), [("ebm-v1", 1), ("ebm-v2", 2), ("ebm-v2", 6)])
def test_without_albedo_there_is_less_to_control(env, agents):
    """What agents see of it, and when they are judged, does not change what can be reached."""
    published, whole = (make(name, agents=agents) for name in (f"{env}-published", env))
    assert static(whole).returns.mean() < known_limit(published) < known_limit(whole)
    assert known_limit(make(env, agents=agents, unapplied=["a0", "a2"])) == known_limit(published)
    seen = make(env, agents=agents, unclipped=True, judged_early=5)
    assert known_limit(seen) == known_limit(whole)
    assert known_limit(make(env, agents=agents, unapplied="a0")) is None


def test_sequence_as_netcdf(tmp_path):
    small = make("ebm-v1", latitudes=12, episode_length=20)
    found = limit(small, 30)
    sequence_dataset(small, found).to_netcdf(tmp_path / "limit.nc")
    data = xr.load_dataset(tmp_path / "limit.nc")
    assert data.A.dims == ("step", "lat")
    assert data.A.units == "W m-2"
    skill = band_skill(small.model.columns, data.surface_temperature.values[-1], data.target.values)
    assert skill.globe == pytest.approx(data.attrs["areawrmse_global"])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda env: enki(env, ensemble=1), "at least 2 members"),
        (lambda env: enki(env, iterations=0), "at least 1 iteration"),
        (lambda env: limit(env, iterations=0), "at least 1 iteration"),
        (lambda env: constant(env, "fame"), "there is no goal 'fame'"),
        (lambda env: random(env, seed=-1), "a seed is an integer from 0 to 4294967295, not -1"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(InputError, match=message):
        call(make("ebm-v1", latitudes=12, episode_length=5))


def test_bounds_that_exclude_the_static_values():
    with pytest.raises(InputError, match="static"):
        limit(make("ebm-v1", latitudes=12, bounds={"A": (300.0, 400.0)}))
