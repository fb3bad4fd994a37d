"""The requirements that ``make test-newest`` installs."""

import tomllib

from packaging.requirements import Requirement
from packaging.version import Version

from tests.newest import PYPROJECT, outdated, requirements, unbounded

PROJECT = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]


def test_every_upper_bound_goes_and_every_lower_one_stays():
    for one in requirements(None, PROJECT) + requirements("test", PROJECT):
        free, lower = unbounded(one), [p for p in one.specifier if p.operator == ">="]
        assert free.specifier.contains("9999")
        assert {str(part) for part in free.specifier} >= {str(part) for part in lower}
        assert (free.name, free.extras, free.marker) == (one.name, one.extras, one.marker)


def test_extras_within_extras_are_taken_in():
    names = {one.name for one in requirements("test", PROJECT)}
    assert {"flwr", "climlab", "pytest"} <= names
    assert PROJECT["name"] not in names


def test_what_a_bound_keeps_out_is_told():
    from importlib import metadata

    there = Version(metadata.version("numpy"))
    (line,) = outdated([Requirement(f"numpy<{there}"), Requirement(f"numpy<={there}")])
    assert line == f"numpy {there} is out, and <{there} keeps it out"
    assert outdated([Requirement("none<1; python_version < '3'")]) == []
