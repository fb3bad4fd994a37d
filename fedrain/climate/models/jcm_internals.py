"""What is taken from the inside of jcm, all of it: a stepper of one's own, and its parameters.

jcm's ``Model.run`` holds its parameters fixed for as long as a compiled program lives. Agents set
them every day, so the day is put together here from the parts that jcm's own loop calls: the
gridpoint state of the dynamical core, ``compute_physics_step_gridpoint`` with parameters that are
put into the physics within the trace, and the step of the dynamical core.

``tests/climate/test_jcm_internals.py`` holds this against jcm's own run, and names what is missing
when a new jcm has it no more.
"""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache, cached_property
from importlib import metadata, resources
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from fedrain.errors import FailureError, InputError, MissingExtraError, unknown

EXTRA = "gcm"
#: Latitudes of the grid of each truncation that jcm has.
TRUNCATIONS = {
    21: 32, 31: 48, 42: 64, 63: 96, 85: 128, 106: 160, 119: 180, 127: 192, 170: 256, 213: 320,
    255: 384, 340: 512, 425: 640,
}  # fmt: skip
#: SPEEDY's layers, by their number: their edges in σ, from the top.
LAYER_EDGES = {
    7: (0.00, 0.14, 0.26, 0.42, 0.60, 0.77, 0.90, 1.00),
    8: (0.00, 0.05, 0.14, 0.26, 0.42, 0.60, 0.77, 0.90, 1.00),
}
SURFACES = ("aquaplanet", "earth")
SPEEDY, HELD_SUAREZ = "speedy", "held-suarez"
SECONDS_PER_DAY = 86400
MINUTES = 30.0  # of a step, at the truncations up to T42
#: SPEEDY works out sunlight every third step, and at the first of a day.
SUNLIGHT_EVERY = 3
#: Of CO₂ at the concentration that jcm's SPEEDY refers to, with which it goes.
CO2_ABSORPTIVITY = 6.0
SOLAR_CONSTANT = 1368.0  # W m⁻², four times SPEEDY's 342
POLAR_NIGHT = 6.0  # W m⁻² of sunlight below which the stratosphere of SPEEDY cools

Arrays = dict[str, Any]
Shown = dict[str, Float[Array, "..."]]
#: A function that makes a jcm ``ComposablePhysics``.
PhysicsMaker = Callable[[], Any]


@cache
def jcm() -> Any:
    """The package, or one line that says how to get it."""
    try:
        import jcm as found
        import jcm.model
    except ImportError as error:
        if error.name is not None and error.name.split(".")[0] not in ("jcm", "dinosaur", "flax"):
            raise
        raise MissingExtraError("jcm", EXTRA) from None
    return found


def missing() -> list[str]:
    """What this file uses of jcm and the installed jcm does not have; empty when all is there."""
    import importlib

    jcm()
    wanted = {
        "jcm.date": ("DateData", "to_datetime"),
        "jcm.forcing": ("ForcingData", "default_forcing"),
        "jcm.model": ("Model",),
        "jcm.physics.forcing.speedy_forcing": ("CO2_VMR_REF_PPMV",),
        "jcm.physics_interface": ("compute_physics_step_gridpoint",),
        "jcm.physics.held_suarez.held_suarez_physics": ("held_suarez_physics",),
        "jcm.physics.speedy.speedy_coords": ("get_speedy_coords",),
        "jcm.physics.speedy.speedy_terms": ("SpeedyForcing", "speedy_physics"),
        "jcm.terrain": ("TerrainData",),
    }
    lacking = []
    for module, names in wanted.items():
        try:
            found = importlib.import_module(module)
        except ImportError:
            lacking.append(module)
            continue
        lacking += [f"{module}.{name}" for name in names if not hasattr(found, name)]
    return lacking


