"""A trained policy in climates that it has not seen, beside parameters that stay as tuned.

The forcing acts on the model, not on what the agents set: a change of the outgoing longwave
radiation (as a doubling of CO2 gives), of the sun, of the start, or of the target.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, UInt32

from fedrain.agents import Algorithm
from fedrain.agents.networks import Network
from fedrain.agents.step import EVALUATION, agent_keys
from fedrain.baselines import constant
from fedrain.climate import EnergyBalanceModel, Skill, band_skill
from fedrain.envs import Environment, State
from fedrain.errors import InputError
from fedrain.experiment.evaluation import policy_actions
from fedrain.experiment.run import Run

DOUBLED_CO2 = -3.7  # W m⁻² of outgoing longwave radiation
WARMING = 3.0  # K


@dataclass(frozen=True)
class Scenario:
    """A climate that is not the one of training."""

    text: str
    start: float | None = None  # °C
    longwave: float = 0.0  # W m⁻² added to the outgoing radiation
    ramp: bool = False  # longwave and target change linearly over the episode
    sun: float = 1.0  # times the solar constant
    warming: float = 0.0  # K added to the target


SCENARIOS = {
    "standard": Scenario("as in training"),
    "start 0": Scenario("start at 0 °C", start=0.0),
    "start 20": Scenario("start at 20 °C", start=20.0),
    "start 60": Scenario("start at 60 °C", start=60.0),
    "co2 step": Scenario("2 × CO₂ at once", longwave=DOUBLED_CO2),
    "co2 ramp": Scenario("2 × CO₂ gradually", longwave=DOUBLED_CO2, ramp=True),
    "sun -2%": Scenario("sun 2 % dimmer", sun=0.98),
    "sun +2%": Scenario("sun 2 % brighter", sun=1.02),
    "warmer target": Scenario("target warms by 3 K", warming=WARMING, ramp=True),
}


class Forced(NamedTuple):
    """Skill under one scenario."""

    scenario: Scenario
    policy: list[Skill]  # of every seed that has not broken
    static: Skill
    constant: Skill

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        values = np.array([skill.globe for skill in self.policy])
        return {
            "text": self.scenario.text,
            "policy": [skill.as_dict() for skill in self.policy],
            "policy_global_mean": float(values.mean()),
            "policy_global_std": float(values.std()),
            "static": self.static.as_dict(),
            "constant": self.constant.as_dict(),
        }


def evaluate_forced(run: Run, kind: str = "local") -> dict[str, Forced]:
    """The policies of a run, the static values and the best constant ones, in every scenario."""
    environment = run.configuration.make_environment()
    algorithm = run.configuration.make_algorithm()
    if not isinstance(environment.model, EnergyBalanceModel):
        raise InputError("forcings are known for the energy balance model only")
    whole = run.whole_seeds(kind)
    seeds = jnp.asarray(whole, jnp.uint32)
    places = jnp.array([run.configuration.seeds.index(seed) for seed in whole])
    actors = jax.tree.map(lambda leaf: jnp.asarray(leaf)[places], run.actors(kind))
    agents = len(environment.regions)
    fixed = {
        "static": jnp.broadcast_to(
            jnp.asarray(environment.static_action, jnp.float32), (agents, environment.action_size)
        ),
        "constant": jnp.asarray(constant(environment).actions[0], jnp.float32),
    }
    results = {}
    for name, scenario in SCENARIOS.items():
        changed = _environment(environment, scenario)
        offsets = _offsets(environment, scenario)
        target = np.array(environment.target) + scenario.warming
        grid = environment.model.grid
        profiles = np.asarray(_play(changed, algorithm, actors, seeds, offsets))
        kept = {key: np.asarray(_hold(changed, action, offsets)) for key, action in fixed.items()}
        results[name] = Forced(
            scenario,
            [band_skill(grid, profile, target) for profile in profiles],
            *(band_skill(grid, kept[key], target) for key in ("static", "constant")),
        )
    return results


def forcing_table(results: dict[str, Forced]) -> str:
    """Global areaWRMSE in K, for people."""
    lines = [f"{'areaWRMSE (K)':<22}{'static':>10}{'constant':>10}{'learnt':>10}{'± std':>8}"]
    for forced in results.values():
        values = np.array([skill.globe for skill in forced.policy])
        lines.append(
            f"{forced.scenario.text:<22}{forced.static.globe:>10.3f}{forced.constant.globe:>10.3f}"
            f"{values.mean():>10.3f}{values.std():>8.3f}"
        )
    return "\n".join(lines)


def _environment(environment: Environment, scenario: Scenario) -> Environment:
    model = environment.model
    assert isinstance(model, EnergyBalanceModel)
    start = environment.start_temperature if scenario.start is None else scenario.start
    sun = model.solar_constant * scenario.sun
    return replace(environment, model=replace(model, solar_constant=sun), start_temperature=start)


def _offsets(environment: Environment, scenario: Scenario) -> Float[Array, " step"]:
    length = environment.episode_length
    shape = np.arange(1, length + 1) / length if scenario.ramp else np.ones(length)
    return jnp.asarray(scenario.longwave * shape, jnp.float32)


def _advance(
    environment: Environment, state: State, action: Array, offset: Float[Array, ""]
) -> State:
    parameters = environment.parameters(action)
    parameters["A"] = parameters["A"] + offset
    return State(environment.model.step(state.temperature, parameters), state.time + 1)


@partial(jax.jit, static_argnames=("environment", "algorithm"))
def _play(
    environment: Environment,
    algorithm: Algorithm,
    actors: Network,
    seeds: UInt32[Array, " seed"],
    offsets: Float[Array, " step"],
) -> Float[Array, "seed lat"]:

    def one(actor: Network, seed: Array) -> Float[Array, " lat"]:
        keys = agent_keys(seed, EVALUATION, environment.regions)

        def step(state: State, offset: Array) -> tuple[State, None]:
            observation = environment.observe(state)
            action = policy_actions(environment, algorithm, actor, observation, keys, state.time)
            return _advance(environment, state, action, offset), None

        return environment.profile(jax.lax.scan(step, environment.reset()[0], offsets)[0])

    return jax.vmap(one)(actors, seeds)


@partial(jax.jit, static_argnames="environment")
def _hold(
    environment: Environment, action: Float[Array, "agent action"], offsets: Float[Array, " step"]
) -> Float[Array, " lat"]:
    def step(state: State, offset: Array) -> tuple[State, None]:
        return _advance(environment, state, action, offset), None

    return environment.profile(jax.lax.scan(step, environment.reset()[0], offsets)[0])
