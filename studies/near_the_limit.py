"""How near to the limit: the studies behind ``docs/near_the_limit.md``, each one command.

Each result is stored in ``results/studies`` as soon as it is there: a command that is started again
trains only what is missing, and then prints its table. Usage:

    python studies/near_the_limit.py skill|columns|time|ablation|transfer
                                        [--seeds N] [--only PATTERN]
"""

import argparse
from dataclasses import asdict
from fnmatch import filter as fnfilter
from fnmatch import fnmatch
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from cells import RESULTS, Result, kept, markdown, skill_of, stored, trained
from columns_figure import SCHEMES as LOOKS
from columns_figure import columns_figure

from fedrain.agents import DDPG, Algorithm, Schedule, Transforms
from fedrain.agents.presets import hyperparameters_of
from fedrain.baselines import static
from fedrain.climate import BAND_NAMES
from fedrain.envs import make
from fedrain.experiment import Configuration, configure
from fedrain.experiment.evaluation import evaluate
from fedrain.experiment.trainer import Trainer
from fedrain.paper.published import published_cells
from fedrain.plotting import save_for_pages
from fedrain.tables import GAP

AGENTS = (1, 2, 6, 12, 24, 48, 96)
SCHEMES = {"never": (0, "all"), "5": (5, "all"), "10": (10, "all"), "shared": (0, "shared")}
#: Options without effect: regions of 16 latitudes or fewer have no more than the preset's 24 knots,
#: and one agent need not be told where it is.
USELESS = {"a6-fed05": {"knots"}, "a24-shared": {"knots"}, "v1": {"place"}}
#: Steps per second of the reference implementation, and cores that wait for each other meanwhile.
PUBLISHED_RATE, PUBLISHED_CORES, STEPS = 18, 6 * 3, 20_000


def skill(seeds: int, only: str) -> None:
    """The preset ``fedrain`` on seeds that it was not chosen on."""
    cells = [
        configure(env=env, algo=algo, seeds=seeds)
        for env in ("ebm-v3", "ebm-v1", "ebm-v2")
        for algo in ("ddpg", "td3", "tqc")
    ]
    cells += [configure(agents=n, sync_every=0, sharing="shared", seeds=seeds) for n in (24, 96)]
    rows = []
    for cell in [cell for cell in cells if fnmatch(cell.name, only)]:
        found = kept("skill", cell.name, cell, lambda c: skill_of(trained(c)))
        bands, globe = np.array(found["bands"]), np.array(found["global"])
        spread = zip(bands.mean(0), bands.std(0), strict=True)
        rows.append([cell.name, *(f"{m:.2f} ± {s:.2f}" for m, s in spread),
                     f"{globe.mean():.3f} ± {globe.std():.3f}", f"{globe.max():.3f}"])  # fmt: skip
    print(markdown(rows, ["", *BAND_NAMES, "global", "worst seed"]))


def columns(seeds: int, only: str) -> None:
    """Skill and time against the number of agents, by what federation means.

    One seed where more than six agents have a policy each.
    """
    for agents in AGENTS:
        for name, (sync_every, sharing) in SCHEMES.items():
            if agents == 1 and name != "never":
                continue  # nobody to be averaged with, or to share with
            costly = agents > 6 and sharing != "shared"
            cell = configure(agents=agents, sync_every=sync_every, sharing=sharing,
                             seeds=1 if costly else seeds)  # fmt: skip
            if fnmatch(f"a{agents}-{name}", only):
                kept("columns", f"a{agents}-{name}", cell, lambda c: skill_of(trained(c)))
    found = stored("columns")
    path = RESULTS.parent.parent / "docs" / "images" / "columns.png"
    save_for_pages(columns_figure(found, AGENTS, tuple(SCHEMES)), path)
    print(f"figure: {path}")
    rows = [
        [LOOKS[name][1], *(_skill_and_cost(found.get(f"a{n}-{name}")) for n in AGENTS)]
        for name in SCHEMES
    ]
    print(markdown(rows, ["global, K (core-seconds per seed)", *(f"a{n}" for n in AGENTS)]))


def _skill_and_cost(found: Result | None) -> str:
    if found is None:
        return GAP
    return f"{np.mean(found['global']):.2f} ({found['core_seconds'] / len(found['seeds']):.0f})"


def published_global() -> float:
    """The paper's skill of the globe in v3 a6 fed05 with DDPG: its bands, weighted by area."""
    edges = np.sin(np.deg2rad(np.linspace(-90, 90, 7)))
    bands = np.array(published_cells()["ebm-v3", "a6", "fed05", "ddpg"].mean)
    return float(np.sqrt((np.diff(edges) / 2 * bands**2).sum()))


