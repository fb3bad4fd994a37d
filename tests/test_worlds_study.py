"""The study of the seasons and of the column: what its page says is what its results say."""

import importlib
from pathlib import Path

import pytest

from fedrain.experiment.resolve import from_dict

ROOT = Path(__file__).parent.parent
JUDGED = {"ebm-seasonal": "surface_temperature", "rce-zonal": "air_temperature"}


@pytest.fixture
def study(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "studies")
    return importlib.import_module("worlds")


def test_the_page_has_the_tables_of_the_stored_results(study):
    page = (ROOT / "docs" / "response.md").read_text(encoding="utf-8")
    tables = [study.skill_table(*one) for one in JUDGED.items()]
    for table in (*tables, study.held_out_table()):
        assert len(table.splitlines()) > 4
        assert table in page


@pytest.mark.parametrize(("world", "field"), JUDGED.items())
def test_agents_halve_the_error_of_the_static_values(study, world, field):
    static = study.column(study.results(world, "static"), field)
    agents = study.column(study.results(world, "agents"), field)
    assert len(agents) == 5
    assert agents.mean() < static.mean() / 2


@pytest.mark.parametrize("world", JUDGED)
def test_the_mean_of_the_agents_is_below_the_static_values_everywhere(study, world):
    """In every band and on the globe, as the figure shows it."""
    assert (study.bands(world, "agents").mean(0) < study.bands(world, "static")[0]).all()


def test_the_feedback_of_the_seasons(study):
    page = (ROOT / "docs" / "response.md").read_text(encoding="utf-8")
    warming = study.column(study.results("ebm-seasonal", "agents"), "warming")
    assert f"warming, {(3.7 / warming).mean():.2f} W m⁻² K⁻¹ in the mean" in page


@pytest.mark.parametrize("world", JUDGED)
def test_the_stored_agents_are_those_of_the_task_as_it_is(study, world):
    """At most 20 000 steps; no result is of a task or preset that has changed since."""
    (first, *_) = study.results(world, "agents")
    fresh = study.configuration(world, first["configuration"]["seeds"])
    assert from_dict(first["configuration"]).identity == fresh.identity
    assert fresh.episodes * fresh.make_environment().episode_length <= 20_000
