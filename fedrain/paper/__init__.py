"""The paper's experiment matrix: run, resumed, kept as small files, and set beside the paper."""

from fedrain.paper.figures import make_figures
from fedrain.paper.matrix import Cell, cells
from fedrain.paper.report import write_report
from fedrain.paper.results import load_results
from fedrain.paper.runner import Store, make_references, run_missing, status
from fedrain.paper.tables import agreement_table, make_tables

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
