"""Tables, figures and claims, made from the results in the repository."""

import csv
import hashlib
import io
from pathlib import Path

import numpy as np
import pytest

from fedrain.benchmark import Cell, cells, load_results, make_figures, make_tables
from fedrain.benchmark.claims import Verdict, judge_claims
from fedrain.benchmark.results import our_bands, published_bands, static_skill
from fedrain.benchmark.statistics import Sample
from fedrain.benchmark.table import Table
from fedrain.benchmark.tables import gain, skill_table, tidy_table
from fedrain.cli import main
from fedrain.climate import BAND_NAMES
from fedrain.errors import InputError
from fedrain.experiment.published import published_skill

RESULTS = Path(__file__).parents[2] / "benchmark" / "results"


@pytest.fixture(scope="module")
def results():
    return load_results(RESULTS)


def hashes(paths):
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


@pytest.mark.slow
def test_made_twice_they_are_the_same_bytes(results, tmp_path):
    some = {cell: result for cell, result in results.items() if "ebm-v3-a2-fed05" in cell.name}
    for make in (make_tables, make_figures):
        first, second = (hashes(make(some, tmp_path / name)) for name in ("one", "two"))
        assert len(first) > 2
        assert first == second


def test_every_seed_counts(results):
    for cell, result in results.items():
        assert result.skill().shape == (10, 6), cell
        assert np.isfinite(result.learning).all()
        assert result.core_hours > 0
        ours = our_bands(results)(cell)
        assert ours[2].mean == pytest.approx(result.data.areawrmse.sel(policy="local")[:, 2].mean())


def test_published_lines_are_the_papers(results):
    table = skill_table(results, "ebm-v2", 2, "ddpg", "paper")
    published = [row for row in table.rows if row[0] == "published"]
    assert len(published) == 6
    assert published[0][2:] == [
        "5.11 ± 0.533", "37.5", "6.14 ± 0.964", "25.0", "16.17 ± 14.718", "−97.5", "8.19 ± 3.433",
    ]  # fmt: skip
    assert table.rows[0][:2] == [BAND_NAMES[0], "11.453"]


def test_published_gains_follow_from_the_published_means():
    """The paper's gains are those of means before rounding, so they agree to some tenths."""
    for cell in cells("*-v[23]-*paper"):
        single = published_bands(Cell("ebm-v1", 1, "nofed", cell.algo, "paper"))
        federated, printed = published_bands(cell), published_skill(cell.configuration()).gain
        ours = [gain(f, s) for f, s in zip(federated, single, strict=True)]
        np.testing.assert_allclose(ours, printed, rtol=0.005, atol=0.6)
    assert published_bands(Cell("ebm-v3", 6, "fed05", "td3", "corrected")) is None


def test_tidy_table_is_complete(results):
    rows = list(csv.DictReader(io.StringIO(tidy_table(results).csv())))
    assert len(rows) == 6 * len(results)
    assert {row["band"] for row in rows} == set(BAND_NAMES)
    with_figures = [row for row in rows if row["preset"] == "paper"]
    assert all(0 <= float(row["welch_p"]) <= 1 for row in with_figures)


def test_claims_of_made_up_figures(results, monkeypatch):
    """A world in which federated agents halve every error, and one in which they change nothing."""
    static = static_skill().bands

    def world(factor):
        def bands(cell):
            federated = cell.scheme in ("fed05", "fed10")
            better = factor if federated else 1.0
            wider = 1.0 if cell.algo == "ddpg" else 3.0
            return [Sample(0.9 * better * s * wider, 0.01 * wider, 10) for s in static]

        return bands

    expected = {
        0.1: {"fed05 has a lower error than nofed": Verdict.HOLDS, "DDPG has": Verdict.HOLDS},
        1.0: {"fed05 has a lower error than nofed": Verdict.FAILS, "fed05 halves": Verdict.FAILS},
    }
    for factor, verdicts in expected.items():
        monkeypatch.setattr("fedrain.benchmark.claims.our_bands", lambda _, f=factor: world(f))
        claims = judge_claims(results)
        for begin, verdict in verdicts.items():
            found = [c for c in claims if c.statement.startswith(begin)]
            assert found
            assert all(claim.ours.verdict == verdict for claim in found), begin


def test_claims_wait_for_their_cells(results):
    (only,) = [cell for cell in results if cell.name == "ebm-v3-a2-fed05-td3-paper"]
    claims = judge_claims({only: results[only]})
    assert {claim.ours.verdict for claim in claims} == {Verdict.OPEN}
    assert all("no result of" in claim.ours.evidence for claim in claims)
    assert all(c.published is None or c.published.verdict != Verdict.OPEN for c in claims)


def test_table_in_three_forms():
    rows = [["a", "1"], ["b", "−2"]]
    table = Table("Gain of a_1 & b", ["x", "gain %"], rows, [("", 1), ("g", 1)])
    assert table.markdown().splitlines()[2:] == [
        "| x | g gain % |", "| --- | ---: |", "| a | 1 |", "| b | −2 |",
    ]  # fmt: skip
    latex = table.latex()
    assert r"\caption{Gain of a\_1 \& b}" in latex
    assert r"b & $-$2 \\" in latex
    assert latex.count(r"\begin") == latex.count(r"\end") == 2
    assert list(csv.reader(io.StringIO(table.csv()))) == [["x", "gain %"], *rows]


def test_bad_results(tmp_path, capsys):
    with pytest.raises(InputError, match="holds no results"):
        load_results(tmp_path)
    (tmp_path / "ebm-v1-td3-paper.nc").write_bytes(b"not a NetCDF file")
    assert main(["benchmark", "tables", "--results", str(tmp_path)]) == 2
    assert "ebm-v1-td3-paper.nc" in capsys.readouterr().err
