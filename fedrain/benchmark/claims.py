"""What the paper claims, and the test that decides each claim.

The tests need means and spreads only, so that the same claim is put to the published figures and to
ours; convergence and cost need more than is published.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float
from scipy import stats

from fedrain.benchmark.judgement import (
    EVERYWHERE,
    Finding,
    MissingCellError,
    OfBands,
    OfResults,
    Statement,
    above,
    below_half,
    changed,
    comparable,
    compare,
    errors_of,
    grid,
    judge,
    name_of,
    single_agent,
    static_model,
)
from fedrain.benchmark.matrix import DECOMPOSITIONS, EPISODE_STEPS, PRESETS, SCHEMES, Cell
from fedrain.benchmark.results import Bands, Results, our_bands, published_bands
from fedrain.benchmark.statistics import below, converged_at, more_variable, sum_below_zero

POLES, MIDDLE, TROPICS = (0, 5), (1, 4), (2, 3)
EARLY, LATE = 5_000, 10_000  # steps
ALL_SCHEMES = tuple(SCHEMES)


@dataclass(frozen=True)
class Claim:
    """A claim of the paper and what decides it."""

    statement: str
    test: str
    published: Finding | None
    ours: Finding


def judge_claims(results: Results) -> list[Claim]:
    """Every claim, put to the published figures and to ours."""
    ours = our_bands(results)
    more = [Claim(name, test, None, judge(says(results))) for name, test, says in OF_RESULTS]
    return more + [
        Claim(name, test, judge(says(published_bands)), judge(says(ours)))
        for name, test, says in OF_BANDS
    ]


def _greater_gain(bands: Bands) -> Iterator[Statement]:
    """What fed05 gains on nofed is more in ebm-v3 than in ebm-v2."""
    (cell,) = grid(envs=("ebm-v3",))
    for place in EVERYWHERE:
        gains = []
        for sign, env in ((1.0, "ebm-v3"), (-1.0, "ebm-v2")):
            with_averages = errors_of(bands, replace(cell, env=env))[place]
            without = errors_of(bands, replace(cell, env=env, scheme="nofed"))[place]
            gains += [with_averages.times(sign), without.times(-sign)]
        yield name_of(cell, place), sum_below_zero(*gains)


def _converges_faster(results: Results) -> Iterator[Statement]:
    for cell in grid(tuple(PRESETS), agents=(2, 6), schemes=("fed05", "fed10")):
        ours, single = _steps(results, cell), _steps(results, single_agent(cell))
        p = stats.mannwhitneyu(ours, single, alternative="less").pvalue
        yield cell.name, float(p)


def _converges_by(results: Results) -> Iterator[Statement]:
    for cell in grid(tuple(PRESETS), agents=(2, 6), schemes=("fed05", "fed10")):
        yield cell.name, _most(_steps(results, cell) <= EARLY)
    for cell in grid(tuple(PRESETS), envs=("ebm-v1",), agents=(1,), schemes=("nofed",)):
        yield cell.name, _most(_steps(results, cell) > LATE)


def _most(which: np.ndarray) -> float:
    """P-value of the sign test that no more than half of the seeds are such."""
    number, such = len(which), int(which.sum())
    return float(stats.binom.sf(such - 1, number, 0.5) + stats.binom.sf(such, number, 0.5)) / 2


def _steps(results: Results, cell: Cell) -> Float[np.ndarray, " seed"]:
    if cell not in results:
        raise MissingCellError(cell.name)
    return EPISODE_STEPS * converged_at(results[cell].learning)


def _costs_less(results: Results) -> Iterator[Statement]:
    for env, agents in (("ebm-v1", 1), *DECOMPOSITIONS):
        for other in ("td3", "tqc"):
            for scheme in ("nofed",) if env == "ebm-v1" else SCHEMES:
                cell = Cell(env, agents, scheme, "ddpg", "paper")
                against = replace(cell, algo=other)
                for needed in (cell, against):
                    if needed not in results:
                        raise MissingCellError(needed.name)
                less = results[cell].core_hours < results[against].core_hours
                yield f"{cell.name} {other}", 0.0 if less else 1.0


OF_RESULTS: tuple[tuple[str, str, OfResults], ...] = (
    (
        "Training converges faster in ebm-v2 and ebm-v3 than in ebm-v1",
        "Mann–Whitney test of the steps until nine tenths of the gain are kept, each algorithm, "
        "two and six agents, fed05 and fed10",
        _converges_faster,
    ),
    (
        "Most policies are stable by 5 000 steps in ebm-v2 and ebm-v3, and after 10 000 in ebm-v1",
        "sign test, whether most seeds keep nine tenths of their gain from then on, the same cells",
        _converges_by,
    ),
    (
        "DDPG is cheaper to train than TD3 and TQC",
        "processor time of each of the thirteen cells against either, no test",
        _costs_less,
    ),
)

OF_BANDS: tuple[tuple[str, str, OfBands], ...] = (
    (
        "fed05 has a lower error than the static model in nearly all bands (DDPG, six agents)",
        "Student's test against the static model's error, each band of ebm-v2 and ebm-v3",
        compare(below, grid(), static_model),
    ),
    (
        "fed05 has a lower error than nofed in nearly all bands (DDPG, six agents)",
        "Welch's test, each band of ebm-v2 and ebm-v3",
        compare(below, grid(), changed(scheme="nofed")),
    ),
    (
        "fed05 has a lower error than one agent in tropics and mid-latitudes (DDPG, six agents)",
        "Welch's test against ebm-v1, four bands of ebm-v2 and ebm-v3",
        compare(below, grid(), single_agent, (*MIDDLE, *TROPICS)),
    ),
    (
        "fed05 halves the error of one agent in the tropics (DDPG, six agents)",
        "Welch's test against half the error of ebm-v1, two bands of ebm-v2 and ebm-v3",
        compare(below_half, grid(), single_agent, TROPICS),
    ),
    (
        "fed05 halves the error of the static model in the tropics (DDPG, six agents)",
        "Student's test against half the static error, two bands of ebm-v2 and ebm-v3",
        compare(below_half, grid(), static_model, TROPICS),
    ),
    (
        "What fed05 gains on nofed is more in ebm-v3 than in ebm-v2 (DDPG, six agents)",
        "Welch's test of the four means together, each band",
        _greater_gain,
    ),
    (
        "What fed05 gains on the static model is more in ebm-v3 than in ebm-v2 (DDPG, six agents)",
        "Welch's test of the errors in ebm-v3 and ebm-v2, each band",
        compare(below, grid(envs=("ebm-v3",)), changed(env="ebm-v2")),
    ),
    (
        "fed10 still has a lower error than nofed (DDPG, six agents)",
        "Welch's test, each band of ebm-v2 and ebm-v3",
        compare(below, grid(schemes=("fed10",)), changed(scheme="nofed")),
    ),
    (
        "fed10 varies more from seed to seed than fed05 (DDPG, six agents)",
        "F test of the variances, each band of ebm-v2 and ebm-v3",
        compare(more_variable, grid(schemes=("fed10",)), changed(scheme="fed05")),
    ),
    (
        "At the poles federated agents are comparable to one agent, or better (DDPG, six agents)",
        "Welch's test against 1.1 times the error of ebm-v1, two bands, fed05 and fed10",
        compare(comparable, grid(schemes=("fed05", "fed10")), single_agent, POLES),
    ),
    (
        "Two federated agents still reach low errors (DDPG)",
        "Student's test against the static model's error, fed05 and fed10, each band",
        compare(below, grid(agents=(2,), schemes=("fed05", "fed10")), static_model),
    ),
    (
        "DDPG has lower errors than TD3",
        "Welch's test, each band of the twelve cells of ebm-v2 and ebm-v3",
        compare(below, grid(agents=(2, 6), schemes=ALL_SCHEMES), changed(algo="td3")),
    ),
    (
        "DDPG has lower errors than TQC",
        "Welch's test, each band of the twelve cells of ebm-v2 and ebm-v3",
        compare(below, grid(agents=(2, 6), schemes=ALL_SCHEMES), changed(algo="tqc")),
    ),
    (
        "TD3 and TQC vary more from seed to seed than DDPG",
        "F test of the variances, each band of the twelve cells of ebm-v2 and ebm-v3",
        compare(
            more_variable,
            grid(("td3", "tqc"), agents=(2, 6), schemes=ALL_SCHEMES),
            changed(algo="ddpg"),
        ),
    ),
    (
        "TD3 under fed05 in ebm-v2 matches one agent in tropics and mid-latitudes (six agents)",
        "Welch's test against 1.1 times the error of ebm-v1, four bands",
        compare(comparable, grid(("td3",), ("ebm-v2",)), single_agent, (*MIDDLE, *TROPICS)),
    ),
    (
        "TD3 has higher errors at the poles in ebm-v3 than in ebm-v2 (six agents)",
        "Welch's test, two bands, each scheme",
        compare(
            above, grid(("td3",), ("ebm-v3",), schemes=ALL_SCHEMES), changed(env="ebm-v2"), POLES
        ),
    ),
    (
        "fed05 is the steadiest scheme of TD3 in ebm-v3 (six agents)",
        "F test of the variances of fed10 and nofed against fed05's, each band",
        compare(
            more_variable,
            grid(("td3",), ("ebm-v3",), schemes=("fed10", "nofed")),
            changed(scheme="fed05"),
        ),
    ),
    (
        "TQC under fed05 in ebm-v2 has a lower error than one agent in the tropics (six agents)",
        "Welch's test against ebm-v1, two bands",
        compare(below, grid(("tqc",), ("ebm-v2",)), single_agent, TROPICS),
    ),
    (
        "fed10 varies more from seed to seed than fed05 (TQC in ebm-v2, six agents)",
        "F test of the variances, each band",
        compare(
            more_variable, grid(("tqc",), ("ebm-v2",), schemes=("fed10",)), changed(scheme="fed05")
        ),
    ),
    (
        "TQC has higher errors in the mid-latitudes in ebm-v3 than in ebm-v2 (six agents)",
        "Welch's test, two bands, each scheme",
        compare(
            above,
            grid(("tqc",), ("ebm-v3",), schemes=ALL_SCHEMES),
            changed(env="ebm-v2"),
            MIDDLE,
        ),
    ),
    (
        "TQC in ebm-v3 has higher errors at the poles than one agent (six agents)",
        "Welch's test against ebm-v1, two bands, each scheme",
        compare(above, grid(("tqc",), ("ebm-v3",), schemes=ALL_SCHEMES), single_agent, POLES),
    ),
)
