"""The study of ``gcm-ncep``: agents over the Earth, judged by the reanalysis.

    python studies/gcm_earth.py train         # each seed; resumes what was cut short
    python studies/gcm_earth.py judge         # a year of each, and a year of a warmer sea
    python studies/gcm_earth.py tables

A policy sees its place and the time of year: what it sets is a table of days and latitudes. It is
judged in a free run of a year from the record's second, which training does not start from: by the
errors of six means of 55 days, after 35 that nobody judges. A second run, with a sea that is 4 K
warmer, gives the response.
"""

import sys
import time
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fedrain.baselines.response import WARMER
from fedrain.envs import Environment, make
from fedrain.experiment import configure
from fedrain.experiment.evaluation import policy_actions
from fedrain.experiment.run import Run
from fedrain.experiment.training import Session
from fedrain.io import alone_in, read_json, write_json
from fedrain.tables import Table

HERE = Path(__file__).parent.parent
RESULTS, RUNS = HERE / "results" / "studies" / "gcm_earth", HERE / "runs" / "gcm_earth"
SEEDS = (0, 1, 2)
EPISODES = 8
#: Of the year that is judged: days until the air has followed, and windows of so many days.
SETTLE, WINDOWS, WINDOW = 35, 6, 55
DAYS = 365
FLUXES = ("outgoing_longwave", "absorbed_shortwave")
OPTIONS: dict[str, Any] = {
    "env": "gcm-ncep", "algo": "ddpg", "preset": "forecast", "sharing": "shared",
    "settings": {"warmup_steps": 60, "updates": 8, "critics": 2, "batch_size": 128},
}  # fmt: skip


@cache
def earth() -> Environment:
    """The task."""
    return make("gcm-ncep")


def train(seed: int) -> None:
    """One seed, into its folder."""
    folder = RUNS / str(seed)
    experiment = configure(seeds=[seed], episodes=EPISODES, **OPTIONS)
    session = Session(experiment, folder, lambda text: print(text, file=sys.stderr), None, False)
    begin, core = time.perf_counter(), time.process_time()
    with alone_in(folder):
        session.run()
    actors = jax.tree.map(lambda leaf: leaf[0], session.trainer.actors())
    every = by_day(experiment, actors)
    returns = Run(folder).returns.returns.isel(seed=0).mean("agent").values
    write_json(RESULTS / f"{seed}.json", {
        "seed": seed,
        "days": EPISODES * earth().episode_length,
        "seconds": round(time.perf_counter() - begin, 1),
        "core_seconds": round(time.process_time() - core, 1),
        "returns": np.round(returns, 2).tolist(),
        # Every fifth day of the year: between them policies change little.
        "parameters": {s: np.round(v[::5], 4).tolist() for s, v in every.items()},
    })  # fmt: skip


def by_day(experiment: Any, actors: Any) -> dict[str, np.ndarray]:
    """What a policy sets on each day of the year: ``[day, lat]``."""
    environment, algorithm = experiment.make_environment(), experiment.make_algorithm()
    state, _ = environment.reset(params=environment.params)

    @jax.jit
    def on(day: Any) -> Any:
        climate = {**state.climate, "day": jnp.full_like(state.climate["day"], day)}
        seen = environment.observe(state._replace(climate=climate), environment.params)
        keys = jax.random.split(jax.random.key(0), len(environment.regions))
        action = policy_actions(environment, algorithm, actors, seen, keys, jnp.int32(0))
        own = environment.own_parameters(action)
        return {row.symbol: own[row.symbol] for row in environment.learnt}

    days = [jax.device_get(on(jnp.int32(day))) for day in range(DAYS)]
    return {name: np.stack([one[name] for one in days]) for name in days[0]}


@cache
def _year() -> Any:
    """Sums over the windows of what is seen and of the target, and over the year of the fluxes."""
    environment = earth()
    model = environment.model
    names = [name for name, _ in environment.judged]

    @jax.jit
    def year(state: Any, table: Any, static: Any, forcing: Any) -> Any:
        def day(carry: Any, number: Any) -> Any:
            state, seen, known, fluxes = carry
            own = {s: every[state["day"] % DAYS] for s, every in table.items()}
            state = model.step(state, {**static, **own}, forcing)
            shown, target = model.observe(state), model.target_at(state)
            window = (number - SETTLE) // WINDOW
            counts = jnp.where(number >= SETTLE, jnp.arange(WINDOWS) == window, False) / WINDOW

            def add(sums: Any, values: Any) -> Any:
                return {
                    n: sums[n] + counts.reshape(-1, *[1] * values[n].ndim) * values[n]
                    for n in names
                }

            total = {n: fluxes[n] + (number >= SETTLE) * shown[n] for n in fluxes}
            return (state, add(seen, shown), add(known, target), total), None

        shown = model.observe(state)
        nothing = {n: jnp.zeros((WINDOWS, *shown[n].shape)) for n in names}
        none = {n: jnp.zeros_like(shown[n]) for n in FLUXES}
        days = jnp.arange(SETTLE + WINDOWS * WINDOW)
        return jax.lax.scan(day, (state, nothing, nothing, none), days)[0][1:]

    return year


