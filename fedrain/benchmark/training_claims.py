"""What the paper claims of training: how fast it converges, and what it costs.

Learning curves are drawn on a log scale in the paper, so they are judged by the logarithm of
−return here. They are not published as figures. Neither are costs: beside ours stands what the
published way of working takes on the machine that ours were measured on.
"""

from collections.abc import Callable, Iterator

import numpy as np
from jaxtyping import Float

from fedrain.benchmark.judgement import Question, Statement, grid, known, single_agent
from fedrain.benchmark.matrix import EPISODE_STEPS, PRESETS, Cell, cells
from fedrain.benchmark.results import Results
from fedrain.benchmark.statistics import converged_at, earlier, most, rises_steadily

EARLY, LATE = 5_000, 10_000  # steps
FEDERATED = grid(tuple(PRESETS), agents=(2, 6), schemes=("fed05", "fed10"))
SINGLE = grid(tuple(PRESETS), envs=("ebm-v1",), agents=(1,), schemes=("nofed",))

#: Processor time of an algorithm, by what else it depends on.
Costs = Callable[[str], dict[str, float]]


def _converges_faster(results: Results) -> Iterator[Statement]:
    for cell in FEDERATED:
        yield cell.name, earlier(_steps(results, cell), _steps(results, single_agent(cell)))


def _converges_early(results: Results) -> Iterator[Statement]:
    for cell in FEDERATED:
        yield cell.name, most(_steps(results, cell) <= EARLY)


def _converges_late(results: Results) -> Iterator[Statement]:
    for cell in SINGLE:
        yield cell.name, most(_steps(results, cell) > LATE)


def _rises(results: Results) -> Iterator[Statement]:
    for cell in grid(agents=(2,), schemes=("fed05", "fed10")):
        yield cell.name, most(rises_steadily(_curves(results, cell)))


def _steps(results: Results, cell: Cell) -> Float[np.ndarray, " seed"]:
    return EPISODE_STEPS * converged_at(_curves(results, cell))


def _curves(results: Results, cell: Cell) -> Float[np.ndarray, "seed episode"]:
    return -np.log(-known(results.get(cell), cell).learning)


def _costs_less(other: str) -> Callable[[Costs], Iterator[Statement]]:
    def statements(costs: Costs) -> Iterator[Statement]:
        theirs = costs(other)
        for where, cost in costs("ddpg").items():
            yield where, float(0.5 + 0.5 * np.sign(cost - theirs[where]))

    return statements


def our_costs(results: Results) -> Costs:
    """What is stored with the results, by cell."""

    def of(algo: str) -> dict[str, float]:
        end = f"-{algo}-paper"
        return {
            cell.name.removesuffix(end): known(results.get(cell), cell).core_hours
            for cell in cells(f"*{end}")
        }

    return of


OF_CURVES: tuple[Question[Results], ...] = (
    Question(
        "Training converges faster in ebm-v2 and ebm-v3 than in ebm-v1",
        "Mann–Whitney test of the steps after which a seed stays within a tenth of its gain in "
        "log(−return) from where it ends, each algorithm, two and six agents, fed05 and fed10",
        _converges_faster,
    ),
    Question(
        "Most policies are stable by 5 000 steps in ebm-v2 and ebm-v3",
        "sign test, whether from then on most seeds stay within a tenth of their gain in "
        "log(−return) from where they end, each algorithm, two and six agents, fed05 and fed10",
        _converges_early,
    ),
    Question(
        "In ebm-v1 training converges after 10 000 steps only",
        "sign test, whether only later most seeds stay within a tenth of their gain in "
        "log(−return) from where they end, each algorithm",
        _converges_late,
    ),
    Question(
        "Two federated agents converge monotonically (DDPG)",
        "sign test, whether most seeds never fall back by more than a tenth of their gain in "
        "log(−return), ebm-v2 and ebm-v3, fed05 and fed10",
        _rises,
    ),
)

COUNTED = (
    "processor time of each of thirteen cells, counted; in the published way of working, climlab "
    "and PyTorch timed here, that of a step with 16, 48 and 96 latitudes"
)
OF_COSTS: tuple[Question[Costs], ...] = (
    Question(
        "DDPG is cheaper to train than TD3",
        COUNTED,
        _costs_less("td3"),
        tested=False,
    ),
    Question(
        "DDPG is cheaper to train than TQC",
        COUNTED,
        _costs_less("tqc"),
        tested=False,
    ),
)
