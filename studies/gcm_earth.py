"""The study of ``gcm-ncep``: agents over the Earth, judged by the reanalysis.

    python studies/gcm_earth.py train [SEED ...]   # resumes what was cut short
    python studies/gcm_earth.py enki [SEED ...]    # rivals in as many days
    python studies/gcm_earth.py gradient [SEED ...]
    python studies/gcm_earth.py judge [NAME ...]   # a year of each, and one with a warmer sea

A policy sees its place and the time of year: what it sets is a table of days and latitudes. It is
judged by a year that runs free, after a month, from a state of the record's second year, which
training does not start from: as the task judges, by means over 60 days and with its weights. Half
a year with a sea that is 4 K warmer gives the response.
"""

import sys
import time
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from gcm_rivals import enki_constants, gradient_constants

from fedrain.baselines.response import WARMER
from fedrain.envs import Environment, make
from fedrain.experiment import configure
from fedrain.experiment.evaluation import policy_actions
from fedrain.experiment.training import Session
from fedrain.io import alone_in, write_json
from fedrain.reading import read_json

HERE = Path(__file__).parent.parent
RESULTS, RUNS = HERE / "results" / "studies" / "gcm_earth", HERE / "runs" / "gcm_earth"
SEEDS = (0, 1, 2)
EPISODES, LENGTH = 8, 60
#: Days of a mean, how many of them a judged year has after one to settle, and a warmer one.
PART, PARTS, WARM_PARTS = 30, 12, 6
#: States of the record's second year before that from which these runs start: the 1st of December.
DECEMBER = 66
DAYS = 365
#: Of the rivals: what they are called, and states of the record between two seasons of a forecast.
RIVALS, SEASONS = {"enki": "EnKI", "gradient": "gradient"}, 15
FLUXES = ("outgoing_longwave", "absorbed_shortwave")
OPTIONS: dict[str, Any] = {
    "env": "gcm-ncep", "algo": "ddpg", "preset": "forecast", "sharing": "shared",
    "episode_length": LENGTH,
    "settings": {
        "warmup_steps": 120, "updates": 8, "critics": 4, "batch_size": 256,
        "learning_rate": 0.001, "exploration_noise": 0.5,
    },
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
    begin, core, resumed = time.perf_counter(), time.process_time(), session.trainer.episode > 0
    if session.trainer.episode < EPISODES:
        with alone_in(folder):
            session.run()
    actors = jax.tree.map(lambda leaf: leaf[0], session.trainer.actors())
    every = by_day(experiment, actors)
    returns = np.reshape(session.trainer.history["returns"], (EPISODES, -1)).mean(1)
    write_json(RESULTS / f"{seed}.json", {
        "label": f"agents, seed {seed}",
        "seed": seed,
        "days": EPISODES * LENGTH,
        # Of a run that was cut short, what it took in all is not known.
        "seconds": None if resumed else round(time.perf_counter() - begin, 1),
        "core_seconds": None if resumed else round(time.process_time() - core, 1),
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
def _part() -> Any:
    """So many days of a run: the state after them, and means of what is seen and of the target."""
    environment = earth()
    model = environment.model

    @jax.jit
    def part(state: Any, table: Any, forcing: Any) -> Any:
        def day(carry: Any, _: None) -> Any:
            state, seen, known = carry
            own = {s: every[state["day"] % DAYS] for s, every in table.items()}
            state = model.step(state, own, forcing)

            def add(sums: Any, values: Any) -> Any:
                return {n: sums[n] + values[n] / PART for n in sums}

            return (
                state,
                add(seen, model.observe(state)),
                add(known, model.target_at(state)),
            ), None

        shown = model.observe(state)
        nothing = {n: jnp.zeros_like(shown[n]) for n, _ in environment.judged}
        after, seen, known = jax.lax.scan(day, (state, nothing, nothing), length=PART)[0]
        return after, (seen, known)

    return part


def free_run(table: dict[str, Any], parts: int, warmer: float = 0.0) -> dict[str, Any]:
    """What a run with these parameters shows, and its target: ``[part, …]`` after the first."""
    environment = earth()
    model, record = environment.model, environment.params.record
    forcing = {one.name: jnp.float32(one.default) for one in model.forcings}
    forcing["sst"] = jnp.float32(warmer)
    state = record.at(int(record.test[0]) + DECEMBER)
    # Of every parameter, so that one program serves all.
    static = model.table.static(len(model.columns))
    own = {s: np.broadcast_to(value, (DAYS, *np.shape(value))) for s, value in static.items()}
    own = {s: jnp.asarray(v, jnp.float32) for s, v in {**own, **table}.items()}
    every = []
    for _ in range(1 + parts):
        state, means = _part()(state, own, forcing)
        every.append(jax.device_get(means))
    seen, known = (jax.tree.map(lambda *one: np.stack(one).astype(float), *which)
                   for which in zip(*every[1:], strict=True))  # fmt: skip
    return {"seen": seen, "known": known}


def compared(shown: dict[str, Any]) -> tuple[dict[str, float], dict[str, Any]]:
    """Root mean square errors of means over as many days as the task judges by, and biases."""
    columns, parts = earth().model.columns, earth().judged_over // PART
    errors, bias = {}, {}
    for name, _ in earth().judged:
        apart = shown["seen"][name] - shown["known"][name]
        bias[name] = np.round(apart, 3).tolist()
        over = apart.reshape(-1, parts, *apart.shape[1:]).mean(1)
        squares = (over**2).reshape(len(over), len(columns), -1).mean((0, 2))
        errors[name] = round(float(np.sqrt(columns.mean(squares))), 4)
    return errors, bias


def judge(table: dict[str, Any]) -> dict[str, Any]:
    """Errors, energy budget, and the response to a warmer sea."""
    columns = earth().model.columns
    usual = free_run(table, PARTS)
    errors, bias = compared(usual)
    print(f"{errors}: {total(errors):.3f}", flush=True)
    warm = free_run(table, WARM_PARTS, WARMER)["seen"]

    def globe(shown: dict[str, Any], name: str, parts: int = PARTS) -> float:
        return float(columns.mean(shown[name][:parts].mean(0)))

    leaves, enters = (globe(usual["seen"], name) for name in FLUXES)
    # Of the same days with and without.
    longwave, shortwave = (
        (globe(warm, name) - globe(usual["seen"], name, WARM_PARTS)) / WARMER for name in FLUXES
    )
    return {
        "errors": errors,
        "total": round(total(errors), 4),
        "bias": bias,
        "budget": {"outgoing_longwave": round(leaves, 2), "absorbed_shortwave": round(enters, 2),
                   "net": round(enters - leaves, 2)},
        "response": {"longwave": round(longwave, 3), "shortwave": round(shortwave, 3),
                     "feedback": round(longwave - shortwave, 3)},
    }  # fmt: skip


def total(errors: dict[str, float]) -> float:
    """One error of all judged fields, with the weights of the task."""
    return float(np.sqrt(sum(w * errors[name] ** 2 for name, w in earth().judged)))


def in_days(stored: dict[str, Any]) -> dict[str, np.ndarray]:
    """What was stored of a policy, or of constants, on every day of the year."""
    return {s: np.repeat(np.array(v), -(-DAYS // len(v)), axis=0)[:DAYS] for s, v in stored.items()}


def search(rival: str, seed: int) -> None:
    """Constants of each latitude by a rival, from forecasts of a day in the record's first year."""
    model = earth().model

    def known(record: Any, step: Any) -> dict[str, Any]:
        shown: dict[str, Any] = model.target_at(record.at(step))
        return shown

    begin, core, days = time.perf_counter(), time.process_time(), EPISODES * LENGTH
    if rival == "enki":
        found = list(enki_constants(earth(), seed, days, True, known, SEASONS))
    else:
        found = list(gradient_constants(earth(), seed, days, known=known))
    spent, values = found[-1]
    write_json(RESULTS / f"{rival}-{seed}.json", {
        "label": f"{RIVALS[rival]}, seed {seed}",
        "seed": seed,
        "days": spent,
        "seconds": round(time.perf_counter() - begin, 1),
        "core_seconds": round(time.process_time() - core, 1),
        "parameters": {s: [np.round(v, 4).tolist()] for s, v in values.items()},
    })  # fmt: skip


def judge_all(names: list[str]) -> None:
    """The defaults, and every seed, or those named, that has not been judged yet."""
    if not (path := RESULTS / "static.json").exists():
        write_json(path, {"label": "defaults", "days": 0, **judge({})})
    for path in sorted(RESULTS.glob("*.json")):
        held = read_json(path)
        if "parameters" in held and "errors" not in held and path.stem in (names or [path.stem]):
            write_json(path, {**held, **judge(in_days(held["parameters"]))})
            print(f"{path.name}: judged", flush=True)


def main(arguments: list[str]) -> None:
    """Run one part of the study."""
    what, names = (arguments or ["judge"])[0], arguments[1:]
    if what == "judge":
        judge_all(names)
        return
    for seed in map(int, names) if names else SEEDS:
        own = str(seed) if what == "train" else f"{what}-{seed}"
        if not (RESULTS / f"{own}.json").exists():
            if what == "train":
                train(seed)
            else:
                search(what, seed)
            print(f"{own}.json: written", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
