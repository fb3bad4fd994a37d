"""The paper's claims: each holds where it is true by far, and not where the opposite is."""

import numpy as np
import pytest
import xarray as xr
from scipy.stats import t

from fedrain.paper import Result, Sample, Verdict, cells, judge_claims
from fedrain.paper.judgement import NEARLY_ALL, SOME, above, below_half, comparable, weigh
from fedrain.paper.questions import OF_BANDS, OF_COSTS, OF_CURVES
from fedrain.paper.results import static_skill


def test_verdicts():
    """Of twelve statements so many backed, refuted, and pointing that way; the others do not."""

    def verdict(backed, refuted, pointing=0, enough=NEARLY_ALL):
        others = 12 - backed - refuted - pointing
        statements = [0.01] * backed + [0.99] * refuted + [0.4] * pointing + [0.6] * others
        return weigh([(str(i), p) for i, p in enumerate(statements)], enough).verdict

    assert verdict(10, 2) == verdict(6, 0, enough=0.5) == Verdict.HOLDS
    assert verdict(5, 0, 5) == verdict(0, 0, 10) == verdict(1, 0, 5, enough=0.5) == Verdict.POINTS
    assert verdict(9, 0) == verdict(4, 3, 2) == verdict(5, 1, 6) == Verdict.PARTLY
    assert verdict(4, 3, 1) == verdict(3, 3) == verdict(1, 3) == Verdict.MIXED
    assert verdict(3, 6, enough=0.5) == Verdict.MIXED  # the half that is not enough
    assert verdict(3, 7, enough=0.5) == verdict(1, 9, enough=SOME) == Verdict.FAILS
    assert verdict(3, 0) == verdict(0, 3) == verdict(0, 0) == Verdict.UNDECIDED
    assert verdict(4, 4) == verdict(0, 4) == verdict(3, 9) == Verdict.FAILS
    assert verdict(5, 4) == Verdict.MIXED  # as more speaks for it
    assert verdict(3, 1, 3) == Verdict.MIXED  # half points its way, and too little is backed
    assert verdict(1, 0, 5) == Verdict.UNDECIDED
    named = weigh([("here", 0.99), ("there", 0.01)])
    expected = "1 of 2 point that way, 1 significantly; 1 significantly against: here"
    assert named.evidence == expected
    assert weigh([("unknown", float("nan"))]).verdict == Verdict.UNDECIDED


