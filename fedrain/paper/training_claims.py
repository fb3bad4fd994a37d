"""What the paper claims of training: how fast it converges, and what it costs.

Learning curves are drawn on a log scale in the paper, so they are judged by the logarithm of
−return here. The paper reads convergence off them by eye, so a claim is judged by a narrow and by a
wide measure of it, and the more cautious verdict counts. Curves are not published as figures.
Neither are costs: beside ours stands what the published way of working takes on the machine that
ours were measured on.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from jaxtyping import Float

from fedrain.paper.judgement import (
    NEARLY_ALL,
    Finding,
    Question,
    Statement,
    Verdict,
    grid,
    known,
    single_agent,
)
from fedrain.paper.matrix import EPISODE_STEPS, PRESETS, Cell, cells
from fedrain.paper.results import Results
from fedrain.paper.statistics import converged_at, earlier, most, rises_steadily

EARLY, LATE = 5_000, 10_000  # steps
#: How far from where it ends a policy may be that has converged, as a share of its gain.
TOLERANCES = {"a tenth": 0.1, "a fifth": 0.2}
SINGLE = grid(tuple(PRESETS), envs=("ebm-v1",), agents=(1,), schemes=("nofed",))

#: Processor time of an algorithm, by what else it depends on.
Costs = Callable[[str], dict[str, float]]


@dataclass(frozen=True)
class CurveQuestion:
    """A claim on learning curves, as statements that depend on how far is near."""

    statement: str
    test: str
    says: Callable[[Results, float], Iterator[Statement]]
    enough: float = NEARLY_ALL

    def put_to(self, results: Results) -> Finding:
        """The more cautious of the verdicts by either measure; mixed if they contradict."""
        findings = {name: self._by(near).put_to(results) for name, near in TOLERANCES.items()}
        verdict = max((found.verdict for found in findings.values()), key=list(Verdict).index)
        if verdict == Verdict.OPEN:
            return next(iter(findings.values()))
        if verdict == Verdict.FAILS and any(f.verdict != verdict for f in findings.values()):
            verdict = Verdict.MIXED
        evidence = "; ".join(f"{name}: {found.evidence}" for name, found in findings.items())
        return Finding(verdict, evidence)

    def _by(self, tolerance: float) -> Question[Results]:
        def says(results: Results) -> Iterator[Statement]:
            return self.says(results, tolerance)

        return Question(self.statement, self.test, says, self.enough)


def _federated(algos: tuple[str, ...]) -> list[Cell]:
    return grid(algos, agents=(2, 6), schemes=("fed05", "fed10"))


def _converges_faster(algo: str, results: Results, tolerance: float) -> Iterator[Statement]:
    for cell in _federated((algo,)):
        steps, of_one = (_steps(results, c, tolerance) for c in (cell, single_agent(cell)))
        yield cell.name, earlier(steps, of_one)


def _converges_early(results: Results, tolerance: float) -> Iterator[Statement]:
    for cell in _federated(tuple(PRESETS)):
        yield cell.name, most(_steps(results, cell, tolerance) <= EARLY)


def _converges_late(results: Results, tolerance: float) -> Iterator[Statement]:
    for cell in SINGLE:
        yield cell.name, most(_steps(results, cell, tolerance) > LATE)


def _rises(results: Results, tolerance: float) -> Iterator[Statement]:
    for cell in grid(agents=(2,), schemes=("fed05", "fed10")):
        yield cell.name, most(rises_steadily(_curves(results, cell), tolerance))


def _steps(results: Results, cell: Cell, tolerance: float) -> Float[np.ndarray, " seed"]:
    return EPISODE_STEPS * converged_at(_curves(results, cell), tolerance)


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


NEAR = "a tenth, or a fifth, of the gain in log(−return)"
OF_CURVES: tuple[CurveQuestion, ...] = (
    *(
        CurveQuestion(
            f"Training converges faster in ebm-v2 and ebm-v3 than in ebm-v1 ({algo.upper()})",
            f"Mann–Whitney test of the steps after which a seed stays within {NEAR} from where it "
            "ends, two and six agents, fed05 and fed10",
            partial(_converges_faster, algo),
        )
        for algo in PRESETS
    ),
    CurveQuestion(
        "Most policies are stable by 5 000 steps in ebm-v2 and ebm-v3",
        f"sign test, whether most seeds stay from then on within {NEAR} from where they end, each "
        "algorithm, two and six agents, fed05 and fed10, of which half are enough",
        _converges_early,
        enough=0.5,
    ),
    CurveQuestion(
        "In ebm-v1 training converges after 10 000 steps only",
        f"sign test, whether only later most seeds stay within {NEAR} from where they end, each "
        "algorithm",
        _converges_late,
    ),
    CurveQuestion(
        "Two federated agents converge monotonically (DDPG)",
        f"sign test, whether most seeds never fall back by more than {NEAR}, ebm-v2 and ebm-v3, "
        "fed05 and fed10",
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
