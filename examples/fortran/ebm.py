"""A climate model in Fortran, ebm.f90, which f2py compiles beside it (gfortran must be there).

Train it with ``fedrain train --model examples/fortran/ebm.py:FortranModel``.
"""

import hashlib
import importlib
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fedrain import climate

SOURCE = Path(__file__).resolve().with_name("ebm.f90")
NAME = "ebm_" + hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16]
if not list(SOURCE.parent.glob(f"{NAME}.*")):  # not compiled yet, or changed since
    f2py = [sys.executable, "-m", "numpy.f2py", "-c", SOURCE.name, "-m", NAME]
    subprocess.run(f2py, cwd=SOURCE.parent, check=True, capture_output=True)
sys.path.append(str(SOURCE.parent))
SINE = (np.arange(24) + 0.5) / 12 - 1  # of latitude, in the middle of bands of equal area
COLUMNS = climate.Columns(np.rad2deg(np.arcsin(SINE)), weights=np.ones(24))
Q, P2 = climate.annual_insolation(COLUMNS.latitude), (3 * SINE**2 - 1) / 2


@dataclass(frozen=True)
class FortranModel(climate.HostModel):
    """Zonal mean surface temperature in °C. Which program it was is stored with every run."""

    program: str = NAME
    table: climate.ParameterTable = climate.ENERGY_BALANCE_PARAMETERS
    columns, fields, days_per_step = COLUMNS, (climate.SURFACE_TEMPERATURE,), 4.0

    def init_host(self, rng, temperature=20.0):
        """The same temperature everywhere."""
        return {"surface_temperature": np.full(24, temperature)}

    def step_host(self, state, parameters, forcing, rng):
        """Fortran changes the temperature in place."""
        A, B, D, a0, a2 = (parameters[symbol] for symbol in ("A", "B", "D", "a0", "a2"))
        absorbed, fortran = (1 - a0 - a2 * P2) * Q, importlib.import_module(NAME)
        fortran.four_days(state["surface_temperature"], absorbed, A, B, D)
        return state
