"""The report: one HTML file that needs nothing else, not even a network.

What it shows is embedded as JSON, and drawn in the colours and line styles of all figures. The
episodes, which are large, are embedded as 16-bit differences from step to step, compressed, which
the browser unpacks.
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

from fedrain.baselines import static
from fedrain.climate import BAND_NAMES, EnergyBalanceModel
from fedrain.envs import make
from fedrain.io import write_whole
from fedrain.paper.claims import judge_claims
from fedrain.paper.matrix import EPISODE_STEPS, PRESETS, REPRODUCTIONS, cells
from fedrain.paper.published import published_bands, published_core_hours
from fedrain.paper.results import (
    REFERENCES,
    Result,
    Results,
    read_reference,
    reference_of,
    static_skill,
)
from fedrain.paper.statistics import Sample, differ, standard_errors
from fedrain.paper.tables import (
    WITHIN,
    agreement,
    agreement_table,
    cost_table,
    limit_table,
    missing_table,
    points_table,
    quirks_table,
)
from fedrain.plotting import Line, half_width, interval, style
from fedrain.tables import Table

#: Resolution of the packed integers, and the values that 0 stands for: temperature in °C, A in
#: W m⁻², B in W m⁻² K⁻¹.
UNITS = {"surface_temperature": 0.01, "A": 0.02, "B": 2e-5}
OFFSETS = {"surface_temperature": 0.0, "A": 280.0, "B": 2.0}
SHOWN_COLDEST, SHOWN_WARMEST = -60.0, 60.0  # °C
#: Dashes of matplotlib's named line styles, in units of the line's width.
DASHES = {"-": (), "--": (3.7, 1.6), "-.": (6.4, 1.6, 1.0, 1.6), ":": (1.0, 1.65)}
#: What the page draws, by its key in :mod:`fedrain.plotting`.
DRAWN = ("target", "static", "limit", "model", "published", *PRESETS)


def write_report(results: Results, folder: str | Path, path: Path) -> None:
    """Write the report as one HTML page that opens without a network.

    Args:
        results: What :func:`load_results` read.
        folder: Where it was read from. Optimal control is read from there too, and left out of the
            page where it is missing.
        path: The file to write.
    """
    page = files("fedrain.paper") / "page"
    series = Series()
    shown = _content(results, Path(folder), series)
    data = json.dumps(shown, separators=(",", ":"), allow_nan=False)
    text = (page / "page.html").read_text("utf-8")
    for name, content in {
        "/*STYLE*/": (page / "style.css").read_text("utf-8"),
        "/*COLOURS*/": " ".join(f"--{key}-colour: {style(key).colour};" for key in DRAWN),
        "/*SCRIPT*/": (page / "script.js").read_text("utf-8"),
        "/*DATA*/": data.replace("</", "<\\/"),
        "/*SERIES*/": series.text(),
    }.items():
        text = text.replace(name, content)
    write_whole(path, lambda partial: partial.write_text(text, "utf-8"))


class Series:
    """Episodes one after the other, packed for the page."""

    def __init__(self) -> None:
        self._parts: list[np.ndarray] = []

    def add(self, episode: dict[str, Float[np.ndarray, "step lat"]]) -> int:
        """Append an episode of temperature, A and B; its position."""
        for name, unit in UNITS.items():
            units = np.rint((episode[name] - OFFSETS[name]) / unit)
            packed = np.clip(np.nan_to_num(units), -32768, 32767).astype(np.int16)
            self._parts.append(np.diff(packed, axis=0, prepend=np.int16(0)))
        return len(self._parts) // len(UNITS) - 1

    def text(self) -> str:
        """All episodes, compressed, in base 64."""
        numbers = np.concatenate([part.ravel() for part in self._parts]).astype("<i2")
        # The low bytes, then the high ones: those are nearly all the same and compress well.
        planes = numbers.view(np.uint8).reshape(-1, 2).T
        return base64.b64encode(zlib.compress(planes.tobytes(), 9)).decode("ascii")


def _content(results: Results, folder: Path, series: Series) -> dict[str, Any]:
    environment = make("ebm-v1")
    columns, table = environment.model.columns, environment.model.table
    values = table.static(len(columns))
    static_episode = {
        "surface_temperature": static(environment).fields["surface_temperature"],
        **{k: np.broadcast_to(values[k], (EPISODE_STEPS, len(columns))) for k in "AB"},
    }
    static_place = series.add(static_episode)
    references = {}
    for name in REFERENCES:
        if (folder / f"{name}.nc").exists():
            references[name] = series.add(_episode(read_reference(folder / f"{name}.nc"), ""))
    ranges = {"temperature": [SHOWN_COLDEST, SHOWN_WARMEST]}
    return {
        "steps": EPISODE_STEPS,
        "daysPerStep": EnergyBalanceModel().days_per_step,
        "within": WITHIN,
        "styles": {key: _style(key) for key in DRAWN},
        "latitudes": np.round(columns.latitude, 4).tolist(),
        "weights": np.round(columns.weights, 6).tolist(),
        "bands": list(BAND_NAMES),
        "target": np.round(environment.params.target["surface_temperature"], 3).tolist(),
        "units": list(UNITS.values()),
        "offsets": list(OFFSETS.values()),
        "ranges": ranges | {row.symbol: [row.low, row.high] for row in table if row.by_column},
        "static": {"series": static_place, "bands": list(static_skill().bands)},
        "references": references,
        "publishedCoreHours": sum(published_core_hours(cell) for cell in results),
        "total": len(cells()),
        "agreement": {preset: _agreement(results, preset) for preset in REPRODUCTIONS},
        "cells": [_cell(result, series) for result in results.values()],
        "claims": [
            {
                "statement": claim.statement,
                "test": claim.test,
                "ours": [claim.ours.verdict, claim.ours.evidence],
                "byPreset": {
                    preset: [found.verdict, found.evidence]
                    for preset, found in claim.by_preset.items()
                },
                "beside": claim.beside,
                "published": claim.published
                and [claim.published.verdict, claim.published.evidence],
            }
            for claim in judge_claims(results)
        ],
        "tables": {
            "agreement": _table(agreement_table(results)),
            "points": _table(points_table(results)),
            "quirks": _table(quirks_table(results)),
            "limit": _table(limit_table(results)),
            "cost": _table(cost_table(results)),
            "missing": _table(missing_table(results)),
        },
        "versions": next(iter(results.values())).versions,
    }


def _agreement(results: Results, preset: str) -> dict[str, Any]:
    found = agreement(results, [cell for cell in cells() if cell.preset == preset])
    return {
        "done": found.done,
        "cells": found.cells,
        "within": found.within,
        "rejected": found.rejected,
        "byChance": found.by_chance,
        "means": found.means,
    }


def _cell(result: Result, series: Series) -> dict[str, Any]:
    cell = result.cell
    samples, published = result.bands(), published_bands(cell)
    loss, half = interval(-result.learning)
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
        "half": [_half(s) for s in samples],
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
            "half": [_half(p) for p in published],
            "errors": [standard_errors(ours, theirs) for ours, theirs in pairs],
            "p": [float(f"{differ(ours, theirs):.2g}") for ours, theirs in pairs],
        }
    return content


def _half(sample: Sample) -> float:
    return float(half_width(np.sqrt(sample.variance), sample.number))


def _style(key: str) -> dict[str, Any]:
    look = style(key)
    return {
        "label": look.label,
        "colour": f"var(--{key})",
        "dash": _dash(look.line, look.width),
        "width": look.width,
    }


def _dash(line: Line, width: float) -> str:
    """A line style of matplotlib as SVG's ``stroke-dasharray``."""
    lengths = DASHES[line] if isinstance(line, str) else line[1]
    return " ".join(f"{width * length:.3g}" for length in lengths)


def _episode(data: xr.Dataset, prefix: str) -> dict[str, Float[np.ndarray, "step lat"]]:
    return {name: data[f"{prefix}{name}"].values for name in UNITS}


def _table(table: Table) -> dict[str, Any]:
    return {
        "header": table.header,
        "groups": table.groups,
        "rows": table.rows,
        "words": table.words,
    }
