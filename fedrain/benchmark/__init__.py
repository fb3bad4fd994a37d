"""The paper's experiment matrix: run, resumed, and kept as small files."""

from fedrain.benchmark.matrix import Cell, cells
from fedrain.benchmark.runner import Store, run_missing, status

__all__ = ["Cell", "Store", "cells", "run_missing", "status"]
