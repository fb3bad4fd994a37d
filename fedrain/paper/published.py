"""The skill that the paper published, to set beside ours."""

import csv
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import NamedTuple

from fedrain.climate import BAND_NAMES
from fedrain.experiment.configuration import Configuration


class Published(NamedTuple):
    """Mean and standard deviation over 10 seeds of the areaWRMSE of each band, in K.

    The gain is how much lower the mean is than that of ebm-v1, in per cent.
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]
    gain: tuple[float, ...]


@cache
def published_cells() -> dict[tuple[str, str, str, str], Published]:
    """By environment, decomposition, scheme and algorithm. ebm-v1 has neither of the middle two."""
    file = resources.files("fedrain.paper") / "data" / "paper_zonal_skill.csv"
    with file.open(encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    found: dict[tuple[str, str, str, str], dict[str, tuple[float, ...]]] = {}
    for row in rows:
        cell = (row["env"], row["agents"], row["regime"], row["algo"])
        figures = (row["mean"], row["std"], row["gain_percent_vs_ebm_v1"])
        found.setdefault(cell, {})[row["band"]] = tuple(map(float, figures))
        single = ("ebm-v1", "", "", row["algo"])
        figures = (row["ebm_v1_mean"], row["ebm_v1_std"], "0")
        found.setdefault(single, {})[row["band"]] = tuple(map(float, figures))
    return {
        cell: Published(*zip(*(bands[band] for band in BAND_NAMES), strict=True))
        for cell, bands in found.items()
    }


def published_skill(configuration: Configuration) -> Published | None:
    """What the paper has for this experiment, if it has it: the climate is the paper's."""
    theirs = replace(configuration, environment={}, sharing={})
    if configuration.make_environment() != theirs.make_environment():
        return None
    if configuration.make_sharing() != theirs.make_sharing():
        return None
    single = configuration.env == "ebm-v1"
    agents = "" if single else f"a{configuration.agents}"
    scheme = "" if single else configuration.scheme
    return published_cells().get((configuration.env, agents, scheme, configuration.algo))


def published_column(configuration: Configuration) -> dict[str, list[str]]:
    """What the paper has for this experiment as a column of a skill report; none if it has not."""
    if (found := published_skill(configuration)) is None:
        return {}
    pairs = zip(found.mean, found.std, strict=True)
    return {"paper": [*(f"{m:.2f} ± {s:.2f}" for m, s in pairs), ""]}
