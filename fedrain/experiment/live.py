"""What a run tells, while it trains, to those who watch it: one small file.

``progress.json`` in the folder of the run is written whole, at most once a second, and never stops
a run: what goes wrong with it is not said. :mod:`fedrain.experiment.watching` shows it.
"""

import base64
import json
import math
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from fedrain.baselines import known_limit
from fedrain.climate import Field
from fedrain.climate.fields import unit_text
from fedrain.envs import Environment
from fedrain.experiment.configuration import Configuration
from fedrain.experiment.course import TARGET, Course, by_latitude
from fedrain.experiment.evaluation import Evaluation
from fedrain.experiment.held import hold
from fedrain.io import write_whole

PROGRESS = "progress.json"
SECONDS = 1.0  # between two writes, at least
POINTS, CELLS = 160, 96  # of a curve, and of one side of a map, at most
LATEST = 10  # episodes that tell how long the others will take
SHOWN = 85  # per cent of a map's errors that are within its colours
STEPS = 127  # of a packed error, on either side of none


class Live:
    """What is told of one run.

    Args:
        configuration: The experiment.
        out: The folder of the run.
    """

    def __init__(self, configuration: Configuration, out: Path) -> None:
        self.path = out / PROGRESS
        self.configuration = configuration
        self.environment = configuration.make_environment()
        self._fixed: dict[str, Any] = {}
        self._static: dict[str, Any] | None = None
        self._latest: dict[str, Any] = {"episode": 0, "episodes": configuration.episodes}
        self._errors: list[dict[str, np.ndarray]] = []
        self._written = -np.inf
        with suppress(Exception):
            self._fixed = _fixed(configuration, self.environment)

    def hold_static(self) -> Evaluation | None:
        """Play the static model, for the page to compare with."""
        self.write("starting")
        with suppress(Exception):
            seeds = tuple(self.configuration.seeds)
            fixed = hold(self.environment, self.environment.static_actions, seeds)
            self._static = reference(self.environment, fixed)
            return fixed
        return None

    def tell(
        self,
        episode: int,
        history: dict[str, np.ndarray],
        course: Course | None = None,
        lost: Sequence[int] = (),
        nodes: Sequence[dict[str, Any]] = (),
        rounds: dict[str, int] | None = None,
    ) -> None:
        """After so many episodes; nothing if a second has not passed.

        Args:
            episode: How many.
            history: What was played, an entry for each episode.
            course: What was recorded of the climate.
            lost: Seeds that have diverged.
            nodes: State of each region's node, of a federation over Flower.
            rounds: How many rounds of it are over.
        """
        if time.monotonic() - self._written < SECONDS and episode < self.configuration.episodes:
            return
        with suppress(Exception):
            told = {"lost": list(lost), "nodes": list(nodes), "rounds": rounds}
            told |= {**self._curves(episode, history)}
            if course is not None and course.episodes:
                told |= self._climate(course)
                if "history" not in told:
                    told["relative"] = self._relative(course, history)
            self._latest = {
                "episode": episode, "episodes": self.configuration.episodes, **told
            }  # fmt: skip
        self.write("training")

    def write(self, state: str) -> None:
        """Write what is known, and how the run is: training, writing, finished or stopped."""
        with suppress(Exception):
            self._written = time.monotonic()
            told = {**self._fixed, "static": self._static, **self._latest}
            told |= {"state": state, "updated": round(time.time(), 3)}
            text = json.dumps(told, separators=(",", ":"), allow_nan=False)
            write_whole(self.path, lambda p: p.write_text(text, encoding="utf-8"), durable=False)

    def _curves(self, episode: int, history: dict[str, np.ndarray]) -> dict[str, Any]:
        returns = history.get("returns")
        if returns is None or not episode:
            return {}
        played = np.asarray(returns[:episode], float)
        seconds = np.asarray(history["seconds"][:episode], float)[-LATEST:]
        points = _some(episode, POINTS)
        each = float(np.nanmean(seconds)) if np.isfinite(seconds).any() else None
        left = None if each is None else each * (self.configuration.episodes - episode)
        return {
            "at": (points + 1).tolist(),
            "returns": _numbers(_mean(played[points], 1)),
            "seconds_each": each,
            "seconds_left": left,
        }

    def _climate(self, course: Course) -> dict[str, Any]:
        """Profile, parameters and errors of what was recorded."""
        environment, columns = self.environment, self.environment.model.columns
        latest = course.records[-1]
        points = _some(len(course.records), POINTS)
        told: dict[str, Any] = {
            "recorded": course.episodes[-1],
            "recorded_at": [course.episodes[i] for i in points],
            "parameters": {},
            "traces": {},
        }
        for row in environment.learnt:
            values = _mean(latest[row.symbol], 0)
            if row.by_column:
                values = columns.zonal_mean(values.reshape(len(columns), -1).mean(-1))[1]
                values = values[_some(len(values), CELLS)]
            else:
                every = np.array([course.records[i][row.symbol] for i in points])
                told["traces"][row.symbol] = _numbers(_mean(every, 1))
            told["parameters"][row.symbol] = _numbers(values)
        field = environment.judged_fields[0]
        if field.name not in latest:
            return told
        del self._errors[len(course.records) :]
        for record in course.records[len(self._errors) :]:
            self._errors.append(regional_errors(environment, field, record))
        zonal = np.array([self._errors[i]["zonal"] for i in points])
        profile = _mean(latest[field.name], 0).reshape(len(columns), -1).mean(-1)
        shown = _some(zonal.shape[1], CELLS)
        told |= {
            "errors": _numbers(np.array([self._errors[i]["regions"] for i in points])),
            "globe": _numbers(np.array([self._errors[i]["globe"] for i in points])),
            "profile": _numbers(columns.zonal_mean(profile)[1][shown]),
            "history": packed(zonal[:, shown].T),
        }
        now = self._errors[-1]["now"]
        if len(columns.shape) == 2:
            cells = now.mean(-1).reshape(columns.shape)
            cells = cells[_some(cells.shape[0], CELLS)][:, _some(cells.shape[1], CELLS)]
            told["map"] = packed(cells)
        elif columns.is_zonal and len(field.levels) > 1:
            told["section"] = packed(now[shown].T)
        return told

    def _relative(self, course: Course, history: dict[str, np.ndarray]) -> dict[str, Any]:
        """Where a course has no field: root of minus the return by latitude, against the first."""
        points = [course.episodes[i] - 1 for i in _some(len(course.episodes), POINTS)]
        root = np.sqrt(np.abs(_mean(np.asarray(history["returns"])[points], 1)))
        laid = by_latitude(self.environment, root)
        shown = laid[:, _some(laid.shape[1], CELLS)]
        return packed(100 * (shown / np.where(shown[0] > 0, shown[0], np.nan) - 1).T)


