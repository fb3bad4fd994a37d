"""The command line: ``fedrain COMMAND``.

Results for machines (``--json``) go to standard output and nothing else does; messages for people
go to standard error. Exit status 0 means that it worked, 2 that the input was wrong, 1 that it
failed.
"""

import argparse
import re
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from fedrain import __version__
from fedrain.cli import (
    baseline,
    benchmark,
    evaluate,
    federate,
    film,
    gcm,
    stability,
    train,
    tune,
    watch,
)
from fedrain.cli.messages import add_json, print_json, say, show_anywhere
from fedrain.errors import FailureError, InputError


class _Parser(argparse.ArgumentParser):
    """Wrong arguments get one line, as every other bad input does."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        # A value such as -5..5 is no option, just as -5 is none.
        self._negative_number_matcher = re.compile(r"^-\.?\d")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """A command may want its arguments in another form: see ``rewrite`` of evaluate."""
        rewrite = self._defaults.get("rewrite")
        return super().parse_known_args(rewrite(args) if rewrite and args else args, namespace)

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message} (see: {self.prog} --help)")


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
    """What the system says of a file or a name that it cannot do with."""
    if isinstance(error, UnicodeError):
        return "a name of a file is not text in UTF-8"
    name = str(error.filename or "")
    short = name if len(name) < 200 else f"{name[:60]}…{name[-60:]}"
    return f"{short}{': ' * bool(short)}{error.strerror or error}"


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="fedrain", description="Climate models that learn their own parameters.")
    parser.add_argument("--version", action="version", version=f"fedrain {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    envs = commands.add_parser("envs", help="list the environments")
    add_json(envs)
    envs.set_defaults(command=_envs)

    for command in (
        train,
        watch,
        film,
        evaluate,
        tune,
        federate,
        baseline,
        benchmark,
        stability,
        gcm,
    ):
        command.add(commands)
    return parser


def _envs(options: argparse.Namespace) -> None:
    from fedrain.envs.listing import environment_rows, environment_table

    if options.json:
        print_json({"environments": environment_rows()})
    else:
        print(environment_table())
