"""Tables, figures and claims, made from the results in the repository."""

import csv
import hashlib
import io
import shutil
from copy import copy
from dataclasses import replace

import numpy as np
import pytest

from fedrain.cli import main
from fedrain.climate import BAND_NAMES, EnergyBalanceModel
from fedrain.experiment import configure
from fedrain.paper import (
    Cell,
    Result,
    Verdict,
    cells,
    judge_claims,
    make_figures,
    make_tables,
    published_bands,
    published_skill,
)
from fedrain.paper.figures import returns_figure, skill_figure
from fedrain.paper.results import (
    optimal_skill,
    read_reference,
    reference_of,
    reproduction,
    static_skill,
)
from fedrain.paper.tables import (
    agreement,
    cost_table,
    gain,
    limit_table,
    points_table,
    quirks_table,
    skill_table,
    tidy_table,
)
from fedrain.tables import Table
from tests.paper import RECORDED, RESULTS


def hashes(paths):
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def test_the_stored_results_give_the_recorded_tables(results, tmp_path):
    """Byte by byte, of the cells of presets whose training is complete."""
    complete = {cell: result for cell, result in results.items() if cell.preset != "published"}
    recorded = dict(reversed(line.split()) for line in RECORDED.read_text().splitlines())
    assert len(complete) == 65
    assert len(recorded) == 49
    assert hashes(make_tables(complete, tmp_path)) == recorded


@pytest.mark.slow
def test_made_twice_they_are_the_same_bytes(results, tmp_path):
    some = {
        cell: result
        for cell, result in results.items()
        if (cell.algo, cell.preset) == ("ddpg", "paper")
        and (cell.env == "ebm-v1" or "ebm-v3-a6" in cell.name)
    }
    for make in (make_tables, make_figures):
        first, second = (hashes(make(some, tmp_path / name)) for name in ("one", "two"))
        assert first == second
    drawn = {"returns", "skill-ddpg"}
    drawn |= {f"evolution-{name}-ddpg-paper" for name in ("ebm-v1", "ebm-v3-a6-fed05")}
    assert len(some) == 4
    forms = (".png", ".pdf", ".svg", "-dark.svg")
    assert set(first) == {f"{name}{form}" for name in drawn for form in forms}


def test_figures_command(results, tmp_path):
    """One learning curve for each result, and a figure of an episode."""
    name = "ebm-v1-ddpg-paper"
    shutil.copy(RESULTS / f"{name}.nc", tmp_path)
    places = ["--results", str(tmp_path), "--out", str(tmp_path)]
    assert main(["benchmark", "figures", *places]) == 0
    made = {path.name for path in tmp_path.iterdir() if path.suffix != ".nc"}
    forms = (".png", ".pdf", ".svg", "-dark.svg")
    assert made == {f"{n}{form}" for n in ("returns", f"evolution-{name}") for form in forms}
    figure = returns_figure(results)
    shown = [c for c in results if c.preset == "paper" and c.agents != 2 and c.scheme != "fed10"]
    shown = [c for c in shown if c.env == "ebm-v1" or c.scheme == "fed05"]
    bands = [axes.collections for axes in figure.axes]
    assert sum(map(len, bands)) == len(shown)
    assert figure.axes[0].get_shared_y_axes().joined(*figure.axes[:2])
    days = EnergyBalanceModel().days_per_step
    curves = lines_of(figure.axes[2])
    np.testing.assert_allclose(curves[""][0].get_xdata()[-1], 1e-3 * days * 20_000)
    cell = reproduction(results, Cell("ebm-v3", 6, "fed05", "ddpg", "paper")).cell
    ends = -results[cell].learning[:, -10:].mean(1)
    np.testing.assert_allclose(curves["_seeds"][0].get_ydata(), ends)


def lines_of(axes):
    found = {}
    for line in axes.lines:
        name = line.get_label()
        found.setdefault("" if name.startswith("_child") else name, []).append(line)
    return found


def test_every_seed_is_a_dot(results):
    """And the paper's own means are there, band by band, beside what needs no agents."""
    cell = reproduction(results, Cell("ebm-v3", 6, "fed05", "ddpg", "paper")).cell
    optimal = optimal_skill(RESULTS)
    figure = skill_figure(results, cell.algo, optimal)
    (axes,) = [a for a in figure.axes if a.get_title().startswith("ebm-v3, 6 agents")]
    lines = lines_of(axes)
    assert [len(lines[name]) for name in ("_seeds", "published mean")] == [4, 4]  # and ebm-v1
    np.testing.assert_array_equal(lines["_seeds"][0].get_ydata(), results[cell].skill().ravel())
    mean = results[cell].skill().mean(0)
    np.testing.assert_allclose(lines["fed05"][0].get_ydata(), mean)
    published = [one.mean for one in published_bands(cell)]
    np.testing.assert_array_equal(lines["published mean"][0].get_ydata(), published)
    levels = {line.get_ydata()[0] for line in axes.lines if len(set(line.get_ydata())) == 1}
    limit, lowest = optimal[reference_of(cell)], axes.get_ylim()[0]
    assert {*static_skill().bands, *(b for b in limit.bands if b > lowest)} <= levels
    assert len({a.get_ylim() for a in figure.axes}) == 1
    assert skill_figure(results, "td3").axes[0].get_ylim() == axes.get_ylim()


