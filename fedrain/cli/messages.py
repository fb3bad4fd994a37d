"""What commands have in common."""

import argparse
import sys


def say(message: str) -> None:
    """A message for people."""
    print(message, file=sys.stderr)


def add_json(parser: argparse.ArgumentParser) -> None:
    """The option that every command with a result has."""
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