#: Cells and bands whose mean or spread is changed.
WORLDS = {
    "v1": lambda c, _: c.env == "ebm-v1",
    "v3": lambda c, _: c.env == "ebm-v3",
    "fed05": lambda c, _: c.scheme == "fed05",
    "fed10": lambda c, _: c.scheme == "fed10",
    "v3 fed05": lambda c, _: (c.env, c.scheme) == ("ebm-v3", "fed05"),
    "v3 ddpg": lambda c, _: (c.env, c.algo) == ("ebm-v3", "ddpg"),
    "several": lambda c, _: c.env != "ebm-v1",
    "several ddpg": lambda c, _: c.env != "ebm-v1" and c.algo == "ddpg",
    "ddpg": lambda c, _: c.algo == "ddpg",
    "poles": lambda _, band: band in (0, 5),
    "south": lambda _, band: band == 0,
    "between": lambda _, band: band in (1, 4),
}
#: Where a claim is true by far: what is changed there, by which factor, and in which world.
TRUE_IN = [
    ("One agent has a lower error than the static", "mean", 0.2, "v1"),
    ("fed05 has a lower error than the static", "mean", 0.2, "fed05"),
    ("fed05 has a lower error than nofed", "mean", 0.2, "fed05"),
    ("fed05 has a lower error than one agent", "mean", 0.2, "fed05"),
    ("tropics: that of one agent", "mean", 0.2, "fed05"),
    ("tropics: that of the static", "mean", 0.2, "fed05"),
    ("tropics: that of nofed", "mean", 0.2, "fed05"),
    ("What fed05 gains on nofed, in per cent", "mean", 0.2, "v3 fed05"),
    ("What fed05 gains on one agent", "mean", 0.2, "v3"),
    ("fed05 varies less from seed to seed than nofed", "std", 0.1, "fed05"),
    ("fed10 still has a lower error", "mean", 0.2, "fed10"),
    ("fed10 varies more from seed to seed than fed05 (DDPG", "std", 10, "fed10"),
    ("At the poles federated agents are comparable", "mean", 0.2, "several"),
    ("Two federated agents still", "mean", 0.2, "several"),
    ("lower errors than federated TD3", "mean", 0.2, "ddpg"),
    ("lower errors than federated TQC", "mean", 0.2, "ddpg"),
    ("DDPG has a lower error than the static model, whatever", "mean", 0.2, "ddpg"),
    ("Federated DDPG has a lower error than one agent", "mean", 0.2, "several"),
    ("loses less than TD3 from ebm-v1", "mean", 0.2, "several ddpg"),
    ("loses less than TQC from ebm-v1", "mean", 0.2, "several ddpg"),
    ("loses less than TD3 from ebm-v2", "mean", 0.2, "v3 ddpg"),
    ("loses less than TQC from ebm-v2", "mean", 0.2, "v3 ddpg"),
    ("TD3 varies more from seed to seed than DDPG", "std", 0.1, "ddpg"),
    ("TQC varies more from seed to seed than DDPG", "std", 0.1, "ddpg"),
    ("TD3 varies more from seed to seed under fed05", "std", 10, "fed05"),
    ("TQC varies more from seed to seed under fed05", "std", 10, "fed05"),
    ("TD3 varies more from seed to seed in the tropics and at the poles", "std", 0.1, "between"),
    ("TQC varies more from seed to seed in the tropics and at the poles", "std", 0.1, "between"),
    ("TD3 under fed05 in ebm-v2 often", "mean", 0.2, "fed05"),
    ("TD3 varies more from seed to seed at the poles", "std", 10, "poles"),
    ("TD3 varies more from seed to seed at the South", "std", 10, "south"),
    ("TD3 has higher errors at the poles", "mean", 5, "v3"),
    ("TD3 varies more from seed to seed in ebm-v3", "std", 10, "v3"),
    ("TQC varies more from seed to seed in ebm-v3", "std", 10, "v3"),
    ("fed05 is the steadiest", "std", 0.1, "fed05"),
    ("TQC under fed05 in ebm-v2 has", "mean", 0.2, "fed05"),
    ("TQC varies more from seed to seed at the poles", "std", 10, "poles"),
    ("fed10 varies more from seed to seed than fed05 (TQC", "std", 10, "fed10"),
    ("TQC has higher errors in the mid-latitudes", "mean", 5, "v3"),
    ("TQC in ebm-v3 has in several cases higher errors", "mean", 5, "v3"),
]


def test_every_claim_has_its_world():
    for claim in OF_BANDS:
        assert sum(words in claim.statement for words, *_ in TRUE_IN) == 1, claim.statement


@pytest.mark.parametrize(("words", "what", "factor", "world"), TRUE_IN, ids=lambda v: str(v))
def test_a_claim_follows_the_figures(words, what, factor, world):
    """It holds in its world, and not where the opposite is true."""
    (claim,) = [claim for claim in OF_BANDS if words in claim.statement]

    def put_to(factor):
        def bands(cell):
            made = []
            for i, error in enumerate(static_skill().bands):
                by = factor if WORLDS[world](cell, i) else 1.0
                mean, std = (by, 1.0) if what == "mean" else (1.0, by)
                made.append(Sample(0.9 * error * mean, 0.01 * std, 10))
            return made

        return claim.put_to(bands).verdict

    assert put_to(factor) == Verdict.HOLDS
    assert put_to(1 / factor) == Verdict.FAILS
    if what == "std":
        assert put_to(1.0) == Verdict.UNDECIDED  # all varies by as much


def made(cell, returns, cost=1.0):
    """A result of ten seeds with such returns of each episode."""
    data = xr.Dataset(
        {
            "returns": (("seed", "agent", "episode"), np.broadcast_to(returns, (10, 1, 100))),
            "core_seconds": ("episode", np.full(100, cost)),
            "areawrmse": (("policy", "seed", "band"), np.ones((1, 10, 6))),
            "areawrmse_global": (("policy", "seed"), np.ones((1, 10))),
        },
        {"policy": ["local"]},
    )
    return Result(cell, data)