def _fixed(configuration: Configuration, environment: Environment) -> dict[str, Any]:
    """What does not change while the run trains."""
    field, columns = environment.judged_fields[0], environment.model.columns
    latitudes = columns.zonal_mean(columns.latitude)[0]
    shown = _some(len(latitudes), CELLS)
    rows = []
    for row in environment.learnt:
        fixed = np.asarray(row.static(len(columns)), float)
        if row.by_column:
            fixed = columns.zonal_mean(fixed.reshape(len(columns), -1).mean(-1))[1][shown]
        rows.append(
            {
                "symbol": row.symbol, "name": row.name, "low": row.low, "high": row.high,
                "unit": "" if row.unit == "1" else unit_text(row.unit), "static": _numbers(fixed),
            }
        )  # fmt: skip
    target = environment.params.target.get(field.name)
    if target is not None:
        target = np.asarray(target, float).reshape(len(columns), -1).mean(-1)
        target = _numbers(columns.zonal_mean(target)[1][shown])
    units = {one.difference_unit for one in environment.judged_fields}
    square = f"{unit_text(units.pop())}²" if len(units) == 1 else ""
    return {
        "format": 1,
        "name": configuration.name,
        "seeds": list(configuration.seeds),
        "every": configuration.sync_every,
        "scheme": configuration.scheme,
        "regions": [environment.division.name(region) for region in environment.regions],
        "centres": _numbers(environment.division.centres[:, 0]),
        "field": {
            "title": field.title,
            "unit": unit_text(field.unit),
            "error_unit": unit_text(field.difference_unit),
            "levels": list(field.levels),
            "level_unit": field.level_unit,
        },
        "return_unit": square if environment.reward_shape == "square" else "",
        "latitudes": _numbers(latitudes[shown]),
        "rows": rows,
        "target": target,
        "limit": known_limit(environment),
    }