def speedy() -> Any:
    """SPEEDY's physics, under a sun whose strength can be set."""
    from flax import nnx
    from jcm.physics.speedy.speedy_terms import SpeedyForcing, speedy_physics

    class Sun(SpeedyForcing):
        """SPEEDY's boundary conditions; all sunlight is multiplied by ``strength``."""

        def __init__(self) -> None:
            super().__init__()
            self.strength = nnx.Param(jnp.ones(()))

        def __call__(self, state: Any, diagnostics: Any, forcing: Any, terrain: Any) -> Any:
            tendency, found = super().__call__(state, diagnostics, forcing, terrain)
            sun, strength = found["_shortwave_rad"], self.strength.get_value()
            light = sun.fsol * strength
            changed = sun.copy(
                fsol=light,
                ozone=sun.ozone * strength,
                ozupp=sun.ozupp * strength,
                stratz=jnp.maximum(POLAR_NIGHT - light, 0.0),
            )
            return tendency, {**found, "_shortwave_rad": changed}

    # Terms are kept for the way back by default; nothing goes back through a day of training.
    physics = speedy_physics(checkpoint_terms=False)
    physics.terms[[term.name for term in physics.terms].index("speedy_forcing")] = Sun()
    return physics


def held_suarez() -> Any:
    """Dry air that relaxes to a temperature of its latitude and height."""
    from jcm.physics.held_suarez.held_suarez_physics import held_suarez_physics

    return held_suarez_physics()


PHYSICS: dict[str, PhysicsMaker] = {SPEEDY: speedy, HELD_SUAREZ: held_suarez}


@cache
def machine(
    truncation: int, layers: int, physics: str | PhysicsMaker, surface: str, start: str
) -> "Machine":
    """One for each configuration: what it holds is made once."""
    return Machine(truncation, layers, physics, surface, start)


