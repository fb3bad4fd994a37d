"""A parameterisation or a thermostat: the studies of ``ebm-twin`` behind ``docs/response.md``.

    python studies/parameterisation.py train [PATTERN ...] [--seeds N]  # each cell, seed by seed
    python studies/parameterisation.py tables               # from the stored results
    python studies/parameterisation.py figure

Every cell is a small file in ``results/studies/parameterisation``, written after each seed: what is
there is not trained again. Reported on the seeds from 0; everything was chosen on seeds from 100.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from functools import cache
from typing import Any

import jax.numpy as jnp
import numpy as np
from cells import RESULTS, Result, markdown, stored, trained
from parameterisation_figure import IMAGE, parameterisation_figure, warmings

from fedrain.baselines.response import DOUBLING, Response, hold_actions, respond
from fedrain.envs import Environment, make
from fedrain.experiment import Configuration, configure
from fedrain.experiment.evaluation import evaluate
from fedrain.experiment.held import hold
from fedrain.experiment.held_out import held_out_of
from fedrain.experiment.resolve import from_dict
from fedrain.experiment.response import policy_responses
from fedrain.experiment.trainer import Trainer
from fedrain.io import write_json
from fedrain.plotting import save_for_pages
from fedrain.reading import read_json

FOLDER = "parameterisation"
TEMPERATURE = "surface_temperature"
#: W m⁻² of outgoing longwave radiation: CO₂ doubled, doubled twice, and about halved.
FORCINGS = (DOUBLING, 2 * DOUBLING, 4.0)
#: Steps in which the present climate is played, and over whose mean at the end it is judged.
PRESENT, JUDGED = 1000, 500

AT_ONCE = 3  # seeds that are trained side by side, and stored
HEADLINE = "default"  # the task as it is, with the preset
SHORT = 40  # episodes where many ways to learn are compared
#: Steps between analyses (0: never), and discounts.
EVERY, DISCOUNTS = (1, 2, 5, 10, 25, 50, 0), (0.0, 0.5, 0.75, 0.9)
ENDS = (1, 5, 0)
#: What federation means, among one agent for each of 24 latitudes, and what they are called.
FEDERATIONS = {
    "shared": ({"sharing": "shared"}, "one shared policy"),
    "fed05": ({"sync_every": 5, "sharing": "all"}, "averaged every 5 episodes"),
    "nofed": ({"sharing": "all"}, "never averaged"),
}
LATITUDES, BATCH = 24, 8
#: Episodes in full, and of a tenth of the steps with ten updates at each.
DATA: dict[str, dict[str, Any]] = {
    "all": {"episodes": SHORT},
    "tenth": {
        "episodes": SHORT,
        "episode_length": 20,
        "settings": {"updates": 10, "warmup_steps": 100},
    },
}
BANDS = ("90°–60°", "60°–30°", "30°–0°")


@dataclass(frozen=True)
class Cell:
    """One way to learn the albedo: what is changed in the task as it is, and how many seeds."""

    options: dict[str, Any] = field(default_factory=dict)
    seeds: int = 3

    def configuration(self, seeds: list[int]) -> Configuration:
        """Of these seeds."""
        whole = {"sync_every": 0, "sharing": "shared", **self.options}
        return configure(env="ebm-twin", preset="forecast", seeds=seeds, **whole)


def _cells() -> dict[str, Cell]:
    cells = {HEADLINE: Cell({"analysis_every": 1}, 10)}
    for k in EVERY:
        options: dict[str, Any] = {"analysis_every": k, "episodes": SHORT}
        cells[f"every-{k}"] = Cell(options, 10 if k in (1, 0) else 5)
        for discount in DISCOUNTS[1:] if k in ENDS else ():
            own = {**options, "settings": {"discount": discount}}
            cells[f"every-{k}-discount-{discount:g}"] = Cell(own, 2)
    for data, seen in DATA.items():
        for scheme, (sharing, _) in FEDERATIONS.items():
            own = {"batch_size": BATCH * (LATITUDES if scheme == "shared" else 1)}
            cells[f"{scheme}-{data}"] = Cell(
                {"agents": LATITUDES, "latitudes": LATITUDES, **sharing, **seen,
                 "settings": {**own, **seen.get("settings", {})}}
            )  # fmt: skip
    return cells


CELLS = _cells()


# ------------------------------------------------------------------- training


def train(patterns: list[str], most: int | None = None) -> None:
    """Every seed that is missing of the cells that match, or of the first ``most`` seeds."""
    for name, cell in CELLS.items():
        if patterns and not any(fnmatch(name, one) for one in patterns):
            continue
        path = RESULTS / FOLDER / f"{name}.json"
        held = read_json(path) if path.exists() else {"name": name, "seeds": {}}
        if held["seeds"]:
            kept = from_dict({**held["configuration"], "seeds": [0]})
            if kept.identity != cell.configuration([0]).identity:
                held = {"name": name, "seeds": {}}  # of other settings
        seeds = range(min(cell.seeds, most or cell.seeds))
        missing = [seed for seed in seeds if str(seed) not in held["seeds"]]
        for i in range(0, len(missing), AT_ONCE):
            configuration = cell.configuration(missing[i : i + AT_ONCE])
            trainer = trained(configuration)
            truth, results = judged(trainer)
            if name == HEADLINE:
                add_held_out(trainer, results)
            held |= {"configuration": {**configuration.as_dict(), "seeds": []}, "truth": truth}
            held["seeds"] |= results
            write_json(path, held)
            for seed, one in results.items():
                told = (f"{f}: {x['warming']:+.2f}" for f, x in one["response"].items())
                print(f"{name}, seed {seed}: {'  '.join(told)}", flush=True)
    if not patterns or "constants" in patterns:
        write_json(RESULTS / FOLDER / "constants.json", constants())


def judged(trainer: Trainer) -> tuple[Result, dict[str, Result]]:
    """How the truth answers; and of each seed how its climate answers, and how that one is."""
    configuration, environment = trainer.configuration, trainer.environment
    actors, seeds = trainer.actors(), configuration.seeds
    # How a policy acts depends on nothing that differs here: what is compiled for one serves all.
    algorithm = CELLS[HEADLINE].configuration([0]).make_algorithm()
    found = policy_responses(environment, algorithm, actors, seeds, FORCINGS)
    now = present(len(environment.model.columns))
    skills = evaluate(now, algorithm, actors, seeds).skill(now)
    core_seconds = float(trainer.history["core_seconds"].sum()) / len(seeds)
    results = {
        str(seed): {
            "response": _plain(found[i]["model"]),
            "present": skills[i].globe,
            "bands": list(skills[i].bands),
            "core_seconds": core_seconds,
        }
        for i, seed in enumerate(seeds)
    }
    return _plain(found[0]["truth"]), results


def add_held_out(trainer: Trainer, results: dict[str, Result]) -> None:
    """Errors in episodes that the task keeps from training, and in such as it trains on."""
    configuration = trainer.configuration
    held = held_out_of(configuration, configuration.seeds, trainer.actors(), "test")
    for i, one in enumerate(results.values()):
        one["held_out"] = {
            split: {
                "policy": held[split]["per_seed"][TEMPERATURE][i],
                "static": held[split]["static"][TEMPERATURE],  # mean of the seeds trained with it
            }
            for split in ("train", "test")
        }


@cache
def present(latitudes: int) -> Environment:
    """The climate as it is, played free and long beside the truth, under the same weather."""
    return make(
        "ebm-twin", agents=latitudes, latitudes=latitudes, start=0.0, forcing={"longwave": 0.0},
        episode_length=PRESENT, judged_over=JUDGED,
    )  # fmt: skip


def constants() -> Result:
    """The truth, and the model with the albedo that the truth has at present, held there."""
    environment = present(96)
    truth = environment.truth
    assert truth is not None
    albedo = truth.albedo(jnp.asarray(truth.target[TEMPERATURE]), {})  # type: ignore[attr-defined]
    actions = np.asarray(albedo, np.float32)[:, None]
    found = respond(environment, hold_actions, jnp.asarray(actions), FORCINGS)
    held = {"constant": actions, "static": environment.static_actions}
    return {
        "name": "constants",
        "truth": _plain(found["truth"]),
        "response": _plain(found["model"]),
        "present": {
            name: float(hold(environment, values, (0,)).errors(environment)[TEMPERATURE][0])
            for name, values in held.items()
        },
    }


def _plain(found: dict[float, Response]) -> dict[str, dict[str, float]]:
    return {f"{forcing:+g}": one.as_dict() for forcing, one in found.items()}


# ------------------------------------------------------------------- what is shown of it


def values_of(result: Result, forcing: float, what: str = "warming") -> np.ndarray:
    """Of every seed of a cell, over the truth's."""
    name = f"{forcing:+g}"
    seeds = [one["response"][name][what] for one in result["seeds"].values()]
    return np.array(seeds) / result["truth"][name][what]


