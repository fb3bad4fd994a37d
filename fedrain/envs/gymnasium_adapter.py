"""Tasks as Gymnasium environments: one controller of all the agents of a task."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from jaxtyping import Float, UInt8

from fedrain.envs.adapter import Adapter
from fedrain.envs.render import RENDER_MODES
from fedrain.envs.tasks import make
from fedrain.errors import InputError, unknown
from fedrain.registration import ACTIONS, EPISODE_LENGTHS

Observation = Float[np.ndarray, "*agent obs"]


class TaskEnv(gymnasium.Env[np.ndarray, np.ndarray]):
    """Any task behind Gymnasium's interface, with one controller of all its agents.

    Observations and actions are arrays ``[agent, number]``, or ``[number]`` if there is one agent.
    The reward is the mean over the agents; ``info["rewards"]`` has that of each, if there are
    several. The regions are equally large, so with the default shape of rewards this is the reward
    that one agent of the whole globe would get.

    The raw environment takes actions scaled to [−1, 1], as Gymnasium's checker asks for and many
    learners like. ``gymnasium.make`` puts :class:`PhysicalActions` around it, or
    :class:`UnitActions` for ids that end in ``-unit``.

    Args:
        task: A name of ``fedrain envs``, a reference, or a :class:`fedrain.envs.Task`.
        render_mode: ``"rgb_array"``, ``"human"`` or None.
        options: Those of :func:`fedrain.envs.make`.
    """

    metadata: dict[str, Any] = {"render_modes": list(RENDER_MODES), "render_fps": 20}

    def __init__(
        self, task: Any = "ebm-v3", render_mode: str | None = None, **options: Any
    ) -> None:
        self.adapter = Adapter(make(task, **options), render_mode=render_mode)
        self.render_mode = render_mode
        self.agents = self.adapter.together
        self.observation_space = self.adapter.observation_space(*self.agents)
        self.physical_action_space = self.adapter.action_space(*self.agents)
        self.action_space = self.adapter.unit_space(*self.agents)

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Observation, dict[str, Any]]:
        """Start an episode; ``options`` may change its start, target, forcing, ramp or noise."""
        observation = self.adapter.reset(seed, options)
        super().reset(seed=seed)
        self.adapter.show()
        return observation if self.agents else observation[0], {"step": 0}

    def step(self, action: np.ndarray) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Set the parameters and advance the climate by one time step."""
        scaled = self.adapter.checked(action, *self.agents)
        if np.abs(scaled).max() > 1:
            raise InputError(
                "actions of the raw environment are within [-1, 1]; "
                "those of gymnasium.make are in physical units"
            )
        physical = self.adapter.from_unit(np.atleast_2d(scaled))
        observation, reward, truncated = self.adapter.step(physical)
        self.adapter.show()
        info: dict[str, Any] = {"step": self.adapter.time}
        if not self.agents:
            return observation[0], float(reward[0]), False, truncated, info
        info["rewards"] = reward
        return observation, float(np.mean(reward, dtype=float)), False, truncated, info

    def render(self) -> UInt8[np.ndarray, "height width 3"] | None:
        """Profile of model, static model and target, and the errors."""
        return self.adapter.render()

    def close(self) -> None:
        """Close the window, if there is one."""
        self.adapter.close()


class _Actions(gymnasium.ActionWrapper[np.ndarray, np.ndarray, np.ndarray], RecordConstructorArgs):
    def __init__(self, env: gymnasium.Env[np.ndarray, np.ndarray]) -> None:
        RecordConstructorArgs.__init__(self)
        gymnasium.ActionWrapper.__init__(self, env)
        assert isinstance(env.unwrapped, TaskEnv)
        self.raw = env.unwrapped


class PhysicalActions(_Actions):
    """Take actions in the units of the parameter table, and clip them to its bounds.

    Args:
        env: A raw :class:`TaskEnv`.
    """

    def __init__(self, env: gymnasium.Env[np.ndarray, np.ndarray]) -> None:
        super().__init__(env)
        self.action_space = self.raw.physical_action_space

    def action(self, action: np.ndarray) -> Float[np.ndarray, "*agent action"]:
        """The same action scaled to [−1, 1]."""
        return self.raw.adapter.to_unit(self.raw.adapter.checked(action, *self.raw.agents))


class UnitActions(_Actions):
    """Take actions scaled to [−1, 1], and clip them to that: a learner's noise may go beyond.

    Args:
        env: A raw :class:`TaskEnv`.
    """

    def action(self, action: np.ndarray) -> Float[np.ndarray, "*agent action"]:
        """The action within its bounds."""
        return np.clip(self.raw.adapter.checked(action, *self.raw.agents), -1, 1)


