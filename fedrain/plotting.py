"""The one figure style: what a thing looks like, and the parts that all figures share.

A thing has the same colour in every figure: the target is black, the static model grey, our model
blue, the published results orange, optimal control green. Colours are from the Okabe–Ito palette,
which colour-blind readers can distinguish, with three of Paul Tol's muted ones added.
Each curve also has a line style of its own, and each bar a hatching, for print.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.collections import FillBetweenPolyCollection, QuadMesh
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from scipy.special import stdtrit

from fedrain.errors import InputError
from fedrain.io import write_whole

Line = str | tuple[int, tuple[float, ...]]
Number = float | int | np.number[Any]

BLACK, GREY, PALE, WHITE = "#000000", "#767676", "#EDEDED", "#FFFFFF"
BLUE, ORANGE, GREEN = "#0072B2", "#E69F00", "#009E73"  # each for one thing only
SKY, VERMILION, PURPLE = "#56B4E9", "#D55E00", "#CC79A7"
INDIGO, WINE, OLIVE = "#332288", "#882255", "#999933"  # Tol's
GRID = "#E5E5E5"
#: What takes the place of each colour on a dark page.
DARK = {
    BLACK: "#E8EAEC", WHITE: "#131416", GREY: "#A3A9AF", PALE: "#26292C", GRID: "#3A3E42",
    BLUE: "#4FA6E0", ORANGE: "#F0B432", GREEN: "#2FBF94", SKY: "#A6DCF7", VERMILION: "#F27F45",
    PURPLE: "#E7A3C8", INDIGO: "#9B8FEF", WINE: "#CF5C97", OLIVE: "#BDBD55",
}  # fmt: skip
#: Ink on maps, whose colours are the same on a dark page.
MAP_INK = "#1A1A1A"

#: Of maps: lightness grows with the value; white is no error.
VALUES, ERRORS = "cividis", "RdBu_r"

SOLID, DASHED, DOTTED, DASH_DOT = "-", "--", ":", "-."
LONG: Line = (0, (8.0, 2.0))
LONG_SHORT: Line = (0, (8.0, 1.5, 2.5, 1.5))
DASH_DOT_DOT: Line = (0, (6.0, 1.5, 1.0, 1.5, 1.0, 1.5))
SPARSE: Line = (0, (1.0, 3.0))


@dataclass(frozen=True)
class Style:
    """What one thing looks like, and what it is called."""

    label: str
    colour: str
    line: Line = SOLID
    width: float = 1.6
    marker: str = "o"
    hatch: str = ""


#: What is compared with the target. Baselines have the names that the command line gives them.
MODELS = {
    "target": Style("target", BLACK, SOLID, 1.6, "*"),
    "static": Style("static model", GREY, DASHED, 1.6, "s"),
    "model": Style("model with agents", BLUE, SOLID, 2.0, "o"),
    "compared": Style("compared", INDIGO, LONG_SHORT, 1.8, "h"),
    "published": Style("published", ORANGE, DASH_DOT_DOT, 1.8, "D"),
    "limit": Style("optimal control", GREEN, DASH_DOT, 1.8, "^"),
    "constant": Style("best constant", PURPLE, LONG, 1.6, "v"),
    "proportional": Style("proportional controller", SKY, LONG_SHORT, 1.6, "P"),
    "enki": Style("ensemble Kalman inversion", VERMILION, DOTTED, 1.8, "X"),
    "random": Style("random", WINE, SPARSE, 1.8, "x"),
    "truth": Style("truth", BLACK, DOTTED, 1.8, "+"),
}

ALGORITHMS = {
    "ddpg": Style("DDPG", VERMILION, SOLID, 1.4, "o"),
    "td3": Style("TD3", PURPLE, DASHED, 1.4, "s", "//"),
    "tqc": Style("TQC", SKY, DASH_DOT, 1.4, "^", "\\\\"),
    "sac": Style("SAC", WINE, DOTTED, 1.6, "D", ".."),
}

#: How often agents are averaged; ``ebm-v1`` is the one agent without others.
SCHEMES = {
    "fed05": Style("fed05", BLUE, SOLID, 1.6, "o"),
    "fed10": Style("fed10", SKY, DASHED, 1.6, "s", "//"),
    "nofed": Style("nofed", VERMILION, DASH_DOT, 1.6, "^", "\\\\"),
    "shared": Style("shared", WINE, DASH_DOT_DOT, 1.6, "D", "xx"),
    "ebm-v1": Style("ebm-v1", PURPLE, LONG_SHORT, 1.6, "v", ".."),
}

#: Bifurcation diagrams, where what is stable is solid and what is not is dashed.
BRANCHES = {
    "by latitude": Style("model by latitude", BLUE, SOLID, 2.0),
    "global mean": Style("global mean model", SKY, SOLID, 1.4),
    "dimming": Style("dimming", VERMILION, DOTTED, marker="v"),
    "brightening": Style("brightening", WINE, DOTTED, marker="^"),
}

#: The three climates under one sun.
STATES = {
    "warm": Style("warm", VERMILION, SOLID, 1.6, "o"),
    "intermediate": Style("intermediate", PURPLE, DASHED, 1.6, "s"),
    "cold": Style("cold", INDIGO, DASH_DOT, 1.6, "v"),
}

#: Steps between analyses of what agents are judged by: short forecasts, or a free run (0).
ANALYSES: Mapping[int | None, Style] = {
    1: Style("analyses at every step", BLUE, SOLID, 1.6, "o"),
    5: Style("every 5 steps", WINE, DASHED, 1.6, "s"),
    0: Style("never", VERMILION, DASH_DOT, 1.6, "^"),
    None: Style("model with agents", BLUE, SOLID, 1.6, "o"),  # any other number
}

#: Regions and their agents, from south to north.
REGIONS: Sequence[Style] = [
    Style("", INDIGO, SOLID, 1.3, "o"),
    Style("", SKY, DASHED, 1.3, "s"),
    Style("", OLIVE, DASH_DOT, 1.3, "^"),
    Style("", WINE, LONG, 1.3, "D"),
    Style("", VERMILION, LONG_SHORT, 1.3, "v"),
    Style("", PURPLE, DASH_DOT_DOT, 1.3, "P"),
]

_STYLES = MODELS | ALGORITHMS | SCHEMES | BRANCHES | STATES

FORMATS = ("png", "pdf", "svg", "jpg")

CONFIDENCE = 0.95
ENOUGH_SEEDS = 5  # for an interval that says something
#: What :func:`interval` gives, for labels and captions.
STUDENT = f"{100 * CONFIDENCE:.0f} % interval (Student’s t)"
INTERVAL = f"mean and its {STUDENT}"


def style(key: str | Style) -> Style:
    """What the thing of this name looks like."""
    return _STYLES[key] if isinstance(key, str) else key


def interval(
    values: Float[np.ndarray, "..."], axis: int = 0
) -> tuple[Float[np.ndarray, "..."], Float[np.ndarray, "..."]]:
    """Mean over the seeds and half the width of its 95 % confidence interval, by Student's t.

    Seeds, which are along ``axis``, with a number that is not finite are left out as a whole, so
    that a curve is the mean of the same seeds everywhere. One seed alone has a half width of 0;
    where none is left, both are NaN.
    """
    values = np.moveaxis(np.asarray(values, float), axis, 0)
    whole = values[np.isfinite(values).all(axis=tuple(range(1, values.ndim)))]
    number = len(whole)
    if number == 0:
        nothing = np.full(values.shape[1:], np.nan)
        return nothing, nothing
    mean = np.asarray(whole.mean(0))
    if number == 1:
        return mean, np.zeros_like(mean)
    return mean, np.asarray(half_width(whole.std(0, ddof=1), number))


def half_width(std: Any, number: int) -> Any:
    """Of the interval, from the standard deviation (ddof = 1) of two seeds or more."""
    return stdtrit(number - 1, (1 + CONFIDENCE) / 2) * std / np.sqrt(number)


def new_figure(width: Number = 7.0, height: Number = 4.2) -> Figure:
    """An empty figure of so many inches, which makes room for its labels."""
    return Figure(figsize=(float(width), float(height)), layout="constrained")


def draw(
    axes: Axes, key: str | Style, x: Any, y: Any, label: str | None = None, **more: Any
) -> Line2D:
    """A curve in the style of a thing, under the thing's own name; ``label=""`` gives it none.

    ``more`` goes to matplotlib and outweighs the style.
    """
    (line,) = axes.plot(x, y, **_look(key, label, more))
    return line


def band(axes: Axes, key: str | Style, x: Any, low: Any, high: Any) -> FillBetweenPolyCollection:
    """The interval around a curve."""
    return axes.fill_between(x, low, high, color=style(key).colour, alpha=0.2, linewidth=0)


def draw_seeds(
    axes: Axes,
    key: str | Style,
    x: Any,
    values: Float[np.ndarray, "seed x"],
    label: str | None = None,
    limits: tuple[float, float] = (-np.inf, np.inf),
    logarithmic: bool = False,
) -> None:
    """The mean of the seeds with its interval, or, where they are few, with a thin line for each.

    An interval from two or three seeds says little and covers all. ``limits`` are what the values
    cannot leave; a mean of logarithms is that of an axis of logarithms.
    """
    there, back = (np.log, np.exp) if logarithmic else (np.asarray, np.asarray)
    with np.errstate(all="ignore"):  # what has diverged is left out
        shown = there(values)
    mean, half = interval(shown)
    draw(axes, key, x, back(mean), label)
    if len(values) >= ENOUGH_SEEDS:
        band(axes, key, x, *(np.clip(back(end), *limits) for end in (mean - half, mean + half)))
    elif len(values) > 1:
        for one in values:
            draw(axes, key, x, one, "", linewidth=0.6, alpha=0.5)


def seeds_label(number: int) -> str:
    """What :func:`draw_seeds` shows of that many seeds."""
    if number == 1:
        return "one seed"
    around = f"its {STUDENT}" if number >= ENOUGH_SEEDS else "each"
    return f"mean of {number} seeds, and {around}"


def level(
    axes: Axes, key: str | Style, value: Number, label: str | None = None, **more: Any
) -> Line2D:
    """A thing that is one number, as a line across the axes."""
    return axes.axhline(float(value), **_look(key, label, more))


def zero_line(axes: Axes) -> None:
    """A thin line where a quantity is 0: no error, no growth."""
    axes.axhline(0, color=BLACK, linewidth=0.8)


def threshold(axes: Axes, value: Number, label: str = "") -> None:
    """A thin line at a number that matters, such as a bound of a parameter."""
    axes.axhline(float(value), color=GREY, linestyle=DOTTED, linewidth=1.0, label=label)


def shade(axes: Axes, low: Number, high: Number) -> None:
    """A part of the horizontal axis behind the curves, such as the region of one agent."""
    axes.axvspan(float(low), float(high), color=PALE, zorder=0)


def light_grid(axes: Axes, axis: str = "both") -> None:
    """Thin lines behind what is shown, and no frame above and to the right of it."""
    axes.grid(axis=axis, color=GRID, linewidth=0.6)  # type: ignore[arg-type]
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def latitude_axis(axes: Axes, every: int = 30) -> None:
    """Latitude from pole to pole, by default with the edges of the 30° bands as ticks."""
    ticks = range(-90, 91, every)
    axes.set_xlim(-90, 90)
    axes.set_xticks(ticks, [latitude_label(tick) for tick in ticks])
    light_grid(axes)


def latitude_label(degrees: Number) -> str:
    """As it is written: 30°S, 0°, 30°N."""
    return f"{abs(degrees):g}°" + ("S" if degrees < 0 else "N" if degrees > 0 else "")


def map_axes(axes: Axes) -> None:
    """Longitude and latitude of the whole globe, where the columns of a map start at 0°E."""
    axes.set_xlim(0, 360)
    axes.set_xticks(range(0, 360, 90), [f"{tick}°E" for tick in range(0, 360, 90)])
    axes.set_ylim(-90, 90)
    axes.set_yticks(range(-90, 91, 30), [latitude_label(tick) for tick in range(-90, 91, 30)])
    axes.set_aspect("equal")


def draw_map(
    axes: Axes,
    latitude: Float[np.ndarray, " column"],
    longitude: Float[np.ndarray, " column"],
    values: Float[np.ndarray, " column"],
    label: str = "",
    limits: tuple[float, float] | None = None,
    errors: bool = False,
) -> QuadMesh:
    """A field on whole rows of latitude–longitude columns, in any order.

    Args:
        axes: Where to draw it.
        latitude: Of each column, °N.
        longitude: Of each column, °E.
        values: Of the field in each column.
        label: Of the colour bar: quantity and unit. There is none without it, so that several maps
            may share one.
        limits: Of the colours; the same for all maps that are compared.
        errors: Whether the sign matters: white is 0, and contours (dashed below 0) tell the signs
            apart in print.
    """
    norths, row = np.unique(latitude, return_inverse=True)
    east = np.mod(longitude, 360)
    easts, across = np.unique(east, return_inverse=True)
    cells = np.full((len(norths), len(easts)), np.nan)
    cells[row, across] = values
    if len(values) != cells.size or len(np.unique(row * len(easts) + across)) != cells.size:
        raise InputError("a map needs whole rows of latitude–longitude columns")
    if limits is None:
        finite = cells[np.isfinite(cells)]
        low, high = (finite.min(), finite.max()) if finite.size else (0.0, 1.0)
        limits = (-max(-low, high), max(-low, high)) if errors else (low, high)
    wrapped = np.concatenate([[easts[-1] - 360], easts, [easts[0] + 360]])
    mesh = axes.pcolormesh(
        (wrapped[1:] + wrapped[:-1]) / 2,
        np.concatenate([[-90], (norths[1:] + norths[:-1]) / 2, [90]]),
        cells,
        cmap=ERRORS if errors else VALUES,
        vmin=limits[0],
        vmax=limits[1],
        rasterized=True,
    )
    if errors and min(cells.shape) > 1:
        levels = np.linspace(*limits, 5)[1:-1]
        axes.contour(easts, norths, cells, levels, colors=MAP_INK, linewidths=0.6)
    map_axes(axes)
    if label:
        axes.figure.colorbar(mesh, ax=axes, label=label, shrink=0.8)
    return mesh


def step_label(days: Number, unit: str = "") -> str:
    """What an axis of environment steps is called, with what a step is."""
    return f"Environment steps of {duration(days)}" + (f" ({unit})" if unit else "")


def duration(days: Number) -> str:
    """A length of time as people say it."""
    return f"{days:.3g} days" if days >= 1 else f"{24 * days:.3g} hours"


def step_axis(axes: Axes, last: Number, days: Number, unit: str = "") -> None:
    """Environment steps from 0, in ``unit``s if they are many, with what a step is."""
    axes.set_xlim(0, float(last))
    axes.set_xlabel(step_label(days, unit))
    light_grid(axes)


def save_figure(figure: Figure, path: str | Path) -> None:
    """Write a figure whole or not at all. The same figure is the same file."""
    path = Path(path)
    file_format = path.suffix[1:].lower()
    if file_format not in FORMATS:
        raise InputError(f"{path}: a figure's name ends in one of {', '.join(FORMATS)}")
    _save(figure, path, file_format)


def save_for_pages(figure: Figure, path: str | Path) -> list[Path]:
    """Write a figure for pages on paper of either colour.

    Args:
        figure: To write.
        path: Its name; the suffix does not matter.

    Returns:
        ``NAME.png``, which can be shown everywhere, and without a background ``NAME.svg`` for light
        pages and ``NAME-dark.svg`` for dark ones, with each colour of this module as in
        :data:`DARK`.
    """
    path = Path(path)
    plain, light = path.with_suffix(".png"), path.with_suffix(".svg")
    dark = path.with_name(f"{path.stem}-dark.svg")
    save_figure(figure, plain)
    _save(figure, light, "svg", transparent=True)
    text = darkened(light.read_text("utf-8"))
    write_whole(dark, lambda partial: partial.write_text(text, "utf-8"))
    return [plain, light, dark]


def darkened(drawing: str) -> str:
    """An SVG drawing of matplotlib's in the colours of a dark page."""
    swap = {colour.lower(): other.lower() for colour, other in DARK.items()}
    found = re.sub(r"#[0-9a-f]{6}\b", lambda one: swap.get(one[0], one[0]), drawing)
    # Text is drawn as paths that have no colour of their own: black, unless the root has another.
    return found.replace("<svg ", f'<svg fill="{DARK[BLACK].lower()}" ', 1)


def _save(figure: Figure, path: Path, file_format: str, transparent: bool = False) -> None:
    metadata = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}.get(file_format)
    more: dict[str, Any] = {"format": file_format, "dpi": 200, "metadata": metadata}
    # TrueType, since some journals refuse Type 3; names within an SVG as they were last time.
    with rc_context({"pdf.fonttype": 42, "svg.hashsalt": "fedrain"}):
        write_whole(path, lambda partial: figure.savefig(partial, transparent=transparent, **more))


def _look(key: str | Style, label: str | None, more: dict[str, Any]) -> dict[str, Any]:
    one = style(key)
    look = {"color": one.colour, "linestyle": one.line, "linewidth": one.width}
    return look | {"label": one.label if label is None else label} | more
