"""``fedrain benchmark``: the paper's experiment matrix."""

import argparse
from pathlib import Path
from typing import Any

from fedrain.cli.messages import add_engine, add_json, print_json, say
from fedrain.errors import InputError

RESULTS = "results/paper"


def add(commands: Any) -> None:
    """Add the command to the parser."""
    names = commands.add_parser(
        "benchmark",
        help="reproduce the paper: train its experiments, and compare",
        description="Reproduce the paper: train its matrix of experiments (a cell is one "
        "experiment with ten seeds), and compare the results with the published figures. Stored "
        "results come with the package.",
        examples={
            "Tables from the stored results": "fedrain benchmark tables",
            "One page to explore them": "fedrain benchmark report",
        },
    ).add_subparsers(required=True, metavar="WHAT")
    run = _add(
        names,
        "run",
        "train the cells that are missing",
        "Each cell takes up to half an hour. Interrupt it at will: the same command resumes.",
        {"One cell": "--only '*-v3-a6-fed05-ddpg-paper'"},
    )
    state = _add(
        names,
        "status",
        "show which cells are done, and the time left",
        "",
        {"Cells of ebm-v3": "--only '*-v3-*'"},
    )
    tables = _add(
        names,
        "tables",
        "write all tables beside the published figures",
        "Skill, agreement with the published means, tests of the paper's claims, share of the "
        "limit, implementation quirks and cost, as Markdown, LaTeX and CSV.",
        {"Into a folder of your choice": "--out tables"},
    )
    figures = _add(
        names,
        "figures",
        "draw return curves, skill and evolution by latitude",
        "",
        {"Into a folder of your choice": "--out figures"},
    )
    slurm = _add(
        names,
        "slurm",
        "print a job array for Slurm: an index for each missing cell",
        "",
        {"Two cores for each cell": "--cores 2 > job.sh"},
    )
    slurm.add_argument(
        "--cores", type=int, default=2, metavar="N", help="for each cell (default: 2)"
    )
    slurm.add_argument(
        "--hours",
        type=float,
        default=12.0,
        metavar="H",
        help="the longest that a cell may take (default: 12)",
    )
    for parser in (run, state, slurm):
        parser.add_argument(
            "--only",
            metavar="PATTERN",
            help="cells whose name matches, such as *-v3-* (default: all)",
        )
        parser.add_argument(
            "--work",
            default="runs/benchmark",
            metavar="DIR",
            help="checkpoints of unfinished cells (default: runs/benchmark)",
        )
    run.add_argument(
        "--jobs",
        type=int,
        metavar="N",
        help="cells trained at once (default: as many as the cores allow)",
    )
    add_engine(run)
    for parser, out in ((tables, "results/tables"), (figures, "results/figures")):
        parser.add_argument(
            "--out", default=out, metavar="DIR", help=f"folder to write to (default: {out})"
        )
    report = _add(
        names,
        "report",
        "write one HTML page to explore all results, offline",
        "",
        {"Into a file of your choice": "--out report.html"},
    )
    report.add_argument(
        "--out",
        default="results/report.html",
        metavar="FILE",
        help="file to write (default: results/report.html)",
    )
    for parser in (run, state, slurm):
        parser.add_argument(
            "--results",
            default=RESULTS,
            metavar="DIR",
            help=f"folder of finished cells, a file for each (default: {RESULTS})",
        )
    for parser in (tables, figures, report):
        parser.add_argument(
            "--results",
            metavar="DIR",
            help=f"folder of finished cells (default: {RESULTS} if it exists, otherwise the "
            "results that come with the package)",
        )
    add_json(state)
    run.set_defaults(command=_run)
    state.set_defaults(command=_status)
    slurm.set_defaults(command=_slurm)
    tables.set_defaults(command=_tables)
    figures.set_defaults(command=_figures)
    report.set_defaults(command=_report)


def _add(names: Any, name: str, text: str, more: str, examples: dict[str, str]) -> Any:
    whole = f"{text[0].upper()}{text[1:]}. {more}".strip()
    commands = {shown: f"fedrain benchmark {name} {given}" for shown, given in examples.items()}
    return names.add_parser(name, help=text, description=whole, examples=commands)


def _results(options: argparse.Namespace) -> Path:
    """The folder that was named, that of the checkout, or the results of the package."""
    from fedrain.paper.results import PACKAGED

    if options.results is not None:
        return Path(options.results)
    return PACKAGED if PACKAGED.exists() and not Path(RESULTS).exists() else Path(RESULTS)


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

    results = load_results(_results(options))
    paths = make_tables(results, Path(options.out))
    print(agreement_table(results).markdown())
    say(f"{len(paths)} files in {options.out}")
    if missing := len(missing_cells(results)):
        say(f"{missing} of {len(cells())} cells are missing: {options.out}/missing.md names them")


def _figures(options: argparse.Namespace) -> None:
    from fedrain.paper import load_results, make_figures

    folder = _results(options)
    paths = make_figures(load_results(folder), Path(options.out), folder)
    say(f"{len(paths)} files in {options.out}")


def _report(options: argparse.Namespace) -> None:
    from fedrain.paper import load_results, write_report

    path, folder = Path(options.out), _results(options)
    write_report(load_results(folder), folder, path)
    say(f"{path}: {path.stat().st_size / 1e6:.1f} MB")