def test_optimal_control_by_bands():
    """Its bands are those of the globe's error that is stored with it."""
    edges = np.sin(np.deg2rad(np.linspace(-90, 90, 7)))
    for name, skill in optimal_skill(RESULTS).items():
        globe = np.sqrt((np.diff(edges) / 2 * np.square(skill.bands)).sum())
        stored = read_reference(RESULTS / f"{name}.nc").attrs["areawrmse_global"]
        assert globe == pytest.approx(skill.globe, rel=0.01)
        assert skill.globe == pytest.approx(float(stored), rel=0.02)


def test_a_cell_without_results_is_no_column(results):
    some = {cell: result for cell, result in results.items() if cell.scheme != "fed10"}
    lines = lines_of(skill_figure(some, "ddpg").axes[3])
    assert {"fed05", "nofed", "ebm-v1", "static model"} <= set(lines)
    assert "fed10" not in lines
    only = {cell: result for cell, result in results.items() if cell.env == "ebm-v1"}
    assert skill_figure(only, "ddpg") is None


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
    for cell in (*cells("*-v[23]-*paper"), *cells("*-a6-fed05-ddpg-published")):
        single = published_bands(Cell("ebm-v1", 1, "nofed", cell.algo, "paper"))
        federated, printed = published_bands(cell), published_skill(cell).gain
        assert published_skill(cell.configuration()).gain == printed
        ours = [gain(f, s) for f, s in zip(federated, single, strict=True)]
        np.testing.assert_allclose(ours, printed, rtol=0.005, atol=0.6)
    assert published_bands(Cell("ebm-v3", 6, "fed05", "td3", "corrected")) is None


@pytest.mark.parametrize(
    "change",
    [
        {"start": {"temperature": 40.0}},
        {"learn": "A"},
        {"latitudes": 48},
        {"forcing": {"longwave": -3.7}},
        {"model": EnergyBalanceModel(water_depth=30.0)},
        {"sharing": "neighbours"},
        {"agents": 3},
        {"env": "ebm-v2", "sync_every": 7},
    ],
)
def test_another_experiment_has_no_published_skill(change):
    paper = {"env": "ebm-v3", "agents": 6, "algo": "ddpg"}
    assert published_skill(configure(**paper)) is not None
    assert published_skill(configure(**(paper | change))) is None


def test_agreement_counts_what_welch_rejects(results):
    """Of means that are the published ones none, of means that are far off all."""
    (cell,) = cells("ebm-v3-a6-fed05-ddpg-paper")
    published = published_bands(cell)

    def of(shift):
        result = copy(results[cell])
        moved = [p._replace(mean=p.mean + shift * p.std) for p in published]
        result.bands = lambda: moved
        return agreement({cell: result}, [cell, *cells("ebm-v1-ddpg-paper")])

    assert of(0.0) == (1, 2, 6, 0, 6)
    assert of(1.2) == (1, 2, 6, 6, 6)  # 2.5 standard errors
    assert of(3.0) == (1, 2, 0, 6, 6)
    assert of(0.0).by_chance == pytest.approx(0.3)


def test_figures_say_of_which_preset_they_are(results):
    paper = {cell: r for cell, r in results.items() if cell.preset == "paper"}
    assert skill_figure(paper, "ddpg").axes[3].get_title().endswith("preset paper")
    (fed05,) = cells("ebm-v3-a6-fed05-ddpg-paper")
    mixed = paper | {replace(fed05, preset="published"): Result(
        replace(fed05, preset="published"), paper[fed05].data
    )}  # fmt: skip
    told = "preset published (fed05) and paper (fed10, nofed, ebm-v1)"
    assert skill_figure(mixed, "ddpg").axes[3].get_title().endswith(told)


def test_tidy_table_is_complete(results):
    rows = list(csv.DictReader(io.StringIO(tidy_table(results).csv())))
    assert len(rows) == 6 * len(results)
    assert {row["band"] for row in rows} == set(BAND_NAMES)
    with_figures = [row for row in rows if row["preset"] != "corrected"]
    assert all(0 <= float(row["welch_p"]) <= 1 for row in with_figures)
    single = {
        (row["algo"], row["preset"], row["band"]): float(row["mean"])
        for row in rows
        if row["env"] == "ebm-v1"
    }
    for row in rows:
        alone = single.get((row["algo"], row["preset"], row["band"]))  # if it has been trained
        expected = None if alone is None else 100 * (1 - float(row["mean"]) / alone)
        assert (float(row["gain"]) if row["gain"] else None) == pytest.approx(expected, abs=0.1)


