"""The study of ``ebm-energy``: what its page says is what its stored results say."""

import importlib
from pathlib import Path

import pytest

from fedrain.experiment import configure
from fedrain.experiment.resolve import from_dict

ROOT = Path(__file__).parent.parent


@pytest.fixture
def study(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "studies")
    return importlib.import_module("energy")


def test_the_page_has_the_table_of_the_stored_results(study):
    page = (ROOT / "docs" / "response.md").read_text(encoding="utf-8")
    lines = study.table().splitlines()
    assert len(lines) > 5
    for line in lines:
        assert line in page


def test_the_agents_close_the_budget_without_an_impossible_column(study):
    found = study.results()["agents"]
    assert len(found["every"]) == 10
    assert study.column(found, "surface_temperature").mean() <= 0.8
    assert study.column(found, "outgoing_longwave").max() <= 4
    assert study.column(found, "absorbed_shortwave").max() <= 4
    assert study.column(found, "above_black_body").max() == 0
    assert study.column(found, "roughness").max() <= 0.05
    warming = study.column(found, "warming")
    assert (warming >= 1.5).all()
    assert (warming <= 2.2).all()


def test_constants_by_gradient_close_the_budget(study):
    found = study.results()["gradient"]
    assert study.column(found, "surface_temperature").max() <= 0.35
    assert study.column(found, "outgoing_longwave").max() <= 1
    assert study.column(found, "absorbed_shortwave").max() <= 1
    assert study.column(found, "above_black_body").max() == 0


def test_the_stored_agents_are_those_of_the_command_of_the_page(study):
    """At most 20 000 steps, on seeds that the preset was not chosen on."""
    found = study.results()["agents"]
    fresh = configure(**study.SHARED, seeds=list(range(study.AT_ONCE)))
    assert from_dict(found["configuration"]).identity == fresh.identity
    assert found["seeds"] == list(range(10))
    assert found["task"] == study.task_of(fresh)
    assert fresh.episodes * fresh.make_environment().episode_length <= 20_000
