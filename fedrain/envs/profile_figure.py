"""A figure of profiles and their errors that is redrawn at every step."""

from pathlib import Path

import numpy as np
from jaxtyping import Float, UInt8
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fedrain.plotting import draw, latitude_axis, save_figure, zero_line


class ProfileFigure:
    """Profiles above their errors against the target, redrawn cheaply.

    Args:
        latitudes: °N.
        target: The profile that the others are compared with.
        labels: Names of the curves beside the target, by their key in the style module.
        figure: To draw on, such as one in a window.
        quantity: What is shown, with its unit.
        unit: Of an error.
    """

    def __init__(
        self,
        latitudes: Float[np.ndarray, " lat"],
        target: Float[np.ndarray, " lat"],
        labels: dict[str, str],
        figure: Figure | None = None,
        quantity: str = "Surface temperature (°C)",
        unit: str = "K",
    ) -> None:
        self.figure = figure or Figure()
        self.figure.set(figwidth=7.0, figheight=6.0, dpi=120, layout_engine="constrained")
        self.target = target
        self.profile_axes, self.error_axes = self.figure.subplots(
            2, 1, sharex=True, height_ratios=(2, 1)
        )
        self.target_line = draw(self.profile_axes, "target", latitudes, target)
        self.profiles: dict[str, Line2D] = {}
        self.errors: dict[str, Line2D] = {}
        for key, label in labels.items():
            self.profiles[key] = draw(self.profile_axes, key, latitudes, target, label)
            self.errors[key] = draw(self.error_axes, key, latitudes, 0 * target, label)
        zero_line(self.error_axes)
        self.profile_axes.set_ylabel(quantity)
        self.error_axes.set_ylabel(f"Error ({unit})")
        self.error_axes.set_xlabel("Latitude")
        # Outside: the curves move, and flat ones leave no room for it.
        self.figure.legend(
            handles=[self.target_line, *self.profiles.values()],
            loc="outside lower center",
            ncols=1 + len(labels),
            frameon=False,
        )
        for axes in (self.profile_axes, self.error_axes):
            latitude_axis(axes)

    def set_target(self, profile: Float[np.ndarray, " lat"]) -> None:
        """Compare with another profile from now on, in an environment whose target moves."""
        self.target = profile
        self.target_line.set_ydata(profile)
        for key, line in self.profiles.items():
            self.errors[key].set_ydata(np.asarray(line.get_ydata()) - profile)
        self._fit()

    def update(self, title: str, **profiles: Float[np.ndarray, " lat"]) -> None:
        """Show new profiles, with axes that fit them."""
        for key, profile in profiles.items():
            self.profiles[key].set_ydata(profile)
            self.errors[key].set_ydata(profile - self.target)
        self.profile_axes.set_title(title)
        self._fit()

    def _fit(self) -> None:
        for axes in (self.profile_axes, self.error_axes):
            axes.relim()
            axes.autoscale_view(scalex=False)

    def rgb_array(self) -> UInt8[np.ndarray, "height width 3"]:
        """The figure as pixels."""
        canvas = FigureCanvasAgg(self.figure)
        canvas.draw()
        return np.array(canvas.buffer_rgba())[..., :3]

    def save(self, path: str | Path) -> None:
        """Write the figure to a file whose suffix names its format."""
        save_figure(self.figure, path)
