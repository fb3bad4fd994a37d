"""Draw an environment as it runs: model, static model and target, and their errors."""

import logging
from functools import cached_property
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key, UInt8

from fedrain.climate.fields import unit_text
from fedrain.climate.skill import area_weighted_rmse
from fedrain.envs.environment import Environment
from fedrain.envs.episode import EnvParams, State
from fedrain.envs.rollout import rollout
from fedrain.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fedrain.envs.profile_figure import ProfileFigure

RENDER_MODES = ("human", "rgb_array")

_log = logging.getLogger(__name__)


class Renderer:
    """The figure of one climate, drawn again at every call: zonal means of its first field."""

    def __init__(self, environment: Environment, mode: str) -> None:
        if mode not in RENDER_MODES:
            raise InputError(
                f"there is no render mode {mode!r}: use one of {', '.join(RENDER_MODES)}"
            )
        self.environment = environment
        self.field = environment.judged_fields[0]
        self.mode = mode
        self._episode: tuple[Key[Array, ""], Float[np.ndarray, "time ..."]] | None = None

    def _columns(self, values: Float[np.ndarray, "..."]) -> Float[np.ndarray, "... column"]:
        """A field with its levels averaged."""
        return np.asarray(values.mean(-1) if self.field.levels else values, float)

    def _profile(self, values: Float[np.ndarray, "..."]) -> Float[np.ndarray, "... lat"]:
        return self.environment.model.columns.zonal_mean(self._columns(values))[1]

    def _static(self, params: EnvParams, key: Key[Array, ""]) -> Float[np.ndarray, "time ..."]:
        """The static model from the start to the end of this episode."""
        if self._episode is None or self._episode[0] is not key:
            environment = self.environment
            shape = (environment.episode_length, *environment.static_actions.shape)
            actions = jnp.broadcast_to(jnp.asarray(environment.static_actions), shape)
            start, _ = environment.reset(jax.random.fold_in(key, 0), params)
            states = rollout(environment, actions, params, key).state
            after = np.asarray(jax.vmap(self._first)(states))
            self._episode = (key, np.concatenate([np.asarray(self._first(start))[None], after]))
        return self._episode[1]

    def _first(self, state: State) -> Float[Array, "..."]:
        """The field in the first climate."""
        first = jax.tree.map(lambda leaf: leaf[0], state.climate)
        return self.environment.model.observe(first)[self.field.name]

    @cached_property
    def figure(self) -> "ProfileFigure":
        """In a window if there is to be one."""
        from fedrain.envs.profile_figure import ProfileFigure
        from fedrain.plotting import shade

        environment = self.environment
        latitudes, _ = environment.model.columns.zonal_mean(environment.model.columns.latitude)
        figure = ProfileFigure(
            latitudes,
            0 * latitudes,
            {"static": "static model", "model": "model with agents"},
            self._window() if self.mode == "human" else None,
            f"{self.field.title.capitalize()} ({unit_text(self.field.unit)})",
            unit_text(self.field.difference_unit),
        )
        if environment.only_region is not None:
            own = environment.model.columns.latitude[
                environment.division.cells[environment.only_region]
            ]
            half = (latitudes[1] - latitudes[0]) / 2
            for axes in (figure.profile_axes, figure.error_axes):
                shade(axes, own.min() - half, own.max() + half)
        return figure

    @staticmethod
    def _window() -> "Figure":
        from matplotlib import pyplot

        figure = pyplot.figure()
        if figure.canvas.manager is not None:
            figure.canvas.manager.set_window_title("FedRAIN")
        if figure.canvas.required_interactive_framework is None:
            _log.warning("there is no screen to draw on; render_mode='rgb_array' needs none")
        else:
            pyplot.show(block=False)
        return figure

    def draw(
        self, state: State, params: EnvParams, key: Key[Array, ""]
    ) -> UInt8[np.ndarray, "height width 3"] | None:
        """The first climate of the state: as pixels, or on the screen.

        Args:
            state: Where the episode is.
            params: Of the episode.
            key: What the episode was drawn from.
        """
        environment, field = self.environment, self.field
        time = int(state.time)
        now = np.asarray(self._first(state))
        static = self._static(params, key)[min(time, environment.episode_length)]
        target = np.asarray(environment.targets(state, params)[field.name][0])
        weights = environment.model.columns.weights
        error, static_error = (
            area_weighted_rmse(self._columns(values) - self._columns(target), weights)
            for values in (now, static)
        )
        unit = unit_text(self.field.difference_unit)
        self.figure.set_target(self._profile(target))
        self.figure.update(
            f"Step {time} of {environment.episode_length}: global error {error:.2f} {unit} "
            f"(static model {static_error:.2f} {unit})",
            model=self._profile(now),
            static=self._profile(static),
        )
        if self.mode == "rgb_array":
            return self.figure.rgb_array()
        self.figure.figure.canvas.draw_idle()
        self.figure.figure.canvas.flush_events()
        return None

    def close(self) -> None:
        """Close the window, if there is one."""
        if self.mode == "human" and "figure" in self.__dict__:
            from matplotlib import pyplot

            pyplot.close(self.figure.figure)
            del self.__dict__["figure"]
