"""How a claim is decided: single statements, a test of each, and a verdict on all.

A statement is, for instance, that one error is below another in one band. A one-sided test speaks
for it, against it, or neither, at the 5 % level. A claim holds when enough of its statements are
spoken for, which is five in six unless the paper itself says less ("often", "in several cases"); it
does not hold when at least one in three is spoken against, no fewer than are spoken for, and more
than such a claim leaves room for; the figures point that way when those of enough statements do and
no test speaks against one, but tests speak for too few; it holds in part when one in three is
spoken for and half point that way; it is mixed when one in three is spoken for or against; and
otherwise ten seeds do not decide it. What needs no test, such as which of two costs is the lower,
is counted.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import product
from typing import Any, Generic, TypeVar

from fedrain.climate import BAND_NAMES
from fedrain.paper.matrix import Cell
from fedrain.paper.results import Bands, static_bands
from fedrain.paper.statistics import LEVEL, Sample, below, pooled, sum_below_zero

NEARLY_ALL, SOME = 5 / 6, 1 / 3
ROUNDING = 1e-9  # of p-values, where figures that are equal speak for neither, and of shares
EVERYWHERE = tuple(range(len(BAND_NAMES)))


class Verdict(StrEnum):
    """What becomes of a claim, in the order of caution."""

    HOLDS = "holds"
    POINTS = "points that way"
    PARTLY = "holds in part"
    FAILS = "does not hold"
    MIXED = "mixed"
    UNDECIDED = "not decided by ten seeds"
    OPEN = "not run yet"


@dataclass(frozen=True)
class Finding:
    """What becomes of a claim in one source of figures, and by how many of its statements."""

    verdict: Verdict
    evidence: str


class MissingCellError(Exception):
    """A claim needs a cell that a source does not have."""


#: A statement: its name, and the p-value of its opposite. Below ½ the figures point that way;
#: near 1 the opposite is significant.
Statement = tuple[str, float]
#: What a claim says, of means and spreads.
OfBands = Callable[[Bands], Iterator[Statement]]

Source = TypeVar("Source")
Found = TypeVar("Found")


@dataclass(frozen=True)
class Question(Generic[Source]):
    """A claim as statements about a source of figures, and which share of them is enough."""

    statement: str
    test: str
    says: Callable[[Source], Iterator[Statement]]
    enough: float = NEARLY_ALL
    tested: bool = True

    def put_to(self, source: Source) -> Finding:
        """The verdict on it, if all that it needs is there."""
        try:
            statements = list(self.says(source))
        except MissingCellError as missing:
            return Finding(Verdict.OPEN, f"no whole result of {missing} yet")
        return weigh(statements, self.enough) if self.tested else count(statements, self.enough)


#: The cell that another one is compared with; None is the static model.
Other = Callable[[Cell], Cell | None]


def count(statements: list[Statement], enough: float = NEARLY_ALL) -> Finding:
    """The verdict on statements that are true (0), false (1), or neither (½)."""
    true, false = (sum(p == which for _, p in statements) for which in (0.0, 1.0))
    verdict = _decide(len(statements), enough, true, true, false)
    return Finding(verdict, f"true of {true} of {len(statements)}")


def weigh(statements: list[Statement], enough: float = NEARLY_ALL) -> Finding:
    """The verdict on statements, of which such a share is enough."""
    number = len(statements)
    pointing = sum(p < 0.5 - ROUNDING for _, p in statements)
    backed = sum(p < LEVEL for _, p in statements)
    refuted = [name for name, p in statements if p > 1 - LEVEL]
    verdict = _decide(number, enough, pointing, backed, len(refuted))
    evidence = f"{pointing} of {number} point that way, {backed} significantly"
    evidence += f"; {len(refuted)} significantly against" if refuted else "; none against"
    if 0 < len(refuted) <= 4:
        evidence += f": {', '.join(refuted)}"
    return Finding(verdict, evidence)


def _decide(number: int, enough: float, pointing: int, backed: int, refuted: int) -> Verdict:
    if backed >= enough * number:
        return Verdict.HOLDS
    if refuted >= max(SOME * number, backed) and refuted > (1 - enough) * number + ROUNDING:
        return Verdict.FAILS
    if pointing >= enough * number and not refuted:
        return Verdict.POINTS
    if backed >= SOME * number and pointing >= number / 2:
        return Verdict.PARTLY
    if backed + refuted >= SOME * number:
        return Verdict.MIXED
    return Verdict.UNDECIDED


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


def compare_changes(
    group: list[Cell], along: dict[str, Any], against: dict[str, Any], relative: bool = False
) -> OfBands:
    """Whether an error changes by less than that of another cell does, in K or relative to itself.

    The change is that from the cell with ``along`` in it; the other cell has ``against`` in it.
    """

    def statements(bands: Bands) -> Iterator[Statement]:
        for cell, place in product(group, EVERYWHERE):
            terms = (
                (cell, 1.0),
                (replace(cell, **along), -1.0),
                (replace(cell, **against), -1.0),
                (replace(cell, **along, **against), 1.0),
            )
            errors = [(errors_of(bands, which)[place], sign) for which, sign in terms]
            samples = ((one.log() if relative else one).times(sign) for one, sign in errors)
            yield name_of(cell, place), sum_below_zero(*samples)

    return statements


def compare_places(
    test: Callable[[Sample, Sample], float],
    group: list[Cell],
    places: tuple[int, ...],
    others: tuple[int, ...],
) -> OfBands:
    """A test of each of some bands of a cell against others of it together."""

    def statements(bands: Bands) -> Iterator[Statement]:
        for cell, place in product(group, places):
            errors = errors_of(bands, cell)
            rest = pooled([errors[other] for other in others])
            yield name_of(cell, place), test(errors[place], rest)

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
    return known(bands(cell), cell)


def known(found: Found | None, cell: Cell) -> Found:
    """What a source has of a cell, if it has it."""
    if found is None:
        raise MissingCellError(cell.name)
    return found


def name_of(cell: Cell, place: int) -> str:
    """A statement's name."""
    return f"{cell.name.removesuffix('-paper')} {BAND_NAMES[place]}"
