"""The report: one HTML file that needs nothing else, not even a network.

Everything that it shows goes in as JSON; the episodes, which are large, as 16-bit differences from
step to step, compressed, which the browser unpacks.
"""

import base64
import json
import zlib
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from fedrain.climate import BAND_NAMES, EnergyBalanceModel
from fedrain.envs import make
from fedrain.experiment.report import SPREAD, spread, static_trajectory
from fedrain.io import write_whole
from fedrain.paper.claims import judge_claims
from fedrain.paper.cost import published_core_hours
from fedrain.paper.episode import REFERENCES, reference_of
from fedrain.paper.matrix import EPISODE_STEPS, cells
from fedrain.paper.results import (
    PUBLISHED_SEEDS,
    Result,
    Results,
    published_bands,
    read_reference,
    static_skill,
)
from fedrain.paper.statistics import differ, standard_errors
from fedrain.paper.tables import (
    WITHIN,
    agreement_table,
    cost_table,
    habits_table,
    limit_table,
)
from fedrain.tables import Table

#: Steps of one unit of the packed numbers: temperature in K, A in W m⁻², B in W m⁻² K⁻¹.
UNITS = {"surface_temperature": 0.01, "A": 0.02, "B": 2e-5}
SHOWN_COLDEST, SHOWN_WARMEST = -60.0, 60.0  # °C
OFFSETS = {"surface_temperature": 0.0, "A": 280.0, "B": 2.0}


def write_report(results: Results, folder: str | Path, path: Path) -> None:
    """Write the page, from the results and the optimal control in the same folder."""
    page = files("fedrain.paper") / "page"
    series = Series()
    shown = _content(results, Path(folder), series)
    data = json.dumps(shown, separators=(",", ":"), allow_nan=False)
    text = (page / "page.html").read_text("utf-8")
    for name, content in {
        "/*STYLE*/": (page / "style.css").read_text("utf-8"),
        "/*SCRIPT*/": (page / "script.js").read_text("utf-8"),
        "/*DATA*/": data.replace("</", "<\\/"),
        "/*SERIES*/": series.text(),
    }.items():
        text = text.replace(name, content)
    write_whole(path, lambda partial: partial.write_text(text, "utf-8"))


class Series:
    """Episodes one after the other, as the page keeps them."""

    def __init__(self) -> None:
        self._parts: list[np.ndarray] = []

    def add(self, episode: dict[str, Float[np.ndarray, "step lat"]]) -> int:
        """The position of an episode: temperature, A and B."""
        for name, unit in UNITS.items():
            units = np.rint((episode[name] - OFFSETS[name]) / unit)
            whole = np.clip(np.nan_to_num(units), -32768, 32767).astype(np.int16)
            self._parts.append(np.diff(whole, axis=0, prepend=np.int16(0)))
        return len(self._parts) // len(UNITS) - 1

    def text(self) -> str:
        """Compressed, as characters."""
        numbers = np.concatenate([part.ravel() for part in self._parts]).astype("<i2")
        # The low bytes, then the high ones, which are nearly all the same.
        planes = numbers.view(np.uint8).reshape(-1, 2).T
        return base64.b64encode(zlib.compress(planes.tobytes(), 9)).decode("ascii")


def _content(results: Results, folder: Path, series: Series) -> dict[str, Any]:
    environment = make("ebm-v1")
    grid, table = environment.model.grid, environment.model.table
    static_values = table.static(grid.latitudes)
    static_episode = {
        "surface_temperature": static_trajectory(environment),
        **{k: np.broadcast_to(static_values[k], (EPISODE_STEPS, grid.latitudes)) for k in "AB"},
    }
    static_place = series.add(static_episode)
    references = {}
    for name in REFERENCES:
        if (folder / f"{name}.nc").exists():
            references[name] = series.add(_episode(read_reference(folder / f"{name}.nc"), ""))
    ranges = {"temperature": [SHOWN_COLDEST, SHOWN_WARMEST]}
    return {
        "steps": EPISODE_STEPS,
        "stepsPerYear": EnergyBalanceModel.steps_per_year,
        "spread": SPREAD,
        "within": WITHIN,
        "publishedSeeds": PUBLISHED_SEEDS,
        "latitudes": np.round(grid.centres, 4).tolist(),
        "weights": np.round(np.cos(np.deg2rad(grid.centres)), 6).tolist(),
        "bands": list(BAND_NAMES),
        "target": np.round(np.array(environment.target), 3).tolist(),
        "units": list(UNITS.values()),
        "offsets": list(OFFSETS.values()),
        "ranges": ranges | {row.symbol: [row.low, row.high] for row in table if row.per_latitude},
        "static": {"series": static_place, "bands": list(static_skill().bands)},
        "references": references,
        "publishedCoreHours": sum(published_core_hours(cell) for cell in results),
        "total": len(cells()),
        "cells": [_cell(result, series) for result in results.values()],
        "claims": [
            {
                "statement": claim.statement,
                "test": claim.test,
                "ours": [claim.ours.verdict, claim.ours.evidence],
                "beside": claim.beside,
                "published": claim.published
                and [claim.published.verdict, claim.published.evidence],
            }
            for claim in judge_claims(results)
        ],
        "tables": {
            "agreement": _table(agreement_table(results)),
            "habits": _table(habits_table(results)),
            "limit": _table(limit_table(results)),
            "cost": _table(cost_table(results)),
        },
        "versions": next(iter(results.values())).versions,
    }


def _cell(result: Result, series: Series) -> dict[str, Any]:
    cell = result.cell
    samples, published = result.bands(), published_bands(cell)
    loss, half = spread(-result.learning)
    content: dict[str, Any] = {
        "name": cell.name,
        "env": cell.env,
        "agents": cell.agents,
        "scheme": cell.scheme,
        "algo": cell.algo,
        "preset": cell.preset,
        "seeds": np.round(result.skill(), 3).tolist(),
        "best": result.best_seed,
        "mean": [s.mean for s in samples],
        "std": [s.std for s in samples],
        "globe": result.globe().mean,
        "share": 100 * result.share_of_limit("local"),
        "loss": np.round(loss).tolist(),
        "lossHalf": np.round(half).tolist(),
        "coreMinutes": round(60 * result.core_hours, 1),
        "series": series.add(_episode(result.data, "episode_")),
        "reference": reference_of(cell),
    }
    if published is not None:
        pairs = list(zip(samples, published, strict=True))
        content["published"] = {
            "mean": [p.mean for p in published],
            "std": [p.std for p in published],
            "errors": [standard_errors(ours, theirs) for ours, theirs in pairs],
            "p": [float(f"{differ(ours, theirs):.2g}") for ours, theirs in pairs],
        }
    return content


def _episode(data: xr.Dataset, prefix: str) -> dict[str, Float[np.ndarray, "step lat"]]:
    return {name: data[f"{prefix}{name}"].values for name in UNITS}


def _table(table: Table) -> dict[str, Any]:
    return {
        "header": table.header,
        "groups": table.groups,
        "rows": table.rows,
        "words": table.words,
    }
