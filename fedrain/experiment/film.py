"""A film of a run: profile and parameters over training, beside the error of each latitude.

``fedrain film RUN``, or ``Run.film()``. What is shown is the course of the run
(:mod:`fedrain.experiment.course`).
"""

import io
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image

from fedrain.climate import Field, Parameter
from fedrain.climate.columns import check_count, is_integer
from fedrain.climate.fields import unit_text
from fedrain.errors import InputError, MissingExtraError, unknown
from fedrain.experiment.course import TARGET, by_latitude, read_course
from fedrain.experiment.results import WEIGHTS
from fedrain.experiment.run import Run
from fedrain.io import write_whole
from fedrain.plotting import (
    BLACK,
    ERRORS,
    draw,
    latitude_axis,
    latitude_label,
    level,
    light_grid,
    new_figure,
    threshold,
)

ENDINGS = (".gif", ".mp4")
FPS, MOST_FPS = 10, 60
LAST_SECONDS = 2  # that the last frame stays
DPI, COLOURS = 80, 64
WIDTH, HEIGHT = 10.0, 3.3  # inches; a row of parameters adds to it
ROW, IN_A_ROW = 2.0, 5


@dataclass(frozen=True)
class Reel:
    """What is drawn: values by frame.

    Args:
        episodes: Number of the episode of each frame.
        latitudes: From south to north.
        field: That is shown; None where the course has none.
        profile: Its zonal mean.
        target: What it should be, of each frame.
        static: The static model's.
        errors: Field minus target, of each frame.
        globe: Area-weighted root mean square error of each frame.
        fixed: The static model's.
        parameters: Zonal mean, or the number of the globe, of each learnt parameter.
    """

    episodes: np.ndarray
    latitudes: Float[np.ndarray, " lat"]
    field: Field | None
    profile: Float[np.ndarray, "frame lat"]
    target: Float[np.ndarray, "frame lat"]
    static: Float[np.ndarray, " lat"]
    errors: Float[np.ndarray, "frame lat"]
    globe: Float[np.ndarray, " frame"]
    fixed: float
    parameters: dict[str, Float[np.ndarray, "frame ..."]]


def film(
    run: Run,
    out: str | Path | None = None,
    seed: int | None = None,
    field: str | None = None,
    level: float | None = None,
    fps: int = FPS,
) -> Path:
    """Write the film of a run; see :meth:`fedrain.experiment.Run.film`."""
    path = run.folder / "film.gif" if out is None else Path(out)
    if path.suffix.lower() not in ENDINGS:
        raise InputError(f"{path}: a film's name ends in one of {', '.join(ENDINGS)}")
    check_count("fps", fps, 1, MOST_FPS)
    program = find_ffmpeg() if path.suffix.lower() == ".mp4" else ""
    reel = make_reel(run, seed, field, level)
    shown = Scene(run, reel, seed).frames()
    if not program:
        write_whole(path, lambda partial: _write_gif(partial, shown, fps))
    else:
        write_whole(path, lambda partial: _write_mp4(program, partial, shown, fps))
    return path


def make_reel(
    run: Run, seed: int | None = None, field: str | None = None, level: float | None = None
) -> Reel:
    """What a film of a run shows: of one seed, or the mean over those that have not diverged."""
    data = read_course(run.folder, run.configuration, WEIGHTS)
    environment = run.configuration.make_environment()
    columns, number = environment.model.columns, len(environment.model.columns)
    seeds = run.configuration.seeds
    if seed is not None and not (is_integer(seed) and seed in seeds):
        raise unknown("seed", seed, map(str, seeds))
    whole = (
        [seeds.index(seed)] if seed is not None else [seeds.index(one) for one in run.whole_seeds()]
    )
    shown = _field(run, data, field)
    picked = _level(shown, level)

    def profiles(values: Any, lead: int) -> np.ndarray:
        """A mean over the seeds and, unless one is chosen, over the levels; zonal mean."""
        array = np.asarray(values, float)
        array = array.reshape(*array.shape[:lead], number, -1)
        return array[..., picked] if picked is not None else array.mean(-1)

    parameters = {}
    for row in environment.learnt:
        values = np.asarray(data[row.symbol].values, float)[:, whole].mean(1)
        if row.by_column:
            values = values.reshape(len(values), number, -1).mean(-1)
            values = columns.zonal_mean(values)[1]
        parameters[row.symbol] = values
    latitudes = columns.zonal_mean(columns.latitude)[0]
    if shown is None:
        return _of_returns(run, data, whole, latitudes, parameters)
    values = profiles(data[shown.name].values, 2)[:, whole]
    if TARGET + shown.name in data:
        target = profiles(data[TARGET + shown.name].values, 2)[:, whole]
    else:
        target = profiles(environment.params.target[shown.name], 0)
    errors = values - target
    globe = np.sqrt(columns.mean(errors**2)).mean(1)
    every = np.broadcast_to(target, values.shape)
    fixed = profiles(run.static.fields[shown.name], 2)[:, environment.last_judged]
    off = fixed - profiles(run.static.target[shown.name], 1)
    return Reel(
        data.episode.values,
        latitudes,
        shown,
        columns.zonal_mean(values.mean(1))[1],
        columns.zonal_mean(every.mean(1))[1],
        columns.zonal_mean(fixed.mean(0))[1],
        columns.zonal_mean(errors.mean(1))[1],
        globe,
        float(np.sqrt(columns.mean(off**2)).mean()),
        parameters,
    )


