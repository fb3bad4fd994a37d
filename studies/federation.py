"""When federation helps: agents with scarce and unlike data, by what they share.

Twelve agents, one for each 15° of latitude. Each has a climate of its own under a sun of its own,
starts its episodes at random, sees through sensors with errors, and is judged by its own range of
the target: its latitudes (ebm-v2). The agent of one region joins late: none of its data is ever
seen, its place is held by a second agent of the region beside it, and it is given the policy that
the federation has for that place. Every scheme has the same number of trials to choose its
learning rate and exploration (federation_tuning.py), and the same warm-up and gradient updates of
each network.

Three errors, area-weighted, in K, after an episode without exploration: in the agent's own climate,
in climates that it has not seen (a sun 2 % brighter or dimmer, other starts), and of the late agent
in its own climate. Intervals are interquartile means with 95 % bootstrap intervals over the seeds
(Agarwal et al. 2021). They are worked out here: rliable, theirs, had its last release in August
2024, and of it this needs two functions.

    python studies/federation.py plan                  # what is missing, in order of worth
    python studies/federation.py run [--only PATTERN]  # train it; stop and start again at will
    python studies/federation.py show                  # tables and figure of what is there
    python studies/federation.py run --seeds 2 --latitudes 12 --folder /tmp/try --only '*-d2-*'

A cell's name is its preset, its scheme, its episodes of data, and a member that misbehaves:
``fedrain-every5-d10-good``. A cell keeps one core busy; several processes may share the work.
"""

import argparse
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import jax
import numpy as np
from cells import RESULTS
from federation_trials import (
    AGENTS,
    ASKED,
    COMPILE,
    DATA,
    STEP,
    UPDATE,
    WARMUP,
    Trial,
    of_values,
    run_trial,
    trials,
)
from federation_tuning import FACTORS, SEEDS, keep, reached, tries, tuned
from iqm import interval_text

from fedrain.cli.messages import add_engine
from fedrain.cluster import check_engine, connected
from fedrain.errors import InputError
from fedrain.experiment.resolve import from_dict
from fedrain.io import claim, write_json
from fedrain.reading import read_json

LOCKS = RESULTS.parent.parent / "runs" / "federation"


def cost(trial: Trial, seeds: int) -> float:
    """Core-seconds, about."""
    steps = seeds * AGENTS * 200 * trial.data
    learners = 1 if trial.scheme == "shared" else AGENTS
    learning = max(seeds * learners * (200 * trial.data - WARMUP), 0)
    return STEP * steps + UPDATE * DATA[trial.data] * learning + COMPILE


def show_plan(missing: list[Trial], number: int, seeds: int, folder: Path) -> None:
    """What is missing, in order of worth, with an estimate of what it costs."""
    hours, chosen = 0.0, set[tuple[str, str]]()
    for trial in missing:
        kind = trial.preset, trial.tuned_as
        if kind not in chosen and not (folder / "tuning" / f"{'-'.join(kind)}.json").exists():
            tries = len(SEEDS) * np.prod([len(one) for one in FACTORS.values()])
            seconds = cost(Trial(*kind, ASKED), int(tries))
            hours += seconds / 3600
            print(f"tuning {'-'.join(kind)}: {seconds / 60:.0f} core-minutes")
        chosen.add(kind)
        hours += cost(trial, seeds) / 3600
        print(f"{trial.name}: {cost(trial, seeds) / 60:.0f} core-minutes")
    print(f"{len(missing)} of {number} to train: about {hours:.1f} core-hours")


def is_done(trial: Trial, options: argparse.Namespace, train: bool) -> bool:
    """Whether a cell is there, or now is; what another process is at is left to that."""
    path = options.folder / f"{trial.name}.json"
    if not train and not path.exists():
        return False
    setting = options.algo, options.seeds, options.latitudes
    with claim(LOCKS / f"tuning-{trial.preset}-{trial.tuned_as}.lock") as mine:
        chosen = tuned(options.folder, trial, *setting, print if train and mine else None)
    if chosen is None:
        return False
    configuration = trial.configuration(*setting, chosen)
    with claim(LOCKS / f"{trial.name}.lock") as mine:
        if path.exists():
            held = from_dict(read_json(path)["configuration"])
            if held.identity == configuration.identity:
                return True
        if not train or not mine:
            return False
        result = run_trial(trial, configuration)
        write_json(path, {"name": trial.name, "configuration": configuration.as_dict(), **result})
    own = interval_text(np.array(result["policy"]["own"]))
    print(f"{trial.name}: {own} K, {result['core_seconds']:.0f} core-s", flush=True)
    return True


def run_on_cluster(plan: list[Trial], options: argparse.Namespace) -> None:
    """All that is missing: first what the hyperparameters are chosen by, then the cells."""
    setting = options.algo, options.seeds, options.latitudes
    kinds = {(one.preset, one.tuned_as): one for one in plan}
    tried = {kind: tries(options.folder, one, *setting) for kind, one in kinds.items()}
    asked = {
        f"tuning {'-'.join(kind)} {i}": (kinds[kind], *setting, values)
        for kind, (_, left) in tried.items()
        for i, values in enumerate(left)
    }

    def keep_try(name: str, errors: dict[str, float]) -> None:
        trial, *_, values = asked[name]
        keep(options.folder, trial, tried[trial.preset, trial.tuned_as][0], values, errors)

    with connected(options.address, print) as cluster:
        failed = cluster.run(reached, asked, keep_try, print)
        cells = dict[str, tuple[Trial, dict[str, Any]]]()
        for trial in plan:
            chosen = tuned(options.folder, trial, *setting, None)
            if chosen is not None and not is_done(trial, options, train=False):
                cells[trial.name] = trial, trial.configuration(*setting, chosen).as_dict()

        def keep_cell(name: str, result: dict[str, Any]) -> None:
            path = options.folder / f"{name}.json"
            write_json(path, {"name": name, "configuration": cells[name][1], **result})

        failed += cluster.run(of_values, cells, keep_cell, print)
    if failed:
        raise SystemExit(f"{len(failed)} failed: run it again")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("plan", "run", "show"))
    parser.add_argument("--only", default="*", metavar="PATTERN", help="some cells")
    parser.add_argument("--seeds", type=int, default=20, metavar="N")
    parser.add_argument("--algo", default="td3")
    parser.add_argument("--latitudes", type=int, default=24, metavar="N")
    parser.add_argument("--folder", type=Path, default=RESULTS / "federation", metavar="DIR")
    add_engine(parser)
    options = parser.parse_args()
    plan = [one for one in trials() if fnmatch(one.name, options.only)]
    if not plan:
        parser.error(f"no cell matches {options.only!r}")
    if options.what == "show":
        from federation_tables import show

        images = RESULTS.parent.parent / "docs" / "images"
        show(options.folder, images if options.folder.parent == RESULTS else options.folder)
        return
    jax.config.update("jax_num_cpu_devices", 1)  # agents that meet at every step wait for cores
    if check_engine(options.engine, options.address) and options.what == "run":
        run_on_cluster(plan, options)
        return
    missing = list[Trial]()
    for trial in plan:
        try:
            if not is_done(trial, options, train=options.what == "run"):
                missing.append(trial)
        except InputError as error:
            print(f"{trial.name}: cannot be: {error}")
    if options.what == "plan":
        show_plan(missing, len(plan), options.seeds, options.folder)


if __name__ == "__main__":
    main()
