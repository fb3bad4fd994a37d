"""When an agent explores and learns, how much, and how that changes over a run.

The one place where exploration noise is scaled and where the length of learning steps is set.
"""

from dataclasses import dataclass
from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key

from fedrain.agents.agent import Agent
from fedrain.agents.networks import Network, Number, soft_update
from fedrain.envs.spec import AgentSpec
from fedrain.errors import InputError

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """Options of exploration and learning over a run; off by default, except for the warm-up.

    Args:
        warmup_steps: Uniform random actions before learning starts.
        updates: Gradient updates per environment step.
        memory: How many of the latest steps are learnt from; 0: all of the run.
        final_noise: Share of the exploration that is left at the end of the run.
        final_rate: Share of the steps of actor and critics that is left at the end.
        common_noise: Agents explore what they set together with one noise.
        common_hold: Steps that such an exploration lasts.
        hold: Steps that an exploration lasts.
        noise_reach: Degrees over which the exploration of neighbours is alike; 0: none.
        common_constant: What they set together depends on nothing that an agent sees.
        common_rate: Share of the learning rate for it.
        place_only: Actors see their place alone; critics see all that is observed.
        proximal: Share of the way back to the last average, at every update.
        stale_averages: Averages take, of all agents but one, the actor of a round before.
        one_seed: All agents have the random numbers of one.
    """

    warmup_steps: int = 1000  # uniform random actions before learning starts
    # Where a step of the climate costs more than an update, more can be learnt from it.
    updates: int = 1  # gradient updates per environment step
    # What was tried beside agents who have changed since misleads.
    memory: int = 0  # latest steps that are learnt from; 0: all of the run
    # Exploration is needed at first; at the end it only blurs what is learnt from.
    final_noise: float = 1.0  # share of the exploration that is left at the end of the run
    # Ever shorter steps let the weights settle, so that the last policy is no chance find.
    final_rate: float = 1.0  # share of the steps of actor and critics left at the end of the run
    # Alone, an agent moves what all set together by 1/n of its noise, which nobody can learn from.
    common_noise: bool = False  # agents explore what they set together (D, a0, a2) together
    # The climate answers D over tens of steps: noise that is new at each of them averages out.
    common_hold: int = 1  # steps that an exploration of what they set together lasts
    # A step of the climate shows little of what a parameter does to it: a forecast shows more.
    hold: int = 1  # steps that an exploration lasts
    # Transport depends on how D differs between neighbours: where each explores for itself, that is
    # noise in which nothing else can be seen.
    noise_reach: float = 0.0  # degrees over which the exploration of neighbours is alike; 0: none
    # Every agent's proposal gets equal weight, even where sensitivity is low: one number for all.
    common_constant: bool = False  # what they set together depends on nothing that an agent sees
    # Its effect is weak: learnt as fast as the rest, it is decided while the critics are young.
    common_rate: float = 1.0  # share of the learning rate for it, where constant; it does not fall
    # Where the target never changes, an actor that sees the state learns to hold it: a thermostat.
    place_only: bool = False  # actors see their place alone; critics see all that is observed
    # Between averages, agents of different climates diverge; a pull holds them together (FedProx).
    proximal: float = 0.0  # share of the way back to the last average, at every update
    # In the published runs the server's first request took one agent's message out of turn.
    stale_averages: bool = False  # of all agents but one, averages take the actor of a round before
    # In the published runs the processes of all agents had the seed of the run.
    one_seed: bool = False  # agents have the same first critics, random actions, noise and batches

    def check(self, spec: AgentSpec) -> None:
        """Refuse what cannot apply to agents like these."""
        on = {
            "common_noise": self.common_noise,
            "common_hold": self.common_hold != 1,
            "common_constant": self.common_constant,
            "common_rate": self.common_rate != 1,
        }
        for name, is_on in on.items():
            if is_on and not spec.common:
                raise InputError(f"{name} cannot apply: the agents set no parameter together")
        for name, needed in (("common_hold", "common_noise"), ("common_rate", "common_constant")):
            if on[name] and not on[needed]:
                raise InputError(f"{name} cannot apply without {needed}: set that too")
        for name in ("noise_reach", "place_only"):
            if getattr(self, name) and spec.places is None:
                raise InputError(f"{name} cannot apply: the place of the agents is not known")

    def streams(self, regions: tuple[int, ...]) -> tuple[int, ...]:
        """In place of the regions, what their agents' random numbers are derived from."""
        return (0,) * len(regions) if self.one_seed else regions

    def noise(
        self, normal: Float[Array, "agent action"], passed: Float[Array, ""]
    ) -> Float[Array, "agent action"]:
        """Exploration, for standard normal numbers when this share of the run has passed."""
        if self.final_noise == 1:
            return normal
        return normal * (1 - (1 - self.final_noise) * passed)

    def start(self, agents: Agent, spec: AgentSpec, key: Key[Array, ""] | None = None) -> Agent:
        """New agents as the schedule wants them; ``key`` draws whose actor is never stale."""
        if self.common_constant:
            agents = blind(agents, spec)
        if self.place_only:
            agents = placed(agents, spec)
        if self.stale_averages:
            number = len(jax.tree.leaves(agents.actor)[0])
            if key is not None:
                first = jax.random.randint(key, (), 0, number)
                agents = agents._replace(prompt=jnp.arange(number) == first)
            agents = agents._replace(sent=jax.tree.map(jnp.copy, agents.actor))
        return agents._replace(anchor=agents.actor) if self.proximal else agents

    def limit(
        self, before: Agent, after: Agent, spec: AgentSpec, passed: Float[Array, ""]
    ) -> Agent:
        """What an update may change, when this share of the run has passed."""
        full = after.actor
        if self.final_rate != 1:
            after = shorten(before, after, 1 - (1 - self.final_rate) * passed)
        if self.common_constant:
            after = blind(after, spec)
            if self.common_rate != 1:
                actor = slow(before.actor, full, after.actor, self.common_rate, spec)
                after = after._replace(actor=actor)
        if self.place_only:
            after = placed(after, spec)
        if self.proximal:
            assert after.anchor is not None
            after = after._replace(actor=soft_update(after.actor, after.anchor, self.proximal))
        return after


