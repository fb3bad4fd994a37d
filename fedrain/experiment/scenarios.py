"""A trained policy in climates that it has not seen, beside parameters that stay as tuned.

The forcing acts on the model, not on what the agents set: a change of the outgoing longwave
radiation (as a doubling of CO2 gives), of the sun, of the start, or of the target. A model that has
the forcings ``longwave`` and ``solar`` and the start ``temperature`` has all scenarios; of another
model those that it lacks are left out, and named.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure

from fedrain.baselines import constant
from fedrain.baselines.optimise import has_gradient
from fedrain.baselines.proportional import can_be_proportional, proportional_skill
from fedrain.climate import Skill
from fedrain.climate.fields import unit_text
from fedrain.climate.insolation import SOLAR_CONSTANT
from fedrain.climate.models.host import clear_failures
from fedrain.envs import Environment, EnvParams
from fedrain.envs.options import changed_params
from fedrain.errors import InputError
from fedrain.experiment.evaluation import evaluate
from fedrain.experiment.held import hold
from fedrain.experiment.run import Run
from fedrain.plotting import draw, light_grid, new_figure, style
from fedrain.tables import GAP, Table

DOUBLED_CO2 = -3.7  # W m⁻² of outgoing longwave radiation
WARMING = 3.0  # K


@dataclass(frozen=True)
class Scenario:
    """A climate that is not the one of training."""

    text: str
    start: float | None = None  # °C
    longwave: float = 0.0  # W m⁻² added to the outgoing radiation
    ramp: bool = False  # the forcing sets in linearly over the episode
    sun: float = 1.0  # times the solar constant
    warming: float = 0.0  # K added to the target

    def params(self, environment: Environment) -> EnvParams:
        """The task's own start, target and forcing, and what is different in them.

        An :class:`InputError` says what the model lacks.
        """
        params = environment.params
        if self.start is not None:
            params = changed_params(environment, {"start": {"temperature": self.start}})
        if forcing := self._forcing(environment):
            ramp = environment.episode_length if self.ramp else 0
            params = params._replace(
                forcing=params.forcing | forcing, ramp=jnp.asarray(ramp, float)
            )
        if self.warming:
            params = params._replace(target=self._target(environment))
        return params

    def _forcing(self, environment: Environment) -> dict[str, Any]:
        """What is added to the forcing of the task."""
        model = environment.model
        known = {one.name: one for one in model.forcings}
        added = {}
        if self.longwave:
            added["longwave"] = self.longwave
        if self.sun != 1:
            own = known["solar"].default if "solar" in known else 0.0
            sun = own or getattr(model, "solar_constant", SOLAR_CONSTANT)
            added["solar"] = (self.sun - 1) * sun
        for name in added:
            if name not in known:
                raise InputError(f"{type(model).__name__} has no forcing {name!r}")
        return {name: environment.params.forcing[name] + value for name, value in added.items()}

    def _target(self, environment: Environment) -> dict[str, Any]:
        """Warmer temperatures; other fields keep their targets."""
        first, *_ = environment.judged_fields
        if first.difference_unit != "K":
            raise InputError(f"{first.name} is no temperature")
        warmer: dict[str, Any] = dict(environment.params.target)
        for field in environment.judged_fields:
            if field.difference_unit == "K":
                warmer[field.name] = np.asarray(warmer[field.name]) + self.warming
        return warmer


SCENARIOS = {
    "standard": Scenario("as in training"),
    "start 0": Scenario("start at 0 °C", start=0.0),
    "start 20": Scenario("start at 20 °C", start=20.0),
    "start 60": Scenario("start at 60 °C", start=60.0),
    "co2 step": Scenario("2 × CO₂ at once", longwave=DOUBLED_CO2),
    "co2 ramp": Scenario("2 × CO₂ gradually", longwave=DOUBLED_CO2, ramp=True),
    "sun -2%": Scenario("sun 2 % dimmer", sun=0.98),
    "sun +2%": Scenario("sun 2 % brighter", sun=1.02),
    "warmer target": Scenario("target warms by 3 K", warming=WARMING),
}


class Forced(NamedTuple):
    """Skill under one scenario; of the static and the constant values, the mean over the seeds."""

    scenario: Scenario
    policy: list[Skill]  # of every seed that has not diverged
    static: Skill
    constant: Skill | None  # None where the model has no gradient to find them with
    proportional: Skill | None = None  # None where there is no A to control the temperature with
    unit: str = "K"

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        values = np.array([skill.globe for skill in self.policy])
        return {
            "text": self.scenario.text,
            "policy": [skill.as_dict() for skill in self.policy],
            "policy_global_mean": float(values.mean()),
            "policy_global_std": float(values.std()),
            "static": self.static.as_dict(),
            "constant": None if self.constant is None else self.constant.as_dict(),
            "proportional": None if self.proportional is None else self.proportional.as_dict(),
        }


@clear_failures()
def evaluate_forced(
    run: Run, kind: str = "local", say: Callable[[str], None] = print
) -> dict[str, Forced]:
    """The policies of a run, and what they are held against, in every scenario.

    Args:
        run: A finished run.
        kind: Which policy: ``local`` or ``global``.
        say: Told once, in one line, what the model lacks and is left out.
    """
    environment = run.configuration.make_environment()
    algorithm = run.configuration.make_algorithm()
    seeds, actors = run.whole_actors(kind)
    unit = unit_text(environment.judged_fields[0].difference_unit)
    missing: dict[str, list[str]] = {}  # what is left out, by the reason
    best = None
    try:
        if not has_gradient(environment):
            raise InputError(f"{type(environment.model).__name__} has no gradient")
        best = constant(environment).actions[0]
    except InputError as error:
        missing.setdefault(str(error), []).append("the best constant values")
    thermostat = can_be_proportional(environment)
    results = {}
    for key, scenario in SCENARIOS.items():
        try:
            params = scenario.params(environment)
        except InputError as error:
            missing.setdefault(str(error), []).append(scenario.text)
            continue
        played = evaluate(environment, algorithm, actors, seeds, params)
        fixed = [
            None
            if actions is None
            else Skill.mean(hold(environment, actions, seeds, params).skill(environment))
            for actions in (environment.static_actions, best)
        ]
        assert fixed[0] is not None
        skills = played.skill(environment)
        rule = proportional_skill(environment, params) if thermostat else None
        results[key] = Forced(scenario, skills, fixed[0], fixed[1], rule, unit)
    if missing:
        parts = [f"{', '.join(names)} ({reason})" for reason, names in missing.items()]
        say(f"left out: {'; '.join(parts)}")
    return results


def forcing_table(results: dict[str, Forced]) -> str:
    """Global areaWRMSE, for people."""
    rows = []
    for forced in results.values():
        values = np.array([skill.globe for skill in forced.policy])
        best, rule = (
            GAP if skill is None else f"{skill.globe:.3f}"
            for skill in (forced.constant, forced.proportional)
        )
        figures = [
            f"{forced.static.globe:.3f}",
            best,
            rule,
            f"{values.mean():.3f}",
            f"{values.std():.3f}",
        ]
        rows.append([forced.scenario.text, *figures])
    unit = next(iter(results.values())).unit
    names = ("static", "constant", "proportional", "learnt", "± std")
    return Table("", [f"areaWRMSE ({unit})", *names], rows).text()


def forcing_figure(results: dict[str, Forced], title: str) -> Figure:
    """Global error in every scenario."""
    figure = new_figure(7.0, 0.55 * len(results) + 1.8)
    axes = figure.subplots()
    rows = np.arange(len(results))[::-1]
    every = list(results.values())
    shown = {
        "static": ("static", [[forced.static] for forced in every]),
        "model": (
            "learnt policy (mean and range of the seeds)",
            [forced.policy for forced in every],
        ),
    }
    if best := [[forced.constant] for forced in every if forced.constant is not None]:
        shown["constant"] = ("best constant, tuned for the standard climate", best)
    if rule := [[f.proportional] for f in every if f.proportional is not None]:
        shown["proportional"] = ("proportional controller, no learning", rule)
    for key, (label, skills) in shown.items():
        values = [np.array([skill.globe for skill in one]) for one in skills]
        means = [one.mean() for one in values]
        draw(axes, key, means, rows, label, marker=style(key).marker, linestyle="none")
        if key == "model":
            ends = [one.min() for one in values], [one.max() for one in values]
            axes.hlines(rows, *ends, color=style(key).colour)
    axes.set_yticks(rows, [forced.scenario.text for forced in every])
    axes.set_xlim(left=0)
    axes.set_xlabel(f"Global areaWRMSE after the last step ({every[0].unit})")
    axes.set_title(title)
    light_grid(axes, "x")
    figure.legend(loc="outside lower center", frameon=False)
    return figure
