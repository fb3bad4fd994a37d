"""What the results say, in sentences: the message of the report, and the answer to each question.

Every number is of the results that are there. Cells that are compared with each other are always
of one preset: the first of :data:`REPRODUCTIONS` that has all of them.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache

import jax.numpy as jnp
import numpy as np

from fedrain.baselines import known_limit, proportional, static
from fedrain.baselines.proportional import proportional_control
from fedrain.baselines.response import DOUBLING, hold_actions, respond
from fedrain.climate import Skill
from fedrain.climate.climatology import ncep_profiles
from fedrain.climate.fields import OUTGOING_LONGWAVE
from fedrain.climate.physics import above_black_body
from fedrain.envs import make
from fedrain.paper.claims import Claim
from fedrain.paper.judgement import Verdict, experiment_name
from fedrain.paper.matrix import PRESETS, REPRODUCTIONS, Cell, cells
from fedrain.paper.results import Result, Results, reference_of, reproduction
from fedrain.paper.statistics import LEVEL, differ
from fedrain.paper.tables import agreement
from fedrain.plotting import style

#: The experiment that the paper leads with.
LEADING = Cell("ebm-v3", 6, "fed05", "ddpg", "paper")
NUMBERS = {1: "One", 2: "Two", 6: "Six"}
NEVER = "nofed"


@dataclass(frozen=True)
class BaselineFigures:
    """What one model without agents has in the paper's task.

    Args:
        error: Of the globe after an episode, K.
        share: Where its return lies between the static model (0) and optimal control (1).
        longwave: Error of the outgoing longwave radiation, W m⁻².
        above: Columns that emit more than a black body.
        warming: For a doubling of CO₂, K; None where it was not computed.
    """

    error: float
    share: float
    longwave: float
    above: float
    warming: float | None


@cache
def baseline_figures() -> dict[str, BaselineFigures]:
    """Static model and proportional controller, played now, with their response to a forcing."""
    environment = make("ebm-v1")
    fixed = jnp.asarray(environment.static_actions, jnp.float32)
    acting = {
        "static": (static(environment), (hold_actions, fixed)),
        "proportional": (proportional(environment), proportional_control(environment)),
    }
    best, worst = known_limit(environment), float(acting["static"][0].returns.mean())
    assert best is not None  # it comes with the package
    found = {}
    for name, (baseline, (control, held)) in acting.items():
        answer = respond(environment, control, held, (DOUBLING,), 0, None)["model"][DOUBLING]
        found[name] = BaselineFigures(
            baseline.skill.globe,
            (float(baseline.returns.mean()) - worst) / (best - worst),
            baseline.errors[OUTGOING_LONGWAVE.name],
            float(baseline.physics.above_black_body or 0.0),
            float(answer.warming),
        )
    return found


def mean_flux(result: Result) -> tuple[float, float]:
    """Of the mean profile of the seeds, of which alone parameters are stored, after the last step.

    Returns:
        Error of the outgoing longwave radiation in W m⁻², and columns above a black body. Errors
        of the seeds partly cancel in it.
    """
    environment = make("ebm-v1")
    last = result.data.isel(step=-1)
    temperature = last.episode_surface_temperature.values.astype(float)
    longwave = last.episode_A.values + last.episode_B.values * temperature
    columns = environment.model.columns
    target = ncep_profiles(columns)[OUTGOING_LONGWAVE.name]
    error = float(np.sqrt(columns.mean((longwave - target) ** 2)))
    return error, float(above_black_body(temperature, longwave).sum())


def experiments() -> list[Cell]:
    """The 39 experiments of the paper, as the cells of preset ``paper``, in the order of pages."""
    found = cells("*-paper")
    algorithms = list(PRESETS)
    return sorted(found, key=lambda c: (c.env, c.agents, algorithms.index(c.algo), c.scheme))


def together(results: Results, group: Iterable[Cell]) -> list[Result] | None:
    """Results of several experiments to be compared, of the first preset that has all of them."""
    group = list(group)
    for preset in REPRODUCTIONS:
        found = [results.get(replace(cell, preset=preset)) for cell in group]
        if all(result is not None for result in found):
            return [result for result in found if result is not None]
    return None


def side_by_side(results: Results, groups: Iterable[Iterable[Cell]]) -> list[Result]:
    """What stands for experiments in a figure: of one preset within a group, if it has all."""
    found = []
    for group in map(list, groups):
        alike = together(results, group)
        every = [reproduction(results, cell) for cell in group] if alike is None else alike
        found += [result for result in every if result is not None]
    return found


def by_scheme() -> list[list[Cell]]:
    """The experiments of one environment, number of agents and algorithm."""
    return _groups(lambda cell: (cell.env, cell.agents, cell.algo))


def by_algorithm() -> list[list[Cell]]:
    """The experiments that differ by the algorithm alone."""
    return _groups(lambda cell: (cell.env, cell.agents, cell.scheme))


def _groups(key: Callable[[Cell], tuple[object, ...]]) -> list[list[Cell]]:
    found: dict[tuple[object, ...], list[Cell]] = {}
    for cell in experiments():
        found.setdefault(key(cell), []).append(cell)
    return list(found.values())


def leading(results: Results) -> Result:
    """The result that stands for all: the paper's own, or else the one of the lowest error."""
    if (found := reproduction(results, LEADING)) is not None:
        return found
    reproduced = [result for cell, result in results.items() if cell.preset in REPRODUCTIONS]
    return min(reproduced or results.values(), key=lambda result: result.globe().mean)