def shorten(before: Agent, after: Agent, pace: Float[Array, ""]) -> Agent:
    """Steps of actor and critics cut to a share of their length, as a smaller rate would.

    A step of Adam is proportional to its rate, so no algorithm need know of the schedule. Targets
    have by then moved towards the whole step, and an entropy coefficient takes all of its own.
    """

    def cut(old: Network, new: Network) -> Network:
        return jax.tree.map(lambda o, n: o + pace * (n - o), old, new)

    return after._replace(
        actor=cut(before.actor, after.actor), critic=cut(before.critic, after.critic)
    )


def are_common(spec: AgentSpec, outputs: int) -> Bool[np.ndarray, " output"]:
    """Which outputs of an actor set what all set together."""
    return np.isin(np.arange(outputs), spec.common or ())


def blind(agents: Agent, spec: AgentSpec) -> Agent:
    """Actors whose outputs for what all set together are their last biases, and nothing else."""

    def cut(network: Network) -> Network:
        *hidden, last = network
        weight = jnp.where(are_common(spec, last.weight.shape[-1]), 0, last.weight)
        return (*hidden, last._replace(weight=weight))

    target = None if agents.target_actor is None else cut(agents.target_actor)
    return agents._replace(actor=cut(agents.actor), target_actor=target)


def placed(agents: Agent, spec: AgentSpec) -> Agent:
    """Actors that see nothing but their place, which stands at the end of an observation."""
    if not spec.place_size:
        raise InputError(
            "place_only cannot apply: agents do not observe their place; set place too"
        )

    def cut(network: Network) -> Network:
        first, *rest = network
        size = first.weight.shape[-2]
        seen = np.arange(size) >= size - spec.place_size
        return (first._replace(weight=jnp.where(seen[:, None], first.weight, 0)), *rest)

    target = None if agents.target_actor is None else cut(agents.target_actor)
    return agents._replace(actor=cut(agents.actor), target_actor=target)


def slow(before: Network, full: Network, after: Network, rate: Number, spec: AgentSpec) -> Network:
    """The actor ``after``, with a share of the full step in the biases of what all set together."""
    old, new = before[-1].bias, full[-1].bias
    *hidden, last = after
    bias = jnp.where(are_common(spec, old.shape[-1]), old + rate * (new - old), last.bias)
    return (*hidden, last._replace(bias=bias))
