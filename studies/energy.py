"""A closed energy budget: the study of ``ebm-energy`` behind ``docs/response.md``.

Each result is stored in ``results/studies/energy`` as soon as it is there: a command that is
started again computes only what is missing. Usage:

    python studies/energy.py agents|baselines [--only PATTERN]
    python studies/energy.py tables|figure

``tables`` and ``figure`` need the stored results alone.
"""

import argparse
import time
from collections.abc import Callable
from fnmatch import fnmatch
from typing import Any

import jax.numpy as jnp
import numpy as np
from cells import RESULTS, Result, kept, markdown, stored, trained

from fedrain.baselines import Baseline, constant, enki, static
from fedrain.baselines.response import DOUBLING, hold_actions, respond
from fedrain.climate import Physics
from fedrain.experiment import Configuration, configure
from fedrain.experiment.evaluation import evaluate
from fedrain.experiment.response import policy_responses
from fedrain.experiment.trainer import Trainer
from fedrain.plotting import GREY, Style, light_grid, new_figure, save_for_pages, style, threshold

FOLDER = "energy"
FIGURE = RESULTS.parent.parent / "docs" / "images" / "energy_front.png"
TEMPERATURE, LONGWAVE, SHORTWAVE = (
    "surface_temperature", "outgoing_longwave", "absorbed_shortwave",
)  # fmt: skip
#: The set-up that a user gets: the task's defaults with the preset made for it.
OWN = {"env": "ebm-energy", "preset": "constants", "episodes": 50}
SHARED = {**OWN, "sync_every": 0, "sharing": "shared"}
#: Agents: what each cell is called in the table, its experiment, and how many seeds.
AGENTS: dict[str, tuple[str, dict[str, Any], int]] = {
    "agents": ("agents, one shared policy", SHARED, 10),
}
#: Non-learning rivals: name in the table, what finds them, what is different in the task, seeds.
RIVALS: dict[str, tuple[str, str, dict[str, Any], int]] = {
    "static": ("static values", "static", {}, 1),
    "gradient": ("gradient", "constant", {}, 1),
    "gradient-smooth-100": ("gradient, smooth 100", "constant", {"smooth": 100}, 1),
    "gradient-smooth-1000": ("gradient, smooth 1000", "constant", {"smooth": 1000}, 1),
    "enki": ("ensemble Kalman inversion", "enki", {}, 1),
}
#: Of logarithmic axes.
TICKS = (0.2, 0.5, 1, 2, 5, 10, 20)
#: Seeds of agents that are trained, and stored, together.
AT_ONCE = 2
#: Searches of a gradient end long before; this keeps the study short.
ITERATIONS = 500


def agents(only: str) -> None:
    """Train the cells of agents that are missing."""
    for name, (_, given, seeds) in AGENTS.items():
        for first in range(0, seeds, AT_ONCE):
            some = list(range(first, min(first + AT_ONCE, seeds)))
            stem = f"{name}-seeds-{some[0]}-{some[-1]}"
            if fnmatch(stem, only):
                kept(FOLDER, stem, configure(**given, seeds=some), played_out)


def baselines(only: str) -> None:
    """Find the constants that are missing."""
    for name, (_, how, given, seeds) in RIVALS.items():
        if fnmatch(name, only):
            kept(FOLDER, name, configure(**OWN, seeds=seeds, **given), FINDERS[how])


def played_out(cell: Configuration) -> Result:
    """Agents trained to the end, and what is measured of them."""
    return measured(trained(cell))


def measured(trainer: Trainer) -> Result:
    """Each seed's errors, physics and response, running free."""
    cell, environment, actors = trainer.configuration, trainer.environment, trainer.actors()
    found = evaluate(environment, trainer.algorithm, actors, cell.seeds)
    answers = policy_responses(environment, trainer.algorithm, actors, cell.seeds)
    last = environment.last_judged
    every = [
        {
            **_numbers({n: float(v[i]) for n, v in found.errors(environment).items()}, physics),
            "warming": answers[i]["model"][DOUBLING].warming,
            "parameters": {
                s: np.round(np.asarray(v[i, last], float), 4).tolist()
                for s, v in found.parameters.items()
            },
        }
        for i, physics in enumerate(found.physics(environment))
    ]
    skills = found.skill(environment)
    return {
        "task": task_of(cell),
        "every": every,
        "bands": [list(skill.bands) for skill in skills],
        "global": [skill.globe for skill in skills],
        "seconds": float(trainer.history["seconds"].sum()),
        "core_seconds": float(trainer.history["core_seconds"].sum()),
    }


def task_of(cell: Configuration) -> dict[str, Any]:
    """What the task is, of which a configuration has only what is not the task's default."""
    environment = cell.make_environment()
    analyses = environment.params.analysis_every
    return {
        "judge": dict(environment.judged),
        "around": dict(environment.around),
        "analysis_every": 0 if analyses is None else int(analyses),
        "episode_length": environment.episode_length,
        "bounds": {row.symbol: [row.low, row.high] for row in environment.learnt},
    }


def finder(how: Callable[..., Baseline], **options: Any) -> Callable[[Configuration], Result]:
    """What a baseline finds for every seed."""

    def find(cell: Configuration) -> Result:
        environment, core = cell.make_environment(), time.process_time()
        results = [how(environment, **options, **_seed(how, seed)) for seed in cell.seeds]
        core = time.process_time() - core
        every = []
        for one in results:
            held = jnp.asarray(one.actions[0], jnp.float32)
            answer = respond(environment, hold_actions, held)["model"][DOUBLING]
            every.append({**_numbers(one.errors, one.physics), "warming": answer.warming,
                          "model_runs": one.model_runs})  # fmt: skip
        return {
            "task": task_of(cell),
            "every": every,
            "bands": [list(one.skill.bands) for one in results],
            "global": [one.skill.globe for one in results],
            "seconds": sum(one.seconds for one in results),
            "core_seconds": core,
        }

    return find


