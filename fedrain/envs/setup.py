"""How kinds of task differ: the model, what is learnt, judged and seen, and by whom.

Everything here is static: two environments that are equal in it share what is compiled.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import ArrayLike, Float

from fedrain.climate.columns import Regions, closeness, frozen
from fedrain.climate.fields import (
    ABSORBED_SHORTWAVE,
    OUTGOING_LONGWAVE,
    SURFACE_TEMPERATURE,
    Field,
)
from fedrain.climate.model import ClimateModel
from fedrain.climate.parameters import ParameterTable
from fedrain.climate.physics import Physics
from fedrain.envs.checks import check_setup
from fedrain.envs.episode import EnvParams
from fedrain.envs.observation import Observation
from fedrain.envs.spec import AgentSpec
from fedrain.errors import unknown

#: Fields that describe the energy budget of a climate.
FLUXES = (OUTGOING_LONGWAVE.name, ABSORBED_SHORTWAVE.name)


@dataclass(frozen=True)
class Setup:
    """A climate model seen by ``agents`` agents: the fields of :class:`Environment`."""

    model: ClimateModel
    params: EnvParams = field(repr=False, compare=False)
    agents: int = 1
    shared_climate: bool = False
    local_observation: bool = False
    episode_length: int = 200
    learn: tuple[str, ...] | None = None
    judged: tuple[tuple[str, float], ...] = ()
    reward_shape: str = "square"
    around: tuple[tuple[str, float], ...] = ()
    observed: tuple[str, ...] = ()
    tiles: tuple[int, int] | None = None
    overlap: bool = False
    unapplied: tuple[str, ...] = ()
    unclipped: bool = False
    judged_early: int = 0
    judged_over: int = 1
    truth: ClimateModel | None = None
    only_region: int | None = None

    def __post_init__(self) -> None:
        check_setup(self)

    @property
    def last_judged(self) -> int:
        """The step of an episode, counted from 0, whose fields an evaluation is judged by."""
        return self.episode_length - 1 - self.judged_early

    @property
    def judged_steps(self) -> slice:
        """The steps over whose mean an evaluation is judged."""
        return slice(self.last_judged + 1 - self.judged_over, self.last_judged + 1)

    def judged_mean(self, values: Any) -> Any:
        """What an evaluation judges of values with a leading axis of steps."""
        return (
            values[self.last_judged] if self.judged_over == 1 else values[self.judged_steps].mean(0)
        )

    # ---------------------------------------------------------------- who, where, what

    @cached_property
    def division(self) -> Regions:
        """How the columns are divided among the agents."""
        return Regions(self.model.columns, self.agents, self.tiles, self.overlap)

    @cached_property
    def learnt(self) -> ParameterTable:
        """The rows of the table that agents set."""
        return self.model.table.learnt(self.learn)

    @property
    def regions(self) -> tuple[int, ...]:
        """The region of each agent that acts."""
        return tuple(range(self.agents)) if self.only_region is None else (self.only_region,)

    @property
    def climates(self) -> int:
        """How many climates are integrated."""
        return 1 if self.shared_climate else len(self.regions)

    @property
    def region_size(self) -> int:
        """Columns in one region."""
        return self.division.size

    @property
    def columns_set(self) -> int:
        """Columns whose parameters one agent sets."""
        return self.region_size if self.shared_climate else len(self.model.columns)

    @property
    def columns_seen(self) -> int:
        """Columns that one agent sees."""
        return self.region_size if self.local_observation else len(self.model.columns)

    def field(self, name: str) -> Field:
        """A field of the model."""
        for one in self.model.fields:
            if one.name == name:
                return one
        raise unknown("field", name, [one.name for one in self.model.fields])

    @cached_property
    def judged_fields(self) -> tuple[Field, ...]:
        """The fields that agents are judged by, the first of which stands in skill tables."""
        return tuple(self.field(name) for name, _ in self.judged)

    @cached_property
    def closeness(self) -> dict[str, Float[np.ndarray, "column column"]]:
        """How much the error of each column counts in each, of fields that are judged around it."""
        columns = self.model.columns
        east = np.zeros(len(columns)) if columns.longitude is None else columns.longitude
        places = np.stack([columns.latitude, east], axis=1)
        return {name: closeness(places, reach) for name, reach in self.around}

    @cached_property
    def flux_references(self) -> dict[str, Float[np.ndarray, " column"]]:
        """What fluxes that are not judged are held against: the ``target`` of the model, if any."""
        judged, own = dict(self.judged), getattr(self.model, "target", {})
        has = {one.name for one in self.model.fields}
        has |= set(FLUXES) if hasattr(self.model, "fluxes") else set()
        return {n: np.asarray(own[n]) for n in FLUXES if n in own and n in has - set(judged)}

    def physics(
        self,
        parameters: Mapping[str, ArrayLike],
        fields: Mapping[str, Float[np.ndarray, "column ..."]],
        fluxes: Mapping[str, Float[np.ndarray, " column"]],
    ) -> Physics:
        """How plausible a climate is: of the parameters in force, and of what they led to."""
        temperature, longwave = SURFACE_TEMPERATURE.name, OUTGOING_LONGWAVE.name
        known = temperature in fields and longwave in fluxes
        known = known and self.field(temperature).unit == "degC"
        return Physics.of(
            self.learnt,
            self.model.columns,
            parameters,
            fields[temperature] if known else None,
            fluxes[longwave] if known else None,
        )

    @cached_property
    def observation(self) -> Observation:
        """What one agent is shown, part by part."""
        coordinates = self.model.columns.coordinates.shape[1]
        return Observation.of(
            self.observed, self.model.fields, self.judged_fields, self.columns_seen, coordinates
        )

    @cached_property
    def places_seen(self) -> Float[np.ndarray, "agent seen coordinate"]:
        """Where the columns are that each agent sees."""
        where = self.model.columns.coordinates
        if self.local_observation:
            return frozen(where[self.division.cells[list(self.regions)]])
        return frozen(np.broadcast_to(where, (len(self.regions), *where.shape)))

    @property
    def observation_bounds(self) -> tuple[Float[np.ndarray, " obs"], Float[np.ndarray, " obs"]]:
        """Lowest and highest observation."""
        return self.observation.bounds

    @property
    def observation_size(self) -> int:
        """Numbers that one agent sees."""
        return len(self.observation_bounds[0])

    @cached_property
    def action_bounds(self) -> tuple[Float[np.ndarray, " action"], Float[np.ndarray, " action"]]:
        """Lowest and highest action of one agent."""
        low, high = self.learnt.action_bounds(self.columns_set)
        return frozen(low), frozen(high)

    @property
    def action_size(self) -> int:
        """Numbers that one agent sets."""
        return len(self.action_bounds[0])

    @cached_property
    def action_slices(self) -> dict[str, slice]:
        """Where in an action each parameter stands."""
        return self.learnt.action_slices(self.columns_set)

    @cached_property
    def static_actions(self) -> Float[np.ndarray, "agent action"]:
        """The actions that set the static values."""
        return self._actions_of(self.learnt)

    @property
    def truths_actions(self) -> Float[np.ndarray, "agent action"] | None:
        """Those that set the parameters of the truth, where a record knows them and agents can."""
        record = self.params.record
        if record is None or record.parameters is None:
            return None
        known = {symbol: np.asarray(values) for symbol, values in record.parameters.items()}
        learnt = {row.symbol: row for row in self.learnt}
        for symbol, values in known.items():
            row = learnt.get(symbol)
            if row is None or (values < row.low).any() or (values > row.high).any():
                return None
        return self._actions_of(self.learnt.replace(static=known))

    def _actions_of(self, table: ParameterTable) -> Float[np.ndarray, "agent action"]:
        """The actions that set the static values of a table."""
        columns = len(self.model.columns)
        cells = self.division.cells if self.shared_climate else np.arange(columns)[None]
        every = [table.static_action(columns, own) for own in cells]
        return frozen(np.stack([every[region % len(every)] for region in self.regions]))

    @cached_property
    def spec(self) -> AgentSpec:
        """What one agent sees and sets."""
        low, high = self.action_bounds
        slices = self.action_slices
        common = [
            slices[row.symbol].start
            for row in self.learnt
            if self.shared_climate and not row.by_column
        ]
        # Latitude by latitude they are curves, which knots can describe; tiles are none.
        curves = self.model.columns.longitude is None
        profiles = [slices[r.symbol] for r in self.learnt if curves and r.scope == "column"]
        return AgentSpec(
            observation_size=self.observation_size,
            low=tuple(low.tolist()),
            high=tuple(high.tolist()),
            scale=self.observation.scale,
            places=tuple((float(a), float(b)) for a, b in self.division.centres),
            common=tuple(common),
            profiles=tuple((part.start, part.stop) for part in profiles),
            shared=self.shared_climate and self.agents > 1,
        )