def _of_returns(
    run: Run, data: xr.Dataset, whole: list[int], latitudes: np.ndarray, parameters: dict[str, Any]
) -> Reel:
    """Where a course has no field: how far each region is off, as minus its return."""
    returns = run.returns.returns.sel(episode=data.episode).transpose("episode", "seed", "agent")
    by_agent = -returns.values[:, whole].mean(1)
    laid = by_latitude(run.configuration.make_environment(), by_agent)
    nothing = np.full((len(by_agent), len(latitudes)), np.nan)
    return Reel(
        data.episode.values, latitudes, None, nothing, nothing, nothing[0],
        laid, by_agent.mean(1), np.nan, parameters,
    )  # fmt: skip


def _field(run: Run, data: xr.Dataset, name: str | None) -> Field | None:
    judged = run.configuration.make_environment().judged_fields
    known = [one.name for one in judged]
    if name is not None and name not in known:
        raise unknown("judged field", name, known)
    shown = judged[0 if name is None else known.index(name)]
    if shown.name in data:
        return shown
    if name is not None:
        raise InputError(f"{run.folder}: its course has parameters alone: leave out the field")
    return None


def _level(field: Field | None, level: float | None) -> int | None:
    """The place of a level, and None for the mean of all."""
    if level is None:
        return None
    levels = () if field is None else field.levels
    found = [i for i, one in enumerate(levels) if np.isclose(one, level)]
    if not found:
        raise unknown("level", f"{level:g}", [f"{one:g}" for one in levels])
    return found[0]


