"""What the paper claims of training: how fast it converges, and what it costs.

Learning curves are drawn on a log scale in the paper, so they are judged by the logarithm of
−return here. They are not published as figures. Neither are costs: in place of them stands what the
published way of working takes on the machine that ours were measured on.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from fedrain.benchmark.judgement import Question, Statement, grid, known, single_agent
from fedrain.benchmark.matrix import DECOMPOSITIONS, EPISODE_STEPS, PRESETS, SCHEMES, Cell
from fedrain.benchmark.results import Results
from fedrain.benchmark.statistics import converged_at, earlier, most, rises_steadily

EARLY, LATE = 5_000, 10_000  # steps
FEDERATED = grid(tuple(PRESETS), agents=(2, 6), schemes=("fed05", "fed10"))
SINGLE = grid(tuple(PRESETS), envs=("ebm-v1",), agents=(1,), schemes=("nofed",))

#: Core-hours of the training of a cell; None where a source has no such cell.
Costs = Callable[[Cell], float | None]


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
        for env, agents in (("ebm-v1", 1), *DECOMPOSITIONS):
            for scheme in ("nofed",) if env == "ebm-v1" else SCHEMES:
                cell = Cell(env, agents, scheme, "ddpg", "paper")
                ours, theirs = (known(costs(c), c) for c in (cell, replace(cell, algo=other)))
                yield cell.name, 0.0 if ours < theirs else 1.0

    return statements


def our_costs(results: Results) -> Costs:
    """What is stored with the results."""
    return lambda cell: results[cell].core_hours if cell in results else None


OF_CURVES: tuple[Question[Results], ...] = (
    Question(
        "Training converges faster in ebm-v2 and ebm-v3 than in ebm-v1",
        "Mann–Whitney test of the steps until nine tenths of the gain in log(−return) are kept, "
        "each algorithm, two and six agents, fed05 and fed10",
        _converges_faster,
    ),
    Question(
        "Most policies are stable by 5 000 steps in ebm-v2 and ebm-v3",
        "sign test, whether most seeds keep nine tenths of their gain from then on, the same cells",
        _converges_early,
    ),
    Question(
        "In ebm-v1 training converges after 10 000 steps only",
        "the same sign test, each algorithm",
        _converges_late,
    ),
    Question(
        "Two federated agents converge monotonically (DDPG)",
        "sign test, whether most seeds never fall back by more than a tenth of their gain in "
        "log(−return), ebm-v2 and ebm-v3, fed05 and fed10",
        _rises,
    ),
)

OF_COSTS: tuple[Question[Costs], ...] = (
    Question(
        "DDPG is cheaper to train than TD3",
        "processor time of each of thirteen cells, without a test; as published: of climlab and "
        "PyTorch, measured here",
        _costs_less("td3"),
    ),
    Question(
        "DDPG is cheaper to train than TQC",
        "the same",
        _costs_less("tqc"),
    ),
)
