"""``fedrain gcm``: what a general circulation model has to compute once."""

import argparse
import time
from typing import Any

from fedrain.cli.messages import add_json, print_json, say
from fedrain.cli.options import add_environment, add_settings, environment_options
from fedrain.cli.values import merged


def add(commands: Any) -> None:
    """Add the command to the parser."""
    examples = {"Before the first training on gcm-twin": "fedrain gcm spin-up --env gcm-twin"}
    parser = commands.add_parser(
        "gcm",
        help="prepare a general circulation model",
        description="Compute once what a general circulation model needs (extra gcm).",
        examples=examples,
    )
    kinds = parser.add_subparsers(required=True, metavar="WHAT")
    spin_up = kinds.add_parser(
        "spin-up",
        help="compute the spun-up climate and the truth of a task",
        description="Compute the spun-up climate and the truth of a task, and store them in a "
        "cache folder, where training finds them.",
        examples=examples,
    )
    add_environment(spin_up, "gcm-twin")
    add_settings(spin_up, "model.KEY=VALUE", "an option of the model; may be repeated")
    spin_up.add_argument(
        "--again", action="store_true", help="compute them even if they are in the cache folder"
    )
    add_json(spin_up)
    spin_up.set_defaults(command=_spin_up)


def _spin_up(options: argparse.Namespace) -> None:
    from fedrain.climate.models.gcm_store import anew, cache_folder
    from fedrain.envs import make
    from fedrain.envs.tasks import find_task
    from fedrain.errors import InputError

    name = options.env or "gcm-twin"
    if not find_task(name).extra:
        raise InputError(f"{name}: has no general circulation model to spin up")
    settings = merged("--set", options.settings) or {}
    own = {key.removeprefix("model."): value for key, value in settings.items()}
    if not all(key.startswith("model.") for key in settings):
        raise InputError("--set: sets only options of the model here, such as model.truncation=31")
    given = {**environment_options(options), **({"model_options": own} if own else {})}
    begin = time.perf_counter()
    with anew(options.again):
        environment = make(name, **given)
    seconds = time.perf_counter() - begin
    model = environment.model
    found = {
        "folder": str(cache_folder()),
        "columns": len(model.columns),
        "seconds": round(seconds, 1),
    }
    if options.json:
        print_json(found)
    else:
        say(f"{name} is ready: {found['columns']} latitudes, stored in {found['folder']}")