class Scene:
    """The figure of a film, whose curves move from frame to frame."""

    def __init__(self, run: Run, reel: Reel, seed: int | None) -> None:
        self.reel = reel
        environment = run.configuration.make_environment()
        self.rows, self.columns = list(environment.learnt), environment.model.columns
        below = -(-len(self.rows) // IN_A_ROW)
        self.figure = figure = new_figure(WIDTH, HEIGHT + ROW * below)
        self.canvas = FigureCanvasAgg(figure)
        parts: Any = figure.subfigures(2, 1, height_ratios=(HEIGHT, ROW * max(below, 1)))
        above, parameters = parts
        panels = above.subplots(1, 2 if reel.field is not None else 1, squeeze=False)[0]
        self.curves: list[tuple[Any, np.ndarray]] = []
        if reel.field is not None:
            self._profile(panels[0], reel.field)
        self._errors(panels[-1])
        across = min(len(self.rows), IN_A_ROW)
        grid = parameters.subplots(below, across, squeeze=False).ravel()
        for axes, row in zip(grid, self.rows, strict=False):
            self._parameter(axes, row)
        for axes in grid[len(self.rows) :]:
            axes.set_visible(False)
        number = len(run.configuration.seeds)
        whose = f", seed {seed}" if seed is not None else f", mean of {number} seeds" * (number > 1)
        self.title = figure.suptitle(" ", fontsize="medium")
        self.name, self.last = f"{run.configuration.name}{whose}", run.configuration.episodes

    def _profile(self, axes: Axes, field: Field) -> None:
        reel = self.reel
        shown = [reel.profile, reel.target, reel.static[None]]
        low, high = (f(np.concatenate(shown).ravel()) for f in (np.nanmin, np.nanmax))
        # At first agents act at random: what they do there does not set the scale alone.
        close = np.concatenate([reel.profile[len(reel.profile) // 10 :], *shown[1:]]).ravel()
        low, high = max(low, np.nanmin(close) - 10), min(high, np.nanmax(close) + 10)
        margin = 0.04 * (high - low) or 1.0
        target = draw(axes, "target", reel.latitudes, reel.target[0])
        draw(axes, "static", reel.latitudes, reel.static)
        model = draw(axes, "model", reel.latitudes, reel.profile[0])
        self.curves += [(target, reel.target), (model, reel.profile)]
        axes.set_ylim(low - margin, high + margin)
        latitude_axis(axes, 45)
        axes.set_ylabel(f"{field.title.capitalize()} ({unit_text(field.unit)})")
        axes.legend(frameon=False, loc="lower center", fontsize="small")

    def _errors(self, axes: Axes) -> None:
        """Latitude × episode, which fills from the left."""
        reel, signed = self.reel, self.reel.field is not None
        finite = np.abs(reel.errors[np.isfinite(reel.errors)])
        largest = float(np.percentile(finite[finite > 0], 90)) if (finite > 0).any() else 1.0
        edges = np.concatenate([[reel.episodes[0] - 1], reel.episodes])
        middle = (reel.latitudes[1:] + reel.latitudes[:-1]) / 2
        self.mesh = axes.pcolormesh(
            edges.astype(float), np.concatenate([[-90], middle, [90]]), self.filled(0).T,
            cmap=ERRORS if signed else "cividis_r",
            vmin=-largest if signed else 0.0, vmax=largest, rasterized=True,
        )  # fmt: skip
        self.now = axes.axvline(float(edges[1]), color=BLACK, linewidth=1.0)
        ticks = range(-90, 91, 30)
        axes.set_yticks(ticks, [latitude_label(tick) for tick in ticks])
        axes.set_xlabel("Episode")
        unit = "" if reel.field is None else f" ({unit_text(reel.field.difference_unit)})"
        label = f"Error{unit}" if signed else "− return of the region"
        self.figure.colorbar(self.mesh, ax=axes, label=label, extend="both" if signed else "max")

    def filled(self, frame: int) -> np.ndarray:
        """Errors up to a frame; those to come are empty."""
        errors = self.reel.errors.copy()
        errors[frame + 1 :] = np.nan
        return errors

    def _parameter(self, axes: Axes, row: Parameter) -> None:
        reel, values = self.reel, self.reel.parameters[row.symbol]
        unit = "" if row.unit == "1" else f" ({unit_text(row.unit)})"
        axes.set_title(f"{row.symbol}{unit}", fontsize="small")
        for bound in (row.low, row.high):
            threshold(axes, bound)
        margin = 0.06 * (row.high - row.low) or 1.0
        axes.set_ylim(row.low - margin, row.high + margin)
        axes.tick_params(labelsize="small")
        if row.by_column:
            fixed = np.asarray(row.static(len(self.columns)), float)
            fixed = fixed.reshape(len(self.columns), -1).mean(1)
            draw(axes, "static", *self.columns.zonal_mean(fixed), "")
            self.curves.append((draw(axes, "model", reel.latitudes, values[0], ""), values))
            latitude_axis(axes, 90)
        else:
            level(axes, "static", float(np.mean(row.static(1))), "")
            so_far = np.where(np.tri(len(values), dtype=bool), values, np.nan)
            self.curves.append((draw(axes, "model", reel.episodes, so_far[0], ""), so_far))
            axes.set_xlim(0, reel.episodes[-1])
            axes.set_xlabel("Episode", fontsize="small")
            light_grid(axes)

    def show(self, frame: int) -> None:
        """Move everything to a frame."""
        reel = self.reel
        for curve, values in self.curves:
            curve.set_ydata(values[frame])
        self.mesh.set_array(self.filled(frame).T)
        self.now.set_xdata([float(reel.episodes[frame])] * 2)
        told = f"{self.name}: episode {reel.episodes[frame]} of {self.last}"
        if reel.field is not None:
            unit = unit_text(reel.field.difference_unit)
            told += f", error {reel.globe[frame]:.2f} {unit} (static {reel.fixed:.2f})"
        self.title.set_text(told)

    def frames(self) -> Iterator[Image.Image]:
        """Every frame as an image."""
        self.figure.set_dpi(DPI)
        for frame in range(len(self.reel.episodes)):
            self.show(frame)
            self.canvas.draw()
            if not frame:  # where things are does not change any more
                self.figure.set_layout_engine("none")
            yield Image.fromarray(np.asarray(self.canvas.buffer_rgba())[..., :3].copy())


def _write_gif(path: Path, frames: Iterable[Image.Image], fps: int) -> None:
    every = list(frames)
    # The last frame has all colours; one palette for all lets a frame store what has changed.
    palette = every[-1].quantize(COLOURS, dither=Image.Dither.NONE)
    pictures = [one.quantize(palette=palette, dither=Image.Dither.NONE) for one in every]
    times = [round(1000 / fps)] * (len(pictures) - 1) + [1000 * LAST_SECONDS]
    pictures[0].save(
        path, format="GIF", save_all=True, append_images=pictures[1:], duration=times, loop=0,
        optimize=True,
    )  # fmt: skip


def find_ffmpeg() -> str:
    """The program that makes MP4: of the extra ``film``, or the system's."""
    try:
        return str(import_module("imageio_ffmpeg").get_ffmpeg_exe())
    except (ImportError, RuntimeError):
        pass
    if (found := shutil.which("ffmpeg")) is None:
        raise MissingExtraError("ffmpeg, which makes MP4,", "film")
    return found


def _write_mp4(program: str, path: Path, frames: Iterable[Image.Image], fps: int) -> None:
    every = list(frames)
    every += every[-1:] * (LAST_SECONDS * fps)
    wide, high = (size - size % 2 for size in every[0].size)  # as the encoder wants it
    command = [
        program, "-y", "-loglevel", "error", "-f", "rawvideo", "-pix_fmt", "rgb24",
        "-s", f"{wide}x{high}", "-r", str(fps), "-i", "-", "-pix_fmt", "yuv420p", "-f", "mp4",
        str(path),
    ]  # fmt: skip
    raw = io.BytesIO()
    for one in every:
        raw.write(one.crop((0, 0, wide, high)).tobytes())
    done = subprocess.run(command, input=raw.getvalue(), capture_output=True, check=False)
    if done.returncode:
        words = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise InputError(f"{path.name}: ffmpeg failed ({words[-1] if words else 'no reason'})")
