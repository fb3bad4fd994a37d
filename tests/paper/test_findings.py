"""The sentences of the report are those of its results."""

import re
from dataclasses import replace

import numpy as np
import pytest

from fedrain.baselines import static
from fedrain.envs import make
from fedrain.paper import Cell, Result, judge_claims
from fedrain.paper import findings as found
from fedrain.paper.results import SIZES, optimal_skill
from tests.paper import RESULTS

SPREAD = np.linspace(-0.5, 0.5, 10)


def with_error(result, error, cell=None):
    """The result with another error of the globe: its seeds lie around it."""
    data = result.data.copy()
    data["areawrmse_global"] = data.areawrmse_global * 0 + (error + SPREAD)
    return Result(cell or result.cell, data)


def changed(results, errors):
    """Cells of which these words are in the name have another error."""
    return {
        cell: with_error(result, errors[word]) if word else result
        for cell, result in results.items()
        for word in [next((w for w in errors if w in cell.name), None)]
    }


def numbers(text):
    return [float(number) for number in re.findall(r"\d+(?:\.\d+)?", text)]


@pytest.fixture(scope="module")
def paper(results):
    return {cell: result for cell, result in results.items() if cell.preset == "paper"}


def test_message(paper):
    """Error of the static model, of the paper's experiment, of the thermostat and of the limit."""
    told = found.message(changed(paper, {"ebm-v3-a6-fed05-ddpg": 2.345}), 1.25)
    assert told.startswith("Six federated agents bring")
    assert numbers(told) == [5.90, 2.35, 1.53, 1.25] or numbers(told) == [5.90, 2.34, 1.53, 1.25]
    assert "optimal" not in found.message(paper, None)
    single = {cell: result for cell, result in paper.items() if cell.env == "ebm-v1"}
    assert found.message(single, None).startswith("One agent brings")


def test_baselines_are_those_of_the_page_on_responses():
    """docs/response.md says them; the fluxes of the static model follow from its parameters."""
    fixed, rule = (found.baseline_figures()[name] for name in ("static", "proportional"))
    shown = [fixed.longwave, fixed.warming, rule.error, rule.longwave, rule.above, rule.warming]
    assert shown == pytest.approx([13.8, 1.85, 1.53, 70.5, 17, 0.04], abs=0.05)
    assert (fixed.share, fixed.above) == (0.0, 0.0)
    assert numbers(found.what_is_rewarded())[:3] == [1.53, 70, 14]


def test_mean_flux_of_the_static_model(paper):
    """The static model's episode in a result has the static model's flux."""
    environment = make("ebm-v1")
    values = environment.model.table.static(SIZES["lat"])
    result = next(iter(paper.values()))
    data = result.data.copy()
    data["episode_surface_temperature"] = (
        ("step", "lat"), static(environment).fields["surface_temperature"],
    )  # fmt: skip
    for name in "AB":
        data[f"episode_{name}"] = data[f"episode_{name}"] * 0 + values[name]
    longwave, above = found.mean_flux(Result(result.cell, data))
    assert longwave == pytest.approx(found.baseline_figures()["static"].longwave, abs=0.01)
    assert above == 0


def test_federation_is_counted(paper):
    """Lower, higher and the same, of 24 pairs."""
    errors = {"fed05-ddpg": 2.0, "fed10-ddpg": 4.0, "nofed-ddpg": 4.0, "fed05-td3": 9.0}
    errors |= {"fed10-td3": 5.0, "nofed-td3": 5.0, "-tqc": 6.0}
    told = found.does_federation_help(changed(paper, errors))
    assert numbers(told)[:4] == [4, 24, 4, 16]
    assert "helps most in ebm-v2-a2-fed05-ddpg (2.00 K instead of 4.00 K)" in told
    assert "least in ebm-v2-a2-fed05-td3 (9.00 K instead of 5.00 K)" in told
    alone = {cell: result for cell, result in paper.items() if cell.scheme == "nofed"}
    assert found.does_federation_help(alone).startswith("Not run yet")


def test_cells_of_two_presets_are_not_compared(paper):
    """An averaged cell as published waits for its agents that are never averaged."""
    cell = Cell("ebm-v3", 6, "fed05", "ddpg", "published")
    beside = paper | {cell: with_error(paper[replace(cell, preset="paper")], 0.1, cell)}
    assert found.does_federation_help(beside) == found.does_federation_help(paper)
    group = [replace(cell, preset="paper", scheme=scheme) for scheme in ("fed05", "nofed")]
    assert {r.cell.preset for r in found.together(beside, group)} == {"paper"}
    never = replace(cell, scheme="nofed")
    both = beside | {never: Result(never, paper[group[1]].data)}
    assert {r.cell.preset for r in found.together(both, group)} == {"published"}
    assert {r.cell.preset for r in found.side_by_side(both, [group])} == {"published"}


def test_algorithms_are_counted(paper):
    errors = {"v2-a2-fed05-tqc": 1.0, "-ddpg": 2.0, "-td3": 2.2, "-tqc": 9.0}
    told = found.which_algorithm(changed(paper, errors))
    assert "DDPG has the lowest mean error in 12 of 13 experiments (in 0 of them" in told
    assert "TQC in 1 and TD3 in none" in told or "TD3 in none and TQC in 1" in told


def test_nearest_to_the_limit(paper):
    optimal = optimal_skill(RESULTS)
    told = found.how_near_the_limit(changed(paper, {"ebm-v2-a6-fed10-tqc": 1.0}), optimal)
    assert "1.00 K, in ebm-v2-a6-fed10-tqc, where optimal control has 0.96 K" in told
    assert "1 of the 39 experiments beats the 1.53 K" in told
    assert "none of the 39" in found.how_near_the_limit(paper, optimal)
    assert "where optimal" not in found.how_near_the_limit(paper, {})


def test_reproduction_is_counted(paper):
    """As in the table of all means, and the verdicts of both sources."""
    claims = judge_claims(paper)
    told = found.is_it_reproduced(paper, claims)
    both = [c for c in claims if c.published is not None]
    same = sum(c.published.verdict == c.by_preset["paper"].verdict for c in both)
    within, means, _, rejected, chance, of, alike = (
        n for n in numbers(told.replace("5 %", "").replace("(cells by preset: 39 paper)", "0"))
    )
    assert (means, chance, of, alike) == (234, 11.7, len(both), same)
    assert within == 221
    assert rejected == 32
