"""The study of ``gcm-ncep``: agents over the Earth, judged by the reanalysis.

    python studies/gcm_earth.py train [SEED ...]  # resumes what was cut short
    python studies/gcm_earth.py judge             # test episodes of each, and with a warmer sea

A policy sees its place and the time of year: what it sets is a table of days and latitudes. It is
judged as the task judges: by the mean of the last 60 of 90 days that run free, from states of the
record's second year, which training does not start from, half a year apart. The same episodes
with a sea that is 4 K warmer give the response.
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
from fedrain.io import alone_in, write_json
from fedrain.reading import read_json

HERE = Path(__file__).parent.parent
RESULTS, RUNS = HERE / "results" / "studies" / "gcm_earth", HERE / "runs" / "gcm_earth"
SEEDS = (0, 1, 2)
EPISODES = 6
#: Test episodes, their starts evenly through the year.
STARTS = 2
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
        "label": f"agents, seed {seed}",
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
def _episode() -> Any:
    """Means over the judged days of an episode: of what is seen, and of the target."""
    environment = earth()
    model = environment.model
    length, over = environment.episode_length, environment.judged_over

    @jax.jit
    def episode(state: Any, table: Any, static: Any, forcing: Any) -> Any:
        def day(carry: Any, number: Any) -> Any:
            state, seen, known = carry
            own = {s: every[state["day"] % DAYS] for s, every in table.items()}
            state = model.step(state, {**static, **own}, forcing)
            share = (number >= length - over) / over

            def add(sums: Any, values: Any) -> Any:
                return {n: sums[n] + share * values[n] for n in sums}

            return (
                state,
                add(seen, model.observe(state)),
                add(known, model.target_at(state)),
            ), None

        shown = model.observe(state)
        nothing = {n: jnp.zeros_like(shown[n]) for n, _ in environment.judged}
        return jax.lax.scan(day, (state, nothing, nothing), jnp.arange(length))[0][1:]

    return episode


def episodes(table: dict[str, Any], warmer: float = 0.0) -> dict[str, Any]:
    """What the test episodes with these parameters show, and their targets: ``[episode, …]``."""
    environment = earth()
    model, record = environment.model, environment.params.record
    static = model.table.static(len(model.columns))
    full = {k: jnp.asarray(v, jnp.float32) for k, v in static.items()}
    forcing = {one.name: jnp.float32(one.default) for one in model.forcings}
    forcing["sst"] = jnp.float32(warmer)
    first, end = (int(one) for one in record.test)
    starts = [first + (end - first) * k // STARTS for k in range(STARTS)]
    # The defaults are a table too, so that one program serves all.
    own = {row.symbol: np.broadcast_to(static[row.symbol], (DAYS, len(model.columns)))
           for row in environment.learnt} | table  # fmt: skip
    own = {s: jnp.asarray(v, jnp.float32) for s, v in own.items()}
    every = [jax.device_get(_episode()(record.at(start), own, full, forcing)) for start in starts]
    seen, known = (jax.tree.map(lambda *parts: np.stack(parts).astype(float), *which)
                   for which in zip(*every, strict=True))  # fmt: skip
    return {"seen": seen, "known": known}


def judge(table: dict[str, Any]) -> dict[str, Any]:
    """Errors, energy budget, and the response to a warmer sea."""
    columns = earth().model.columns
    usual, warm = episodes(table), episodes(table, WARMER)

    def globe(shown: dict[str, Any], name: str) -> float:
        return float(columns.mean(shown[name].mean(0)))

    errors, bias = {}, {}
    for name, _ in earth().judged:
        apart = usual["seen"][name] - usual["known"][name]
        squares = (apart**2).reshape(STARTS, len(columns), -1).mean((0, 2))
        errors[name] = round(float(np.sqrt(columns.mean(squares))), 4)
        bias[name] = np.round(apart, 3).tolist()
    leaves, enters = (globe(usual["seen"], name) for name in FLUXES)
    more, light = (globe(warm["seen"], name) for name in FLUXES)
    longwave, shortwave = (more - leaves) / WARMER, (light - enters) / WARMER
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
    """What was stored of a policy, on every day of the year."""
    return {s: np.repeat(np.array(v), 5, axis=0)[:DAYS] for s, v in stored.items()}


def judge_all() -> None:
    """The defaults, and every seed that has not been judged yet."""
    if not (path := RESULTS / "static.json").exists():
        write_json(path, {"label": "defaults", "days": 0, **judge({})})
    for path in sorted(RESULTS.glob("*.json")):
        held = read_json(path)
        if "errors" not in held:
            write_json(path, {**held, **judge(in_days(held["parameters"]))})
            print(f"{path.name}: judged", flush=True)


def main(arguments: list[str]) -> None:
    """Run one part of the study."""
    what = (arguments or ["judge"])[0]
    if what == "judge":
        judge_all()
        return
    for seed in map(int, arguments[1:]) if len(arguments) > 1 else SEEDS:
        if not (RESULTS / f"{seed}.json").exists():
            train(seed)
            print(f"{seed}.json: written", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
