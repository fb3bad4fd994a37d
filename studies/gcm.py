"""The study of ``gcm-twin``: agents, ensembles and gradients find the parameters of a truth.

    python studies/gcm.py screen            # what each parameter of SPEEDY does
    python studies/gcm.py train [CELL[-SEED] ...]  # seed by seed; resumes what was cut short
    python studies/gcm.py latitudes         # errors by latitude of what was found
    python studies/gcm.py climate [CELL ...]  # longer forecasts, and the climate in a free run
    python studies/gcm.py tables            # of both studies, from the stored results, into docs
    python studies/gcm.py figures           # likewise

Every seed of a cell that is finished is a small file in results/studies/gcm; what is there is not
computed again. Runs in progress are in runs/gcm.
"""

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import numpy as np
from gcm_skill import (
    AHEAD,
    CURVE_DAYS,
    FREE,
    by_latitude,
    climate,
    climate_errors,
    forecast_errors,
    in_full,
    twin,
)

from fedrain.climate.models.gcm_parameters import TWIN, twin_truth
from fedrain.experiment import configure
from fedrain.experiment.evaluation import policy_actions
from fedrain.experiment.training import Episode, Session
from fedrain.io import alone_in, write_json
from fedrain.reading import read_json

HERE = Path(__file__).parent.parent
RESULTS, RUNS = HERE / "results" / "studies" / "gcm", HERE / "runs" / "gcm"
SEEDS = (0, 1, 2)
DAYS = 900
#: Points of a learning curve, evenly over the days.
POINTS = 6
Found = tuple[int, dict[str, np.ndarray]]


@dataclass(frozen=True)
class Cell:
    """One way to find parameters: options of `fedrain.train`, or a function of seed and days."""

    label: str
    options: dict[str, Any] = field(default_factory=dict)
    search: Callable[[int, int], Iterator[Found]] | None = None
    days: int = DAYS


def _options(**more: Any) -> dict[str, Any]:
    # Chosen on the seeds 100 to 102 of an emulator of the day's forecast. A day of the model costs
    # far more than an update of such networks. Steps and exploration are shorter than the preset's:
    # with those of the preset actors run to a bound while their critics are young, and stay there.
    settings = {"warmup_steps": 200, "updates": 8, "critics": 4, "batch_size": 256,
                "learning_rate": 0.001, "exploration_noise": 0.5}  # fmt: skip
    settings |= more.pop("settings", {})
    return {"env": "gcm-twin", "algo": "ddpg", "preset": "forecast", "settings": settings, **more}


def _first(**more: Any) -> dict[str, Any]:
    # Chosen on seed 100.
    settings = {"warmup_steps": 100, "updates": 8, "critics": 2, "batch_size": 128}
    settings |= more.pop("settings", {})
    return {"env": "gcm-twin", "algo": "ddpg", "preset": "forecast", "settings": settings, **more}


def _enki(seed: int, days: int) -> Iterator[Found]:
    from gcm_rivals import enki_constants

    return enki_constants(climate(), seed, days)


def _enki_forecast(seed: int, days: int) -> Iterator[Found]:
    from gcm_rivals import enki_constants

    return enki_constants(twin(), seed, days, forecasts=True)


def _gradient(seed: int, days: int) -> Iterator[Found]:
    from gcm_rivals import gradient_constants

    return gradient_constants(twin(), seed, days)


#: With a memory each, agents have one transition a day: batches of 16 for each of 32.
OWN = {"batch_size": 16}
#: Days of what was tried first, with steps and exploration of the preset.
FIRST = 450
CELLS = {
    "shared": Cell("one shared policy", _options(sharing="shared")),
    "fed05": Cell("32 agents, averaged every 5 episodes", _options(sync_every=5, settings=OWN)),
    "never": Cell("32 agents, never averaged", _options(sync_every=0, settings=OWN)),
    "enki-forecast": Cell("EnKI, forecasts of a day", search=_enki_forecast),
    "gradient": Cell("gradient, forecasts of a day", search=_gradient),
    "enki": Cell("EnKI, free runs", search=_enki),
    "free": Cell(
        "one shared policy, free runs",
        _options(sharing="shared", **FREE) | {"preset": "fedrain", "settings": {"updates": 8}},
    ),
    "analysis-5": Cell(
        "one shared policy, analyses every 5 days", _options(sharing="shared", analysis_every=5)
    ),
    "bands-fed05": Cell("6 bands, averaged every 5 episodes", _options(agents=6, sync_every=5)),
    "shared-450": Cell("one shared policy", _first(sharing="shared"), days=FIRST),
    "fed05-450": Cell(
        "32 agents, averaged every 5 episodes", _first(sync_every=5, settings=OWN), days=FIRST
    ),
    "never-450": Cell("32 agents, never averaged", _first(sync_every=0, settings=OWN), days=FIRST),
    "enki-forecast-450": Cell("EnKI, forecasts of a day", search=_enki_forecast, days=FIRST),
    "gradient-450": Cell("gradient, forecasts of a day", search=_gradient, days=FIRST),
}