def test_what_is_compared_stands_side_by_side(results):
    cells_of_limit = [row[0] for row in limit_table(results).rows]
    assert cells_of_limit == [cell.name for cell in results]
    at = cells_of_limit.index("ebm-v3-a6-fed05-td3-paper")
    assert cells_of_limit[at : at + 6] == [
        f"ebm-v3-a6-{scheme}-td3-{preset}"
        for preset in ("paper", "corrected")
        for scheme in ("fed05", "fed10", "nofed")
    ]


def test_agents_never_averaged_have_no_global_policy(results):
    for name, *figures in limit_table(results).rows:
        never = "-fed" not in name
        assert ("–" in figures) == never, name


def test_what_the_reference_implementation_costs(results):
    """TQC is by far its most expensive algorithm: it computes the quantiles pair by pair."""
    claims = {claim.statement: claim.published for claim in judge_claims(results)}
    assert claims["DDPG is cheaper to train than TQC"].verdict == Verdict.HOLDS
    assert claims["DDPG is cheaper to train than TD3"].verdict == Verdict.FAILS
    *rows, everything = list(csv.DictReader(io.StringIO(cost_table(results).csv())))
    of_cells = [row for row in rows if not row["cell"].startswith("all ")]
    assert len(of_cells) == len(results)
    for column in ("here core-minutes", "published way core-hours"):
        total = sum(float(row[column]) for row in of_cells)
        assert float(everything[column]) == pytest.approx(total, rel=0.01)


def test_table_in_three_forms():
    rows = [["a", "1", "2.0 ± 0.5"], ["b", "−2", "–"]]
    table = Table("Gain of a_1 & b", ["x", "gain %", "K"], rows, [("", 1), ("g", 2)])
    assert table.markdown().splitlines()[2:] == [
        "| x | g gain % | g K |", "| --- | ---: | ---: |",
        "| a | 1 | 2.0 ± 0.5 |", "| b | −2 | – |",
    ]  # fmt: skip
    latex = table.latex()
    assert r"\caption{Gain of a\_1 \& b}" in latex
    assert r"b & $-$2 & – \\" in latex
    assert r"\cmidrule(lr){2-3}" in latex
    assert latex.count(r"\begin") == latex.count(r"\end") == 2
    long = Table("Long", ["x", "K"], [["a", "1"]] * 41).latex()
    assert long.count(r"\begin{longtable}") == long.count(r"\end{longtable}") == 1
    assert long.count(r"x & K \\") == 2  # on the first page, and on the others
    assert long.count(r"a & 1 \\") == 41
    assert list(csv.reader(io.StringIO(table.csv()))) == [
        ["x", "g gain %", "g K mean", "g K std"], ["a", "1", "2.0", "0.5"], ["b", "-2", "", ""],
    ]  # fmt: skip


def test_numbers_for_programs_are_numbers(results):
    presets = ("published", "paper", "corrected")
    for table, words in (
        (limit_table(results), 1), (points_table(results), 1), (quirks_table(results), 1),
    ):  # fmt: skip
        header, *rows = csv.reader(io.StringIO(table.csv()))
        assert len(set(header)) == len(header)
        figures = [value for row in rows for value in row[words:] if value]
        assert sum(value not in presets for value in figures) > len(rows)
        for value in figures:
            assert value in presets or np.isfinite(float(value))


def test_places_that_cannot_be_written_to(tmp_path, capsys):
    """One line each, and nothing half written."""
    stored = tmp_path / "stored"
    stored.mkdir()
    shutil.copy(RESULTS / "ebm-v1-ddpg-paper.nc", stored)
    (tmp_path / "file").touch()
    below_a_file = tmp_path / "file" / "below"
    for what, out in (("tables", below_a_file), ("report", below_a_file), ("report", "/")):
        command = ["benchmark", what, "--results", str(stored), "--out", str(out)]
        assert main(command) == 2
        assert len(capsys.readouterr().err.splitlines()) == 1
    assert {path.name for path in tmp_path.iterdir()} == {"file", "stored"}
    assert len(list(stored.iterdir())) == 1


def test_results_of_one_algorithm(results, tmp_path):
    """There are no quirks to compare, claims wait, and what is missing is named."""
    only = {cell: result for cell, result in results.items() if cell.algo == "ddpg"}
    assert make_tables(only, tmp_path)
    assert (tmp_path / "quirks.csv").read_text().count("\n") == 1
    missing = list(csv.DictReader(io.StringIO((tmp_path / "missing.csv").read_text())))
    assert {row["cell"] for row in missing} == {cell.name for cell in cells() if cell not in only}
    assert all(float(row["core-minutes, estimated"]) > 0 for row in missing)
