"""Run an installed package where there is no checkout: ``python tests/outside.py PYTHON``.

Used by ``make dist`` with a virtual environment of its own, and by a slow test.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

#: Each a command, and a file that it leaves.
COMMANDS = (
    ("--help", None),
    ("envs", None),
    (
        "train --env ebm-v1 --latitudes 12 --episodes 2 --episode-length 10 --out run",
        "run/skill.nc",
    ),
    ("evaluate run --json", None),
    ("benchmark tables --out tables", "tables/agreement.md"),
    ("benchmark report --out report.html", "report.html"),
)


def run_outside(python: str, package: Path | None = None) -> None:
    """Run every command in an empty folder, and fail with the first that fails.

    Args:
        python: The interpreter that has the package, or its dependencies.
        package: Where the package is, if the interpreter has its dependencies alone.
    """
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    if package is not None:
        environment["PYTHONPATH"] = str(package)
    with tempfile.TemporaryDirectory() as folder:
        where = [python, "-c", "import fedrain; print(fedrain.__file__)"]
        found = subprocess.check_output(where, cwd=folder, env=environment, text=True).strip()
        assert not Path(found).is_relative_to(Path(__file__).parents[1] / "fedrain"), found
        for command, file in COMMANDS:
            print(f"fedrain {command}", flush=True)
            words = [python, "-m", "fedrain", *command.split()]
            subprocess.run(words, cwd=folder, env=environment, check=True, stdout=sys.stderr)
            assert file is None or (Path(folder) / file).stat().st_size > 0, file


if __name__ == "__main__":
    run_outside(sys.argv[1])
