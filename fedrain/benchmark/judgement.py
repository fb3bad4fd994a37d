"""How a claim is decided: single statements, a test of each, and a verdict on all.

A statement is, for instance, that one error is below another in one band. A one-sided test speaks
for it, against it, or neither, at the 5 % level. A claim holds when at least five in six of its
statements are spoken for; it does not hold when at least one in three is spoken against, and no
fewer than are spoken for; it holds in part when one in three is spoken for; and otherwise ten seeds
do not decide it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import product
from typing import Any

from fedrain.benchmark.matrix import Cell
from fedrain.benchmark.results import Bands, Results, static_bands
from fedrain.benchmark.statistics import LEVEL, Sample, below
from fedrain.climate import BAND_NAMES

NEARLY_ALL, SOME = 5 / 6, 1 / 3
EVERYWHERE = tuple(range(len(BAND_NAMES)))


class Verdict(StrEnum):
    """What becomes of a claim."""

    HOLDS = "holds"
    PARTLY = "holds in part"
    FAILS = "does not hold"
    UNDECIDED = "not decided by ten seeds"
    OPEN = "not run yet"


@dataclass(frozen=True)
class Finding:
    """What becomes of a claim in one source of figures, and by how many of its statements."""

    verdict: Verdict
    evidence: str


class MissingCellError(Exception):
    """A claim needs a cell that a source does not have."""


#: A statement: its name, and the p-value of its opposite. Near 1, that opposite is significant.
Statement = tuple[str, float]
#: What a claim says, of means and spreads.
OfBands = Callable[[Bands], Iterator[Statement]]
#: What a claim says, of all that is kept of a result.
OfResults = Callable[[Results], Iterator[Statement]]
#: The cell that another one is compared with; None is the static model.
Other = Callable[[Cell], Cell | None]


def judge(statements: Iterator[Statement]) -> Finding:
    """The verdict on a claim, if all that it needs is there."""
    try:
        return weigh(list(statements))
    except MissingCellError as missing:
        return Finding(Verdict.OPEN, f"no result of {missing} yet")


def weigh(statements: list[Statement]) -> Finding:
    """The verdict on statements."""
    number = len(statements)
    backed = [name for name, p in statements if p < LEVEL]
    refuted = [name for name, p in statements if p > 1 - LEVEL]
    if len(backed) >= NEARLY_ALL * number:
        verdict = Verdict.HOLDS
    elif len(refuted) >= max(SOME * number, len(backed)):
        verdict = Verdict.FAILS
    elif len(backed) >= SOME * number:
        verdict = Verdict.PARTLY
    else:
        verdict = Verdict.UNDECIDED
    evidence = f"{len(backed)} of {number} for it, {len(refuted)} against"
    if 0 < len(refuted) <= 4:
        evidence += f": {', '.join(refuted)}"
    return Finding(verdict, evidence)


def grid(
    algos: tuple[str, ...] = ("ddpg",),
    envs: tuple[str, ...] = ("ebm-v2", "ebm-v3"),
    agents: tuple[int, ...] = (6,),
    schemes: tuple[str, ...] = ("fed05",),
) -> list[Cell]:
    """Cells that a claim is about; the paper's figures are of DDPG with six agents."""
    return [
        Cell(env, number, scheme, algo, "paper")
        for algo, env, number, scheme in product(algos, envs, agents, schemes)
    ]


def single_agent(cell: Cell) -> Cell:
    """The same algorithm with one agent for the globe."""
    return Cell("ebm-v1", 1, "nofed", cell.algo, "paper")


def static_model(cell: Cell) -> None:
    """No agent at all."""
    del cell


def changed(**fields: Any) -> Other:
    """The same cell but for the scheme, the algorithm or the environment."""
    return lambda cell: replace(cell, **fields)


def compare(
    test: Callable[[Sample, Sample], float],
    group: list[Cell],
    other: Other,
    places: tuple[int, ...] = EVERYWHERE,
) -> OfBands:
    """A test of each cell against another one, band by band."""

    def statements(bands: Bands) -> Iterator[Statement]:
        for cell, place in product(group, places):
            one, two = (errors_of(bands, which)[place] for which in (cell, other(cell)))
            yield name_of(cell, place), test(one, two)

    return statements


def above(first: Sample, second: Sample) -> float:
    """Whether the first mean is above the second."""
    return below(second, first)


def below_half(first: Sample, second: Sample) -> float:
    """Whether the first mean is below half the second."""
    return below(first, second.times(0.5))


def comparable(first: Sample, second: Sample) -> float:
    """Whether the first mean is no more than a tenth above the second."""
    return below(first, second.times(1.1))


def errors_of(bands: Bands, cell: Cell | None) -> list[Sample]:
    """What a source has of a cell, or of the static model."""
    if cell is None:
        return static_bands()
    found = bands(cell)
    if found is None:
        raise MissingCellError(cell.name)
    return found


def name_of(cell: Cell, place: int) -> str:
    """A statement's name."""
    return f"{cell.name.removesuffix('-paper')} {BAND_NAMES[place]}"
