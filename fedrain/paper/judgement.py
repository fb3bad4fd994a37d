"""How a claim is decided: single statements, a test of each, and a verdict on all of them.

A statement is, for instance, that one error is below another in one band. A one-sided test at the
5 % level backs it, refutes it, or does neither. A claim is then judged in this order: it

- holds if enough statements are backed: five in six, unless the paper itself says less ("often",
  "in several cases");
- does not hold if at least one in three is refuted, no fewer than are backed, and more than such a
  claim leaves room for;
- points that way if the figures of enough statements do and none is refuted;
- holds in part if one in three is backed and half point that way;
- is mixed if one in three is backed or refuted;
- and is otherwise not decided by ten seeds.

What needs no test, such as which of two costs is lower, is counted.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import product
from typing import Any, Generic, TypeVar

import numpy as np
from jaxtyping import Bool, Float

from fedrain.climate import BAND_NAMES
from fedrain.paper.matrix import EPISODE_STEPS, Cell, cells
from fedrain.paper.results import Bands, Results, static_bands
from fedrain.paper.statistics import (
    LEVEL,
    Sample,
    below,
    converged_at,
    earlier,
    most,
    pooled,
    rises_steadily,
    sum_below_zero,
)

NEARLY_ALL, SOME = 5 / 6, 1 / 3
#: How far from where it ends a policy that has converged may be, as a share of its gain.
TOLERANCES = {"a tenth": 0.1, "a fifth": 0.2}
ROUNDING = 1e-9  # of shares, and of p-values, so that equal figures point neither way
EVERYWHERE = tuple(range(len(BAND_NAMES)))


class Verdict(StrEnum):
    """The verdict on a claim, from the least cautious to the most."""

    HOLDS = "holds"
    POINTS = "points that way"
    PARTLY = "holds in part"
    FAILS = "does not hold"
    MIXED = "mixed"
    UNDECIDED = "not decided by ten seeds"
    OPEN = "not run yet"


@dataclass(frozen=True)
class Finding:
    """The verdict on a claim in one source of figures, and how its statements divide.

    Args:
        verdict: On the claim.
        evidence: How many of its statements hold, in words.
    """

    verdict: Verdict
    evidence: str


class MissingCellError(Exception):
    """A claim needs a cell that a source does not have."""


#: A statement: its name, and the p-value of the null hypothesis that it is false. Below ½ the
#: figures point its way; near 1 the opposite is significant.
Statement = tuple[str, float]
#: Statements about means and spreads.
OfBands = Callable[[Bands], Iterator[Statement]]
#: Statements about learning curves, given how near counts as converged.
OfCurves = Callable[[Results, float], Iterator[Statement]]
#: Processor time of an algorithm, by what else it depends on.
Costs = Callable[[str], dict[str, float]]
#: The cell that another one is compared with; None is the static model.
Other = Callable[[Cell], Cell | None]

Source = TypeVar("Source")
Found = TypeVar("Found")


@dataclass(frozen=True)
class Question(Generic[Source]):
    """A claim as statements about a source of figures, and the share of them that is enough."""

    statement: str
    test: str
    says: Callable[[Source], Iterator[Statement]]
    enough: float = NEARLY_ALL
    tested: bool = True

    def put_to(self, source: Source) -> Finding:
        """The verdict, or that it is open where the source lacks a cell that it needs."""
        try:
            statements = list(self.says(source))
        except MissingCellError as missing:
            return Finding(Verdict.OPEN, f"no complete result of {missing} yet")
        return weigh(statements, self.enough) if self.tested else count(statements, self.enough)


@dataclass(frozen=True)
class CurveQuestion:
    """A claim on learning curves, as statements that depend on how near counts as converged.

    The paper reads convergence off its figures by eye, so a narrow and a wide tolerance are tried.
    """

    statement: str
    test: str
    says: OfCurves
    enough: float = NEARLY_ALL

    def put_to(self, results: Results) -> Finding:
        """The more cautious of the verdicts under both tolerances; mixed if they contradict."""
        findings = {name: self._within(near).put_to(results) for name, near in TOLERANCES.items()}
        verdict = max((found.verdict for found in findings.values()), key=list(Verdict).index)
        if verdict == Verdict.OPEN:
            return next(iter(findings.values()))
        if verdict == Verdict.FAILS and any(f.verdict != verdict for f in findings.values()):
            verdict = Verdict.MIXED
        evidence = "; ".join(f"{name}: {found.evidence}" for name, found in findings.items())
        return Finding(verdict, evidence)

    def _within(self, tolerance: float) -> Question[Results]:
        def says(results: Results) -> Iterator[Statement]:
            return self.says(results, tolerance)

        return Question(self.statement, self.test, says, self.enough)


def count(statements: list[Statement], enough: float = NEARLY_ALL) -> Finding:
    """The verdict on statements that are true (0), false (1), or neither (½)."""
    true, false = (sum(p == which for _, p in statements) for which in (0.0, 1.0))
    verdict = _decide(len(statements), enough, true, true, false)
    return Finding(verdict, f"true of {true} of {len(statements)}")


def weigh(statements: list[Statement], enough: float = NEARLY_ALL) -> Finding:
    """The verdict on tested statements, of which the share ``enough`` is enough."""
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


def paper_cells(
    algos: tuple[str, ...] = ("ddpg",),
    envs: tuple[str, ...] = ("ebm-v2", "ebm-v3"),
    agents: tuple[int, ...] = (6,),
    schemes: tuple[str, ...] = ("fed05",),
) -> list[Cell]:
    """Cells that a claim is about, by default those of the paper's figures: DDPG, six agents."""
    return [
        Cell(env, number, scheme, algo, "paper")
        for algo, env, number, scheme in product(algos, envs, agents, schemes)
    ]


