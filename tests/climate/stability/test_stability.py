"""The theory of the paper's appendix A.2, shown by the model."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import fsolve

from fedrain.climate import EnergyBalanceModel, Grid
from fedrain.climate.model import no_forcing
from fedrain.climate.models.climlab import import_climlab
from fedrain.climate.stability import (
    FeedbackModel,
    analytic_eigenvalues,
    follow,
    global_curve,
    global_equilibria,
    hysteresis,
    spectrum,
    stairs,
    step_equilibria,
)
from fedrain.errors import InputError

TODAY = 1365.2


@pytest.fixture(scope="module")
def branch():
    return follow(FeedbackModel())


def test_fixed_albedo_has_the_analytic_spectrum():
    """The first ten modes, with an error that falls with the square of the grid's spacing."""
    errors = []
    for latitudes in (48, 96, 192):
        model = FeedbackModel(grid=Grid(latitudes), width=0.0)
        expected = analytic_eigenvalues(model, 10)
        found = spectrum(model, np.full(latitudes, 20.0), TODAY).eigenvalues[:10]
        errors.append(np.abs(found - expected).max() / np.abs(expected[-1]))
    assert errors[2] < 2e-3
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.1)
    assert errors[1] / errors[2] == pytest.approx(4, rel=0.1)


def test_jacobian_is_the_derivative():
    model = FeedbackModel(grid=Grid(12))
    rng = np.random.default_rng(0)

    def tendency(t):
        water = (1 + jnp.tanh((t - model.freezing) / model.width)) / 2
        albedo = model.ice_albedo + (model.water_albedo - model.ice_albedo) * water
        return (1 - albedo) * TODAY * model.share - model.A - model.B * t + model.transport @ t

    with jax.enable_x64(True):
        for _ in range(20):
            t = rng.uniform(-40, 40, 12)
            exact = np.asarray(jax.jacfwd(tendency)(jnp.asarray(t)))
            np.testing.assert_allclose(model.jacobian(t, TODAY), exact, atol=1e-10)
            np.testing.assert_allclose(
                model.tendency(t, TODAY), np.asarray(tendency(jnp.asarray(t))), atol=1e-10
            )


@pytest.mark.parametrize("brighter", [0.0, 20.0])
def test_without_ice_it_is_the_energy_balance_model(brighter):
    """What is an equilibrium here is a fixed point of the model that the environments step."""
    model = FeedbackModel(grid=Grid(24), freezing=-100.0, width=0.0, insolation="annual")
    energy_balance = EnergyBalanceModel(grid=model.grid)
    solar = energy_balance.solar_constant + brighter
    balance = model.B * np.eye(24) - model.transport
    absorbed = solar * model.absorbed_share(np.zeros(24))
    equilibrium = np.linalg.solve(balance, absorbed - model.A)
    assert np.abs(model.tendency(equilibrium, solar)).max() < 1e-9
    parameters = {name: getattr(model, name) for name in ("D", "A", "B", "a0", "a2")}
    with jax.enable_x64(True):
        forcing = no_forcing(energy_balance) | {"solar": jnp.asarray(brighter)}
        after = energy_balance.step(
            jnp.asarray(equilibrium), parameters, forcing, jax.random.key(0)
        )
        np.testing.assert_allclose(after, equilibrium, atol=1e-9)


def test_every_point_of_the_branch_is_an_equilibrium(branch):
    for t, s in zip(branch.temperature, branch.solar, strict=True):
        assert np.abs(branch.model.tendency(t, s)).max() < 1e-7


def test_one_disturbance_grows_between_the_folds_and_none_elsewhere(branch):
    assert len(branch.folds) == 2
    means = [float(branch.model.grid.mean(f.temperature)) for f in branch.folds]
    between = (branch.mean < means[0]) & (branch.mean > means[1])
    assert (branch.unstable[between] == 1).all()
    assert (branch.unstable[~between] == 0).all()
    assert between.sum() > 20