def time_to_skill(seeds: int, only: str) -> None:
    """Seconds and core-seconds until v3 a6 first has the paper's skill, seed by seed.

    Compilation counts, afresh for every seed; evaluating the skill after each episode does not.
    """
    goal = published_global()
    rows = [["published", f"{goal:.2f}", f"{STEPS}", f"{STEPS / PUBLISHED_RATE:.0f}",
             f"{STEPS / PUBLISHED_RATE * PUBLISHED_CORES:.0f}", "1"]]  # fmt: skip
    for preset in fnfilter(("paper", "fedrain"), only):
        found = []
        for seed in range(seeds):
            cell = configure(preset=preset, seeds=[seed])
            jax.clear_caches()
            found.append(kept("time", f"{preset}-{seed}", cell, lambda c: _until(c, goal)))
        steps, seconds, cores = (
            np.array([f[k] for f in found]) for k in ("steps", "seconds", "core_seconds")
        )
        missed = sum(f["global"][0] > goal for f in found)
        ratio = STEPS / PUBLISHED_RATE * PUBLISHED_CORES / cores.mean()
        rows.append([f"`{preset}`" + (f" ({missed} of {seeds} never)" if missed else ""),
                     f"{np.mean([f['global'][0] for f in found]):.2f}",
                     f"{steps.mean():.0f}", f"{seconds.mean():.0f}", f"{cores.mean():.0f}",
                     f"{ratio:.0f}"])  # fmt: skip
    header = ["v3 a6 fed05 DDPG", "global (K)", "steps", "seconds", "core-seconds", "times fewer"]
    print(markdown(rows, header))


def _until(cell: Configuration, goal: float) -> Result:
    def reached(trainer: Trainer) -> bool:
        # An average that was just made is not yet a policy that an agent has played.
        if cell.averages_after(trainer.episode - 1):
            return False
        return skill_of(trainer)["global"][0] <= goal

    trainer = trained(cell, reached)
    return {**skill_of(trainer), "steps": trainer.episode * trainer.environment.episode_length}


def ablation(seeds: int, only: str) -> None:
    """Each option off, the rest on; and what else differs from the preset ``paper``."""
    cells: dict[str, dict[str, Any]] = {
        "a6-fed05": {},
        "a24-shared": {"agents": 24, "sync_every": 0, "sharing": "shared"},
        "v1": {"env": "ebm-v1"},
    }
    rows = []
    for way, values in _ways().items():
        row = [way]
        for name, given in cells.items():
            stem = f"{name} {way}".replace(" ", "-").replace(",", "").replace("`", "")
            on = _flat(configure(**given).make_algorithm())
            is_off = bool(values) and values == {key: on[key] for key in values}
            if is_off or set(values) & USELESS[name] or not fnmatch(stem, only):
                row.append(GAP)
                continue
            cell = configure(**given, seeds=seeds, settings=values)
            found = kept("ablation", stem, cell, lambda c: skill_of(trained(c)))
            globe = np.array(found["global"])
            row.append(f"{globe.mean():.2f} ± {globe.std():.2f}")
        rows.append(row)
    print(markdown(rows, ["DDPG, global (K)", *cells]))


def _ways() -> dict[str, dict[str, Any]]:
    """Settings that differ from those of the preset ``fedrain``, by what they are called."""
    on, paper = (_flat(configure(preset=name).make_algorithm()) for name in ("fedrain", "paper"))
    off = {**asdict(Transforms()), **asdict(Schedule()), "restraint": DDPG.restraint}
    ways: dict[str, dict[str, Any]] = {"all on": {}}
    ways |= {f"without `{name}`": {name: off[name]} for name in off if off[name] != on[name]}
    for name in ("critics", "discount", "batch_size", "policy_frequency", "width"):
        ways[f"{name} {paper[name]}, as published"] = {name: paper[name]}
    return ways


def _flat(algorithm: Algorithm) -> dict[str, Any]:
    """Hyperparameters by name, those of transforms and schedule among them."""
    values = hyperparameters_of(algorithm)
    return {**values.pop("transforms"), **values.pop("schedule"), **values}


def transfer(seeds: int, only: str) -> None:
    """The shared policy of 96 columns on other grids, as it is."""
    cell = configure(agents=96, sync_every=0, sharing="shared", seeds=seeds)
    found = kept("transfer", "a96", cell, _on_other_grids)
    rows = []
    for latitudes, skills in found["grids"].items():
        if not fnmatch(latitudes, only):
            continue
        fixed = static(make("ebm-v1", latitudes=int(latitudes))).skill
        globe = np.array(skills)
        rows.append([latitudes, f"{fixed.globe:.3f}",
                     f"{globe.mean():.3f} ± {globe.std():.3f}", f"{globe.max():.3f}"])  # fmt: skip
    print(markdown(rows, ["latitudes", "static", "shared policy", "worst seed"]))


def _on_other_grids(cell: Configuration) -> Result:
    trainer = trained(cell)
    grids = {}
    for latitudes in (48, 96, 192):
        environment = make("ebm-v3", agents=latitudes, latitudes=latitudes)

        def given(leaf: jax.Array, number: int = latitudes) -> jax.Array:
            return jnp.broadcast_to(leaf[:, :1], (len(leaf), number, *leaf.shape[2:]))

        actors = jax.tree.map(given, trainer.actors())
        played = evaluate(environment, trainer.algorithm, actors, cell.seeds)
        grids[str(latitudes)] = [skill.globe for skill in played.skill(environment)]
    return {**skill_of(trainer), "grids": grids}


STUDIES = {
    "skill": (skill, 10),
    "columns": (columns, 2),
    "time": (time_to_skill, 3),
    "ablation": (ablation, 5),
    "transfer": (transfer, 3),
}


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("study", choices=STUDIES)
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--only", default="*", metavar="PATTERN", help="some experiments of it")
    options = parser.parse_args()
    study, seeds = STUDIES[options.study]
    study(options.seeds or seeds, options.only)


if __name__ == "__main__":
    main()
