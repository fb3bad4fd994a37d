"""What each parameter of SPEEDY does to a day, and which of those learnt can be told apart."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from gcm_skill import default_forcing, in_full, rms, twin

from fedrain.climate.models.gcm_parameters import TWIN, twin_truth

#: Days of the record's part for training that are forecast: for what is identifiable, all.
DAYS = (40, 140, 240)
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

    def days(values: dict[str, Any], which: tuple[int, ...]) -> dict[str, np.ndarray]:
        full = in_full(values)
        every = [jax.device_get(tomorrow(record, full, jnp.int32(day))) for day in which]
        return {name: np.stack([np.asarray(one[name], float) for one in every]) for name in names}

    def apart(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> dict[str, float]:
        return {n: round(rms(((one[n] - other[n]) ** 2).mean(0)), 4) for n in names}

    usual, rows = days({}, DAYS[:1]), {}
    for row in model.table:
        shape = np.shape(row.static(len(model.columns)))
        rows[row.symbol] = {"name": row.name, "unit": row.unit, "default": row.default}
        for end in ("low", "high"):
            bound = getattr(row, end)
            moved = days({row.symbol: np.full(shape, bound)}, DAYS[:1])
            rows[row.symbol][end] = {"value": bound, "day": apart(moved, usual)}
        say(row.symbol, rows[row.symbol]["high"]["day"])
    score = {symbol: max(_score(one[end]["day"]) for end in ("low", "high"))
             for symbol, one in rows.items()}  # fmt: skip
    largest = sorted(score, key=lambda symbol: -score[symbol])
    return {
        "parameters": {symbol: rows[symbol] for symbol in largest},
        "score": {symbol: round(score[symbol], 3) for symbol in largest},
        "identifiable": identifiable(lambda values: days(values, DAYS)),
    }


def _score(response: dict[str, float]) -> float:
    """A response in units of the error that agents are judged by: that of the defaults is 2."""
    return float(np.sqrt(sum(w * response[name] ** 2 for name, w in twin().judged)))


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
