"""``fedrain tune``: find the hyperparameters of an experiment."""

import argparse
from pathlib import Path
from typing import Any

from fedrain.cli import values
from fedrain.cli.messages import add_engine, add_json, print_json, say
from fedrain.cli.options import add_setting, chosen_configuration

FIRST_SEED = 100  # experiments are reported on the seeds from 0: they must not be tuned on


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "tune",
        help="search for hyperparameters",
        description="Search for the hyperparameters of an experiment by trial (Optuna), and write "
        "the best as a preset. Trials are kept in a study file: run the command again to continue, "
        "or in several processes at once. Seeds begin at 100, since results are reported on seeds "
        "from 0.",
        examples={
            "Fifty trials of TD3 with one agent": "fedrain tune --env ebm-v1 --algo td3",
            "A search space and a preset of your own": (
                "fedrain tune --trials 20 --space space.toml --out mine.toml"
            ),
        },
    )
    add_setting(parser)
    parser.add_argument(
        "--trials", type=int, default=50, metavar="N", help="trials in all (default: 50)"
    )
    parser.add_argument(
        "--objective", default="skill", help="what is maximised: skill or return (default: skill)"
    )
    parser.add_argument(
        "--space",
        metavar="FILE",
        help="TOML file with your own search space (default: that of the algorithm)",
    )
    study = "file with the trials (default: studies/NAME.journal)"
    preset = "file for the best preset (default: studies/NAME.toml)"
    parser.add_argument("--study", type=values.place, metavar="FILE", help=study)
    parser.add_argument("--out", type=values.place, metavar="FILE", help=preset)
    add_engine(parser)
    add_json(parser)
    parser.set_defaults(command=_run)


def _run(options: argparse.Namespace) -> None:
    from fedrain.climate.columns import check_count
    from fedrain.cluster import check_engine
    from fedrain.errors import InputError
    from fedrain.experiment.configuration import MOST_SEEDS
    from fedrain.tables import counted
    from fedrain.tuning import Tuning, load_space, tune

    check_engine(options.engine, options.address)
    number = 1 if options.seeds is None else options.seeds
    if isinstance(number, int):
        check_count("the number of seeds", number, 0, MOST_SEEDS)
        options.seeds = list(range(FIRST_SEED, FIRST_SEED + number))
    if not options.seeds or options.trials < 1:
        raise InputError("a study has one or more seeds, and one or more trials")
    configuration = chosen_configuration(options)
    space = load_space(configuration.named.algo or configuration.algo, options.space)
    named = values.merged("--set", options.settings) or {}
    own = [name for name in named if not name.startswith("model.")]
    if twice := [name for name in own if name.rpartition(".")[2] in space]:
        raise InputError(
            f"--set {', '.join(twice)}: the search space has it; drop --set, or give --space "
            "without it"
        )
    tuning = Tuning(configuration, space, options.objective)
    folder = Path("studies")
    study = Path(options.study or folder / f"{configuration.name}.journal")
    out = Path(options.out or folder / f"{configuration.name}.toml")
    if out.suffix != ".toml":
        raise InputError(f"{out}: a preset is a file that ends in .toml")
    say(f"{configuration.name}, {counted(len(configuration.seeds), 'seed')} a trial, study {study}")
    found = tune(tuning, study, options.trials, out, say, options.engine, options.address)
    if options.json:
        print_json(found)
    else:
        print(f"best {found['objective']}: {found['best']:.4g} after {found['trials']} trials")
        say(f"preset: {out} (fedrain train --preset {out})")
