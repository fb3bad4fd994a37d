"""What is published: version, metadata, and a wheel that works without the checkout."""

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import fedrain
from tests.outside import run_outside

ROOT = Path(__file__).parent.parent


def test_the_changelog_begins_with_this_version():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    heads = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert heads[0] == "Unreleased"
    assert re.fullmatch(rf"{re.escape(fedrain.__version__)} \(\d{{4}}-\d\d-\d\d\)", heads[1])
    assert heads[-1] == "0.1.0"
    entries = re.findall(r"^- (.+?)(?=\n- |\n\n|\n#|\Z)", text, re.MULTILINE | re.DOTALL)
    assert len(entries) == len(set(entries))


def test_the_metadata_is_complete():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for key in ("description", "readme", "license", "authors", "keywords", "classifiers", "urls"):
        assert project[key], key
    lowest = project["requires-python"].removeprefix(">=")
    assert f"Programming Language :: Python :: {lowest}" in project["classifiers"]
    cite = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"version: {fedrain.__version__}\n" in cite
    for page in ("README.md", "docs/index.md"):
        text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
        assert "independent implementation" in text, page


@pytest.mark.slow
def test_the_wheel_works_outside_the_checkout(tmp_path):
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "wheel", "--no-deps", "-w", tmp_path, ROOT], check=True)
    (wheel,) = tmp_path.glob("fedrain-*.whl")
    assert wheel.stat().st_size < 12e6
    names = zipfile.ZipFile(wheel).namelist()
    results = {path.name for path in (ROOT / "results" / "paper").glob("*.nc")}
    assert {Path(name).name for name in names if "/data/results/" in name} == results
    package = tmp_path / "package"
    subprocess.run([*pip, "install", "--no-deps", "--target", package, wheel], check=True)
    run_outside(sys.executable, package)
