"""The report: one HTML file that needs nothing else, not even a network.

What it shows is embedded as JSON, and drawn in the colours and line styles of all figures. The
episodes, which are large, are embedded as 16-bit differences from step to step, compressed, which
the browser unpacks. Every sentence that says what was found is written here, from the results.
"""

import base64
import json
import re
import zlib
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from fedrain.baselines import static
from fedrain.climate import BAND_NAMES, EnergyBalanceModel, ParameterTable
from fedrain.climate.climatology import ncep_profiles
from fedrain.climate.fields import OUTGOING_LONGWAVE
from fedrain.envs import make
from fedrain.io import write_whole
from fedrain.paper import findings
from fedrain.paper.claims import Claim, judge_claims
from fedrain.paper.matrix import EPISODE_STEPS, EPISODES, PRESETS, cells
from fedrain.paper.published import published_bands, published_core_hours
from fedrain.paper.results import (
    REFERENCES,
    Result,
    Results,
    missing_cells,
    optimal_skill,
    read_reference,
    reference_of,
    static_skill,
)
from fedrain.paper.statistics import LEVEL, Sample, differ, standard_errors
from fedrain.paper.tables import (
    agreement_table,
    cost_table,
    limit_table,
    missing_table,
    points_table,
    quirks_table,
)
from fedrain.plotting import DARK, Line, half_width, interval, style
from fedrain.tables import Table

SHOWN = ("surface_temperature", "A", "B", "D", "a0", "a2")  # of an episode
#: Resolution of the packed integers: of temperatures in K, of parameters as a share of their range.
KELVIN, SHARE = 0.05, 5e-4
SHOWN_COLDEST, SHOWN_WARMEST = -60.0, 60.0  # °C
#: Dashes of matplotlib's named line styles, in units of the line's width.
DASHES = {"-": (), "--": (3.7, 1.6), "-.": (6.4, 1.6, 1.0, 1.6), ":": (1.0, 1.65)}
#: What the page draws, by its key in :mod:`fedrain.plotting`.
DRAWN = (
    "target", "static", "limit", "model", "compared", "published", "proportional", *PRESETS
)  # fmt: skip
SCRIPTS = ("elements.js", "charts.js", "climate.js", "questions.js", "claims.js", "page.js")


def write_report(results: Results, folder: str | Path, path: Path) -> None:
    """Write the report as one HTML page that opens without a network.

    Args:
        results: What :func:`load_results` read.
        folder: Where it was read from. Optimal control is read from there too, and left out of the
            page where it is missing.
        path: The file to write.
    """
    page = files("fedrain.paper") / "page"
    series, claims = Series(), judge_claims(results)
    shown = _content(results, Path(folder), series, claims)
    data = json.dumps(shown, separators=(",", ":"), allow_nan=False)
    text = (page / "page.html").read_text("utf-8")
    for name, content in {
        "/*STYLE*/": (page / "style.css").read_text("utf-8"),
        "/*COLOURS*/": _colours(light=True),
        "/*DARK*/": _colours(light=False),
        **_sentences(results, optimal_skill(folder), claims),
        "/*SCRIPT*/": "\n".join((page / name).read_text("utf-8") for name in SCRIPTS),
        "/*DATA*/": data.replace("</", "<\\/"),
        "/*SERIES*/": series.text(),
    }.items():
        text = text.replace(name, content)
    write_whole(path, lambda partial: partial.write_text(text, "utf-8"))


def _colours(light: bool) -> str:
    found = {key: style(key).colour for key in DRAWN}
    return " ".join(f"--{k}: {c if light else DARK[c]};" for k, c in found.items())


def _sentences(results: Results, optimal: dict[str, Any], claims: list[Claim]) -> dict[str, str]:
    """What stands in the text of the page."""
    known = optimal.get(reference_of(findings.leading(results).cell))
    limit = None if known is None else known.globe
    missing = len(missing_cells(results))
    told = {
        "MESSAGE": findings.message(results, limit),
        "FEDERATION": findings.does_federation_help(results),
        "ALGORITHM": findings.which_algorithm(results),
        "LIMIT": findings.how_near_the_limit(results, optimal),
        "REWARDED": findings.what_is_rewarded(),
        "REPRODUCED": findings.is_it_reproduced(results, claims),
        "MISSING": f"{missing} of {len(cells())} cells are not trained yet." if missing else "",
    }
    return {f"/*{name}*/": escape(_unbroken(text), quote=False) for name, text in told.items()}


