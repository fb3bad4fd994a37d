"""What the documents show works as written."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from fedrain.climate import ENERGY_BALANCE_PARAMETERS
from fedrain.envs import EnergyBalanceV1, EnergyBalanceV3

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.name)
def test_examples_run(example, tmp_path):
    done = subprocess.run(
        [sys.executable, example], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout
    assert done.stderr == ""


def test_python_in_the_readme_runs(capsys):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(blocks) >= 3
    names: dict = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
    assert "heat_transport" in capsys.readouterr().out


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
