"""What commands have in common."""

import argparse
import json
import math
import sys
from collections.abc import Mapping
from typing import Any


def say(message: str) -> None:
    """A message for people."""
    print(message, file=sys.stderr)


def add_json(parser: argparse.ArgumentParser) -> None:
    """The option that every command with a result has."""
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")


def print_json(values: Mapping[str, Any]) -> None:
    """One JSON object on standard output; what is not finite is null, for JSON has no NaN."""
    print(json.dumps(_finite(values), allow_nan=False))


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