class Machine:
    """jcm at one resolution, with one physics and one surface.

    Args:
        truncation: Of the spherical harmonics.
        layers: Of air.
        physics: ``"speedy"``, ``"held-suarez"``, or what makes a physics of one's own.
        surface: ``"aquaplanet"``, or ``"earth"``: land, mountains and the sea of jcm's climatology.
        start: The date of day 0.
    """

    def __init__(
        self, truncation: int, layers: int, physics: str | PhysicsMaker, surface: str, start: str
    ) -> None:
        jcm()
        if lacking := missing():
            raise FailureError(
                f"jcm {metadata.version('jcm')} has no {', no '.join(lacking)}: "
                f"pip install 'fedrain[{EXTRA}]' installs one that has"
            )
        from flax import nnx
        from jcm.date import to_datetime
        from jcm.dycore.dinosaur.dycore import DinosaurDycore
        from jcm.forcing import default_forcing
        from jcm.model import Model
        from jcm.physics.speedy.speedy_coords import get_speedy_coords
        from jcm.terrain import TerrainData

        # jcm makes its tables in the precision of the moment: they must not depend on the caller's.
        with jax.enable_x64(False), jax.ensure_compile_time_eval(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of xarray, that its defaults will change
            coords = get_speedy_coords(layers=layers, spectral_truncation=truncation)
            made = (PHYSICS[physics] if isinstance(physics, str) else physics)()
            limit = made.stable_time_step_minutes(coords)
            minutes = MINUTES if limit is None else min(MINUTES, float(limit))
            terrain = TerrainData.aquaplanet(coords)
            if surface == "earth":
                terrain = TerrainData.from_file(_climatology("terrain.nc"), coords)
            dycore = DinosaurDycore(coords, terrain, 60 * minutes, advection="eulerian")
            self.model = Model(dycore, physics=made, terrain=terrain, start_time=start)
            self.boundary = default_forcing(coords.horizontal)
            if surface == "earth":
                self.boundary = _read_boundary(coords)
            self.start = to_datetime(start)
            self.dynamics, self.carry = self.model.bootstrap_state()
            self.graph, self.physics_state = nnx.split(self.model.physics)
        self.seconds = round(60 * minutes)
        self.steps_per_day = SECONDS_PER_DAY // self.seconds
        self.is_speedy = "_shortwave_rad" in self.carry
        if self.is_speedy and self.steps_per_day % SUNLIGHT_EVERY:
            raise InputError(
                f"T{truncation}: sunlight is computed every {SUNLIGHT_EVERY}rd step, and "
                f"{self.steps_per_day} steps a day is not a multiple of that"
            )

    # ---------------------------------------------------------------- parameters

    @cached_property
    def parameters(self) -> dict[str, float]:
        """Every number of the physics that can be set, by name, with jcm's own default."""
        found: dict[str, float] = {}
        for term in self.model.physics.terms:
            for name, variable in _variables(term):
                value = variable.get_value()
                if is_dataclass(value):
                    found |= {f.name: _number(getattr(value, f.name)) for f in fields(value)}
                else:
                    found[name] = _number(value)
        return {name: value for name, value in found.items() if np.isfinite(value)}

    def check(self, symbols: list[str]) -> None:
        """Refuse what is no parameter of the physics, and offer the nearest that is."""
        for symbol in symbols:
            if symbol not in self.parameters:
                raise unknown("parameter of the physics", symbol, list(self.parameters))

    def physics(self, values: Mapping[str, Any]) -> Any:
        """The physics with these values, each wherever a term has a parameter of its name."""
        from flax import nnx

        made = nnx.merge(self.graph, self.physics_state)
        for term in made.terms:
            for name, variable in _variables(term):
                held = variable.get_value()
                if is_dataclass(held) and not isinstance(held, type):
                    own = {f.name: values[f.name] for f in fields(held) if f.name in values}
                    if own:
                        setattr(term, name, type(variable)(replace(held, **own)))
                elif name in values:
                    setattr(term, name, type(variable)(values[name]))
        return made

    # ---------------------------------------------------------------- states

    def rest(self) -> Arrays:
        """Air at rest, with what lasts of the physics."""
        return {"air": self.unpack(self.dynamics), "memory": self.memory(self.carry)}

    def memory(self, carry: Any) -> Arrays:
        """What of the physics lasts from one day to the next.

        At the first step of a day SPEEDY computes everything again, except the longwave fluxes in
        the bands that sunlight has no part in: the surface reflects those of the step before.
        """
        return {"flux": carry["_mod_radcon"].flux} if self.is_speedy else {}

    def carried(self, memory: Arrays) -> Any:
        """Jcm's own form of it, at the beginning of a day."""
        if not self.is_speedy:
            return self.carry
        radiation = replace(self.carry["_mod_radcon"], flux=memory["flux"])
        return {**self.carry, "_mod_radcon": radiation}

    @staticmethod
    def unpack(dynamics: Any) -> Arrays:
        """A state of the dynamical core as plain arrays, without its clock."""
        return {
            "vorticity": dynamics.vorticity,
            "divergence": dynamics.divergence,
            "temperature": dynamics.temperature_variation,
            "log_surface_pressure": dynamics.log_surface_pressure,
            **{name: dynamics.tracers[name] for name in sorted(dynamics.tracers)},
        }

    def pack(self, air: Arrays) -> Any:
        """The state of the dynamical core that these arrays are, at the beginning of a day."""
        names = {"temperature": "temperature_variation"}
        tracers = {name: air[name] for name in self.dynamics.tracers}
        own = {names.get(name, name): one for name, one in air.items() if name not in tracers}
        return self.dynamics.replace(**own, tracers=tracers)

    # ---------------------------------------------------------------- a day

    def advance(
        self,
        state: Arrays,
        parameters: Mapping[str, Any],
        forcing: Mapping[str, Any],
        day: Int[Array, ""],
        days: int = 1,
        perpetual: bool = False,
        reduce: Callable[[Array], Array] = lambda values: values.mean(-2),
    ) -> tuple[Arrays, Shown]:
        """The state some days later, and the means over them of what can be seen.

        Args:
            state: Of :meth:`rest`, or what this has given.
            parameters: By jcm's names, in jcm's units: a number, or one for each latitude.
            forcing: ``sst``, ``co2_absorptivity`` and ``solar``, as far as the physics has them.
            day: Days since the start.
            days: How many.
            perpetual: Whether the sun stays where it is on that day.
            reduce: Of a map ``[..., longitude, latitude]``; zonal means by default.
        """
        import jax_datetime as jdt
        from jcm.date import DateData
        from jcm.physics_interface import compute_physics_step_gridpoint

        model, seconds = self.model, self.seconds
        values = {name: jnp.asarray(one, jnp.float32) for name, one in parameters.items()}
        if "solar" in forcing:
            values["strength"] = 1 + jnp.asarray(forcing["solar"], jnp.float32) / SOLAR_CONSTANT
        physics = self.physics(values)

        def see(grid: Any, carry: Any) -> Shown:
            return {name: reduce(one) for name, one in self._seen(grid, carry).items()}

        def one(now: Any, step: Int[Array, ""]) -> tuple[Any, None]:
            dynamics, carry, sums = now
            past = 0 * step if perpetual else step
            time = self.start + jdt.Timedelta(
                days=day + past * seconds // SECONDS_PER_DAY,
                seconds=past * seconds % SECONDS_PER_DAY,
            )
            boundary = self._forced(self.boundary.select(DateData(time, step, seconds)), forcing)
            grid = model.dycore.to_physics_state(dynamics)
            tendency, carry = compute_physics_step_gridpoint(
                grid, boundary, model.terrain, carry, physics=physics, time_step=float(seconds)
            )
            sums = jax.tree.map(jnp.add, sums, see(grid, carry))
            return (model.dycore.step(dynamics, tendency), carry, sums), None

        dynamics, carry = self.pack(state["air"]), self.carried(state["memory"])
        shapes = jax.eval_shape(lambda: see(model.dycore.to_physics_state(dynamics), carry))
        nothing = {name: jnp.zeros(one.shape, one.dtype) for name, one in shapes.items()}
        steps = days * self.steps_per_day
        (dynamics, carry, sums), _ = jax.lax.scan(
            one, (dynamics, carry, nothing), jnp.arange(steps, dtype=jnp.int32)
        )
        after = {"air": self.unpack(dynamics), "memory": self.memory(carry)}
        return after, {name: total / steps for name, total in sums.items()}

    def _forced(self, boundary: Any, forcing: Mapping[str, Any]) -> Any:
        """The boundary conditions under what forces them."""
        if "sst" in forcing:
            warming = jnp.asarray(forcing["sst"], jnp.float32)
            boundary = boundary.copy(
                sea_surface_temperature=boundary.sea_surface_temperature + warming,
                stl_am=boundary.stl_am + warming,
            )
        if "co2_absorptivity" in forcing:
            from jcm.physics.forcing.speedy_forcing import CO2_VMR_REF_PPMV

            share = jnp.asarray(forcing["co2_absorptivity"], jnp.float32) / CO2_ABSORPTIVITY
            boundary = boundary.copy(co2_vmr=CO2_VMR_REF_PPMV * share)
        return boundary

    def _seen(self, grid: Any, carry: Any) -> Shown:
        """What can be seen at one step: maps, ``[longitude, latitude]``, levels first."""
        shown = {
            "air_temperature": grid.temperature,
            "eastward_wind": grid.u_wind,
            "northward_wind": grid.v_wind,
        }
        if not self.is_speedy:
            return shown
        surface, sun = carry["_surface_flux"], carry["_shortwave_rad"]
        exchange = carry["surface_exchange"]
        return {
            **shown,
            "specific_humidity": grid.specific_humidity,
            "surface_temperature": surface.tskin,
            "surface_pressure": grid.normalized_surface_pressure,
            "outgoing_longwave": carry["_longwave_rad"].ftop,
            "absorbed_shortwave": sun.ftop,
            "precipitation": exchange.precipitation,
            "sensible_heat_flux": exchange.sensible_heat_flux,
            "latent_heat_flux": exchange.latent_heat_flux,
            "cloud_cover": sun.cloudc,
        }


def _variables(term: Any) -> list[tuple[str, Any]]:
    """The variables of a term of a physics, by the name of the attribute; no cached grid."""
    from flax import nnx

    return [
        (name, value)
        for name, value in sorted(vars(term).items())
        if isinstance(value, nnx.Variable) and not name.startswith("_")
    ]


def _number(value: Any) -> float:
    """A parameter as a number; not one of those that are switches."""
    array = np.asarray(value)
    return float(array) if array.ndim == 0 and array.dtype.kind == "f" else np.nan


def _climatology(file: str) -> str:
    return str(resources.files("jcm.data.bc.t30.clim") / file)


def _read_boundary(coords: Any) -> Any:
    """Jcm's climatology of sea, ice, snow, soil and land, through the year."""
    from jcm.forcing import ForcingData

    return ForcingData.from_file(_climatology("forcing.nc"), coords=coords, align_mode="wrap_year")