def a_year(table: dict[str, Any], warmer: float = 0.0) -> dict[str, Any]:
    """What a year with these parameters shows, and its target."""
    environment = earth()
    model, record = environment.model, environment.params.record
    static = model.table.static(len(model.columns))
    full = {k: jnp.asarray(v, jnp.float32) for k, v in static.items()}
    forcing = {one.name: jnp.float32(one.default) for one in model.forcings}
    forcing["sst"] = jnp.float32(warmer)
    state = record.at(int(record.test[0]))
    own = {s: jnp.asarray(v, jnp.float32) for s, v in table.items()}
    if not own:
        own = {"albcl": jnp.tile(full["albcl"], (DAYS, 1))}
    seen, known, fluxes = jax.device_get(_year()(state, own, full, forcing))
    return {"seen": seen, "known": known, "fluxes": fluxes}


def judge(table: dict[str, Any]) -> dict[str, Any]:
    """Errors, energy budget, and the response to a warmer sea."""
    environment = earth()
    columns = environment.model.columns
    now, warm = a_year(table), a_year(table, WARMER)

    def globe(fluxes: Any, name: str) -> float:
        return float(columns.mean(np.asarray(fluxes[name], float))) / (WINDOWS * WINDOW)

    errors, profile = {}, {}
    for name, _ in environment.judged:
        apart = np.asarray(now["seen"][name], float) - np.asarray(now["known"][name])
        squares = (apart**2).reshape(WINDOWS, len(columns), -1).mean((0, 2))
        errors[name] = round(float(np.sqrt(columns.mean(squares))), 4)
        profile[name] = np.round(apart.mean(0), 3).tolist()
    leaves, enters = (globe(now["fluxes"], name) for name in FLUXES)
    change = [
        (globe(warm["fluxes"], name) - globe(now["fluxes"], name)) / WARMER for name in FLUXES
    ]
    return {
        "errors": errors,
        "total": round(total(errors), 4),
        "profile": profile,
        "budget": {"outgoing_longwave": round(leaves, 2), "absorbed_shortwave": round(enters, 2),
                   "net": round(enters - leaves, 2)},
        "response": {"longwave": round(change[0], 3), "shortwave": round(change[1], 3),
                     "feedback": round(change[0] - change[1], 3)},
    }  # fmt: skip


def total(errors: dict[str, float]) -> float:
    """One error of all judged fields, with the weights of the task."""
    return float(np.sqrt(sum(w * errors[name] ** 2 for name, w in earth().judged)))


def in_days(stored: dict[str, Any]) -> dict[str, np.ndarray]:
    """What was stored of a policy, on every day of the year."""
    return {s: np.repeat(np.array(v), 5, axis=0)[:DAYS] for s, v in stored.items()}


def judge_all() -> None:
    """The defaults, and every seed that has not been judged yet."""
    if not (path := RESULTS / "static.json").exists():
        write_json(path, {"seed": -1, "days": 0, **judge({})})
    for path in sorted(RESULTS.glob("*.json")):
        held = read_json(path)
        if "errors" not in held:
            write_json(path, {**held, **judge(in_days(held["parameters"]))})
            print(f"{path.name}: judged", flush=True)


def tables() -> None:
    """The defaults and every seed."""
    rows = []
    found = {path.stem: read_json(path) for path in sorted(RESULTS.glob("*.json"))}
    static = found["static"]
    for name in ["static", *(one for one in found if one != "static")]:
        one = found[name]
        if "errors" not in one:
            continue
        errors = [f"{one['errors'][field]:.2f}" for field in static["errors"]]
        lower = f"{100 * (1 - one['total'] / static['total']):.0f}" if name != "static" else ""
        budget = [f"{value:.1f}" for value in one["budget"].values()]
        response = [f"{value:.2f}" for value in one["response"].values()]
        label = "default" if name == "static" else f"seed {name}"
        rows.append([label, str(one["days"]), *errors, lower, *budget, *response])
    head = ["", "days", *static["errors"], "lower, %", "OLR", "ASR", "net", "dOLR/dT", "dASR/dT",
            "feedback"]  # fmt: skip
    print(Table("Errors, energy budget and response over the Earth", head, rows).markdown())


def main(arguments: list[str]) -> None:
    """Run one part of the study."""
    what = (arguments or ["tables"])[0]
    if what == "train":
        for seed in SEEDS:
            if not (RESULTS / f"{seed}.json").exists():
                train(seed)
                print(f"{seed}.json: written", flush=True)
    else:
        {"judge": judge_all, "tables": tables}[what]()


if __name__ == "__main__":
    main(sys.argv[1:])