def static_model(cell: Cell) -> None:
    """No agent at all."""
    del cell


def changed(**fields: Any) -> Other:
    """The same cell but for these fields."""
    return lambda cell: replace(cell, **fields)


def compare(
    test: Callable[[Sample, Sample], float],
    group: list[Cell],
    other: Other,
    places: tuple[int, ...] = EVERYWHERE,
) -> OfBands:
    """Test each cell against another one, band by band."""

    def statements(bands: Bands) -> Iterator[Statement]:
        for cell, place in product(group, places):
            one, two = (errors_of(bands, which)[place] for which in (cell, other(cell)))
            yield name_of(cell, place), test(one, two)

    return statements


def compare_changes(
    group: list[Cell], along: dict[str, Any], against: dict[str, Any], relative: bool = False
) -> OfBands:
    """Test whether an error changes by less than that of another cell, in K or relative to itself.

    The change is from the cell with the fields ``along`` to the cell itself; the other cell has the
    fields ``against``.
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
    """Test each of some bands of a cell against other bands of it pooled."""

    def statements(bands: Bands) -> Iterator[Statement]:
        for cell, place in product(group, places):
            errors = errors_of(bands, cell)
            rest = pooled([errors[other] for other in others])
            yield name_of(cell, place), test(errors[place], rest)

    return statements


def above(first: Sample, second: Sample) -> float:
    """P-value of Welch's test that the first mean is not above the second."""
    return below(second, first)


def below_half(first: Sample, second: Sample) -> float:
    """P-value of Welch's test that the first mean is not below half the second."""
    return below(first, second.times(0.5))


def comparable(first: Sample, second: Sample) -> float:
    """P-value of Welch's test that the first mean is a tenth or more above the second."""
    return below(first, second.times(1.1))


def converge_faster(group: list[Cell], other: Callable[[Cell], Cell]) -> OfCurves:
    """Test whether the seeds of each cell converge earlier than those of another."""

    def statements(results: Results, tolerance: float) -> Iterator[Statement]:
        for cell in group:
            steps, others = (_steps(results, which, tolerance) for which in (cell, other(cell)))
            yield experiment_name(cell), earlier(steps, others)

    return statements


def most_converge(
    group: list[Cell], when: Callable[[Float[np.ndarray, " seed"]], Bool[np.ndarray, " seed"]]
) -> OfCurves:
    """Test whether most seeds of each cell converge within the steps that ``when`` admits."""

    def statements(results: Results, tolerance: float) -> Iterator[Statement]:
        for cell in group:
            yield experiment_name(cell), most(when(_steps(results, cell, tolerance)))

    return statements


def most_rise(group: list[Cell]) -> OfCurves:
    """Test whether the returns of most seeds of each cell rise without falling back."""

    def statements(results: Results, tolerance: float) -> Iterator[Statement]:
        for cell in group:
            yield experiment_name(cell), most(rises_steadily(_curves(results, cell), tolerance))

    return statements


def _steps(results: Results, cell: Cell, tolerance: float) -> Float[np.ndarray, " seed"]:
    return EPISODE_STEPS * converged_at(_curves(results, cell), tolerance)


def _curves(results: Results, cell: Cell) -> Float[np.ndarray, "seed episode"]:
    return -np.log(-known(results.get(cell), cell).learning)  # on the paper's log scale


def costs_less(other: str) -> Callable[[Costs], Iterator[Statement]]:
    """Count where DDPG takes less processor time than another algorithm."""

    def statements(costs: Costs) -> Iterator[Statement]:
        theirs = costs(other)
        for where, cost in costs("ddpg").items():
            yield where, float(0.5 + 0.5 * np.sign(cost - theirs[where]))

    return statements


def our_costs(results: Results) -> Costs:
    """Core-hours that are stored with the results, by cell."""

    def of(algo: str) -> dict[str, float]:
        end = f"-{algo}-paper"
        return {
            cell.name.removesuffix(end): known(results.get(cell), cell).core_hours
            for cell in cells(f"*{end}")
        }

    return of


def errors_of(bands: Bands, cell: Cell | None) -> list[Sample]:
    """Errors of a cell in a source, or of the static model."""
    if cell is None:
        return static_bands()
    return known(bands(cell), cell)


def known(found: Found | None, cell: Cell) -> Found:
    """What a source has of a cell; an error if it has nothing."""
    if found is None:
        raise MissingCellError(experiment_name(cell))
    return found


def name_of(cell: Cell, place: int) -> str:
    """A statement's name."""
    return f"{experiment_name(cell)} {BAND_NAMES[place]}"


def experiment_name(cell: Cell) -> str:
    """A cell's name without the preset."""
    return cell.name.removesuffix(f"-{cell.preset}")
