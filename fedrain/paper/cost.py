"""What the published way of working needs: climlab and PyTorch, in one process.

The core time of an agent step was measured by ``studies/published_cost.py`` on the machine that
the stored results were made on.
"""

import json
from functools import cache
from importlib import resources

from fedrain.paper.matrix import Cell


def kind(cell: Cell) -> str:
    """What the core time of an agent step depends on: algorithm, and latitudes that it sees."""
    latitudes = 96 // cell.agents if cell.env == "ebm-v3" else 96
    return f"{cell.algo} {latitudes}"


def published_core_hours(cell: Cell) -> float:
    """Core-hours of all seeds of a cell."""
    return cell.agent_steps * _core_milliseconds()[kind(cell)] / 3.6e6


def published_core_milliseconds(algo: str) -> dict[str, float]:
    """Of an agent step, by the latitudes that the agent sees."""
    return {
        kind.removeprefix(f"{algo} "): value
        for kind, value in _core_milliseconds().items()
        if kind.startswith(f"{algo} ")
    }


@cache
def _core_milliseconds() -> dict[str, float]:
    """Of an agent step, by kind."""
    file = resources.files("fedrain.paper") / "data" / "published_cost.json"
    return json.loads(file.read_text("utf-8"))