def headline_table(found: dict[str, Result]) -> str:
    """The task as it is, over the seeds: warming and polar amplification under each forcing."""
    agents, fixed = found[HEADLINE], found["constants"]
    rows = []
    for forcing in FORCINGS:
        name = f"{forcing:+g}"
        seeds = [one["response"][name] for one in agents["seeds"].values()]
        warming = np.array([one["warming"] for one in seeds])
        polar = np.array([one["polar_amplification"] for one in seeds])
        truth, held = agents["truth"][name], fixed["response"][name]
        rows.append([
            _signed(forcing), _signed(truth["warming"], 2), _signed(held["warming"], 2),
            _spread(warming, 2, signed=True),
            f"{_signed(100 * (warming.mean() / truth['warming'] - 1), 1)} %",
            f"{truth['polar_amplification']:.2f}", _spread(polar, 2),
        ])  # fmt: skip
    head = ["forcing, W m⁻²", "truth, K", "constants, K", "learnt, K", "off by",
            "polar amplification: truth", "learnt"]  # fmt: skip
    return markdown(rows, head)


def present_line(found: dict[str, Result]) -> str:
    """The error in the present climate of the agents and of constants."""
    agents = np.array([one["present"] for one in found[HEADLINE]["seeds"].values()])
    fixed = found["constants"]["present"]
    return f"{_spread(agents, 2)} K, that of constants {fixed['constant']:.2f} K"