def reference(environment: Environment, fixed: Evaluation) -> dict[str, Any]:
    """Returns, errors and profile of the static model, from an episode of it."""
    field, columns = environment.judged_fields[0], environment.model.columns
    last = environment.judged_mean(np.moveaxis(fixed.fields[field.name], 1, 0))
    record = {field.name: last, TARGET + field.name: fixed.target[field.name]}
    found = regional_errors(environment, field, record)
    profile = columns.zonal_mean(last.mean(0).reshape(len(columns), -1).mean(-1))[1]
    return {
        "returns": _numbers(np.asarray(fixed.returns, float).mean(0)),
        "errors": _numbers(found["regions"]),
        "globe": _numbers(found["globe"]),
        "profile": _numbers(profile[_some(len(profile), CELLS)]),
    }


def regional_errors(
    environment: Environment, field: Field, record: dict[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Area-weighted root mean square errors of a recorded field, mean over the seeds.

    Args:
        environment: The task.
        field: Which.
        record: Field, and the target where it moves, ``[seed, column, ...]``.

    Returns:
        ``regions`` and ``globe``; ``zonal``, the mean error of each latitude; ``now``, that of each
        column and level.
    """
    columns, division = environment.model.columns, environment.division
    target = record.get(TARGET + field.name, environment.params.target.get(field.name))
    error = np.asarray(record[field.name], float) - np.asarray(target, float)
    error = error.reshape(len(error), len(columns), -1)
    squares = (error**2).mean(-1)
    weights = columns.weights[division.cells]
    by_region = (squares[:, division.cells] * weights).sum(-1) / weights.sum(-1)
    now = _mean(error, 0)
    return {
        "regions": _mean(np.sqrt(by_region), 0),
        "globe": _mean(np.sqrt(columns.mean(squares)), 0),
        "zonal": columns.zonal_mean(now.mean(-1))[1],
        "now": now,
    }


def packed(values: Float[np.ndarray, "row column"]) -> dict[str, Any]:
    """A map of errors in bytes: 1 to 255 with no error at 128; 0 where there is none."""
    known = np.abs(values[np.isfinite(values)])
    largest = float(np.percentile(known, SHOWN)) if known.size else 0.0
    steps = np.rint(values / (largest or 1.0) * STEPS)
    whole = np.where(np.isfinite(steps), np.clip(steps, -STEPS, STEPS) + STEPS + 1, 0)
    text = base64.b64encode(whole.astype(np.uint8).tobytes()).decode("ascii")
    return {"rows": values.shape[0], "columns": values.shape[1], "largest": largest, "cells": text}


def _some(number: int, most: int) -> np.ndarray:
    """So many indices, from the first to the last."""
    return np.unique(np.linspace(0, number - 1, min(number, most)).round().astype(int))


def _mean(values: np.ndarray, axis: int) -> np.ndarray:
    """Mean over the seeds that have not diverged."""
    values = np.asarray(values, float)
    known = np.isfinite(values)
    number = known.sum(axis)
    total = np.where(known, values, 0.0).sum(axis)
    return np.where(number > 0, total / np.maximum(number, 1), np.nan)


def _numbers(values: Any) -> Any:
    """Numbers of five digits, for JSON, and null for what is not finite."""
    array = np.asarray(values, float)
    text = ("%.5g " * array.size) % tuple(array.ravel())
    every: list[Any] = [one if math.isfinite(one) else None for one in map(float, text.split())]
    if array.ndim == 2:
        wide = array.shape[1]
        return [every[i : i + wide] for i in range(0, array.size, wide)]
    return every if array.ndim else every[0]
