"""What is slow to import is imported when it is used."""

import subprocess
import sys

HEAVY = (
    "matplotlib",
    "xarray",
    "pandas",
    "scipy.optimize",
    "climlab",
    "jcm",
    "flax",
    "dinosaur",
    "stable_baselines3",
    "torch",
)


def test_the_environments_import_no_figures_and_no_files():
    code = f"import sys, fedrain.envs; print([one for one in {HEAVY} if one in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
