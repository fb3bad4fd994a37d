"""What may be set in the general circulation model: the parameters of jcm's schemes, as tables.

Symbols, meanings, units and defaults are those of jcm, whose SPEEDY has them from Molteni (2003,
Climate Dynamics 20, 175–191) and Kucharski et al. (2013, Bulletin of the American Meteorological
Society 94, 25–29), and whose dry physics is that of Held and Suarez (1994, Bulletin of the American
Meteorological Society 75, 1825–1830). Bounds are ours: from about half to twice the default, within
what the quantity can be; times of relaxation are not shorter than four of the model's steps.

A parameter has a value at each latitude where jcm's arrays allow it, as latitude is their last
axis; the others are one number for the globe.
"""

from functools import partial

import numpy as np
from jaxtyping import Float

from fedrain.climate.columns import Columns
from fedrain.climate.parameters import Parameter, ParameterTable

#: A value at each latitude; and one for the globe.
_each, _one = partial(Parameter, scope="column"), Parameter

#: Cloud albedo and cover, convection and longwave: the first are those that `gcm-twin` learns.
SPEEDY_PARAMETERS = ParameterTable(
    (
        # Shortwave radiation and clouds
        _each("albcl", "albedo of clouds", "1", 0.43, 0.20, 0.70),
        _each("rhcl1", "relative humidity at which clouds begin", "1", 0.30, 0.10, 0.60),
        # Convection
        _each("trcnv", "relaxation time of convection", "h", 6.0, 2.0, 24.0, action_unit=10.0),
        # Longwave radiation
        _each("ablwin", "longwave absorptivity of air in the window", "1", 0.30, 0.10, 0.90),
        _each("rhcl2", "relative humidity at which clouds are closed", "1", 1.00, 0.85, 1.30),
        _each("wpcl", "cloud cover for 1 mm/d of precipitation", "1", 0.20, 0.05, 0.40),
        _each("pmaxcl", "precipitation above which clouds do not grow", "mm d-1", 10.0, 3.0, 20.0,
              action_unit=10.0),
        _each("qacl", "specific humidity at which clouds begin", "g kg-1", 0.20, 0.05, 0.60),
        _each("albcls", "albedo of stratiform clouds", "1", 0.50, 0.25, 0.75),
        _each("clsmax", "largest cover of stratiform clouds", "1", 0.60, 0.20, 0.90),
        _each("gse_s0", "stability at which stratiform clouds begin", "1", 0.25, 0.10, 0.30),
        _each("gse_s1", "stability at which stratiform clouds are closed", "1", 0.40, 0.32, 0.80),
        _each("abswv1", "shortwave absorptivity of water vapour, visible", "kg g-1", 0.022, 0.010,
              0.044, action_unit=0.1),
        _each("abswv2", "shortwave absorptivity of water vapour, near infrared", "kg g-1", 15.0,
              7.0, 30.0, action_unit=100.0),
        _each("abscl1", "shortwave absorptivity of clouds, by their water", "kg g-1", 0.015,
              0.007, 0.030, action_unit=0.1),
        _each("abscl2", "largest shortwave absorptivity of clouds", "1", 0.15, 0.02, 0.30),
        _each("ablwv1", "longwave absorptivity of water vapour, weak band", "kg g-1", 0.70, 0.35,
              1.40),
        _each("ablwv2", "longwave absorptivity of water vapour, strong band", "kg g-1", 50.0,
              25.0, 100.0, action_unit=100.0),
        _each("ablcl1", "longwave absorptivity of thick clouds", "1", 12.0, 4.0, 24.0,
              action_unit=10.0),
        _each("ablcl2", "longwave absorptivity of thin clouds", "1", 0.60, 0.20, 1.50),
        _each("rhil", "humidity below which convection moistens air", "1", 0.70, 0.50, 0.90),
        _each("rhbl", "boundary layer humidity at which convection begins", "1", 0.90, 0.75, 1.00),
        _each("smf", "secondary over primary mass flux at cloud base", "1", 0.80, 0.40, 1.00),
        # Vertical diffusion and shallow convection
        _each("trshc", "relaxation time of shallow convection", "h", 6.0, 2.0, 24.0,
              action_unit=10.0),
        _each("redshc", "shallow convection under deep convection", "1", 0.50, 0.0, 1.0),
        _each("trvds", "relaxation time of super-adiabatic air", "h", 6.0, 2.0, 24.0,
              action_unit=10.0),
        _each("segrad", "least gradient of dry static energy", "1", 0.10, 0.02, 0.30),
        # The surface
        _each("cds", "drag coefficient over sea", "1", 1.0e-3, 0.5e-3, 2.0e-3, action_unit=1e-3),
        _each("chs", "heat exchange coefficient over sea", "1", 0.9e-3, 0.5e-3, 1.8e-3,
              action_unit=1e-3),
        _each("vgust", "wind of gusts that are not resolved", "m s-1", 5.0, 1.0, 10.0,
              action_unit=10.0),
        _each("fwind0", "wind near the surface over that of the lowest layer", "1", 0.95, 0.60,
              1.00),
        _each("ftemp0", "weight of the lapse rate in the temperature near the surface", "1", 1.0,
              0.0, 1.0),
        _each("fstab", "correction of exchange for stability", "1", 0.67, 0.20, 0.90),
        _each("dtheta", "potential temperature difference of that correction", "K", 3.0, 1.0, 6.0),
        _each("albsea", "albedo of the sea", "1", 0.07, 0.03, 0.15),
        # What jcm has as one number for the globe
        _one("trlsc", "relaxation time of large-scale condensation", "h", 4.0, 2.0, 12.0,
             action_unit=10.0),
        _one("rhlsc", "humidity at which large-scale condensation begins", "1", 0.90, 0.80, 1.00),
        _one("drhlsc", "by how much less aloft", "1", 0.10, 0.0, 0.25),
        _one("rhblsc", "the same in the boundary layer", "1", 0.95, 0.85, 1.00),
        _one("entmax", "largest entrainment over mass flux at cloud base", "1", 0.50, 0.20, 0.80),
        _one("absdry", "shortwave absorptivity of dry air", "1", 0.033, 0.015, 0.066,
             action_unit=0.1),
        _one("absaer", "shortwave absorptivity of aerosols", "1", 0.033, 0.0, 0.066,
             action_unit=0.1),
        _one("epslw", "longwave that the lowest layer alone absorbs", "1", 0.05, 0.02, 0.10),
        _one("emisfc", "longwave emissivity of the surface", "1", 0.98, 0.92, 1.00),
        _one("trvdi", "relaxation time of moisture diffusion", "h", 24.0, 6.0, 72.0,
             action_unit=10.0),
        _one("rhgrad", "largest gradient of relative humidity", "1", 0.50, 0.20, 1.00),
    )
)  # fmt: skip

