"""What the documentation says of the general circulation model is what the stored results say."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "gcm.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def tables():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "studies"))
        import gcm_tables

        yield gcm_tables
    sys.modules.pop("gcm_tables")


def test_tables_of_the_page_are_those_of_the_stored_results(tables):
    made = {name: table.markdown() for name, table in tables.tables().items()}
    shown = tables.blocks(PAGE)
    assert set(made) <= set(shown)
    for name, text in made.items():
        assert shown[name] == text, f"python studies/gcm.py tables: {name} is out of date"


def test_every_seed_of_the_shared_policy_lowers_the_error_by_more_than_60_per_cent(tables):
    """Worked out from the files alone, on days that nothing was learnt from."""
    folder = ROOT / "results" / "studies" / "gcm"
    static = json.loads((folder / "static.json").read_text())["forecast-1"]
    paths = sorted(folder.glob("shared-*.json"))
    assert len(paths) >= 3
    for path in paths:
        held = json.loads(path.read_text())
        assert held["days"] <= 10_000
        shares = [held["forecast-1"][name] / error for name, error in static.items()]
        assert np.mean(shares) < 0.4, path.name


def test_every_seed_of_the_shared_policy_is_nearer_to_the_truth_wherever_it_can_be_known(tables):
    """Of 900 days: in each band of each parameter that screening calls identifiable."""
    paths = sorted((ROOT / "results" / "studies" / "gcm").glob("shared-[0-9].json"))
    assert len(paths) >= 3
    for path in paths:
        held = json.loads(path.read_text())
        assert held["days"] <= 10_000
        near, of = tables.bands_nearer(held["parameters"], tables.identifiable())
        assert near == of == 14, path.name


def test_errors_over_the_earth_count_as_the_task_weighs_them(tables):
    """In units of those of the defaults in the record: the three together make about √3."""
    found = tables.earth_results()
    weights = {"outgoing_longwave": 0.014, "absorbed_shortwave": 0.011, "air_temperature": 0.017}
    for name, one in found.items():
        squares = sum(weights[field] * error**2 for field, error in one["errors"].items())
        assert one["total"] == pytest.approx(np.sqrt(squares), abs=1e-3), name
    assert found["static"]["total"] == pytest.approx(np.sqrt(3), rel=0.02)


def test_what_is_nearer_is_measured_from_the_truth(tables):
    """The truth's own parameters are at no distance, the default's at one."""
    folder = ROOT / "results" / "studies" / "gcm"
    for name, expected in (("truth", 0.0), ("static", 1.0)):
        held = json.loads((folder / f"{name}.json").read_text())
        for symbol, values in held["parameters"].items():
            near = tables.nearer(values, symbol)
            assert near.shape == (6,)
            np.testing.assert_allclose(near, expected, atol=2e-3)
