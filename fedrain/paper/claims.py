"""What the paper claims, and what the figures say of it: the published ones, and ours.

A claim is put to our cells of each preset alone, never to cells of two. What is said of it is of
the preset ``published``, which reproduces the published runs, as soon as all its cells are there.
"""

from collections.abc import Callable
from dataclasses import dataclass

from fedrain.paper.judgement import (
    Finding,
    Source,
    Verdict,
    our_costs,
)
from fedrain.paper.matrix import REPRODUCTIONS
from fedrain.paper.published import published_bands, published_core_milliseconds
from fedrain.paper.questions import OF_BANDS, OF_COSTS, OF_CURVES
from fedrain.paper.results import Results, experiments_of, our_bands


@dataclass(frozen=True)
class Claim:
    """A claim of the paper, the test that decides it, and the verdicts.

    Args:
        statement: What the paper says.
        test: How it is decided.
        published: The finding in the published figures; None where they do not allow one.
        by_preset: That in our cells of each preset that reproduces the paper.
        beside: What ours is compared with.
    """

    statement: str
    test: str
    published: Finding | None
    by_preset: dict[str, Finding]
    beside: str = "published"

    @property
    def preset(self) -> str:
        """The preset that stands for the paper: the first that has all cells of the claim."""
        judged = (p for p, found in self.by_preset.items() if found.verdict != Verdict.OPEN)
        return next(judged, REPRODUCTIONS[0])

    @property
    def ours(self) -> Finding:
        """The finding in our cells of that preset."""
        return self.by_preset[self.preset]


def judge_claims(results: Results) -> list[Claim]:
    """Put every claim of the paper to the published figures and to ours.

    Args:
        results: What :func:`load_results` read. Claims that need a cell which is not in it get the
            verdict :attr:`Verdict.OPEN`.

    Returns:
        The claims in the order of the tables: convergence, cost, skill.

    Example:
        >>> claims = judge_claims(load_results("results/paper"))
        >>> [claim.by_preset["paper"].verdict.value for claim in claims[6:9]]
        ['does not hold', 'does not hold', 'points that way']
    """
    ours = {preset: experiments_of(results, preset) for preset in REPRODUCTIONS}
    bands = {preset: our_bands(found) for preset, found in ours.items()}
    costs = {preset: our_costs(found) for preset, found in ours.items()}
    theirs = published_core_milliseconds
    return [
        *(Claim(q.statement, q.test, None, _each(q.put_to, ours)) for q in OF_CURVES),
        *(
            Claim(q.statement, q.test, q.put_to(theirs), _each(q.put_to, costs), "published way")
            for q in OF_COSTS
        ),
        *(
            Claim(q.statement, q.test, q.put_to(published_bands), _each(q.put_to, bands))
            for q in OF_BANDS
        ),
    ]


def _each(put_to: Callable[[Source], Finding], sources: dict[str, Source]) -> dict[str, Finding]:
    return {preset: put_to(source) for preset, source in sources.items()}