def test_claims_of_learning_curves():
    """Curves that settle early in some environments and late in others, or fall back."""
    episodes = np.arange(100)
    noise = np.random.default_rng(0).normal(0, 10, (10, 1, 100))

    def world(early, cost, falls):
        def of(cell):
            settled = 15 if cell.env in early else 80
            curve = np.where(episodes < settled, -100_000.0, -20_000.0)
            curve[90:92] *= 3 if falls and cell.env != "ebm-v1" else 1
            return made(cell, curve + noise, cost.get(cell.algo, 1.0))

        return {cell: of(cell) for cell in cells("*paper")}

    number = len(OF_CURVES) + len(OF_COSTS)
    for early, cost, falls, expected in (
        (("ebm-v2", "ebm-v3"), {"ddpg": 0.5}, False, Verdict.HOLDS),
        (("ebm-v1",), {"ddpg": 2.0}, True, Verdict.FAILS),
    ):
        found = judge_claims(world(early, cost, falls))[:number]
        assert [claim.ours.verdict for claim in found] == [expected] * number


def test_convergence_is_judged_by_two_measures():
    """Policies that settle early within a tenth or a fifth of their gain, and late."""
    (claim,) = [claim for claim in OF_CURVES if claim.statement.startswith("Most policies")]
    episodes = np.arange(100)

    def settles(*levels):
        curve = np.select([episodes < 15, episodes < 80], levels, 1.0)
        results = {cell: made(cell, -np.exp(-curve)) for cell in cells("*paper")}
        return claim.put_to(results)

    found = settles(0.0, 0.85)
    assert found.verdict == Verdict.MIXED
    assert found.evidence.startswith("a tenth: 0 of 24 point that way")
    assert "a fifth: 24 of 24 point that way" in found.evidence
    assert settles(0.0, 0.95).verdict == Verdict.HOLDS
    assert settles(0.0, 0.5).verdict == Verdict.FAILS


def test_a_claim_is_of_one_preset():
    """Of the published runs' as soon as all its cells are there, and of the paper's until then."""
    noise = np.random.default_rng(0).normal(0, 10, (10, 1, 100))

    def world(preset, settled):
        curve = np.where(np.arange(100) < settled, -100_000.0, -20_000.0)
        return {cell: made(cell, curve + noise) for cell in cells(f"*-{preset}")}

    def most_are_early(results):
        (claim,) = [c for c in judge_claims(results) if c.statement.startswith("Most policies")]
        return claim

    paper, published = world("paper", 80), world("published", 15)
    claim = most_are_early(paper | published)
    assert (claim.preset, claim.ours.verdict) == ("published", Verdict.HOLDS)
    assert claim.by_preset["paper"].verdict == Verdict.FAILS
    del published[cells("ebm-v3-a6-fed10-tqc-published")[0]]
    claim = most_are_early(paper | published)
    assert (claim.preset, claim.ours.verdict) == ("paper", Verdict.FAILS)
    assert claim.by_preset["published"].verdict == Verdict.OPEN
    assert "ebm-v3-a6-fed10-tqc" in claim.by_preset["published"].evidence


def test_claims_wait_for_their_cells(results):
    (only,) = [cell for cell in results if cell.name == "ebm-v3-a2-fed05-td3-paper"]
    claims = judge_claims({only: results[only]})
    assert {claim.ours.verdict for claim in claims} == {Verdict.OPEN}
    assert all("no complete result of" in claim.ours.evidence for claim in claims)
    assert all(c.published is None or c.published.verdict != Verdict.OPEN for c in claims)


def test_levels_of_the_verdicts():
    """A statement is backed below 5 %, refuted above 95 %, and points its way below ½."""

    def told(p):
        return weigh([("one", p)] + [("other", 0.7)] * 11).evidence

    assert told(0.049) == "1 of 12 point that way, 1 significantly; none against"
    assert told(0.051) == "1 of 12 point that way, 0 significantly; none against"
    assert told(0.5) == told(0.93) == "0 of 12 point that way, 0 significantly; none against"
    assert told(0.951).endswith("; 1 significantly against: one")


def test_single_tests_of_claims():
    """Each is Student's test against a number, by the deviation from it in standard errors."""
    sample = Sample(10.0, 3.0, 10)
    error = 3.0 / np.sqrt(9)  # of the mean: the variance of the population is 9 · 10/9

    def number(value):
        return Sample(value, 0.0, 10)

    for test, factor in ((below_half, 0.5), (comparable, 1.1)):
        for value in (8.0, 9.5, 19.0, 21.0):
            expected = t.cdf((10.0 - factor * value) / error, 9)
            assert test(sample, number(value)) == pytest.approx(expected, rel=1e-9)
    assert above(sample, number(9.0)) == pytest.approx(t.sf(1.0 / error, 9), rel=1e-9)