def _seed(how: Callable[..., Baseline], seed: int) -> dict[str, int]:
    return {"seed": seed} if how is enki else {}


def _numbers(errors: dict[str, float], physics: Physics) -> dict[str, Any]:
    known = physics.as_dict()
    return {"errors": errors, **{n: known[n] for n in ("above_black_body", "roughness",
            "roughness_of", "at_bounds")}}  # fmt: skip


FINDERS = {
    "static": finder(static),
    "constant": finder(constant, iterations=ITERATIONS),
    "enki": finder(enki),
}


def _names() -> dict[str, str]:
    labels = {name: one[0] for name, one in RIVALS.items()}
    return labels | {name: one[0] for name, one in AGENTS.items()}


def results() -> dict[str, Result]:
    """What is stored, in the order of the table; the seeds of a cell together."""
    found: dict[str, Result] = {}
    every = stored(FOLDER)
    for name in _names():
        parts = [one for stem, one in every.items() if stem.split("-seeds-")[0] == name]
        if parts:
            found[name] = {**parts[0], "every": [one for part in parts for one in part["every"]]}
            found[name]["core_seconds"] = sum(part["core_seconds"] for part in parts)
            found[name]["seeds"] = [s for part in parts for s in part["configuration"]["seeds"]]
    return found


def column(result: Result, name: str) -> np.ndarray:
    """A number of every seed of a result; ``budget`` is the root mean square of both fluxes."""
    every = result["every"]
    if name == "budget":
        return np.sqrt((column(result, LONGWAVE) ** 2 + column(result, SHORTWAVE) ** 2) / 2)
    known = [one["errors"] if name in one["errors"] else one for one in every]
    return np.array([one[name] for one in known], float)


def table() -> str:
    """One row for each: mean over the seeds ± population spread, and the worst seed."""
    rows, found = [], results()
    for name, label in _names().items():
        if name not in found:
            continue
        one = found[name]
        row = [label, str(len(one["every"]))]
        row += [spread(column(one, n), 2) for n in (TEMPERATURE, LONGWAVE, SHORTWAVE)]
        row.append(f"{column(one, 'above_black_body').max():.0f}")
        row.append(spread(100 * column(one, "roughness"), 1))
        row.append(spread(column(one, "warming"), 2))
        row.append(f"{one['core_seconds'] / len(one['every']):.0f}")
        rows.append(row)
    header = ["", "seeds", "T (K)", "longwave (W m⁻²)", "shortwave (W m⁻²)",
              "columns above a black body, worst seed", "roughness (% of the range)",
              "warming for 2 × CO₂ (K)", "core-seconds a seed"]  # fmt: skip
    return markdown(rows, header)


def spread(values: np.ndarray, digits: int) -> str:
    """Mean and spread over the seeds, and the worst of them."""
    if len(values) == 1:
        return f"{values[0]:.{digits}f}"
    return (
        f"{values.mean():.{digits}f} ± {values.std():.{digits}f} (worst {values.max():.{digits}f})"
    )


def figure() -> None:
    """Error of the temperature against that of the budget, and against roughness."""
    found, sheet = results(), new_figure(8.0, 4.0)
    panels = sheet.subplots(1, 2, sharey=True)
    kinds: dict[str, Style] = {
        "static": style("static"), "gradient": style("constant"), "enki": style("enki"),
        "agents": style("model"),
    }  # fmt: skip
    labels = {"gradient": "constants by gradient", "agents": "agents"}
    for name in _names():
        if name not in found:
            continue
        kind = name.split("-")[0]
        look = kinds[kind]
        for axes, across in zip(panels, ("budget", "roughness"), strict=True):
            x = column(found[name], across) * (100 if across == "roughness" else 1)
            label = labels.get(kind, look.label) if axes is panels[0] and name == kind else None
            axes.plot(x, column(found[name], TEMPERATURE), look.marker, color=look.colour,
                      markersize=5, alpha=0.75, linestyle="none", label=label)  # fmt: skip
    for axes, bar, text in zip(
        panels, (4.0, 5.0), ("Error of both fluxes (rms, W m⁻²)", "Roughness (% of the range)"),
        strict=True,
    ):  # fmt: skip
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_yticks(TICKS[:-2], [f"{tick:g}" for tick in TICKS[:-2]])
        axes.set_xticks(TICKS, [f"{tick:g}" for tick in TICKS])
        axes.minorticks_off()
        axes.set_xlabel(text)
        axes.axvline(bar, color=GREY, linestyle=":", linewidth=1.0)
        threshold(axes, 0.8, "what was asked for" if axes is panels[0] else "")
        light_grid(axes)
    panels[0].set_ylabel("Error of the surface temperature (rms, K)")
    panels[0].legend(fontsize="small")
    save_for_pages(sheet, FIGURE)
    print(f"figure: {FIGURE}")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("agents", "baselines", "tables", "figure"))
    parser.add_argument("--only", default="*", metavar="PATTERN", help="some cells of it")
    options = parser.parse_args()
    if options.what in ("agents", "baselines"):
        {"agents": agents, "baselines": baselines}[options.what](options.only)
    elif options.what == "tables":
        print(table())
    else:
        figure()


if __name__ == "__main__":
    main()