def message(results: Results, limit: float | None) -> str:
    """The whole report in one sentence.

    Args:
        results: What :func:`load_results` read.
        limit: Error of the globe under optimal control in K, if it is known.

    Returns:
        What agents reach, beside the static model and what learns nothing.
    """
    result, known = leading(results), baseline_figures()
    one = result.cell.agents == 1
    how = "" if one else " federated" if result.cell.scheme != NEVER else " separate"
    optimal = "" if limit is None else f", and optimal control {limit:.2f} K"
    return (
        f"{NUMBERS[result.cell.agents]}{how} agent{' brings' if one else 's bring'} the error of a "
        f"climate model from {known['static'].error:.2f} K to {result.globe().mean:.2f} K; "
        f"a thermostat that learns nothing reaches {known['proportional'].error:.2f} K{optimal}."
    )


def does_federation_help(results: Results) -> str:
    """Agents that are averaged, against the same agents that never are."""
    better, worse, alike, gains = 0, 0, 0, list[tuple[float, Result, Result]]()
    for cell in experiments():
        if cell.agents == 1 or cell.scheme == NEVER:
            continue
        if (pair := together(results, (cell, replace(cell, scheme=NEVER)))) is None:
            continue
        averaged, alone = (result.globe() for result in pair)
        gains.append((averaged.mean - alone.mean, pair[0], pair[1]))
        if differ(averaged, alone) >= LEVEL:
            alike += 1
        elif averaged.mean < alone.mean:
            better += 1
        else:
            worse += 1
    if not gains:
        return "Not run yet: no agents that are averaged stand beside agents that never are."
    most = min(gains, key=lambda gain: gain[0])
    least = max(gains, key=lambda gain: gain[0])
    told = (
        f"In {better} of {len(gains)} comparisons with agents that are never averaged, averaging "
        f"lowers the error of the globe, in {worse} it raises it, and in {alike} ten seeds show no "
        f"difference (Welch’s test, 5 %; {LEVEL * len(gains):.1f} are expected by chance). "
    )
    return f"{told}It helps most in {_change(most)}, and least in {_change(least)}."


def _change(gain: tuple[float, Result, Result]) -> str:
    _, averaged, alone = gain
    return (
        f"{experiment_name(averaged.cell)} ({averaged.globe().mean:.2f} K instead of "
        f"{alone.globe().mean:.2f} K)"
    )


