"""What the documents show works as written."""

import argparse
import re
import subprocess
import sys
from argparse import SUPPRESS
from collections import Counter
from dataclasses import fields, replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from fedrain.agents import ALGORITHMS, Schedule, Transforms, preset_names
from fedrain.cli import _parser, baseline
from fedrain.climate import ENERGY_BALANCE_PARAMETERS, ncep_zonal_mean
from fedrain.envs import EnergyBalanceV1, EnergyBalanceV3
from fedrain.paper import cells, load_results, published_core_hours
from fedrain.paper.matrix import REPRODUCTIONS
from fedrain.paper.results import missing_cells
from fedrain.paper.tables import agreement, claims_tables, cost_table, skill_table

ROOT = Path(__file__).parent.parent
RESULTS = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
COST = (ROOT / "docs" / "benchmark.md").read_text(encoding="utf-8")
DATES = {"units": "days since 2001-01-01"}


# Those that define a model, a task or an algorithm have tests of their own.
SCRIPTS = [p for p in sorted((ROOT / "examples").glob("*.py")) if "print(" in p.read_text("utf-8")]


@pytest.mark.parametrize("example", SCRIPTS, ids=lambda p: p.name)
def test_examples_run(example, tmp_path):
    done = subprocess.run(
        [sys.executable, example], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout
    assert done.stderr == ""


PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
BLOCKS = [
    pytest.param(
        block,
        id=f"{page.name}-{number}",
        marks=pytest.mark.skipif(
            page.name == "gcm.md" and find_spec("jcm") is None, reason="needs the extra gcm"
        ),
    )
    for page in PAGES
    for number, block in enumerate(
        re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    )
]


@pytest.mark.parametrize("block", BLOCKS)
def test_python_in_the_documents_runs(block, tmp_path, monkeypatch):
    """Each block alone, as a reader would paste it."""
    monkeypatch.chdir(tmp_path)
    zonal = ncep_zonal_mean()
    xr.Dataset(
        {"skt": (("time", "lat"), np.tile(zonal.temperature, (12, 1)), {"units": "degC"})},
        coords={"lat": zonal.latitude, "time": ("time", 30.0 * np.arange(12), DATES)},
    ).to_netcdf("era5.nc")
    exec(compile(block, "document", "exec"), {})


@pytest.mark.parametrize("page", [EnergyBalanceV1.__doc__, EnergyBalanceV3.__doc__, "model.md"])
def test_parameter_tables_are_the_parameters(page):
    """Wherever the table is written out for people, it says what the code says."""
    text = page if page != "model.md" else (ROOT / "docs" / page).read_text(encoding="utf-8")
    for row in ENERGY_BALANCE_PARAMETERS:
        unit = 1.0 if page == "model.md" else row.action_unit
        figures = {round(x / unit, 6) for x in (row.low, row.high, row.default)}
        lines = [line for line in text.splitlines() if re.search(rf"\| {row.symbol}\b", line)]
        written = [set(map(float, re.findall(r"\d+\.?\d*", line))) for line in lines]
        assert any(figures <= numbers for numbers in written), row.symbol


def test_every_hyperparameter_is_explained():
    pages = ("algorithms", "training", "published")
    text = "".join((ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8") for page in pages)
    for kind in (Transforms, Schedule, *ALGORITHMS.builtin.values()):
        for field in fields(kind):
            assert re.search(rf"`(--set )?{field.name}\b", text), f"{kind.__name__}.{field.name}"


def options_of(command):
    """The options that a command shows in its help."""
    (commands,) = (a for a in _parser()._actions if isinstance(a, argparse._SubParsersAction))
    actions = commands.choices[command]._actions
    return [a.option_strings[-1] for a in actions if a.option_strings and a.help != SUPPRESS]


def test_every_option_of_training_is_explained():
    page = (ROOT / "docs" / "training.md").read_text(encoding="utf-8")
    options = options_of("train")
    assert len(options) > 30
    for option in (*options, *options_of("evaluate")):
        if option not in ("--help", "--json", "--policy"):
            assert re.search(rf"`[^`]*{option}\b", page), option
    for name in preset_names():
        assert f"`{name}`" in page


def test_the_house_is_as_shown():
    """Rooms and foundations in CONTRIBUTING are those of the package; its files exist."""
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    house = page.partition("    fedrain/\n")[2].partition("    tests/")[0]
    shown = re.findall(r"^      (\w+)/", house, re.MULTILINE)
    shown += re.findall(r"\w+\.py", house.splitlines()[0])
    package = ROOT / "fedrain"
    there = [p.name for p in package.iterdir() if (p / "__init__.py").exists()]
    there += [p.name for p in package.glob("*.py") if not p.name.startswith("__")]
    assert sorted(shown) == sorted(there)
    models, baselines = (
        re.findall(r"\w+", re.split(rf"{head}:", house)[1].partition(end)[0])
        for head, end in (("models/", "\n      envs/"), ("non-learning baselines", ";"))
    )
    folder = package / "climate" / "models"
    assert sorted(models) == sorted(p.stem for p in folder.glob("*.py") if p.stem != "__init__")
    assert sorted(baselines) == sorted(baseline.TEXTS)
    files = re.findall(r"^\| `(fedrain/\S+\.py)`", page, re.MULTILINE)
    assert 0 < len(files) <= 5
    assert all((ROOT / name).is_file() for name in files)


def test_links_between_documents_lead_somewhere():
    for page in (*PAGES, ROOT / "CONTRIBUTING.md"):
        for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
            name, _, section = link.partition("#")
            if name.startswith("http"):
                continue
            other = page if not name else page.parent / name
            assert other.exists(), f"{page.name}: {link}"
            if section:
                heads = re.findall(r"^#+ (.+)$", other.read_text(encoding="utf-8"), re.MULTILINE)
                slugs = {re.sub(r"[^\w\- ]", "", h).lower().replace(" ", "-") for h in heads}
                assert section in slugs, f"{page.name}: {link}"


@pytest.fixture(scope="module")
def every():
    return load_results(ROOT / "results" / "paper")


@pytest.fixture(scope="module")
def results(every):
    """What the results and the cost page are about: all cells, once none is missing; until then,
    those of the presets that are complete."""
    complete = not missing_cells(every)
    return {c: result for c, result in every.items() if complete or c.preset != "published"}


@pytest.fixture(scope="module")
def preset(results):
    """Of the cells that the results page takes as the reproduction."""
    return next(p for p in REPRODUCTIONS if p in {cell.preset for cell in results})


def rows_of(table):
    return [line for line in table.markdown().splitlines() if line.startswith("|")]


def test_headline_is_that_of_the_results(results, preset):
    """The results page shows what ``fedrain benchmark tables`` makes of the stored results."""
    assert "\n".join(rows_of(skill_table(results, "ebm-v3", 6, "ddpg", preset))) in RESULTS
    told = " ".join(RESULTS.split())
    matrix = [cell for cell in cells() if cell.preset == preset]
    ddpg, others = (
        agreement(results, [cell for cell in matrix if (cell.algo == "ddpg") == is_ddpg])
        for is_ddpg in (True, False)
    )
    assert ddpg.within == ddpg.means == 78
    assert f"All {ddpg.means} means of DDPG" in told
    assert f"rejects {ddpg.rejected} ({ddpg.by_chance:.1f} would be by chance)" in told
    assert f"Of those of TD3 and TQC, {others.within} of {others.means} do" in told
    assert f"rejects {others.rejected} ({others.by_chance:.1f} by chance)" in told


def test_what_the_published_points_explain_is_that_of_the_results(every):
    """The results page says how TD3 agrees with them, and without, twice."""
    page = " ".join(RESULTS.split())
    of, without = (agreement(every, cells(f"*-td3-{preset}")) for preset in REPRODUCTIONS)
    assert of.within == of.means == 78
    assert (
        f"all {of.means} means of TD3 lie within three standard errors, and Welch's test rejects "
        f"{of.rejected}, where {of.by_chance:.1f} would be by chance; with preset `paper`, "
        f"{without.within} do and it rejects {without.rejected}"
    ) in page
    told = f"all {of.means} means of TD3 do, and it rejects {of.rejected} ({of.by_chance:.1f} by"
    assert told in page


def test_costs_are_those_of_the_results(results):
    told = re.search(
        r"The (\d+) cells (?:of presets `paper` and `corrected` )?took ([\d.]+) core-hours, "
        r"([\d.]+) hours .*?; climlab and PyTorch would need (\d+) core-hours",
        " ".join(COST.split()),
    )
    published = sum(map(published_core_hours, results))
    hours = sum(result.hours for result in results.values())
    core_hours = sum(result.core_hours for result in results.values())
    assert told is not None
    assert told.groups() == (
        str(len(results)), f"{core_hours:.1f}", f"{hours:.1f}", f"{published:.0f}",
    )  # fmt: skip
    totals = [row for row in rows_of(cost_table(results)) if row.startswith("| all ")]
    assert len(totals) == 4
    assert "\n".join(totals) in COST


def test_verdicts_are_those_of_the_results(results, preset):
    judged = claims_tables(results)["claims"]
    kept = [0, 1, 2 + REPRODUCTIONS.index(preset)]
    judged = replace(
        judged,
        header=[judged.header[i] for i in kept],
        rows=[[row[i] for i in kept] for row in judged.rows],
        words=3,
    )
    number = Counter(row[-1] for row in judged.rows)
    told = " ".join(RESULTS.split()).partition("put to tests")[2].partition("Some of them")[0]
    undecided = number["mixed"] + number["not decided by ten seeds"]
    for words in (
        f"{len(judged.rows)} claims", f"{number['holds']} hold in ours",
        f"{number['holds in part']} hold in part",
        f"{number['points that way']} agree in direction",
        f"{number['does not hold']} do not hold", f"{undecided} are mixed or not decided",
    ):  # fmt: skip
        assert words in told
    header, _, *rows = rows_of(judged)
    shown = RESULTS.partition(header)[2].partition("\n\n")[0].splitlines()[2:]
    assert len(shown) > 5
    assert set(shown) < set(rows)
