"""The albedo of ``ebm-twin``: learnt from short forecasts, and what the page on it says."""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import fedrain

ROOT = Path(__file__).parent.parent.parent
PAGE = " ".join((ROOT / "docs" / "response.md").read_text(encoding="utf-8").split())
SEEDS = [str(seed) for seed in range(10)]


@pytest.fixture(scope="module")
def study():
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(ROOT / "studies")
        import parameterisation
    yield parameterisation
    for name in ("parameterisation", "parameterisation_figure", "cells"):
        sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def found():
    folder = ROOT / "results" / "studies" / "parameterisation"
    return {path.stem: json.loads(path.read_text("utf-8")) for path in folder.glob("*.json")}


@pytest.mark.parametrize("name", ["headline", "sweep", "federation", "gap"])
def test_tables_on_the_page_are_those_of_the_results(study, found, name):
    table = getattr(study, f"{name}_table")(found)
    assert " ".join(table.split()) in PAGE


def test_the_albedo_that_is_learnt_answers_as_the_truth(study, found):
    """What is asked of it: within 10 % of the truth at a doubling of CO₂, no seed beyond 30 %."""
    agents = found["default"]
    assert sorted(agents["seeds"]) == SEEDS
    for forcing, within in zip(study.FORCINGS, (0.1, 0.2, 0.2), strict=True):
        assert study.values_of(agents, forcing).mean() == pytest.approx(1, abs=within)
        polar = study.values_of(agents, forcing, "polar_amplification")
        assert polar.mean() == pytest.approx(1, abs=0.2)
    np.testing.assert_allclose(study.values_of(agents, study.FORCINGS[0]), 1, atol=0.3)
    assert np.mean([one["present"] for one in agents["seeds"].values()]) <= 0.5


def test_results_are_of_the_preset_as_it_is(study, found):
    """Where its settings have changed since, the headline has to be trained again."""
    from fedrain.experiment.resolve import from_dict

    kept = from_dict({**found["default"]["configuration"], "seeds": [0]})
    assert kept.identity == study.CELLS["default"].configuration([0]).identity


def test_numbers_in_the_text_are_those_of_the_results(study, found):
    told = " ".join((ROOT / "docs" / "faq.md").read_text(encoding="utf-8").split())
    learnt = study.warmings(found["default"]).mean()
    truth, held = (found["constants"][who]["-3.7"]["warming"] for who in ("truth", "response"))
    assert f"by {learnt:.2f} K where the truth warms by {truth:.2f} K" in told
    assert f"(mean of ten seeds; constants: {held:.2f} K)" in told
    assert f"present climate is {study.present_line(found)}" in PAGE
    told = re.search(r"free run of an episode, (\d+) days", PAGE)
    assert told is not None
    model = study.present(96).model
    assert int(told[1]) == round(200 * model.days_per_step)


@pytest.mark.slow
def test_one_seed_learns_a_parameterisation(tmp_path):
    """A seed that nothing was chosen or reported on, in a fifth of the steps."""
    run = fedrain.train(
        env="ebm-twin", preset="forecast", sync_every=0, sharing="shared", seeds=[50],
        episodes=20, out=tmp_path / "run", figures=False, say=lambda _: None,
    )  # fmt: skip
    forcings = (-3.7, 4.0)
    response = run.respond(forcings=forcings, say=lambda _: None)
    for forcing in forcings:
        learnt, held, truth = (
            response[who][forcing].warming for who in ("policy", "constant", "truth")
        )
        assert abs(learnt - truth) < abs(held - truth) / 2
