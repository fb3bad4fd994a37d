"""The paper's experiment matrix: run, resumed, kept as small files, and set beside the paper."""

from fedrain.benchmark.figures import make_figures
from fedrain.benchmark.matrix import Cell, cells
from fedrain.benchmark.report import write_report
from fedrain.benchmark.results import load_results
from fedrain.benchmark.runner import Store, make_references, run_missing, status
from fedrain.benchmark.tables import agreement_table, make_tables

__all__ = [
    "Cell",
    "Store",
    "agreement_table",
    "cells",
    "load_results",
    "make_figures",
    "make_references",
    "make_tables",
    "run_missing",
    "status",
    "write_report",
]
