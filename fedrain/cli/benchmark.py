"""``fedrain benchmark``: the paper's experiment matrix."""

import argparse
import json
from typing import Any

from fedrain.cli.messages import add_json, say


def add(commands: Any) -> None:
    """Add the command to the parser."""
    names = commands.add_parser("benchmark", help="the paper's experiment matrix").add_subparsers(
        required=True, metavar="WHAT"
    )
    run = names.add_parser("run", help="train what is missing; stop and start again at will")
    state = names.add_parser("status", help="what is done, what runs, and how long the rest takes")
    for parser in (run, state):
        parser.add_argument("--only", metavar="PATTERN", help="cells whose name matches (*-v3-*)")
        parser.add_argument("--results", default="benchmark/results", metavar="DIR", help="kept")
        parser.add_argument("--work", default="runs/benchmark", metavar="DIR", help="meanwhile")
    add_json(state)
    run.set_defaults(command=_run)
    state.set_defaults(command=_status)


def _run(options: argparse.Namespace) -> None:
    from fedrain.benchmark import Store, cells, run_missing

    done = run_missing(Store(options.results, options.work), cells(options.only), say)
    say(f"{done} cell(s) finished")


def _status(options: argparse.Namespace) -> None:
    from fedrain.benchmark import Store, cells, status

    rows = status(Store(options.results, options.work), cells(options.only))
    if options.json:
        print(json.dumps({"cells": rows}))
        return
    for row in rows:
        seconds = row["seconds"] or row.get("expected_seconds")
        time = "" if seconds is None else f"{seconds / 60:8.1f} min"
        print(f"{row['cell']:<36}{row['state']:<9}{time}")
    left = sum(row.get("expected_seconds", 0.0) for row in rows)
    done = sum(row["state"] == "done" for row in rows)
    print(f"{done} of {len(rows)} cells done; about {left / 3600:.1f} h to go")
