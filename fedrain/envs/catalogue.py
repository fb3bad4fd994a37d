"""The tasks of the package as data: a model, what is learnt and judged, how an episode starts."""

from dataclasses import replace

from fedrain.envs.models import (
    earth_circulation,
    energy_budget,
    general_circulation,
    radiative_convective,
    seasonal,
    twin,
    twin_truth,
)
from fedrain.envs.records import gcm_ncep_record, gcm_twin_record
from fedrain.envs.task import Task

PAPER = {
    "ebm-v1": Task(
        agents=1,
        shared_climate=False,
        local_observation=False,
        summary="one agent sets a whole climate",
    ),
    "ebm-v2": Task(
        shared_climate=False,
        local_observation=False,
        summary="each agent has a climate of its own, and is judged by its region",
    ),
    "ebm-v3": Task(summary="the agents share one climate; each sees and sets its region"),
}
#: Right for the right reasons.
OPEN = {
    "ebm-energy": Task(
        model=energy_budget,
        agents=96,
        episode_length=400,
        # Errors of 1 K and of 7 W m⁻² count alike; a forecast makes 0.2 K of 1 W m⁻² too much.
        judge={"surface_temperature": 1.0, "outgoing_longwave": 0.02, "absorbed_shortwave": 0.02},
        around={"surface_temperature": 15.0},
        observe=("place",),
        start={"offset": (-5.0, 5.0)},
        splits={
            "validation": {"start": {"offset": (5.0, 10.0)}},
            "test": {"start": {"offset": (-10.0, -5.0)}},
        },
        analysis_every=25,
        summary="D, A, B and albedo of each latitude, judged by temperature and both fluxes",
    ),
    "ebm-twin": Task(
        model=twin,
        truth=twin_truth,
        agents=96,
        judge={"surface_temperature": 1000.0},  # an error of 0.03 K counts
        observe=("surface_temperature",),
        start={"offset": (-10.0, 10.0)},
        forcing={"longwave": (-1.0, 1.0)},
        splits={  # other starts, and forcings beyond those of the training
            "validation": {"forcing": {"longwave": (-3.0, -1.0)}},
            "test": {"start": {"offset": (10.0, 15.0)}, "forcing": {"longwave": (-7.4, -3.7)}},
        },
        analysis_every=1,
        summary="albedo of a climate with ice, learnt by a model without ice from a twin",
    ),
    "ebm-seasonal": Task(
        model=seasonal,
        agents=96,
        episode_length=180,
        learn=("D", "A", "B", "albedo"),
        judge={"surface_temperature": 1.0, "outgoing_longwave": 0.006, "absorbed_shortwave": 0.006},
        around={"surface_temperature": 12.0},
        observe=("place", "season"),
        start={"offset": (-2.0, 2.0), "day": (0.0, 365.0)},
        splits={
            "validation": {"start": {"offset": (2.0, 4.0)}},
            "test": {"start": {"offset": (-6.0, -4.0)}},
        },
        analysis_every=30,
        judged_over=90,  # a year
        summary="land and ocean through the year, judged by the months of the reanalysis",
    ),
    "rce-zonal": Task(
        model=radiative_convective,
        agents=36,
        learn=("kappa", "lapse", "D"),
        judge={"air_temperature": 1.0, "surface_temperature": 0.3, "outgoing_longwave": 0.02},
        around={"air_temperature": 12.0, "surface_temperature": 12.0},
        observe=("place",),
        start={"offset": (-5.0, 5.0)},
        splits={
            "validation": {"start": {"offset": (5.0, 10.0)}},
            "test": {"start": {"offset": (-10.0, -5.0)}},
        },
        analysis_every=50,
        summary="radiation and convection on 17 levels, judged by the air of the reanalysis",
    ),
}
#: A general circulation model. Weights are one over the mean square error of its own parameters in
#: forecasts of a day, and over the Earth in means over 60 days, so that each field counts alike.
CIRCULATION = {
    "gcm-twin": Task(
        model=general_circulation,
        record=gcm_twin_record,
        agents=32,
        episode_length=30,
        learn=("albcl", "rhcl1", "trcnv", "ablwin"),
        judge={
            "outgoing_longwave": 0.25,  # 2 W m⁻²
            "absorbed_shortwave": 0.01,  # 10 W m⁻²
            "precipitation": 75.0,  # 0.12 mm d⁻¹
            "air_temperature": 4000.0,  # 0.016 K
        },
        observe=("place",),
        analysis_every=1,
        judged_over=20,
        overlap=True,  # six bands of 32 latitudes
        extra="gcm",
        summary="clouds, convection and radiation of a general circulation model, from a twin",
    ),
    "gcm-ncep": Task(
        model=earth_circulation,
        record=gcm_ncep_record,
        agents=32,
        episode_length=90,
        # Of 23 that were put to their bounds, those that can undo most of the errors of the
        # defaults in both fluxes.
        learn=("albcl", "rhcl1", "ablwv1", "ablcl2"),
        judge={
            "outgoing_longwave": 0.014,  # 8.5 W m⁻²
            "absorbed_shortwave": 0.011,  # 9.5 W m⁻²
            "air_temperature": 0.017,  # 7.7 K
        },
        observe=("place", "season"),
        judged_over=60,
        overlap=True,
        extra="gcm",
        summary="clouds, convection and radiation of the Earth, judged by reanalysis months",
    ),
}
#: As the published runs had them: the climate does not get the albedo that agents set, what they
#: see may leave its bounds, and the profile is that before the last step.
PUBLISHED = {
    f"{name}-published": replace(
        task,
        unapplied=("a0", "a2"),
        unclipped=True,
        judged_early=1,
        summary=f"{name} as in the published runs: a0 and a2 are set but not applied",
    )
    for name, task in PAPER.items()
}
