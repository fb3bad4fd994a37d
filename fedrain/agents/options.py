"""What may be changed about learning, whatever the algorithm: options that are off by default.

Off, they are as if they did not exist: the published runs know none of them. Skill is always
measured on the environment as it is; the options change what the learner sees, and how it learns.
"""

from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of an experiment, each with its reason."""

    # Temperatures of tens of °C saturate a new network's tanh at once; inputs of order one do not.
    observation_scale: float = 1.0  # °C that the networks see as 1
    # The range of A is 28 times that of D: seen as they are, critics are blind to all but A.
    unit_actions: bool = False  # networks see and set actions in [−1, 1]
    # Neighbours want nearly the same, and every number that is set must be found out about.
    knots: int = 0  # most values of A, and of B, that an agent sets, linear between; 0: no limit
    # The square is ruled by the first steps from 50 °C, and flat where the error is small.
    root_reward: bool = False  # learn from −√(mean square error), not from its square
    # The root still spans 50 K to 0.1 K: next to the first steps critics do not see the last.
    log_reward: bool = False  # learn from −log(1 + √(mean square error) / 1 K)
    # Values of order one suit networks that start near zero.
    reward_scale: float = 1.0  # times the learnt reward
    # Most of a value is known from the state alone; what an action changes shows in what is left.
    shaping: float = 0.0  # share of the learnt reward that is its change, over 1 − discount
    # Agents that share a network can only differ by what they see.
    latitude: int = 0  # numbers that tell an agent where it is, if known: x = φ/90°, sin πx, …
    # Small observations need no deep network; large ones may.
    depth: int = 2  # hidden layers
    # Keeps the layers' inputs of order one however the weights grow.
    layer_norm: bool = False
    # An actor that has run far into the tanh, on the word of a new critic, finds no way back.
    restraint: float = 0.0  # weight of the penalty on actor outputs that the tanh cuts off
    # Alone, an agent moves what all set together by 1/n of its noise, which nobody can learn from.
    common_noise: bool = False  # agents explore what they set together (D, a0, a2) together
    # The climate answers D over tens of steps: noise that is new at each of them averages out.
    common_hold: int = 1  # steps that an exploration of what they set together lasts
    # Who feels it little sets it as much as who feels it most; one number is learnt by all.
    common_constant: bool = False  # what they set together depends on nothing that an agent sees
    # It is felt weakly: learnt as fast as the rest, it is decided while the critics are young.
    common_rate: float = 1.0  # share of the learning rate for it, where constant; it does not fall
    # It is good or bad for all, and an agent that thinks of its own region sets it at their cost.
    team: float = 0.0  # share of the error of others in what the agents of one climate learn from
    # An agent warms and cools its neighbours most: to its critic, who is far away is mostly noise.
    reach: float = 0.0  # degrees over which others count e times less; 0: all alike, wherever
    # Exploration is needed at first; at the end it only blurs what is learnt from.
    final_noise: float = 1.0  # share of the exploration that is left at the end of the run
    # Ever shorter steps let the weights settle, so that the last policy is no chance find.
    final_rate: float = 1.0  # share of the steps of actor and critics left at the end of the run
    # Between averages, agents of different climates drift apart; a pull holds them (FedProx).
    proximal: float = 0.0  # share of the way back to the last average, at every update
    # Where a step of the climate costs more than an update, more can be learnt from it.
    updates: int = 1  # a step


def without_off(values: dict[str, Any]) -> dict[str, Any]:
    """Hyperparameters without the options that are off, and without DDPG's one critic."""
    off = {"critics": 1, **{field.name: field.default for field in fields(Options)}}
    return {name: v for name, v in values.items() if name not in off or v != off[name]}
