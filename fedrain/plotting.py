"""Pictures of a temperature profile, for people.

Colours are from the Okabe–Ito palette, which the colour-blind can tell apart; each curve also has
a line style of its own, for print.
"""

from pathlib import Path

import numpy as np
from jaxtyping import Float, UInt8
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fedrain.errors import InputError
from fedrain.io import write_whole

#: Colour, line style and width of what appears in profile pictures.
STYLES: dict[str, tuple[str, str, float]] = {
    "target": ("black", "-", 1.6),
    "static": ("#D55E00", "--", 1.6),
    "model": ("#0072B2", "-", 2.0),
}

FORMATS = ("png", "pdf", "svg", "jpg")

LATITUDE_TICKS = (-90, -60, -30, 0, 30, 60, 90)
LATITUDE_LABELS = ("90°S", "60°S", "30°S", "0°", "30°N", "60°N", "90°N")


def latitude_axis(axes: Axes) -> None:
    """Latitude from pole to pole, with the edges of the 30° bands as ticks."""
    axes.set_xlim(-90, 90)
    axes.set_xticks(LATITUDE_TICKS, LATITUDE_LABELS)
    axes.grid(color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)


class ProfileFigure:
    """Temperature profiles above their errors against the target, redrawn cheaply.

    ``labels`` names the curves beside the target, by their key in :data:`STYLES`.
    """

    def __init__(
        self,
        latitudes: Float[np.ndarray, " lat"],
        target: Float[np.ndarray, " lat"],
        labels: dict[str, str],
        figure: Figure | None = None,
    ) -> None:
        self.figure = figure or Figure()
        self.figure.set(figwidth=7.0, figheight=6.0, dpi=120, layout_engine="constrained")
        self.target = target
        self.profile_axes, self.error_axes = self.figure.subplots(
            2, 1, sharex=True, height_ratios=(2, 1)
        )
        self._draw(self.profile_axes, "target", latitudes, target, "target")
        self.profiles: dict[str, Line2D] = {}
        self.errors: dict[str, Line2D] = {}
        for key, label in labels.items():
            self.profiles[key] = self._draw(self.profile_axes, key, latitudes, target, label)
            self.errors[key] = self._draw(self.error_axes, key, latitudes, 0 * target, label)
        self.error_axes.axhline(0, color="black", linewidth=0.8)
        self.profile_axes.set_ylabel("Surface temperature (°C)")
        self.error_axes.set_ylabel("Error (K)")
        self.error_axes.set_xlabel("Latitude")
        self.profile_axes.legend(frameon=False)
        for axes in (self.profile_axes, self.error_axes):
            latitude_axis(axes)

    @staticmethod
    def _draw(
        axes: Axes,
        key: str,
        latitudes: Float[np.ndarray, " lat"],
        values: Float[np.ndarray, " lat"],
        label: str,
    ) -> Line2D:
        colour, style, width = STYLES[key]
        (line,) = axes.plot(
            latitudes, values, color=colour, linestyle=style, linewidth=width, label=label
        )
        return line

    def update(self, title: str, **profiles: Float[np.ndarray, " lat"]) -> None:
        """Show new profiles, with axes that fit them."""
        for key, profile in profiles.items():
            self.profiles[key].set_ydata(profile)
            self.errors[key].set_ydata(profile - self.target)
        self.profile_axes.set_title(title)
        for axes in (self.profile_axes, self.error_axes):
            axes.relim()
            axes.autoscale_view(scalex=False)

    def rgb_array(self) -> UInt8[np.ndarray, "height width 3"]:
        """The picture as pixels."""
        canvas = FigureCanvasAgg(self.figure)
        canvas.draw()
        return np.array(canvas.buffer_rgba())[..., :3]

    def save(self, path: str | Path) -> None:
        """Write the picture to a file whose suffix names its format."""
        save_figure(self.figure, path)


def save_figure(figure: Figure, path: str | Path) -> None:
    """Write a figure whole or not at all."""
    path = Path(path)
    picture_format = path.suffix[1:].lower()
    if picture_format not in FORMATS:
        raise InputError(f"{path}: a picture's name ends in one of {', '.join(FORMATS)}")
    # The same picture is the same file: no date of making.
    metadata = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}.get(picture_format)
    with rc_context({"pdf.fonttype": 42}):  # TrueType, since some journals refuse Type 3
        write_whole(
            path,
            lambda partial: figure.savefig(
                partial, format=picture_format, dpi=200, metadata=metadata
            ),
        )
