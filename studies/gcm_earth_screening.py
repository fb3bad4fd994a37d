"""What parameters do to five days over the Earth, from a state of the record in April.

    python studies/gcm_earth_screening.py

Every parameter in turn is put to each of its bounds everywhere. Stored, by parameter and bound, are
the changes of the mean over the last two of the five days: root mean square and mean over the
globe of both fluxes, and the mean of the temperature of each layer, from the ground up.
"""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fedrain.envs import make
from fedrain.io import write_json

PATH = Path(__file__).parent.parent / "results" / "studies" / "gcm_earth" / "screening.json"
START, DAYS, BEFORE = 20, 5, 3
SYMBOLS = (
    "absdry", "absaer", "ablwv1", "ablwv2", "abswv1", "abswv2", "ablwin", "ablcl2", "albcl",
    "rhcl1", "clsmax", "ablcl1", "epslw", "rhcl2", "albcls", "qacl", "abscl2", "wpcl", "segrad",
    "trcnv", "albsea", "emisfc", "abscl1",
)  # fmt: skip
NAMES = ("outgoing_longwave", "absorbed_shortwave", "air_temperature")


def responses(run: Any, columns: Any) -> dict[str, Any]:
    """Of every parameter and bound, with a function that gives the mean fields of some values."""
    usual, found = run({}), {}
    for symbol, low, high in run.bounds:
        found[symbol] = {}
        for end, value in (("low", low), ("high", high)):
            changed = {n: v - usual[n] for n, v in run({symbol: value}).items()}
            found[symbol][end] = {"value": value, **summary(changed, columns)}
    return found


def summary(changed: dict[str, np.ndarray], columns: Any) -> dict[str, Any]:
    """Of one change of the fields."""
    one: dict[str, Any] = {}
    for name in NAMES[:2]:
        rms = float(np.sqrt(columns.mean(changed[name] ** 2)))
        one[name] = {"rms": round(rms, 2), "mean": round(float(columns.mean(changed[name])), 2)}
    layers = [columns.mean(layer) for layer in changed[NAMES[2]].T]
    return {**one, NAMES[2]: np.round(layers, 2).tolist()}


class Runs:
    """Five days from the same state with all parameters but one at their defaults."""

    def __init__(self) -> None:
        environment = make("gcm-ncep")
        self.model, self.record = environment.model, environment.params.record
        static = self.model.table.static(len(self.model.columns))
        self.full = {k: jnp.asarray(v, jnp.float32) for k, v in static.items()}
        rows = [self.model.table[symbol] for symbol in SYMBOLS]
        self.bounds = [(row.symbol, row.low, row.high) for row in rows]
        forcing = {one.name: jnp.float32(one.default) for one in self.model.forcings}

        @jax.jit
        def run(state: Any, values: Any) -> Any:
            def day(state: Any, _: None) -> Any:
                state = self.model.step(state, values, forcing)
                shown = self.model.observe(state)
                return state, {name: shown[name] for name in NAMES}

            every = jax.lax.scan(day, state, length=DAYS)[1]
            return {name: one[BEFORE:].mean(0) for name, one in every.items()}

        self.run = run

    def __call__(self, values: dict[str, float]) -> dict[str, np.ndarray]:
        """Mean fields of the last two days with these values everywhere."""
        moved = {s: jnp.full_like(self.full[s], value) for s, value in values.items()}
        shown = jax.device_get(self.run(self.record.at(START), {**self.full, **moved}))
        return {name: np.asarray(one, float) for name, one in shown.items()}


if __name__ == "__main__":
    runs = Runs()
    write_json(PATH, responses(runs, runs.model.columns))
