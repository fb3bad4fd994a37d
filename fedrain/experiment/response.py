"""How the climate of a run answers a forcing, with its policy and without."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, UInt32

from fedrain.agents import Algorithm
from fedrain.agents.networks import Network
from fedrain.agents.step import EVALUATION, agent_keys
from fedrain.baselines import constant
from fedrain.baselines.optimise import has_gradient
from fedrain.baselines.proportional import can_be_proportional, proportional_control
from fedrain.baselines.response import (
    AnyResponse,
    Control,
    SeaResponse,
    check_response,
    hold_actions,
    respond,
    usual_forcings,
)
from fedrain.envs import Environment, EnvParams, State
from fedrain.experiment.evaluation import policy_actions
from fedrain.experiment.run import Run
from fedrain.tables import GAP, Table


@dataclass(frozen=True)
class LearntControl:
    """The policies of all agents of one seed, without exploration."""

    algorithm: Algorithm

    def __call__(
        self,
        environment: Environment,
        held: tuple[Network, UInt32[Array, ""]],
        state: State,
        observation: Float[Array, "agent obs"],
        step: Int[Array, ""],
        params: EnvParams,
    ) -> Float[Array, "agent action"]:
        """What they do."""
        del state, params
        actor, seed = held
        keys = agent_keys(seed, EVALUATION, self.algorithm.schedule.streams(environment.regions))
        return policy_actions(environment, self.algorithm, actor, observation, keys, step)


def policy_responses(
    environment: Environment,
    algorithm: Algorithm,
    actors: Network,
    seeds: tuple[int, ...],
    forcings: tuple[float, ...] | None = None,
    steps: int | None = None,
) -> list[dict[str, dict[float, Any]]]:
    """Of every seed, as :func:`fedrain.baselines.response.respond` gives them."""
    control = LearntControl(algorithm)
    every = []
    for i, seed in enumerate(seeds):
        actor = jax.tree.map(lambda leaf, i=i: jnp.asarray(leaf)[i], actors)
        held = (actor, jnp.asarray(seed, jnp.uint32))
        every.append(respond(environment, control, held, forcings, seed, steps))
    return every


def responses(
    run: Run,
    policy: str = "local",
    forcings: tuple[float, ...] | None = None,
    steps: int | None = None,
    say: Callable[[str], None] = print,
) -> dict[str, dict[float, Any]]:
    """The responses of the policy, of what it is held against, and of the truth if there is one.

    Args:
        run: A finished run.
        policy: ``local`` or ``global``; the mean over the seeds.
        forcings: In W m⁻² of outgoing longwave radiation, or in K of a sea that is given.
        steps: Until a climate is in equilibrium.
        say: Told in one line what is left out.
    """
    environment = run.configuration.make_environment()
    check_response(environment)
    if forcings is None:
        forcings = usual_forcings(environment)
    seeds, actors = run.whole_actors(policy)
    algorithm = run.configuration.make_algorithm()
    every = policy_responses(environment, algorithm, actors, seeds, forcings, steps)

    def mean(name: str) -> dict[float, Any]:
        answers = [one[name] for one in every]
        return {f: type(answers[0][f]).mean([one[f] for one in answers]) for f in forcings}

    found = {"policy": mean("model")}
    fixed: dict[str, tuple[Control, Any]] = {
        "static": (hold_actions, jnp.asarray(environment.static_actions, jnp.float32))
    }
    if has_gradient(environment):
        best = constant(environment).actions[0]
        fixed["constant"] = (hold_actions, jnp.asarray(best, jnp.float32))
    else:
        say(f"left out: constant ({type(environment.model).__name__} has no gradient)")
    if (known := environment.truths_actions) is not None:
        fixed["truth"] = (hold_actions, jnp.asarray(known, jnp.float32))
    if can_be_proportional(environment):
        fixed["proportional"] = proportional_control(environment)
    for name, (control, held) in fixed.items():
        found[name] = respond(environment, control, held, forcings, 0, steps)["model"]
    if "truth" in every[0]:
        found["truth"] = mean("truth")
    return found


def response_table(found: dict[str, dict[float, AnyResponse]]) -> str:
    """For people."""
    if isinstance(next(iter(found["static"].values())), SeaResponse):
        return _sea_table(found)
    rows = []
    for name, by_forcing in found.items():
        for forcing, one in by_forcing.items():
            rows.append(
                [
                    name,
                    f"{forcing:+g}",
                    f"{one.warming:.2f}",
                    f"{one.feedback:.2f}" if abs(one.feedback) < 1000 else GAP,
                    f"{one.polar_amplification:.2f}",
                ]
            )
    head = ["", "forcing (W m⁻²)", "warming (K)", "feedback (W m⁻² K⁻¹)", "polar amplification"]
    return Table("", head, rows).text()


def _sea_table(found: dict[str, dict[float, Any]]) -> str:
    """Of a sea whose temperature is given: what leaves the atmosphere for each K."""
    rows = [
        [name, f"{forcing:+g}", f"{one.longwave / forcing:.2f}", f"{one.shortwave / forcing:.2f}",
         f"{one.feedback:.2f}"]
        for name, by_forcing in found.items()
        for forcing, one in by_forcing.items()
    ]  # fmt: skip
    head = ["", "sea (K)", "longwave out (W m⁻² K⁻¹)", "shortwave in (W m⁻² K⁻¹)",
            "feedback (W m⁻² K⁻¹)"]  # fmt: skip
    words = "the temperature of the sea is given: there is no warming and no polar amplification"
    return f"{Table('', head, rows).text()}\n{words}"
