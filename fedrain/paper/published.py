"""What the paper published, and what its reference implementation costs, to compare with ours."""

import csv
import json
from functools import cache
from importlib import resources
from typing import NamedTuple

from fedrain.climate import BAND_NAMES
from fedrain.envs import make
from fedrain.envs.tasks import same_task
from fedrain.experiment import Configuration
from fedrain.federation import Sharing
from fedrain.paper.matrix import REPRODUCTIONS, Cell
from fedrain.paper.statistics import Sample

PUBLISHED_SEEDS = 10
DATA = resources.files("fedrain.paper") / "data"


class Published(NamedTuple):
    """Published skill of one experiment: areaWRMSE over ten seeds, six bands from south to north.

    ``mean`` and ``std`` (population) are in K; ``gain`` is how far the mean is below that of
    ebm-v1, in per cent.

    Args:
        mean: K, of the six bands.
        std: K, likewise.
        gain: Per cent, likewise.
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]
    gain: tuple[float, ...]


@cache
def published_cells() -> dict[tuple[str, str, str, str], Published]:
    """Every figure of the paper's skill tables.

    Returns:
        Skill by environment, decomposition, scheme and algorithm:
        ``("ebm-v3", "a6", "fed05", "ddpg")``. For ebm-v1 the middle two are empty.
    """
    with (DATA / "paper_zonal_skill.csv").open(encoding="utf-8") as lines:
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


def published_skill(experiment: Configuration | Cell) -> Published | None:
    """The published skill of an experiment.

    Args:
        experiment: A cell of the matrix, or any configuration, whose hyperparameters, seeds and
            episodes may differ from the paper's.

    Returns:
        None if the paper has no such experiment: a cell of preset ``corrected``, or a configuration
        whose climate or averaging differs both from the paper's text and from the published runs.

    Example:
        >>> from fedrain.experiment import configure
        >>> published_skill(configure(env="ebm-v3", agents=6, algo="ddpg")).mean[2]
        1.25
    """
    env = experiment.env.removesuffix("-published")
    single = env == "ebm-v1"
    agents = "" if single else f"a{experiment.agents}"
    scheme = "" if single else experiment.scheme
    found = published_cells().get((env, agents, scheme, experiment.algo))
    if isinstance(experiment, Cell):
        return found if experiment.preset in REPRODUCTIONS else None
    if found is None or experiment.make_sharing() != Sharing():
        return None
    theirs = make(experiment.env, agents=experiment.agents)
    return found if same_task(experiment.make_environment(), theirs) else None


def published_column(configuration: Configuration) -> dict[str, list[str]]:
    """The published skill as a column of :func:`fedrain.experiment.report.skill_report`.

    Args:
        configuration: Any experiment.

    Returns:
        ``{"paper": [...]}``, a text for each band and an empty one for the globe, which is not
        published; an empty dictionary if the paper has no such experiment.
    """
    if (found := published_skill(configuration)) is None:
        return {}
    pairs = zip(found.mean, found.std, strict=True)
    return {"paper": [*(f"{m:.2f} ± {s:.2f}" for m, s in pairs), ""]}


def published_bands(cell: Cell) -> list[Sample] | None:
    """The published skill of a cell in the form that tests need.

    Args:
        cell: Of the matrix.

    Returns:
        A sample of ten seeds for each of the six bands, from south to north; None for cells of
        preset ``corrected``, which the paper does not have.
    """
    if (found := published_skill(cell)) is None:
        return None
    return [Sample(m, s, PUBLISHED_SEEDS) for m, s in zip(found.mean, found.std, strict=True)]


def published_core_hours(cell: Cell) -> float:
    """Core-hours that the reference implementation needs for all seeds of a cell.

    The reference implementation is climlab and PyTorch in one process. Its core time per agent step
    was measured by ``studies/published_cost.py`` on the machine that trained the stored results.

    Args:
        cell: Of the matrix.

    Returns:
        Hours of one core.
    """
    return cell.agent_steps * _core_milliseconds()[cost_kind(cell)] / 3.6e6


def published_core_milliseconds(algo: str) -> dict[str, float]:
    """Core-milliseconds per agent step, by the number of latitudes that the agent sees."""
    return {
        kind.removeprefix(f"{algo} "): value
        for kind, value in _core_milliseconds().items()
        if kind.startswith(f"{algo} ")
    }


def cost_kind(cell: Cell) -> str:
    """What the cost of an agent step depends on: algorithm, and latitudes that the agent sees."""
    latitudes = 96 // cell.agents if cell.env == "ebm-v3" else 96
    return f"{cell.algo} {latitudes}"


@cache
def _core_milliseconds() -> dict[str, float]:
    return json.loads((DATA / "published_cost.json").read_text("utf-8"))