class EnergyBalanceV1(TaskEnv):
    """One agent sets the parameters of a whole climate: ``fedrain/EnergyBalance-v1``.

    ## Description
    The Budyko–Sellers energy balance model of the zonal mean surface temperature on 96 latitudes,
    90 steps a year. The agent sets the outgoing longwave radiation A + B T of each latitude, the
    heat diffusivity D and the albedo a0 + a2 P2(sin φ) at every step, and is to bring the
    temperature to the observed climatology (NCEP/NCAR Reanalysis 1, 1981–2010) and keep it there.
    This is ebm-v1 of the FedRAIN-Lite paper.

    ## Action space
    ``Box(195,)``, float32; values outside the bounds are clipped, NaN is refused. These are the
    actions of ``fedrain/EnergyBalance-v1``. ``fedrain/EnergyBalance-v1-unit`` takes the same
    parameters scaled to [−1, 1], as most learners need them; so does the raw environment,
    ``env.unwrapped``, which refuses what is beyond.

    | index | parameter | unit of the action | low | high | static value |
    |---|---|---|---|---|---|
    | 0 | D, heat diffusivity | W m⁻² K⁻¹ | 0.55 | 0.65 | 0.6 |
    | 1–96 | A, outgoing longwave radiation at 0 °C, south to north | 100 W m⁻² | 1.4 | 4.2 | 2.1 |
    | 97–192 | B, longwave feedback, south to north | W m⁻² K⁻¹ | 1.95 | 2.05 | 2.0 |
    | 193 | a0, global mean albedo | 1 | 0.3 | 0.4 | 0.354 |
    | 194 | a2, equator-to-pole albedo contrast | 1 | 0.2 | 0.3 | 0.25 |

    ## Observation space
    ``Box(-90, 90, (96,))``, float32: the temperature of every latitude in °C, south to north.
    A temperature beyond the bounds, which only extreme actions reach, is shown as the bound.

    ## Reward
    − mean over the 96 latitudes of (T − target)², in K², not area weighted. The static values
    give a return of about −60 358 in an episode, uniform random actions about −151 000.

    ## Start and end
    50 °C everywhere. No state is terminal; an episode is truncated after 200 steps (2.2 years).

    ## Arguments
    | name | default | meaning |
    |---|---|---|
    | ``latitudes`` | 96 | number of latitudes |
    | ``bounds`` | the table above | other bounds in physical units, ``{"A": (180, 240)}`` |
    | ``static`` | the table above | other static values in physical units, ``{"B": 1.98}`` |
    | ``start`` | 50 | °C: a number, or a pair to draw from in each episode |
    | ``forcing`` | none | ``{"longwave": -3.7}`` in W m⁻²: numbers, or pairs likewise |
    | ``noise`` | none | error of the sensors, as a share of 30 K |
    | ``learn`` | all | symbols of the parameters that the agent sets |
    | ``episode_length`` | 200 | steps, at most 200 with ``gymnasium.make`` |
    | ``target`` | NCEP | NetCDF file, or temperatures in °C on the latitudes |
    | ``backend`` | ``"jax"`` | ``"climlab"`` runs the same model on climlab, in float64 |
    | ``model`` | | a climate model of your own |
    | ``render_mode`` | None | ``"rgb_array"`` or ``"human"`` |

    ## Version history
    - v1: as in the paper.
    """

    def __init__(self, render_mode: str | None = None, **options: Any) -> None:
        super().__init__("ebm-v1", render_mode, **options)


class EnergyBalanceV2(TaskEnv):
    """One agent of n, judged by its own region of its own climate: ``fedrain/EnergyBalance-v2``.

    ## Description
    As ``fedrain/EnergyBalance-v1``, but the globe is cut into n regions of equal numbers of
    latitudes, and this agent is rewarded for its own. Each agent of the ensemble has a climate to
    itself, of which it sees and sets everything; what joins them is the federation of their
    policies. The ensemble's result is one profile: each agent's region from its own climate.
    This is one agent of ebm-v2 of the FedRAIN-Lite paper.

    ## Action space
    ``Box(195,)``, as ``fedrain/EnergyBalance-v1``.

    ## Observation space
    ``Box(-90, 90, (96,))``, as ``fedrain/EnergyBalance-v1``.

    ## Reward
    − mean over the 96/n latitudes of the region of (T − target)², in K², not area weighted.

    ## Start and end
    As ``fedrain/EnergyBalance-v1``.

    ## Arguments
    Those of ``fedrain/EnergyBalance-v1``, and

    | name | default | meaning |
    |---|---|---|
    | ``agents`` | 6 | n, any divisor of the latitudes: 2 gives hemispheres, 6 gives 30° bands |
    | ``region`` | 0 | the region of this agent, 0 (the southernmost) to n − 1 |
    | ``render_mode`` | None | ``"rgb_array"`` or ``"human"`` |

    ## Version history
    - v2: as in the paper.
    """

    def __init__(
        self, agents: int = 6, region: int = 0, render_mode: str | None = None, **options: Any
    ) -> None:
        super().__init__("ebm-v2", render_mode, agents=agents, region=region, **options)


def registered(
    task: str, actions: str = "physical", render_mode: str | None = None, **options: Any
) -> gymnasium.Env[np.ndarray, np.ndarray]:
    """What ``gymnasium.make`` gives for the ids of the package.

    The wrapper of actions is put on here, not by Gymnasium: ids that name wrappers have no batch.
    """
    check_actions(actions)
    check_length(task, options.get("episode_length"), EPISODE_LENGTHS[task])
    env: TaskEnv
    if task == "ebm-v1":
        env = EnergyBalanceV1(render_mode, **options)
    elif task == "ebm-v2":
        env = EnergyBalanceV2(render_mode=render_mode, **options)
    else:
        env = TaskEnv(task, render_mode, **options)
    return PhysicalActions(env) if actions == "physical" else UnitActions(env)


registered.metadata = TaskEnv.metadata  # type: ignore[attr-defined]  # Gymnasium looks for it


def check_actions(actions: str) -> None:
    """Refuse what is no kind of actions."""
    if actions not in ACTIONS:
        raise unknown("kind of actions", actions, ACTIONS)


def check_length(task: str, length: Any, longest: int) -> None:
    """Refuse an episode that Gymnasium would cut before its end."""
    if isinstance(length, int) and length > longest:
        raise InputError(
            f"episodes with this id have at most {longest} steps, not {length}: "
            f"make longer ones with fedrain.envs.TaskEnv({task!r}, episode_length={length})"
        )