def which_algorithm(results: Results) -> str:
    """Which has the lowest error in each environment, division and scheme."""
    lowest, clearly, number = dict.fromkeys(PRESETS, 0), dict.fromkeys(PRESETS, 0), 0
    for group in by_algorithm():
        if (found := together(results, group)) is None:
            continue
        number += 1
        best, *others = sorted(found, key=lambda result: result.globe().mean)
        lowest[best.cell.algo] += 1
        clearly[best.cell.algo] += all(
            differ(best.globe(), other.globe()) < LEVEL for other in others
        )
    if not number:
        return "Not run yet: no experiment has all three algorithms."
    first, *rest = sorted(lowest, key=lambda algo: -lowest[algo])
    told = f" (in {clearly[first]} of them Welch’s test tells it from both others)"
    beside = " and ".join(f"{style(a).label} in {lowest[a] or 'none'}" for a in rest)
    costs = ", ".join(f"{_cost(results, a):.1f} with {style(a).label}" for a in PRESETS)
    return (
        f"{style(first).label} has the lowest mean error in {lowest[first]} of {number} "
        f"experiments{told}, {beside}. A step of an agent takes, in core-milliseconds, {costs}."
    )


def _cost(results: Results, algo: str) -> float:
    """Core-milliseconds for each step of an agent."""
    same = {cell: result for cell, result in results.items() if cell.algo == algo}
    hours = sum(result.core_hours for result in same.values())
    return 3.6e6 * hours / sum(cell.agent_steps for cell in same)


def best_of(results: Results, algo: str) -> Result | None:
    """The experiment in which an algorithm has the lowest mean error."""
    found = [reproduction(results, cell) for cell in experiments() if cell.algo == algo]
    there = [result for result in found if result is not None]
    return min(there, key=lambda result: result.globe().mean, default=None)


def how_near_the_limit(results: Results, optimal: Mapping[str, Skill]) -> str:
    """The best cell, beside its optimal control, by name, and what learns nothing."""
    found = [best_of(results, algo) for algo in PRESETS]
    there = [result for result in found if result is not None]
    if not there:
        return "Not run yet."
    best = min(there, key=lambda result: result.globe().mean)
    rule = baseline_figures()["proportional"]
    reached = [reproduction(results, cell) for cell in experiments()]
    beaten = [r for r in reached if r is not None and r.globe().mean < rule.error]
    limit = optimal.get(reference_of(best.cell))
    told = "" if limit is None else f", where optimal control has {limit.globe:.2f} K"
    number = sum(result is not None for result in reached)
    return (
        f"The lowest mean error is {best.globe().mean:.2f} K, in {experiment_name(best.cell)}"
        f"{told}; {len(beaten) or 'none'} of the {number} experiments "
        f"{'beats' if len(beaten) < 2 else 'beat'} the {rule.error:.2f} K of a thermostat."
    )


def what_is_rewarded() -> str:
    """What a low error says in these tasks, with the budget and the response of the thermostat."""
    fixed, rule = baseline_figures()["static"], baseline_figures()["proportional"]
    return (
        f"These tasks reward a thermostat: a proportional controller, which learns nothing, has "
        f"{rule.error:.2f} K, but its outgoing longwave radiation is {rule.longwave:.0f} W m⁻² off "
        f"(static model: {fixed.longwave:.0f}), {rule.above:.0f} columns of 96 emit more than a "
        f"black body, and a doubling of CO₂ warms it by {rule.warming:.2f} K (static model: "
        f"{fixed.warming:.2f} K)."
    )


def is_it_reproduced(results: Results, claims: list[Claim]) -> str:
    """How many published means and verdicts ours agree with."""
    found = [reproduction(results, cell) for cell in experiments()]
    there = [result.cell for result in found if result is not None]
    if not there:
        return "Not run yet."
    means = agreement(results, there)
    both = [c for c in claims if c.published is not None and c.ours.verdict != Verdict.OPEN]
    same = sum(c.published is not None and c.published.verdict == c.ours.verdict for c in both)
    number = {p: sum(cell.preset == p for cell in there) for p in REPRODUCTIONS}
    of = [f"{number[preset]} {preset}" for preset in REPRODUCTIONS if number[preset]]
    return (
        f"{means.within} of {means.means} published means lie within three standard errors of ours "
        f"(cells by preset: {', '.join(of)}); Welch’s test at 5 % rejects {means.rejected}, where "
        f"{means.by_chance:.1f} are expected by chance. Of the {len(both)} claims that can be put "
        f"to both, {same} get the same verdict from our figures as from the paper’s own."
    )
