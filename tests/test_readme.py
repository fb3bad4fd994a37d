"""The README is short, and its table is that of the stored results."""

import importlib
import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture
def headline(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "studies")
    return importlib.import_module("headline")


def test_it_is_short_and_shows_before_it_tells():
    assert len(README.split()) <= 700
    film, figure = README.index("film.gif"), README.index("headline")
    assert film < figure < README.index("## Install")
    for page in (README, (ROOT / "docs" / "faq.md").read_text(encoding="utf-8")):
        assert re.search(r"independent\s+implementation", page)
        assert re.search(r"not\s+the\s+authors'\s+package", page)
    install = re.search(r"## Install.*?```sh\n(.*?)```", README, re.DOTALL)
    assert len(install[1].splitlines()) == 3


def test_its_table_is_that_of_the_stored_results(headline):
    """Every number of a row is a mean or a spread of the headline's panel of that task."""
    rows = re.findall(r"^\| `?(\w+-\w+)`?[^|]*\|(.*)\|$", README, re.MULTILINE)
    panels = {label.split(":")[0]: make for _, label, make in headline.PANELS}
    assert {name for name, _ in rows} == set(panels)
    for name, cells in rows:
        values = [np.array(one) for _, _, one in panels[name]()]
        known = [v.mean() for v in values] + [v.std() for v in values if len(v) > 1]
        for cell in cells.split("|"):
            for text in re.findall(r"\d+\.?\d*", re.sub(r"\([^)]*\)", "", cell)):
                digits = len(text.partition(".")[2])
                assert any(f"{one:.{digits}f}" == text for one in known), f"{name}: {text}"
