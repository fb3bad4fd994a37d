"""Draw an environment as it runs: model, static model and target, and their errors."""

import logging
from functools import cached_property

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, UInt8
from matplotlib.figure import Figure

from fedrain.climate import trajectory
from fedrain.climate.skill import area_weighted_rmse
from fedrain.envs.environment import Environment, State
from fedrain.errors import InputError
from fedrain.plotting import ProfileFigure

RENDER_MODES = ("human", "rgb_array")

_log = logging.getLogger(__name__)


class Renderer:
    """The picture of one climate, drawn again at every call."""

    def __init__(self, environment: Environment, mode: str) -> None:
        if mode not in RENDER_MODES:
            raise InputError(
                f"there is no render mode {mode!r}: use one of {', '.join(RENDER_MODES)}"
            )
        self.environment = environment
        self.mode = mode

    @cached_property
    def static_profiles(self) -> Float[np.ndarray, "time lat"]:
        """The static model from the start to the end of an episode."""
        environment = self.environment
        latitudes = environment.model.grid.latitudes
        with jax.enable_x64(True):
            start = jnp.full(latitudes, environment.start_temperature)
            static = environment.model.table.static(latitudes)
            after = trajectory(environment.model, start, static, environment.episode_length)
            return np.concatenate([start[None], after])

    @cached_property
    def picture(self) -> ProfileFigure:
        """The figure, in a window if there is to be one."""
        environment = self.environment
        picture = ProfileFigure(
            environment.model.grid.centres,
            np.array(environment.target),
            {"static": "static model", "model": "model with agents"},
            self._window() if self.mode == "human" else None,
        )
        if environment.only_region is not None:
            edges = environment.model.grid.edges[:: environment.region_size]
            south, north = edges[environment.only_region], edges[environment.only_region + 1]
            for axes in (picture.profile_axes, picture.error_axes):
                axes.axvspan(south, north, color="0.93", zorder=0)
        return picture

    @staticmethod
    def _window() -> Figure:
        from matplotlib import pyplot

        figure = pyplot.figure()
        if figure.canvas.manager is not None:
            figure.canvas.manager.set_window_title("FedRAIN")
        if figure.canvas.required_interactive_framework is None:
            _log.warning("there is no screen to draw on; render_mode='rgb_array' needs none")
        else:
            pyplot.show(block=False)
        return figure

    def draw(self, state: State) -> UInt8[np.ndarray, "height width 3"] | None:
        """The first climate of the state: as pixels, or on the screen."""
        environment = self.environment
        time = int(state.time)
        profile = np.asarray(state.temperature[0], float)
        static = self.static_profiles[min(time, environment.episode_length)]
        target, weights = np.array(environment.target), environment.model.grid.weights
        error, static_error = (area_weighted_rmse(p - target, weights) for p in (profile, static))
        self.picture.update(
            f"Step {time} of {environment.episode_length}: global error {error:.2f} K "
            f"(static model {static_error:.2f} K)",
            model=profile,
            static=static,
        )
        if self.mode == "rgb_array":
            return self.picture.rgb_array()
        self.picture.figure.canvas.draw_idle()
        self.picture.figure.canvas.flush_events()
        return None

    def close(self) -> None:
        """Close the window, if there is one."""
        if self.mode == "human" and "picture" in self.__dict__:
            from matplotlib import pyplot

            pyplot.close(self.picture.figure)
            del self.__dict__["picture"]
