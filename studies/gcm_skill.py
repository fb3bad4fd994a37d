"""How good parameters of ``gcm-twin`` are: forecasts from days that nothing was learnt from."""

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fedrain.envs import Environment, make

#: Test forecasts: first days of the record's last part, and how many days ahead.
FIRST_DAYS, AHEAD = tuple(range(320, 390, 5)), (1, 5)
#: Of these, the days of the points of a learning curve.
CURVE_DAYS = FIRST_DAYS[::5]
#: Days of a free run: before and while its climate is taken.
SETTLE, CLIMATE = 60, 300
#: Free runs are judged by what a climate differs in: one over the mean square errors of the
#: default parameters there.
CLIMATE_WEIGHTS = {
    "outgoing_longwave": 0.06,
    "absorbed_shortwave": 0.008,
    "precipitation": 3.0,
    "air_temperature": 5.0,
}
FREE = {"analysis_every": 0, "judge": CLIMATE_WEIGHTS}


@cache
def twin() -> Environment:
    """The task, judged by forecasts."""
    return make("gcm-twin")


@cache
def climate() -> Environment:
    """The task, judged by its climate."""
    return make("gcm-twin", **FREE)


def in_full(values: dict[str, Any]) -> dict[str, Any]:
    """These parameters with all others at their defaults."""
    model = twin().model
    static = model.table.static(len(model.columns))
    return {k: jnp.asarray(v, jnp.float32) for k, v in {**static, **values}.items()}


def rms(squares: Any) -> float:
    """Area-weighted, over all levels."""
    flat = np.asarray(squares, float).reshape(len(squares), -1).mean(1)
    return float(np.sqrt(twin().model.columns.mean(flat)))


@cache
def _forecast(days: int) -> Any:
    """Squared errors of forecasts from one day of the truth, by field and days ahead."""
    environment = twin()
    model, forcing = environment.model, default_forcing()

    @jax.jit
    def forecast(record: Any, values: Any, first: Any) -> Any:
        def day(state: Any, ahead: Any) -> Any:
            state = model.step(state, values, forcing)
            known = model.observe(record.at(first + 1 + ahead))
            shown = model.observe(state)
            return state, {n: (shown[n] - known[n]) ** 2 for n, _ in environment.judged}

        return jax.lax.scan(day, record.at(first), jnp.arange(days))[1]

    return forecast


@cache
def _free() -> Any:
    """The mean climate of a free run."""
    model, forcing = twin().model, default_forcing()

    @jax.jit
    def free(record: Any, values: Any, first: Any) -> Any:
        state = record.at(first)

        def day(carry: Any, number: Any) -> Any:
            state, sums = carry
            state = model.step(state, values, forcing)
            counts = number >= SETTLE
            shown = model.observe(state)
            return (state, jax.tree.map(lambda s, one: s + counts * one, sums, shown)), None

        nothing = jax.tree.map(jnp.zeros_like, model.observe(state))
        days = jnp.arange(SETTLE + CLIMATE)
        (_, sums), _ = jax.lax.scan(day, (state, nothing), days)
        return jax.tree.map(lambda one: one / CLIMATE, sums)

    return free


def default_forcing() -> dict[str, Any]:
    """Nothing forces the climate."""
    return {one.name: jnp.float32(one.default) for one in twin().model.forcings}


def forecast_errors(
    values: dict[str, Any], ahead: tuple[int, ...] = AHEAD, first_days: Any = FIRST_DAYS
) -> dict[str, dict[str, float]]:
    """Root mean square errors of forecasts so many days ahead."""
    full, record = in_full(values), twin().params.record
    forecast = _forecast(max(ahead))
    every = [jax.device_get(forecast(record, full, jnp.int32(day))) for day in first_days]
    mean = jax.tree.map(lambda *days: np.mean(days, axis=0), *every)
    return {
        f"forecast-{days}": {name: round(rms(one[days - 1]), 5) for name, one in mean.items()}
        for days in ahead
    }


def by_latitude(values: dict[str, Any]) -> dict[str, Any]:
    """Root mean square errors of forecasts of a day, by latitude (and level)."""
    full, record = in_full(values), twin().params.record
    every = [jax.device_get(_forecast(1)(record, full, jnp.int32(day))) for day in FIRST_DAYS]
    mean = jax.tree.map(lambda *days: np.mean(days, axis=0)[0], *every)
    return {name: np.round(np.sqrt(one), 5).tolist() for name, one in mean.items()}


def climate_errors(values: dict[str, Any], start: int = 300) -> dict[str, Any]:
    """Errors of the mean over a free run, and the mean itself by latitude."""
    own = jax.device_get(_free()(twin().params.record, in_full(values), jnp.int32(start)))
    truth = truth_climate()
    names = [name for name, _ in twin().judged]
    return {
        "climate": {name: round(rms((own[name] - truth[name]) ** 2), 4) for name in names},
        "profile": {name: np.round(own[name], 3).tolist() for name in names},
    }


@cache
def truth_climate() -> dict[str, Any]:
    """The mean over all days of the record."""
    shown = twin().params.record.states["shown"]
    return {name: np.asarray(one, float).mean(0) for name, one in shown.items()}
