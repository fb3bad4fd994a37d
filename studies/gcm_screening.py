"""What each parameter of SPEEDY does to a day, and which of those learnt can be told apart."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from gcm_skill import default_forcing, in_full, rms, twin

from fedrain.climate.models.gcm_parameters import TWIN, twin_truth

#: Days of the record that are forecast: all of the part for training.
DAYS = (40, 140, 240)
#: Of the parameters that do most to a day: what they do to the means over days 10 to 40.
LARGEST = 8
BANDS = 6
#: A parameter is identifiable in a band where what it does, and no mix of the others can undo,
#: is so many times what is left of the error with the right parameters.
TIMES = 3.0


def screen(say: Any = print) -> dict[str, Any]:
    """Root mean square responses of the judged fields, and what is identifiable where."""
    model, record = twin().model, twin().params.record
    names, forcing = [name for name, _ in twin().judged], default_forcing()

    @jax.jit
    def tomorrow(record: Any, values: Any, day: Any) -> Any:
        shown = model.observe(model.step(record.at(day), values, forcing))
        return {name: shown[name] for name in names}

    def days(values: dict[str, Any]) -> dict[str, np.ndarray]:
        full = in_full(values)
        every = [jax.device_get(tomorrow(record, full, jnp.int32(day))) for day in DAYS]
        return {name: np.stack([np.asarray(one[name], float) for one in every]) for name in names}

    def apart(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> dict[str, float]:
        return {n: round(rms(((one[n] - other[n]) ** 2).mean(0)), 4) for n in names}

    usual, rows = days({}), {}
    for row in model.table:
        shape = np.shape(row.static(len(model.columns)))
        rows[row.symbol] = {"name": row.name, "unit": row.unit, "default": row.default}
        for end in ("low", "high"):
            bound = getattr(row, end)
            moved = days({row.symbol: np.full(shape, bound)})
            rows[row.symbol][end] = {"value": bound, "day": apart(moved, usual)}
    score = {symbol: max(_score(one[end]["day"]) for end in ("low", "high"))
             for symbol, one in rows.items()}  # fmt: skip
    largest = sorted(score, key=lambda symbol: -score[symbol])
    month = _month()
    start = record.at(0)
    before = jax.device_get(month(in_full({}), start))
    for symbol in dict.fromkeys([*TWIN, *largest[:LARGEST]]):
        row, one = model.table[symbol], rows[symbol]
        end = max(("low", "high"), key=lambda e: _score(one[e]["day"]))
        shape = np.shape(row.static(len(model.columns)))
        after = jax.device_get(month(in_full({symbol: np.full(shape, one[end]["value"])}), start))
        one[end]["month"] = {n: round(rms((after[n] - before[n]) ** 2), 3) for n in names}
        say(symbol, round(score[symbol], 2), one[end]["month"])
    return {
        "parameters": {symbol: rows[symbol] for symbol in largest},
        "score": {symbol: round(score[symbol], 3) for symbol in largest},
        "identifiable": identifiable(days),
    }


def _score(response: dict[str, float]) -> float:
    """A response in units of the error that agents are judged by: that of the defaults is 2."""
    return float(np.sqrt(sum(w * response[name] ** 2 for name, w in twin().judged)))


def _month() -> Any:
    """Means over days 10 to 40."""
    model, forcing = twin().model, default_forcing()

    @jax.jit
    def month(values: Any, state: Any) -> Any:
        def day(carry: Any, number: Any) -> Any:
            state, sums = carry
            state = model.step(state, values, forcing)
            shown = model.observe(state)
            return (state, jax.tree.map(lambda s, o: s + (number >= 10) * o / 30, sums, shown)), ()

        nothing = jax.tree.map(jnp.zeros_like, model.observe(state))
        return jax.lax.scan(day, (state, nothing), jnp.arange(40))[0][1]

    return month


def identifiable(days: Any) -> dict[str, Any]:
    """Of each learnt parameter and band: what putting it at its default does, over the noise.

    Of the change of the judged fields in each column, in units of the error that agents are judged
    by, what is left when the other parameters do their best to undo it (linear least squares over
    the days and fields of the column); and the noise is the error with the right parameters.
    """
    model, judged = twin().model, dict(twin().judged)
    columns, record = len(model.columns), twin().params.record
    truth = twin_truth(model.columns)

    def stacked(shown: dict[str, np.ndarray]) -> np.ndarray:
        """``[column, number]``, in units of the judged error."""
        parts = []
        for name, weight in judged.items():
            flat = shown[name].reshape(len(DAYS), columns, -1)
            part = np.sqrt(weight / flat.shape[-1]) * flat
            parts.append(np.moveaxis(part, 1, 0).reshape(columns, -1))
        return np.concatenate(parts, axis=1)

    known = [jax.device_get(model.observe(record.at(day + 1))) for day in DAYS]
    observed = {n: np.stack([np.asarray(one[n], float) for one in known]) for n in judged}
    right = stacked(days(truth))
    noise = np.sqrt(((right - stacked(observed)) ** 2).sum(1) / len(DAYS))
    default = {symbol: model.table[symbol].default for symbol in TWIN}
    moved = {
        symbol: stacked(days({**truth, symbol: np.full(columns, default[symbol])})) - right
        for symbol in TWIN
    }
    alone, left = {}, {}
    for symbol in TWIN:
        others = np.stack([moved[one] for one in TWIN if one != symbol], axis=-1)
        rest = np.empty(columns)
        for i in range(columns):
            share = np.linalg.lstsq(others[i], moved[symbol][i], rcond=None)[0]
            rest[i] = np.sqrt(((moved[symbol][i] - others[i] @ share) ** 2).sum() / len(DAYS))
        whole = np.sqrt((moved[symbol] ** 2).sum(1) / len(DAYS))
        alone[symbol], left[symbol] = _bands(whole), _bands(rest)
    floor = _bands(noise)
    ratio = {symbol: np.round(left[symbol] / floor, 1).tolist() for symbol in TWIN}
    return {
        "noise": np.round(floor, 4).tolist(),
        "alone": {symbol: np.round(one, 4).tolist() for symbol, one in alone.items()},
        "left": {symbol: np.round(one, 4).tolist() for symbol, one in left.items()},
        "ratio": ratio,
        "is": {symbol: [one >= TIMES for one in every] for symbol, every in ratio.items()},
    }


def _bands(values: np.ndarray) -> np.ndarray:
    """Root mean square over the latitudes of each band."""
    return np.sqrt([(part**2).mean() for part in np.array_split(values, BANDS)])