def test_the_leading_eigenvalue_vanishes_at_each_fold(branch):
    for fold in branch.folds:
        found = spectrum(branch.model, fold.temperature, fold.solar).eigenvalues
        assert abs(found[0]) < 1e-5
        assert found[1] < -0.1


@pytest.mark.parametrize("insolation", ["p2", "annual"])
@pytest.mark.parametrize("width", [2.0, 10.0])
def test_other_feedbacks_too(width, insolation):
    found = follow(FeedbackModel(width=width, insolation=insolation))
    assert len(found.folds) == 2
    assert set(found.unstable) == {0.0, 1.0}


def test_tipping_points_are_found_to_a_hundredth_of_a_watt(branch):
    """Near a fold the square of the leading eigenvalue is linear in S, and vanishes there."""
    for fold, sign, state in zip(branch.folds, (1, -1), (0, 2), strict=True):
        solar = fold.solar + sign * np.array([0.1, 0.2, 0.3, 0.4])
        points = [branch.at(s)[state] for s in solar]
        squares = [
            spectrum(branch.model, p.temperature, p.solar).eigenvalues[0] ** 2 for p in points
        ]
        fit = np.polynomial.Polynomial.fit(squares, solar, 2)
        assert fit(0.0) == pytest.approx(fold.solar, abs=0.01)


def test_effective_damping(branch):
    warm, middle, cold = branch.at(TODAY)
    model = branch.model
    assert model.effective_damping(middle.temperature, TODAY).min() < 0
    assert model.effective_damping(cold.temperature, TODAY) == pytest.approx(model.B, abs=0.05)
    assert (model.effective_damping(warm.temperature, TODAY) <= model.B).all()


def test_global_mean_equilibria_are_roots():
    model = FeedbackModel(width=5.0)
    found = global_equilibria(model, TODAY)
    assert [stable for _, stable in found] == [True, False, True]

    def imbalance(t):
        water = (1 + np.tanh((t - model.freezing) / model.width)) / 2
        albedo = model.ice_albedo + (model.a0 - model.ice_albedo) * water
        return (1 - albedo) * TODAY / 4 - model.A - model.B * t

    for (temperature, _), guess in zip(
        found, (-40.0, temperature_between(found), 15.0), strict=True
    ):
        assert temperature == pytest.approx(float(fsolve(imbalance, guess)[0]), abs=1e-8)
    curve = global_curve(model, -60.0, 40.0)
    rising = np.gradient(curve.solar, curve.temperature) > 0
    assert (rising[5:-5] == curve.stable[5:-5]).mean() > 0.99


def temperature_between(found):
    return found[1][0] + 0.3


@pytest.mark.slow
def test_step_albedo_agrees_with_climlab():
    """climlab's own EBM after 100 years: the ice line within a cell, temperature within 0.05 K."""
    peer = import_climlab().EBM(num_lat=90)
    peer.integrate_years(100, verbose=False)
    theirs = np.asarray(peer.Ts).ravel()
    model = FeedbackModel(grid=Grid(90), width=0.0)
    found = step_equilibria(model, TODAY)
    errors = [np.abs(point.temperature - theirs).max() for point in found]
    best = found[int(np.argmin(errors))]
    assert min(errors) < 0.05
    cell = 180 / 90
    assert abs(model.ice_line(best.temperature) - np.max(peer.icelat)) <= cell
    run = hysteresis(model, np.array([TODAY]), np.asarray(peer.Ts).ravel(), years=100.0)
    assert np.abs(run.temperature[-1] - theirs).max() < 0.05


