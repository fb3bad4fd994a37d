"""The paper's experiment matrix: train it, store it, and compare it with the published figures.

The same as ``fedrain benchmark`` on the command line::

    store = Store("results/paper", "runs/benchmark")
    make_references(store, print)
    run_jobs(store, cells("*-v3-*ddpg*"), jobs=2, say=print)

    results = load_results("results/paper")
    make_tables(results, Path("results/tables"))
    make_figures(results, Path("results/figures"))
    write_report(results, "results/paper", Path("results/report.html"))
"""

from fedrain.paper.claims import Claim, judge_claims
from fedrain.paper.figures import make_figures
from fedrain.paper.judgement import Finding, Verdict
from fedrain.paper.machines import run_on_cluster, slurm_script
from fedrain.paper.matrix import Cell, cells
from fedrain.paper.published import (
    Published,
    published_bands,
    published_cells,
    published_column,
    published_core_hours,
    published_skill,
)
from fedrain.paper.report import write_report
from fedrain.paper.results import Result, load_results
from fedrain.paper.runner import (
    Store,
    cores_used,
    jobs_for,
    make_references,
    run_jobs,
    run_missing,
    status,
)
from fedrain.paper.statistics import Sample
from fedrain.paper.tables import agreement_table, make_tables

__all__ = [
    "Cell",
    "Claim",
    "Finding",
    "Published",
    "Result",
    "Sample",
    "Store",
    "Verdict",
    "agreement_table",
    "cells",
    "cores_used",
    "jobs_for",
    "judge_claims",
    "load_results",
    "make_figures",
    "make_references",
    "make_tables",
    "published_bands",
    "published_cells",
    "published_column",
    "published_core_hours",
    "published_skill",
    "run_jobs",
    "run_missing",
    "run_on_cluster",
    "slurm_script",
    "status",
    "write_report",
]
