"""A trained policy in climates that it has not seen, beside parameters that stay as tuned.

The forcing acts on the model, not on what the agents set: a change of the outgoing longwave
radiation (as a doubling of CO2 gives), of the sun, of the start, or of the target.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, UInt32
from matplotlib.figure import Figure

from fedrain.agents import Algorithm
from fedrain.agents.networks import Network
from fedrain.agents.step import EVALUATION, agent_keys, environment_key
from fedrain.baselines import constant
from fedrain.climate import EnergyBalanceModel, Skill, band_skill
from fedrain.envs import Environment, EnvParams, State
from fedrain.envs.options import changed_params
from fedrain.errors import InputError
from fedrain.experiment.evaluation import policy_actions
from fedrain.experiment.run import Run
from fedrain.plotting import draw, light_grid, new_figure, style
from fedrain.tables import Table

DOUBLED_CO2 = -3.7  # W m⁻² of outgoing longwave radiation
WARMING = 3.0  # K


@dataclass(frozen=True)
class Scenario:
    """A climate that is not the one of training."""

    text: str
    start: float | None = None  # °C
    longwave: float = 0.0  # W m⁻² added to the outgoing radiation
    ramp: bool = False  # forcing and target change linearly over the episode
    sun: float = 1.0  # times the solar constant
    warming: float = 0.0  # K added to the target

    def params(self, environment: Environment) -> EnvParams:
        """What is different in the environment."""
        model = environment.model
        assert isinstance(model, EnergyBalanceModel)
        name, _ = environment.judged[0]
        target = np.asarray(environment.params.target[name]) + self.warming
        solar = (self.sun - 1) * model.solar_constant
        changes: dict[str, Any] = {
            "forcing": {"longwave": self.longwave, "solar": solar},
            "ramp": environment.episode_length if self.ramp else 0,
            "target": {name: target},
        }
        if self.start is not None:
            changes["start"] = self.start
        return changed_params(environment, changes)


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
    policy: list[Skill]  # of every seed that has not diverged
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
        raise InputError("scenarios are known for the energy balance model only")
    whole = run.whole_seeds(kind)
    seeds = jnp.asarray(whole, jnp.uint32)
    places = jnp.array([run.configuration.seeds.index(seed) for seed in whole])
    actors = jax.tree.map(lambda leaf: jnp.asarray(leaf)[places], run.actors(kind))
    fixed = {
        "static": jnp.asarray(environment.static_actions, jnp.float32),
        "constant": jnp.asarray(constant(environment).actions[0], jnp.float32),
    }
    name, _ = environment.judged[0]
    columns = environment.model.columns
    results = {}
    for key, scenario in SCENARIOS.items():
        params = scenario.params(environment)
        target = np.asarray(params.target[name])
        given = jax.tree.map(jnp.asarray, params)
        fields = np.asarray(_play(environment, algorithm, given, actors, seeds))
        kept = {
            which: np.asarray(_hold(environment, given, action)) for which, action in fixed.items()
        }
        results[key] = Forced(
            scenario,
            [band_skill(columns, field, target) for field in fields],
            *(band_skill(columns, kept[which], target) for which in ("static", "constant")),
        )
    return results


def forcing_table(results: dict[str, Forced]) -> str:
    """Global areaWRMSE in K, for people."""
    rows = []
    for forced in results.values():
        values = np.array([skill.globe for skill in forced.policy])
        fixed = [f"{forced.static.globe:.3f}", f"{forced.constant.globe:.3f}"]
        rows.append([forced.scenario.text, *fixed, f"{values.mean():.3f}", f"{values.std():.3f}"])
    return Table("", ["areaWRMSE (K)", "static", "constant", "learnt", "± std"], rows).text()


def forcing_figure(results: dict[str, Forced], title: str) -> Figure:
    """Global error in every scenario."""
    figure = new_figure(7.0, 0.55 * len(results) + 1.8)
    axes = figure.subplots()
    rows = np.arange(len(results))[::-1]
    for key, label in (
        ("static", "static"),
        ("constant", "best constant, tuned for the standard climate"),
        ("model", "learnt policy (mean and range of the seeds)"),
    ):
        values = [
            np.array([s.globe for s in forced.policy])
            if key == "model"
            else np.array([getattr(forced, key).globe])
            for forced in results.values()
        ]
        means = [v.mean() for v in values]
        draw(axes, key, means, rows, label, marker=style(key).marker, linestyle="none")
        if key == "model":
            ends = [v.min() for v in values], [v.max() for v in values]
            axes.hlines(rows, *ends, color=style(key).colour)
    axes.set_yticks(rows, [forced.scenario.text for forced in results.values()])
    axes.set_xlim(left=0)
    axes.set_xlabel("Global areaWRMSE after the last step (K)")
    axes.set_title(title)
    light_grid(axes, "x")
    figure.legend(loc="outside lower center", frameon=False)
    return figure


@partial(jax.jit, static_argnames=("environment", "algorithm"))
def _play(
    environment: Environment,
    algorithm: Algorithm,
    params: EnvParams,
    actors: Network,
    seeds: UInt32[Array, " seed"],
) -> Float[Array, "seed column"]:
    def one(actor: Network, seed: Array) -> Float[Array, " column"]:
        keys = agent_keys(seed, EVALUATION, environment.regions)
        key = environment_key(seed, EVALUATION)

        def step(state: State, _: None) -> tuple[State, None]:
            observation = environment.observe(state, params, jax.random.fold_in(key, state.time))
            action = policy_actions(environment, algorithm, actor, observation, keys, state.time)
            return _advance(environment, params, key, state, action), None

        return _last(environment, params, key, step)

    return jax.vmap(one)(actors, seeds)


@partial(jax.jit, static_argnames="environment")
def _hold(
    environment: Environment, params: EnvParams, action: Float[Array, "agent action"]
) -> Float[Array, " column"]:
    key = jax.random.key(0)

    def step(state: State, _: None) -> tuple[State, None]:
        return _advance(environment, params, key, state, action), None

    return _last(environment, params, key, step)


def _advance(
    environment: Environment, params: EnvParams, key: Array, state: State, action: Array
) -> State:
    parameters = environment.parameters(action)
    return environment.advance(jax.random.fold_in(key, state.time + 1), state, parameters, params)


def _last(environment: Environment, params: EnvParams, key: Array, step: Any) -> Array:
    start, _ = environment.reset(jax.random.fold_in(key, 0), params)
    end, _ = jax.lax.scan(step, start, length=environment.episode_length)
    return environment.fields(end)[environment.judged[0][0]]
