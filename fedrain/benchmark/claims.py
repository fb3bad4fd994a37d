"""What the paper claims, and the test that decides each claim.

A claim is a list of single statements that a test can decide. It holds when at least five in six
of them do, each at the 5 % level; it holds in part when at least one in three does. The tests need
means and spreads only, so that the same claim is put to the published figures and to ours;
convergence needs the curves, which are not published.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from jaxtyping import Float
from scipy import stats

from fedrain.benchmark.matrix import DECOMPOSITIONS, PRESETS, SCHEMES, Cell
from fedrain.benchmark.results import Bands, Results, our_bands, published_bands, static_skill
from fedrain.benchmark.statistics import (
    LEVEL,
    Sample,
    below,
    below_constant,
    converged_at,
    differ,
    more_variable,
)
from fedrain.climate import BAND_NAMES

NEARLY_ALL, SOME = 5 / 6, 1 / 3
TROPICS = (2, 3)
POLES = (0, 5)


class Verdict(StrEnum):
    """What becomes of a claim."""

    HOLDS = "holds"
    PARTLY = "holds in part"
    FAILS = "does not hold"
    OPEN = "cannot be told"


@dataclass(frozen=True)
class Finding:
    """How many of a claim's statements hold in one source of figures."""

    verdict: Verdict
    evidence: str


@dataclass(frozen=True)
class Claim:
    """A claim of the paper and what decides it."""

    statement: str
    test: str
    published: Finding | None
    ours: Finding


class MissingCellError(Exception):
    """A claim needs a cell that a source does not have."""


#: Single statements of a claim: a name, and whether it holds.
Statements = Callable[[Bands], Iterator[tuple[str, bool]]]


def judge_claims(results: Results) -> list[Claim]:
    """Every claim, put to the published figures and to ours."""
    ours = our_bands(results)
    claims = [
        Claim(statement, test, _judge(statements, published_bands), _judge(statements, ours))
        for statement, test, statements in CLAIMS
    ]
    return [_convergence(results), *claims]


def _judge(statements: Statements, bands: Bands) -> Finding:
    try:
        found = list(statements(bands))
    except MissingCellError as missing:
        return Finding(Verdict.OPEN, f"no result of {missing} yet")
    return _finding(found)


def _finding(found: list[tuple[str, bool]]) -> Finding:
    failing = [name for name, holds in found if not holds]
    share = 1 - len(failing) / len(found)
    verdict = (
        Verdict.HOLDS if share >= NEARLY_ALL else Verdict.PARTLY if share >= SOME else Verdict.FAILS
    )
    evidence = f"{len(found) - len(failing)} of {len(found)}"
    if failing and len(failing) <= 4:
        evidence += f"; not in {', '.join(failing)}"
    return Finding(verdict, evidence)


def _get(bands: Bands, env: str, agents: int, scheme: str, algo: str) -> list[Sample]:
    cell = Cell(env, agents, scheme, algo, "paper")
    found = bands(cell)
    if found is None:
        raise MissingCellError(cell.name)
    return found


def _federated_beats(
    schemes: tuple[str, ...], other: str, agents: tuple[int, ...] = (6,)
) -> Statements:
    def statements(bands: Bands) -> Iterator[tuple[str, bool]]:
        for env in ("ebm-v2", "ebm-v3"):
            for number in agents:
                against = (
                    _get(bands, "ebm-v1", 1, "nofed", "ddpg")
                    if other == "ebm-v1"
                    else _get(bands, env, number, other, "ddpg")
                )
                for scheme in schemes:
                    found = _get(bands, env, number, scheme, "ddpg")
                    for band, one, two in zip(BAND_NAMES, found, against, strict=True):
                        yield f"{env} a{number} {scheme} {band}", below(one, two) < LEVEL

    return statements


def _beats_static(bands: Bands) -> Iterator[tuple[str, bool]]:
    for env in ("ebm-v2", "ebm-v3"):
        found = _get(bands, env, 6, "fed05", "ddpg")
        for band, sample, static in zip(BAND_NAMES, found, static_skill().bands, strict=True):
            yield f"{env} {band}", below_constant(sample, static) < LEVEL


def _halves(reference: str) -> Statements:
    def statements(bands: Bands) -> Iterator[tuple[str, bool]]:
        single = _get(bands, "ebm-v1", 1, "nofed", "ddpg")
        for env in ("ebm-v2", "ebm-v3"):
            found = _get(bands, env, 6, "fed05", "ddpg")
            for i in TROPICS:
                p = (
                    below(found[i], single[i].times(0.5))
                    if reference == "ebm-v1"
                    else below_constant(found[i], 0.5 * static_skill().bands[i])
                )
                yield f"{env} {BAND_NAMES[i]}", p < LEVEL

    return statements


def _v3_beats_v2(bands: Bands) -> Iterator[tuple[str, bool]]:
    for agents in (2, 6):
        v2, v3 = (_get(bands, env, agents, "fed05", "ddpg") for env in ("ebm-v2", "ebm-v3"))
        for band, one, two in zip(BAND_NAMES, v3, v2, strict=True):
            yield f"a{agents} {band}", below(one, two) < LEVEL


def _fed10_varies(bands: Bands) -> Iterator[tuple[str, bool]]:
    for env, agents in DECOMPOSITIONS:
        five, ten = (_get(bands, env, agents, s, "ddpg") for s in ("fed05", "fed10"))
        for band, one, two in zip(BAND_NAMES, ten, five, strict=True):
            yield f"{env} a{agents} {band}", more_variable(one, two) < LEVEL


