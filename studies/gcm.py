"""The study of ``gcm-twin``: agents, ensembles and gradients find the parameters of a truth.

    python studies/gcm.py screen            # what each parameter of SPEEDY does
    python studies/gcm.py train [CELL ...]  # each cell, seed by seed; resumes what was cut short
    python studies/gcm.py tables            # from the stored results
    python studies/gcm.py figures

Every seed of a cell that is finished is a small file in results/studies/gcm; what is there is not
computed again. Runs in progress are in runs/gcm.
"""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import fedrain
from fedrain.climate.models.gcm_parameters import TWIN, twin_truth
from fedrain.climate.models.gcm_store import spun_up
from fedrain.envs import Environment, make
from fedrain.io import write_json
from fedrain.reading import read_json

HERE = Path(__file__).parent.parent
RESULTS, RUNS = HERE / "results" / "studies" / "gcm", HERE / "runs" / "gcm"
SEEDS = (0, 1, 2)
BANDS = 6
#: Test forecasts: first days of the record's last part, and how many days ahead.
FIRST_DAYS, AHEAD = tuple(range(320, 390, 5)), (1, 5)
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


@dataclass(frozen=True)
class Cell:
    """One way to find parameters: options of `fedrain.train`, or a function of the seed."""

    label: str
    options: dict[str, Any] = field(default_factory=dict)
    search: Callable[[int, int], tuple[dict[str, Any], int]] | None = None
    days: int = 3000


def _train_options(**more: Any) -> dict[str, Any]:
    return {
        "env": "gcm-twin", "algo": "ddpg", "preset": "forecast", "figures": False,
        "settings": {"warmup_steps": 100}, **more,
    }  # fmt: skip


def _search_enki(seed: int, days: int) -> tuple[dict[str, Any], int]:
    from gcm_rivals import enki_constants

    return enki_constants(climate(), seed, days)


def _search_enki_forecast(seed: int, days: int) -> tuple[dict[str, Any], int]:
    from gcm_rivals import enki_constants

    return enki_constants(twin(), seed, days, forecasts=True)


def _search_gradient(seed: int, days: int) -> tuple[dict[str, Any], int]:
    from gcm_rivals import gradient_constants

    return gradient_constants(twin(), seed, days)


FREE = {"analysis_every": 0, "judge": CLIMATE_WEIGHTS}
CELLS = {
    "shared": Cell("one shared policy", _train_options(sharing="shared")),
    "fed05": Cell("32 agents, averaged every 5 episodes", _train_options(sync_every=5)),
    "never": Cell("32 agents, never averaged", _train_options(sync_every=0)),
    "bands-fed05": Cell(
        "6 bands, averaged every 5 episodes", _train_options(agents=6, sync_every=5)
    ),
    "analysis-5": Cell(
        "one shared policy, analyses every 5 days",
        _train_options(sharing="shared", analysis_every=5),
    ),
    "free": Cell(
        "one shared policy, free runs",
        _train_options(sharing="shared", **FREE) | {"preset": "fedrain"},
        days=9990,
    ),
    "enki": Cell("EnKI, free runs", search=_search_enki, days=9990),
    "enki-forecast": Cell("EnKI, forecasts of a day", search=_search_enki_forecast),
    "gradient": Cell("gradient, forecasts of a day", search=_search_gradient),
}


@cache
def twin() -> Environment:
    """The task, judged by forecasts."""
    return make("gcm-twin")


@cache
def climate() -> Environment:
    """The task, judged by its climate."""
    return make("gcm-twin", **FREE)


# ------------------------------------------------------------------- how good parameters are


@cache
def _program(kind: str) -> Any:
    environment = twin()
    model = environment.model
    forcing = {one.name: jnp.float32(one.default) for one in model.forcings}

    def forecast(record: Any, values: Any, first: Any) -> Any:
        """Squared errors of forecasts from one day of the truth, by field and days ahead."""

        def day(state: Any, ahead: Any) -> Any:
            state = model.step(state, values, forcing)
            known = model.observe(record.at(first + 1 + ahead))
            shown = model.observe(state)
            return state, {n: (shown[n] - known[n]) ** 2 for n, _ in environment.judged}

        return jax.lax.scan(day, record.at(first), jnp.arange(max(AHEAD)))[1]

    def free(record: Any, values: Any, first: Any) -> Any:
        """The mean climate."""
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

    return jax.jit({"forecast": forecast, "free": free}[kind])


def in_full(values: dict[str, Any]) -> dict[str, Any]:
    """These parameters with all others at their defaults."""
    model = twin().model
    static = model.table.static(len(model.columns))
    return {k: jnp.asarray(v, jnp.float32) for k, v in {**static, **values}.items()}


def rms(squares: Any) -> float:
    """Area-weighted, over all levels."""
    flat = np.asarray(squares, float).reshape(len(squares), -1).mean(1)
    return float(np.sqrt(twin().model.columns.mean(flat)))


