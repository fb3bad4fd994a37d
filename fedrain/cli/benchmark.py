"""``fedrain benchmark``: the paper's experiment matrix."""

import argparse
from pathlib import Path
from typing import Any

from fedrain.cli.messages import add_json, print_json, say
from fedrain.cli.options import add_engine
from fedrain.errors import InputError


def add(commands: Any) -> None:
    """Add the command to the parser."""
    names = commands.add_parser("benchmark", help="the paper's experiment matrix").add_subparsers(
        required=True, metavar="WHAT"
    )
    run = names.add_parser("run", help="train what is missing; stop and resume at will")
    state = names.add_parser("status", help="what is done, what is running, how long is left")
    tables = names.add_parser("tables", help="skill tables, claims, limit, quirks, cost")
    figures = names.add_parser("figures", help="return curves, zonal skill, evolution")
    slurm = names.add_parser("slurm", help="a job array for Slurm: an index for each missing cell")
    slurm.add_argument("--cores", type=int, default=2, metavar="N", help="for each cell (2)")
    slurm.add_argument(
        "--hours", type=float, default=12.0, metavar="H", help="the longest a cell may take (12)"
    )
    for parser in (run, state, slurm):
        parser.add_argument("--only", metavar="PATTERN", help="cells whose name matches (*-v3-*)")
        parser.add_argument(
            "--work",
            default="runs/benchmark",
            metavar="DIR",
            help="checkpoints of cells that are not done (runs/benchmark)",
        )
    run.add_argument("--jobs", type=int, metavar="N", help="cells at once (measured)")
    add_engine(run)
    for parser, out in ((tables, "results/tables"), (figures, "results/figures")):
        parser.add_argument("--out", default=out, metavar="DIR", help=f"where to ({out})")
    report = names.add_parser("report", help="one HTML page that needs no network")
    report.add_argument(
        "--out", default="results/report.html", metavar="FILE", help="(results/report.html)"
    )
    for parser in (run, state, slurm, tables, figures, report):
        parser.add_argument(
            "--results",
            default="results/paper",
            metavar="DIR",
            help="a file for each cell that is done (results/paper)",
        )
    add_json(state)
    run.set_defaults(command=_run)
    state.set_defaults(command=_status)
    slurm.set_defaults(command=_slurm)
    tables.set_defaults(command=_tables)
    figures.set_defaults(command=_figures)
    report.set_defaults(command=_report)


def _run(options: argparse.Namespace) -> None:
    from fedrain.cluster import check_engine
    from fedrain.paper import (
        Store,
        cells,
        cores_used,
        jobs_for,
        make_references,
        run_jobs,
        run_on_cluster,
    )

    on_cluster = check_engine(options.engine, options.address)
    store, matrix = Store(options.results, options.work), cells(options.only)
    if options.jobs is not None and options.jobs < 1:
        raise InputError(f"--jobs must be at least 1, not {options.jobs}")
    missing, damaged = [], list[InputError]()
    for cell in matrix:
        try:
            if store.read(cell) is None:
                missing.append(cell)
        except InputError as error:  # reported at the end: the others can be trained
            damaged.append(error)
    if on_cluster:
        run_on_cluster(store, missing, options.address, say, options.jobs)
        missing = []
    elif missing or not damaged:
        make_references(store, say)
    jobs = options.jobs
    if missing and jobs is None:
        used = cores_used(missing[0])
        jobs = jobs_for(used)
        say(f"one cell keeps {used:.1f} cores busy: {jobs} at once")
    if missing:
        run_jobs(store, missing, jobs, say)
    if damaged:
        raise damaged[0]
    done = sum(store.result(cell).exists() for cell in matrix)
    say(f"{done} of {len(matrix)} cells done")


def _status(options: argparse.Namespace) -> None:
    from fedrain.paper import Store, cells, status
    from fedrain.tables import GAP, Table

    rows = status(Store(options.results, options.work), cells(options.only))
    left = sum(row.get("expected_seconds", 0.0) for row in rows)
    if options.json:
        print_json({"cells": rows, "expected_seconds": left})
        return
    lines = [
        [
            row["cell"],
            row["state"],
            *(
                GAP if row.get(name) is None else f"{row[name] / 60:.1f}"
                for name in ("seconds", "expected_seconds")
            ),
        ]
        for row in rows
    ]
    print(Table("", ["cell", "state", "minutes", "expected"], lines, words=2).text())
    done = sum(row["state"] == "done" for row in rows)
    print(f"{done} of {len(rows)} cells done; about {left / 3600:.1f} h to go")


def _slurm(options: argparse.Namespace) -> None:
    from fedrain.paper import Store, cells, slurm_script

    store = Store(options.results, options.work)
    print(slurm_script(store, cells(options.only), options.cores, options.hours), end="")


def _tables(options: argparse.Namespace) -> None:
    from fedrain.paper import agreement_table, cells, load_results, make_tables
    from fedrain.paper.results import missing_cells

    results = load_results(options.results)
    paths = make_tables(results, Path(options.out))
    print(agreement_table(results).markdown())
    say(f"{len(paths)} files in {options.out}")
    if missing := len(missing_cells(results)):
        say(f"{missing} of {len(cells())} cells are missing: {options.out}/missing.md names them")


def _figures(options: argparse.Namespace) -> None:
    from fedrain.paper import load_results, make_figures

    paths = make_figures(load_results(options.results), Path(options.out))
    say(f"{len(paths)} files in {options.out}")


def _report(options: argparse.Namespace) -> None:
    from fedrain.paper import load_results, write_report

    path = Path(options.out)
    write_report(load_results(options.results), options.results, path)
    say(f"{path}: {path.stat().st_size / 1e6:.1f} MB")