def _poles_no_worse(bands: Bands) -> Iterator[tuple[str, bool]]:
    single = _get(bands, "ebm-v1", 1, "nofed", "ddpg")
    for env in ("ebm-v2", "ebm-v3"):
        for scheme in ("fed05", "fed10"):
            found = _get(bands, env, 6, scheme, "ddpg")
            for i in POLES:
                worse = found[i].mean > single[i].mean and differ(found[i], single[i]) < LEVEL
                yield f"{env} {scheme} {BAND_NAMES[i]}", not worse


def _coarse_is_good(bands: Bands) -> Iterator[tuple[str, bool]]:
    for env in ("ebm-v2", "ebm-v3"):
        for scheme in ("fed05", "fed10"):
            found = _get(bands, env, 2, scheme, "ddpg")
            for band, sample, static in zip(BAND_NAMES, found, static_skill().bands, strict=True):
                yield f"{env} {scheme} {band}", below_constant(sample, static) < LEVEL


def _ddpg_is_best(bands: Bands) -> Iterator[tuple[str, bool]]:
    for other in ("td3", "tqc"):
        for env, agents in DECOMPOSITIONS:
            for scheme in SCHEMES:
                found = _get(bands, env, agents, scheme, "ddpg")
                against = _get(bands, env, agents, scheme, other)
                pairs = [(a.mean, b.mean) for a, b in zip(found, against, strict=True)]
                lower = np.mean([a for a, _ in pairs]) < np.mean([b for _, b in pairs])
                yield f"{env} a{agents} {scheme} {other}", bool(lower)


def _others_vary(environments: tuple[str, ...]) -> Statements:
    def statements(bands: Bands) -> Iterator[tuple[str, bool]]:
        for other in ("td3", "tqc"):
            for env in environments:
                for agents in (2, 6):
                    for scheme in SCHEMES:
                        found = _get(bands, env, agents, scheme, other)
                        against = _get(bands, env, agents, scheme, "ddpg")
                        wider = np.mean([s.std for s in found]) > np.mean([s.std for s in against])
                        yield f"{other} {env} a{agents} {scheme}", bool(wider)

    return statements


CLAIMS: tuple[tuple[str, str, Statements], ...] = (
    (
        "fed05 has a lower error than the static model in nearly all bands (DDPG, six agents)",
        "Student's test of the mean against the static model's error, each band of ebm-v2 and v3",
        _beats_static,
    ),
    (
        "fed05 has a lower error than nofed in nearly all bands (DDPG, six agents)",
        "Welch's test, one-sided, each band of ebm-v2 and ebm-v3",
        _federated_beats(("fed05",), "nofed"),
    ),
    (
        "fed05 halves the error in the tropics against the single agent (DDPG, six agents)",
        "Welch's test against half the error of ebm-v1, two tropical bands of ebm-v2 and ebm-v3",
        _halves("ebm-v1"),
    ),
    (
        "fed05 halves the error in the tropics against the static model (DDPG, six agents)",
        "Student's test against half the static error, two tropical bands of ebm-v2 and ebm-v3",
        _halves("static"),
    ),
    (
        "The gains are more pronounced in ebm-v3 than in ebm-v2 (DDPG, fed05)",
        "Welch's test, one-sided, each band with two and with six agents",
        _v3_beats_v2,
    ),
    (
        "fed10 still has a lower error than nofed (DDPG, six agents)",
        "Welch's test, one-sided, each band of ebm-v2 and ebm-v3",
        _federated_beats(("fed10",), "nofed"),
    ),
    (
        "fed10 is more variable than fed05 (DDPG)",
        "F test of the variances, one-sided, each band of ebm-v2 and v3, two and six agents",
        _fed10_varies,
    ),
    (
        "At the poles federated agents are no worse than the single agent (DDPG, six agents)",
        "Welch's test, two-sided: not significantly worse than ebm-v1 in either polar band",
        _poles_no_worse,
    ),
    (
        "Two federated agents still reach low errors (DDPG)",
        "Student's test of the mean against the static model's error, fed05 and fed10, each band",
        _coarse_is_good,
    ),
    (
        "DDPG has lower errors than TD3 and TQC",
        "mean over the bands, in each of the twelve federated cells, against either",
        _ddpg_is_best,
    ),
    (
        "TD3 and TQC vary more from seed to seed than DDPG",
        "mean standard deviation over the bands, in each of the twelve federated cells",
        _others_vary(("ebm-v2", "ebm-v3")),
    ),
    (
        "TD3 and TQC are unstable in ebm-v3",
        "mean standard deviation over the bands above DDPG's, in each cell of ebm-v3",
        _others_vary(("ebm-v3",)),
    ),
)


def _convergence(results: Results) -> Claim:
    statement = "Training converges faster in ebm-v2 and ebm-v3 than in ebm-v1"
    test = (
        "Mann–Whitney test, one-sided, of the steps until nine tenths of the gain, "
        "each algorithm, two and six agents, fed05 and fed10"
    )
    found = []
    try:
        for algo in PRESETS:
            single = _steps(results, Cell("ebm-v1", 1, "nofed", algo, "paper"))
            for env, agents in DECOMPOSITIONS:
                for scheme in ("fed05", "fed10"):
                    steps = _steps(results, Cell(env, agents, scheme, algo, "paper"))
                    p = stats.mannwhitneyu(steps, single, alternative="less").pvalue
                    found.append((f"{algo} {env} a{agents} {scheme}", bool(p < LEVEL)))
    except MissingCellError as missing:
        return Claim(statement, test, None, Finding(Verdict.OPEN, f"no result of {missing} yet"))
    return Claim(statement, test, None, _finding(found))


def _steps(results: Results, cell: Cell) -> Float[np.ndarray, " seed"]:
    if cell not in results:
        raise MissingCellError(cell.name)
    return converged_at(results[cell].learning)