def measured(values: dict[str, Any], start: int = 300) -> dict[str, Any]:
    """Errors of forecasts on days that training never saw, and of the climate of a free run."""
    full, record = in_full(values), twin().params.record
    forecast, free = _program("forecast"), _program("free")
    every = [jax.device_get(forecast(record, full, jnp.int32(day))) for day in FIRST_DAYS]
    mean = jax.tree.map(lambda *days: np.mean(days, axis=0), *every)
    found: dict[str, Any] = {
        f"forecast-{ahead}": {name: rms(one[ahead - 1]) for name, one in mean.items()}
        for ahead in AHEAD
    }
    own = jax.device_get(free(record, full, jnp.int32(start)))
    truth = truth_climate()
    found["climate"] = {name: rms((own[name] - truth[name]) ** 2) for name in mean}
    found["profile"] = {
        name: np.round(own[name], 4).tolist()
        for name in ("outgoing_longwave", "absorbed_shortwave", "precipitation", "air_temperature")
    }
    return found


@cache
def truth_climate() -> dict[str, Any]:
    """The mean over all days of the record."""
    shown = twin().params.record.states["shown"]
    return {name: np.asarray(one, float).mean(0) for name, one in shown.items()}


# ------------------------------------------------------------------- cells


def find(name: str, seed: int) -> dict[str, Any]:
    """Train or search one seed of a cell."""
    cell = CELLS[name]
    begin, core = time.perf_counter(), time.process_time()
    if cell.search is not None:
        values, days = cell.search(seed, cell.days)
    else:
        folder = RUNS / f"{name}-{seed}"
        episodes = cell.days // twin().episode_length
        run = fedrain.train(
            out=folder, resume=True, seeds=[seed], episodes=episodes, progress=False,
            say=lambda text: print(text, file=sys.stderr), **cell.options,
        )  # fmt: skip
        last = run.results.sel(policy="local", drop=True).isel(seed=0, step=-1)
        values = {symbol: np.asarray(last[symbol].values, float) for symbol in TWIN}
        days = episodes * twin().episode_length
    return {
        "cell": name,
        "label": cell.label,
        "seed": seed,
        "days": days,
        "seconds": round(time.perf_counter() - begin, 1),
        "core_seconds": round(time.process_time() - core, 1),
        "parameters": {s: np.round(v, 5).tolist() for s, v in values.items()},
        **measured(values),
    }


def train(names: list[str]) -> None:
    """Every seed that has no result yet, seed by seed so that all cells have one early."""
    for kind, values in (("static", {}), ("truth", twin_truth(twin().model.columns))):
        if not (path := RESULTS / f"{kind}.json").exists():
            write_json(path, {"cell": kind, "label": kind, "seed": 0, "days": 0,
                              "parameters": {s: np.round(in_full(values)[s], 5).tolist()
                                             for s in TWIN}, **measured(values)})  # fmt: skip
    for seed in SEEDS:
        for name in names or CELLS:
            path = RESULTS / f"{name}-{seed}.json"
            if not path.exists():
                write_json(path, find(name, seed))
                print(f"{path.name}: written", flush=True)


# ------------------------------------------------------------------- screening


def screen() -> None:
    """What each parameter does, at either bound everywhere: to a day's forecast and to a month."""
    environment = twin()
    model = environment.model
    forcing = {one.name: jnp.float32(one.default) for one in model.forcings}
    names = [name for name, _ in environment.judged]

    @jax.jit
    def month(values: Any, state: Any) -> Any:
        def day(carry: Any, number: Any) -> Any:
            state, sums = carry
            state = model.step(state, values, forcing)
            shown = model.observe(state)
            sums = jax.tree.map(lambda s, one: s + (number >= 10) * one / 30, sums, shown)
            return (state, sums), {n: shown[n] for n in names}

        nothing = jax.tree.map(jnp.zeros_like, model.observe(state))
        (_, sums), every = jax.lax.scan(day, (state, nothing), jnp.arange(40))
        return {n: every[n][0] for n in names}, {n: sums[n] for n in names}

    start = jax.tree.map(jnp.asarray, replace_shown(spun_up(model)))
    first, last = jax.device_get(month(in_full({}), start))
    rows = {}
    for row in model.table:
        shape = np.shape(row.static(len(model.columns)))
        rows[row.symbol] = {"name": row.name, "unit": row.unit, "default": row.default}
        for end in ("low", "high"):
            values = in_full({row.symbol: np.full(shape, getattr(row, end))})
            day, later = jax.device_get(month(values, start))
            rows[row.symbol][end] = {
                "value": getattr(row, end),
                "day": {n: round(rms((day[n] - first[n]) ** 2), 4) for n in names},
                "month": {n: round(rms((later[n] - last[n]) ** 2), 3) for n in names},
            }
        print(row.symbol, rows[row.symbol]["high"]["month"], flush=True)
    write_json(RESULTS / "screening.json", rows)


def replace_shown(state: dict[str, Any]) -> dict[str, Any]:
    """A state as nested dictionaries of arrays."""
    return jax.tree.map(np.asarray, state)


def stored() -> dict[str, list[dict[str, Any]]]:
    """The results, by cell."""
    found: dict[str, list[dict[str, Any]]] = {}
    for path in sorted(RESULTS.glob("*.json")):
        if "cell" in (held := read_json(path)):
            found.setdefault(held["cell"], []).append(held)
    return found


def main(arguments: list[str]) -> None:
    """Run one part of the study."""
    what, names = (arguments or ["tables"])[0], arguments[1:]
    if what == "screen":
        screen()
    elif what == "train":
        train(names)
    else:
        import gcm_figures

        {"tables": gcm_figures.tables, "figures": gcm_figures.figures}[what](stored())


if __name__ == "__main__":
    main(sys.argv[1:])