def _unbroken(text: str) -> str:
    """With every unit on the line of its number."""
    return re.sub(r"(?<=\d) (?=K\b|%|W\b)", "\u00a0", text).replace(" m⁻²", "\u00a0m⁻²")


class Series:
    """Arrays one after the other, packed for the page."""

    def __init__(self) -> None:
        self._parts: list[np.ndarray] = []
        #: Rows, columns, unit and what 0 stands for, of each.
        self.blocks: list[list[float]] = []

    def add(self, values: Float[np.ndarray, "row column"], unit: float, zero: float) -> int:
        """Append an array whose rows differ little from one to the next; its position."""
        units = np.rint((values - zero) / unit)
        packed = np.clip(np.nan_to_num(units), -32768, 32767).astype(np.int16)
        self._parts.append(np.diff(packed, axis=0, prepend=np.int16(0)))
        self.blocks.append([*values.shape, unit, zero])
        return len(self.blocks) - 1

    def text(self) -> str:
        """All of them, compressed, in base 64."""
        numbers = np.concatenate([part.ravel() for part in self._parts]).astype("<i2")
        # The low bytes, then the high ones: those are nearly all the same and compress well.
        planes = numbers.view(np.uint8).reshape(-1, 2).T
        return base64.b64encode(zlib.compress(planes.tobytes(), 9)).decode("ascii")


def _content(results: Results, folder: Path, series: Series, claims: list[Claim]) -> dict[str, Any]:
    environment = make("ebm-v1")
    columns, table = environment.model.columns, environment.model.table
    values = table.static(len(columns))
    shape = (EPISODE_STEPS, len(columns))
    fixed = {name: np.broadcast_to(values[name], shape) for name in SHOWN[1:]}
    fixed["surface_temperature"] = static(environment).fields["surface_temperature"]
    references, optimal = {}, optimal_skill(folder)
    for name in REFERENCES:
        if name in optimal:
            data = read_reference(folder / f"{name}.nc")
            references[name] = {
                "series": _episode(data, "", series, table),
                "bands": _rounded(optimal[name].bands),
                "globe": round(optimal[name].globe, 4),
            }
    one = {k: v if k in ("surface_temperature", "A", "B") else v[:, :1] for k, v in fixed.items()}
    return {
        "steps": EPISODE_STEPS,
        "episodes": EPISODES,
        "daysPerStep": EnergyBalanceModel().days_per_step,
        "styles": {key: _style(key) for key in DRAWN},
        "presets": list(dict.fromkeys(p for presets in PRESETS.values() for p in presets)),
        "latitudes": np.round(columns.latitude, 4).tolist(),
        "weights": np.round(columns.weights, 6).tolist(),
        "bands": list(BAND_NAMES),
        "target": np.round(environment.params.target["surface_temperature"], 3).tolist(),
        "longwave": np.round(ncep_profiles(columns)[OUTGOING_LONGWAVE.name], 2).tolist(),
        "ranges": {"temperature": [SHOWN_COLDEST, SHOWN_WARMEST]}
        | {row.symbol: [row.low, row.high] for row in table},
        "static": {
            "series": _packed(one, series, table),
            "bands": _rounded(static_skill().bands),
            "globe": round(static_skill().globe, 4),
        },
        "references": references,
        "baselines": {key: vars(one) for key, one in findings.baseline_figures().items()},
        "leading": findings.leading(results).cell.name,
        "byScheme": _names(findings.side_by_side(results, findings.by_scheme())),
        "byAlgorithm": _names(findings.side_by_side(results, findings.by_algorithm())),
        "reproductions": _names(
            findings.side_by_side(results, ([c] for c in findings.experiments()))
        ),
        "best": [
            {"name": best.cell.name, **dict(zip(("longwave", "above"), flux, strict=True))}
            for algo in PRESETS
            if (best := findings.best_of(results, algo)) is not None
            for flux in [findings.mean_flux(best)]
        ],
        "publishedCoreHours": sum(published_core_hours(cell) for cell in results),
        "total": len(cells()),
        "cells": [_cell(result, series, table) for result in results.values()],
        "claims": [_claim(claim) for claim in claims],
        "tables": {
            "agreement": _table(agreement_table(results)),
            "points": _table(points_table(results)),
            "quirks": _table(quirks_table(results)),
            "limit": _table(limit_table(results)),
            "cost": _table(cost_table(results)),
            "missing": _table(missing_table(results)),
        },
        "versions": next(iter(results.values())).versions,
        "blocks": series.blocks,
    }