def learn(name: str, seed: int) -> Iterator[Found]:
    """Train one seed of a cell; the parameters that its policies set, now and then and at the end.

    They see where they are and nothing that changes: what they set is known without simulation.
    """
    cell, folder = CELLS[name], RUNS / f"{name}-{seed}"
    episodes = cell.days // twin().episode_length
    experiment = configure(seeds=[seed], episodes=episodes, **cell.options)
    environment, algorithm = experiment.make_environment(), experiment.make_algorithm()
    _, seen = environment.reset(params=environment.params)

    @jax.jit
    def parameters(actors: Any) -> Any:
        keys = jax.random.split(jax.random.key(0), len(environment.regions))
        action = policy_actions(environment, algorithm, actors, seen, keys, jax.numpy.int32(0))
        return environment.own_parameters(action)

    def now() -> dict[str, np.ndarray]:
        actors = jax.tree.map(lambda leaf: leaf[0], session.trainer.actors())
        return {s: np.asarray(parameters(actors)[s], float) for s in TWIN}

    points = {round(k * episodes / POINTS) for k in range(1, POINTS + 1)}
    kept = folder / "points.json"
    found: dict[str, Any] = read_json(kept) if kept.exists() else {}

    def tell(one: Episode) -> None:
        if one.episode in points:
            found[str(one.episode)] = {s: v.tolist() for s, v in now().items()}
            write_json(kept, found)

    if points - set(map(int, found)):
        say = lambda text: print(text, file=sys.stderr)  # noqa: E731
        session = Session(experiment, folder, say, tell, False)
        with alone_in(folder):
            session.run()
    for episode in sorted(map(int, found)):
        values = {s: np.array(v) for s, v in found[str(episode)].items()}
        yield episode * environment.episode_length, values


def distance(values: dict[str, np.ndarray]) -> dict[str, float]:
    """Root mean square distance from the truth over that of the default."""
    model = twin().model
    known = twin_truth(model.columns)

    def apart(own: Any, symbol: str) -> float:
        return float(np.sqrt(model.columns.mean((np.asarray(own) - known[symbol]) ** 2)))

    return {s: round(apart(values[s], s) / apart(model.table[s].default, s), 4) for s in TWIN}


def find(name: str, seed: int) -> dict[str, Any]:
    """Train or search one seed of a cell, and judge what it found."""
    cell, resumed = CELLS[name], (RUNS / f"{name}-{seed}").exists()
    begin, core = time.perf_counter(), time.process_time()
    found = list(cell.search(seed, cell.days) if cell.search else learn(name, seed))
    seconds, core_seconds = time.perf_counter() - begin, time.process_time() - core
    curve = [
        {"days": days, "distance": distance(values),
         **forecast_errors(values, (1,), CURVE_DAYS)["forecast-1"]}
        for days, values in found
    ]  # fmt: skip
    days, values = found[-1]
    return {
        "cell": name,
        "label": cell.label,
        "seed": seed,
        "days": days,
        # Of a run that was cut short, what it took in all is not known.
        "seconds": None if resumed else round(seconds, 1),
        "core_seconds": None if resumed else round(core_seconds, 1),
        "parameters": rounded(values),
        "curve": curve,
        **forecast_errors(values, (1,)),
    }


def rounded(values: dict[str, Any]) -> dict[str, Any]:
    """The learnt parameters, as they are stored."""
    return {s: np.round(np.asarray(values[s], float), 5).tolist() for s in TWIN}


def train(names: list[str]) -> None:
    """Every seed that has no result yet, seed by seed so that all cells have one early."""
    for seed in SEEDS:
        for name in CELLS:
            path = RESULTS / f"{name}-{seed}.json"
            if not path.exists() and (not names or {name, path.stem} & set(names)):
                write_json(path, find(name, seed))
                print(f"{path.name}: written", flush=True)


def free_runs(names: list[str]) -> None:
    """Longer forecasts and the climate of each result that has none, and of defaults and truth."""
    for kind, values in (("static", {}), ("truth", twin_truth(twin().model.columns))):
        if not (path := RESULTS / f"{kind}.json").exists():
            full = in_full(values)
            write_json(path, {"cell": kind, "label": kind, "seed": 0, "days": 0,
                              "parameters": rounded(full), **forecast_errors(full),
                              **climate_errors(full)})  # fmt: skip
    for path in sorted(RESULTS.glob("*.json")):
        held = read_json(path)
        if held.get("cell") in (names or CELLS) and "climate" not in held:
            values = {s: np.array(v) for s, v in held["parameters"].items()}
            more = {**forecast_errors(values, AHEAD), **climate_errors(values)}
            write_json(path, {**held, **more})
            print(f"{path.name}: climate added", flush=True)


def latitudes() -> None:
    """Errors by latitude of every result that has none yet."""
    for path in sorted(RESULTS.glob("*.json")):
        held = read_json(path)
        if "cell" in held and "by_latitude" not in held:
            values = {s: np.array(v) for s, v in held["parameters"].items()}
            write_json(path, {**held, "by_latitude": by_latitude(values)})


def main(arguments: list[str]) -> None:
    """Run one part of the study."""
    what, names = (arguments or ["tables"])[0], arguments[1:]
    if what == "screen":
        from gcm_screening import screen

        write_json(RESULTS / "screening.json", screen())
    elif what in ("train", "climate"):
        {"train": train, "climate": free_runs}[what](names)
    elif what == "latitudes":
        latitudes()
    else:
        import gcm_figures
        import gcm_tables

        {"tables": gcm_tables.write, "figures": gcm_figures.make}[what]()


if __name__ == "__main__":
    main(sys.argv[1:])
