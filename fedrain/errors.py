"""Errors whose message is meant for the person who gave the input."""

import difflib
from collections.abc import Iterable


class InputError(ValueError):
    """What was asked for cannot be done: one line that says what is wrong.

    The command line prints the message and exits with status 2.
    """


class MissingExtraError(InputError, ImportError):
    """An optional dependency is not installed."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed: pip install 'fedrain[{extra}]'")


class FailureError(RuntimeError):
    """What was asked for was right, and failed: one line that says why, and how to continue.

    The command line prints the message and exits with status 1.
    """


def unknown(what: str, name: object, known: Iterable[str]) -> InputError:
    """There is no such thing; the nearest that there is, and all if they are few."""
    names = list(known)
    near = difflib.get_close_matches(str(name), names, n=1, cutoff=0.4)
    listed = f"use one of {', '.join(names)}" if names else "there are none"
    if near and len(names) > 12:
        listed = f"did you mean {near[0]!r}?"
    elif near:
        listed = f"did you mean {near[0]!r}? There are {', '.join(names)}"
    return InputError(f"there is no {what} {name!r}: {listed}")