#: Of jcm's SPEEDY where there is land, ice and snow, and mountains.
LAND_PARAMETERS = ParameterTable(
    (
        _each("psmin", "least surface pressure for convection, over 1000 hPa", "1", 0.80, 0.60,
              0.95),
        _each("albice", "albedo of sea ice", "1", 0.60, 0.40, 0.80),
        _each("albsn", "albedo of snow", "1", 0.60, 0.40, 0.85),
        _each("clsminl", "least cover of stratiform clouds over land", "1", 0.15, 0.0, 0.40),
        _each("cdl", "drag coefficient over land", "1", 2.4e-3, 1.2e-3, 4.8e-3, action_unit=1e-3),
        _each("chl", "heat exchange coefficient over land", "1", 1.2e-3, 0.6e-3, 2.4e-3,
              action_unit=1e-3),
        _each("clambda", "heat conductivity between skin and soil", "W m-2 K-1", 7.0, 3.0, 14.0,
              action_unit=10.0),
    )
)  # fmt: skip

HELD_SUAREZ_PARAMETERS = ParameterTable(
    (
        _each("dTy", "temperature difference between equator and poles", "K", 60.0, 30.0, 90.0,
              action_unit=100.0),
        _each("ka", "relaxation rate of the free air", "d-1", 0.025, 0.0125, 0.05, action_unit=0.1),
        _each("ks", "relaxation rate of the air at the ground", "d-1", 0.25, 0.125, 0.5),
        _each("dThz", "fall of potential temperature with height", "K", 10.0, 2.0, 20.0,
              action_unit=10.0),
        _each("maxT", "warmest temperature", "K", 315.0, 300.0, 325.0, action_unit=100.0),
        _each("minT", "coldest temperature", "K", 200.0, 190.0, 215.0, action_unit=100.0),
        _one("kf", "friction at the ground", "d-1", 1.0, 0.5, 2.0),
    )
)  # fmt: skip

#: Units of the tables over those of jcm, where they differ.
FACTORS = {"d-1": 1 / 86400}

#: The parameters of the truth of `gcm-twin`, in the order in which :func:`twin_truth` gives them.
TWIN = ("albcl", "rhcl1", "trcnv", "ablwin")


def speedy_table(surface: str) -> ParameterTable:
    """Of SPEEDY over an aquaplanet, or over the Earth."""
    if surface == "aquaplanet":
        return SPEEDY_PARAMETERS
    return ParameterTable((*SPEEDY_PARAMETERS, *LAND_PARAMETERS))


def twin_truth(columns: Columns) -> dict[str, Float[np.ndarray, " lat"]]:
    """The truth of `gcm-twin`: four parameters that vary with latitude φ, s = sin φ.

    - cloud albedo             0.43 + 0.10 (3s² − 1)/2 + 0.05 s: brighter towards the poles
    - cloud humidity threshold 0.30 + 0.08 (1 − 3s²)/2 − 0.04 s: poleward, drier air makes clouds
    - relaxation of convection 6 h · 2^(1 − 2s² + s/2): slower in the tropics, faster poleward
    - window absorptivity      0.30 + 0.20 cos² φ + 0.08 s: more opaque where air is moist
    """
    s = np.sin(np.deg2rad(columns.latitude))
    return {
        "albcl": 0.43 + 0.10 * (3 * s**2 - 1) / 2 + 0.05 * s,
        "rhcl1": 0.30 + 0.08 * (1 - 3 * s**2) / 2 - 0.04 * s,
        "trcnv": 6.0 * 2 ** (1 - 2 * s**2 + s / 2),
        "ablwin": 0.30 + 0.20 * (1 - s**2) + 0.08 * s,
    }


def with_units(row: Parameter) -> float:
    """What a value of the table is multiplied by for jcm."""
    return FACTORS.get(row.unit, 1.0)
