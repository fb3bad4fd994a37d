"""What the room offers is documented, and its examples give what they show."""

import doctest
import inspect
from pathlib import Path

import pytest

import fedrain.paper
from tests.paper import RESULTS


@pytest.mark.parametrize("name", fedrain.paper.__all__)
def test_public_names_are_documented(name, tmp_path, monkeypatch):
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "paper").symlink_to(RESULTS)
    monkeypatch.chdir(tmp_path)
    public = getattr(fedrain.paper, name)
    assert inspect.getdoc(public)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    given = {**vars(fedrain.paper), "Path": Path}
    for test in doctest.DocTestFinder(recurse=False).find(public, name, globs=given):
        runner.run(test)
    assert runner.failures == 0
