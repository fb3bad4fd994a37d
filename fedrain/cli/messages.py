"""What commands have in common."""

import argparse
import codecs
import json
import sys
from collections.abc import Mapping
from typing import Any


def say(message: str) -> None:
    """A message for people."""
    print(message, file=sys.stderr)


#: What stands for a character that a terminal's encoding has not, as wide as it where that can be.
PLAIN = {
    "°": " ", "–": "-", "−": "-", "±": "+/-", "×": "x", "…": "...", "·": ".", "→": "->", "½": "1/2",
    "²": "2", "³": "3", "⁴": "4", "⁻": "-", "⁺": "+", "¹": "1", "₂": "2", "σ": "sigma", "φ": "phi",
    "α": "alpha", "µ": "u", "≤": "<=", "≥": ">=", "‘": "'", "’": "'", "“": '"', "”": '"',
}  # fmt: skip
ANYWHERE = "fedrain-plain"


def _plainly(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lost = error.object[error.start : error.end]
    return "".join(PLAIN.get(one, ascii(one)[1:-1]) for one in lost), error.end


codecs.register_error(ANYWHERE, _plainly)


def show_anywhere(*streams: Any) -> None:
    """Let streams take all that is said, whatever characters their terminal has."""
    for stream in streams:
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=ANYWHERE)


def say_if_unchecked(run: Any) -> None:
    """Tell of a run that predates checksums; it is read all the same."""
    if not run.has_checksums:
        say(
            f"{run.folder}: was written before checksums were introduced: damage cannot be detected"
        )


def add_json(parser: argparse.ArgumentParser) -> None:
    """The option that every command with a result has."""
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object on standard output"
    )


def print_json(values: Mapping[str, Any]) -> None:
    """One JSON object on standard output; what is not finite is null, for JSON has no NaN."""
    from fedrain.tables import finite  # here, since JAX takes a second

    print(json.dumps(finite(values), allow_nan=False))


def add_engine(parser: argparse.ArgumentParser) -> None:
    """Add the options that say whether the work goes to other machines."""
    parser.add_argument(
        "--engine",
        default="local",
        metavar="NAME",
        help="local: on this machine (default); ray: on a Ray cluster",
    )
    parser.add_argument(
        "--address",
        metavar="ADDRESS",
        help="of the Ray cluster, machine:port or auto (default: a new one of this machine)",
    )