def sweep_table(found: dict[str, Result]) -> str:
    """Warming for a doubling of CO₂ by the time between analyses, and by the discount."""
    rows = []
    for k in EVERY:
        row = [f"{k}" if k else "never"]
        for discount in DISCOUNTS:
            name = f"every-{k}" + (f"-discount-{discount:g}" if discount else "")
            row.append(_spread(warmings(found[name]), 2) if name in found else "–")
        rows.append(row)
    head = ["steps between analyses", *(f"discount {d:g}" for d in DISCOUNTS)]
    return markdown(rows, head)


def federation_table(found: dict[str, Result]) -> str:
    """Who gains from federation: with all of the data, and with a tenth."""
    rows = []
    for data in DATA:
        for scheme, (_, label) in FEDERATIONS.items():
            if (one := found.get(f"{scheme}-{data}")) is None:
                continue
            bands = np.array([seed["bands"] for seed in one["seeds"].values()])
            both = np.sqrt((bands**2 + bands[:, ::-1] ** 2) / 2)[:, :3].mean(0)
            warming = 100 * values_of(one, DOUBLING)
            rows.append([
                "all" if data == "all" else "a tenth", label, f"{_spread(warming, 0)} %",
                _spread(np.array([seed["present"] for seed in one["seeds"].values()]), 2),
                *(f"{error:.2f}" for error in both),
                f"{np.mean([seed['core_seconds'] for seed in one['seeds'].values()]):.0f}",
            ])  # fmt: skip
    head = ["data", "24 agents", "warming, of the truth's", "present climate, K",
            *BANDS, "core-seconds"]  # fmt: skip
    return markdown(rows, head, words=2)


def gap_table(found: dict[str, Result]) -> str:
    """Errors in episodes that were trained on, and in those kept from training."""
    rows = []
    for who, label in (("static", "static"), ("policy", "learnt")):
        seeds = [one["held_out"] for one in found[HEADLINE]["seeds"].values()]
        train, test = (np.array([one[split][who] for one in seeds]) for split in ("train", "test"))
        rows.append([label, _spread(train, 2), _spread(test, 2),
                     _signed((test - train).mean(), 2)])  # fmt: skip
    return markdown(rows, ["temperature, K", "train", "test", "gap"])


def _spread(values: np.ndarray, digits: int, signed: bool = False) -> str:
    def text(value: float) -> str:
        return _signed(value, digits) if signed else f"{value:.{digits}f}"

    low, high = sorted((values.min(), values.max()), key=abs)
    return f"{text(values.mean())} ({text(low)} to {text(high)})"


def _signed(value: float, digits: int | None = None) -> str:
    text = f"{value:+g}" if digits is None else f"{value:+.{digits}f}"
    return text.replace("-", "−")


def tables() -> None:
    """All of them."""
    found = stored(FOLDER)
    print(headline_table(found), f"\nPresent climate: {present_line(found)}\n")
    for table in (sweep_table, federation_table, gap_table):
        print(table(found), "\n")


def figure() -> None:
    """For the documentation."""
    save_for_pages(parameterisation_figure(stored(FOLDER), EVERY, ENDS, DISCOUNTS), IMAGE)
    print(f"figure: {IMAGE}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("train", "tables", "figure"))
    parser.add_argument("patterns", nargs="*", metavar="PATTERN", help="some cells: every-*")
    parser.add_argument("--seeds", type=int, metavar="N", help="the first N seeds of each cell")
    options = parser.parse_args(arguments)
    if options.what == "train":
        train(options.patterns, options.seeds)
    else:
        {"tables": tables, "figure": figure}[options.what]()


if __name__ == "__main__":
    main()