def test_a_dimmed_sun_tips_the_climate_and_a_restored_one_does_not_bring_it_back(branch):
    model = branch.model
    warm_fold, cold_fold = (f.solar for f in branch.folds)
    warm, _, cold = branch.at(TODAY)
    step = 5.0
    dimmed = hysteresis(model, stairs(TODAY, 1240.0, step), warm.temperature)
    (tipped,) = dimmed.jumps()
    assert warm_fold - 1.5 * step < tipped < warm_fold
    assert dimmed.mean[-1] == pytest.approx(model.grid.mean(cold.temperature), abs=0.01)
    brightened = hysteresis(model, np.arange(1600.0, 1700.0, step), dimmed.temperature[-1])
    (back,) = brightened.jumps()
    assert cold_fold < back < cold_fold + 1.5 * step
    equilibria = branch.at(1300.0)
    settled = hysteresis(model, np.array([1300.0]), warm.temperature, years=200.0)
    np.testing.assert_allclose(settled.temperature[-1], equilibria[0].temperature, atol=1e-3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: FeedbackModel(B=0.0), "must be positive"),
        (lambda: FeedbackModel(a0=0.7), "albedo must rise"),
        (lambda: FeedbackModel(insolation="moon"), "insolation is one of"),
        (lambda: follow(FeedbackModel(width=0.0)), "has no Jacobian"),
        (lambda: follow(FeedbackModel(), high=1000.0, low=1200.0), "must rise"),
        (lambda: global_equilibria(FeedbackModel(), TODAY, 40.0, 60.0), "no equilibrium between"),
        (lambda: step_equilibria(FeedbackModel(), TODAY), "the albedo is smooth"),
        (
            lambda: step_equilibria(replace(FeedbackModel(), width=0.0, insolation="annual"), 1.0),
            "symmetric",
        ),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_no_equilibrium_in_the_range(branch):
    with pytest.raises(InputError, match=r"no equilibrium at 1365\.2"):
        branch.at(TODAY, coldest=20.0, warmest=30.0)


def test_the_ice_line_is_the_edge_of_the_last_open_cell():
    """In the north, on cells of 10°: ice beyond 60°N; none; everywhere; and with open water in
    the ice, down to that."""
    model = FeedbackModel(grid=Grid(18), freezing=-10.0)
    latitude = model.grid.centres
    assert model.ice_line(np.where(latitude > 60, -20.0, 5.0)) == pytest.approx(60.0)
    assert model.ice_line(np.where(np.abs(latitude) > 20, -10.0, -9.9)) == pytest.approx(20.0)
    assert model.ice_line(np.full(18, 5.0)) == pytest.approx(90.0)
    assert model.ice_line(np.full(18, -20.0)) == pytest.approx(0.0)
    hole = np.where((latitude > 40) & (latitude != 65.0), -20.0, 5.0)
    assert model.ice_line(hole) == pytest.approx(70.0)


def test_a_snowball_is_an_equilibrium_of_a_step_in_albedo():
    """All ice is linear: (B − D L) T = S (1 − a_i) q − A, solved here mode by mode."""
    model = FeedbackModel(grid=Grid(24), width=0.0)
    x = np.sin(np.deg2rad(model.grid.centres))
    q = (1 - 0.48 * (3 * x**2 - 1) / 2) / 4
    eigenvalues, vectors = np.linalg.eig(np.asarray(model.grid.laplacian))
    heating = np.linalg.solve(vectors, TODAY * (1 - 0.62) * q - 210.0)
    snowball = (vectors @ (heating / (2.0 - 0.555 * eigenvalues))).real
    assert snowball.max() < -10
    found = step_equilibria(model, TODAY)
    np.testing.assert_allclose(found[-1].temperature, snowball, atol=1e-8)
    assert len(found) >= 2
    for point in found:
        icy = point.temperature <= -10
        albedo = np.where(icy, 0.62, 0.3 + 0.078 * (3 * x**2 - 1) / 2)
        balance = TODAY * (1 - albedo) * q - 210.0 - 2.0 * point.temperature
        balance += 0.555 * model.grid.laplacian @ point.temperature
        np.testing.assert_allclose(balance, 0, atol=1e-8)
    assert found[0].temperature.mean() > found[-1].temperature.mean()