def _names(results: list[Result]) -> list[str]:
    return [result.cell.name for result in results]


def _claim(claim: Claim) -> dict[str, Any]:
    return {
        "statement": claim.statement,
        "test": claim.test,
        "preset": claim.preset,
        "byPreset": {
            preset: [found.verdict, found.evidence] for preset, found in claim.by_preset.items()
        },
        "beside": claim.beside,
        "published": claim.published and [claim.published.verdict, claim.published.evidence],
    }


def _cell(result: Result, series: Series, table: ParameterTable) -> dict[str, Any]:
    cell = result.cell
    samples, published = result.bands(), published_bands(cell)
    loss, half = interval(-result.learning)
    globe = result.globe()
    content: dict[str, Any] = {
        "name": cell.name,
        "env": cell.env,
        "agents": cell.agents,
        "scheme": cell.scheme,
        "algo": cell.algo,
        "preset": cell.preset,
        "numbers": result.data.seed.values.tolist(),
        "seeds": np.round(result.skill(), 3).tolist(),
        "globes": np.round(result.data.areawrmse_global.sel(policy="local").values, 3).tolist(),
        "mean": _rounded(s.mean for s in samples),
        "std": _rounded(s.std for s in samples),
        "half": _rounded(_half(s) for s in samples),
        "globe": round(globe.mean, 4),
        "globeHalf": round(_half(globe), 4),
        "share": round(100 * result.share_of_limit("local"), 2),
        "ends": np.round(np.negative(result.ends)).tolist(),
        "loss": np.round(loss).tolist(),
        "lossHalf": np.round(half).tolist(),
        "coreMinutes": round(60 * result.core_hours, 1),
        "series": _episode(result.data, "episode_", series, table),
        "profiles": series.add(
            result.data.final_temperature.sel(policy="local").transpose("lat", "seed").values,
            KELVIN,
            0.0,
        ),
        "reference": reference_of(cell),
    }
    if published is not None:
        pairs = list(zip(samples, published, strict=True))
        content["published"] = {
            "mean": _rounded(p.mean for p in published),
            "std": _rounded(p.std for p in published),
            "half": _rounded(_half(p) for p in published),
            "errors": _rounded(standard_errors(ours, theirs) for ours, theirs in pairs),
            "p": [float(f"{differ(ours, theirs):.2g}") for ours, theirs in pairs],
            "differ": [bool(differ(ours, theirs) < LEVEL) for ours, theirs in pairs],
        }
    return content


def _half(sample: Sample) -> float:
    return float(half_width(np.sqrt(sample.variance), sample.number))


def _rounded(values: Any) -> list[float]:
    return [round(float(value), 4) for value in values]


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


def _episode(
    data: xr.Dataset, prefix: str, series: Series, table: ParameterTable
) -> dict[str, int]:
    return _packed({name: data[f"{prefix}{name}"].values for name in SHOWN}, series, table)


def _packed(
    episode: dict[str, np.ndarray], series: Series, table: ParameterTable
) -> dict[str, int]:
    """Where the series of an episode are."""
    units = {row.symbol: (SHARE * (row.high - row.low), row.low) for row in table}
    units["surface_temperature"] = (KELVIN, 0.0)
    return {
        name: series.add(episode[name].reshape(EPISODE_STEPS, -1), *units[name]) for name in SHOWN
    }


def _table(table: Table) -> dict[str, Any]:
    return {
        "header": table.header,
        "groups": table.groups,
        "rows": table.rows,
        "words": table.words,
    }
