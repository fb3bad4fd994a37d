"""The newest release of every dependency, whatever upper bounds ``pyproject.toml`` has.

``python tests/newest.py`` writes requirements without upper bounds; with ``--report`` it tells
which bounds keep out what is installed. ``make test-newest`` does both, and the suite in between.
"""

import argparse
import sys
import tomllib
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"
UPPER = ("<", "<=", "==", "~=")


def requirements(extra, project):
    """All requirements of an extra, those of the extras that it takes in included."""
    own = list(project["dependencies"]) if extra is None else []
    found = [*own, *project["optional-dependencies"].get(extra, ())]
    wanted = []
    for text in found:
        one = Requirement(text)
        if one.name == project["name"]:
            wanted += [two for name in sorted(one.extras) for two in requirements(name, project)]
        else:
            wanted.append(one)
    return wanted


def unbounded(one):
    """The same without an upper bound."""
    lower = [str(part) for part in one.specifier if part.operator not in UPPER]
    free = Requirement(str(one))
    free.specifier = SpecifierSet(",".join(lower))
    return free


def outdated(wanted):
    """A line for each bound that keeps out what is installed."""
    lines = []
    for one in wanted:
        if one.marker is not None and not one.marker.evaluate():
            continue
        version = metadata.version(one.name)
        if not one.specifier.contains(version, prereleases=True):
            lines.append(f"{one.name} {version} is out, and {one.specifier} keeps it out")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--report", action="store_true")
    options = parser.parse_args()
    project = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]
    wanted = requirements(None, project) + requirements("test", project)
    if options.report:
        print("\n".join(outdated(wanted)) or "no upper bound is out of date")
    else:
        print("\n".join(sorted({str(unbounded(one)) for one in wanted})))


if __name__ == "__main__":
    sys.exit(main())
