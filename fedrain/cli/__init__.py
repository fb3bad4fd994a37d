"""The command line: ``fedrain COMMAND``.

Results for machines (``--json``) go to standard output and nothing else does; messages for people
go to standard error. Exit status 0 means that it worked, 2 that the input was wrong, 1 that it
failed.
"""

import argparse
import sys
import warnings
from collections.abc import Callable, Sequence

from fedrain import __version__
from fedrain.cli import (
    baseline,
    benchmark,
    envs,
    evaluate,
    federate,
    film,
    gcm,
    stability,
    train,
    tune,
    watch,
)
from fedrain.cli.messages import say, show_anywhere
from fedrain.cli.parser import Parser
from fedrain.errors import FailureError, InputError

#: Commands as the help groups them: what is done to a policy, to its climate, to the paper.
GROUPS = {
    "train": (train, watch, tune, federate),
    "evaluate": (evaluate, film, baseline),
    "models and tasks": (envs, stability, gcm),
    "the paper": (benchmark,),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit status."""
    show_anywhere(sys.stdout, sys.stderr)
    with warnings.catch_warnings():
        if not sys.warnoptions:
            # What NumPy says of numbers that are not finite is for developers: results name seeds.
            warnings.simplefilter("ignore", RuntimeWarning)
        return _run(arguments)


def _run(arguments: Sequence[str] | None) -> int:
    try:
        options = _parser().parse_args(arguments)
        command: Callable[[argparse.Namespace], None] = options.command
        from fedrain.climate.models.host import clear_failures  # here, since JAX takes a second

        with clear_failures():
            command(options)
            sys.stdout.flush()  # what cannot be written is noticed here
    except BrokenPipeError:  # whoever read us has seen enough, such as head
        sys.stdout = None
        return 1
    except (OSError, UnicodeError) as error:
        say(f"fedrain: error: {_outside(error)}")
        return 2
    except MemoryError:
        say("fedrain: there is not enough memory")
        return 1
    except InputError as error:
        say(f"fedrain: error: {error}")
        return 2
    except FailureError as error:
        say(f"fedrain: {error}")
        return 1
    except KeyboardInterrupt:
        say("fedrain: interrupted")
        return 1
    return 0


def _outside(error: OSError | UnicodeError) -> str:
    """What the system reports of a file or a name that it cannot handle."""
    if isinstance(error, UnicodeError):
        return "a name of a file is not text in UTF-8"
    name = str(error.filename or "")
    short = name if len(name) < 200 else f"{name[:60]}…{name[-60:]}"
    return f"{short}{': ' * bool(short)}{error.strerror or error}"


def _parser() -> Parser:
    parser = Parser(
        prog="fedrain",
        examples={
            "Train six federated agents": "fedrain train --out runs/six-agents",
            "Their skill in climates that they have not seen": (
                "fedrain evaluate runs/six-agents --forcing"
            ),
            "Options and examples of a command": "fedrain train --help",
        },
    )
    parser.add_argument("--version", action="version", version=f"fedrain {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", help=argparse.SUPPRESS)
    lines = ["Climate models that learn their own parameters."]
    for title, group in GROUPS.items():
        before = len(commands._choices_actions)
        for command in group:
            command.add(commands)
        lines += ["", f"{title}:"]
        lines += [f"  {one.dest:10} {one.help}" for one in commands._choices_actions[before:]]
    parser.description = "\n".join(lines)
    return parser
