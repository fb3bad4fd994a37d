"""``fedrain film``: a film of a training."""

import argparse
from typing import Any

from fedrain.cli import values
from fedrain.cli.messages import say
from fedrain.cli.options import REFERENCES, add_references


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "film",
        help="make a film of a training, as GIF or MP4",
        description="Write a film of a finished run: profile and learnt parameters from episode to "
        "episode, beside the error at each latitude.",
        examples={
            "The film of a run, in its folder": "fedrain film runs/six-agents",
            "Of one seed, slower": "fedrain film runs/six-agents --seed 0 --fps 5",
        },
    )
    parser.add_argument("run", metavar="RUN", help="folder of the run")
    parser.add_argument(
        "--out",
        type=values.place,
        metavar="FILE",
        help="the film, FILE.gif or FILE.mp4 (default: RUN/film.gif)",
    )
    parser.add_argument(
        "--seed", type=int, metavar="N", help="one seed of the run (default: the mean of all)"
    )
    parser.add_argument("--field", metavar="NAME", help="a judged field (default: the first)")
    parser.add_argument(
        "--level",
        type=values.number,
        metavar="VALUE",
        help="one of its levels (default: their mean)",
    )
    parser.add_argument(
        "--fps", type=int, default=10, metavar="N", help="frames a second (default: 10)"
    )
    add_references(parser)
    parser.set_defaults(command=_run)


def _run(options: argparse.Namespace) -> None:
    from fedrain.experiment import load

    run = load(options.run, **{name: getattr(options, name) for name in REFERENCES})
    chosen = {name: getattr(options, name) for name in ("out", "seed", "field", "level", "fps")}
    say(f"film: {run.film(**chosen)}")
