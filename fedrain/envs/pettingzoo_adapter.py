"""ebm-v3, and any other task, as a PettingZoo ParallelEnv."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium.spaces import Box
from jaxtyping import Float, UInt8
from pettingzoo import ParallelEnv

from fedrain.envs.adapter import Adapter
from fedrain.envs.gymnasium_adapter import check_actions
from fedrain.envs.render import RENDER_MODES
from fedrain.envs.tasks import make
from fedrain.errors import InputError

Infos = dict[str, dict[str, Any]]


class EnergyBalanceV3(ParallelEnv[str, np.ndarray, np.ndarray]):
    """n agents share one climate, as the columns of a general circulation model do.

    ## Description
    The Budyko–Sellers energy balance model of the zonal mean surface temperature on 96 latitudes,
    90 steps a year. The globe is cut into n regions of equal numbers of latitudes. The agent of a
    region sees its own temperatures only, sets A and B of its own latitudes, and proposes D, a0
    and a2, of which the climate takes the mean of all proposals. Heat flows between the regions.
    This is ebm-v3 of the FedRAIN-Lite paper.

    ## Agents
    ``region_0`` (the southernmost) to ``region_{n-1}``; n is any divisor of the latitudes. All
    live until the end of the episode.

    ## Action space
    ``Box(3 + 2·96/n,)`` for each agent, float32; values outside the bounds are clipped.

    | parameter, in this order | unit of the action | low | high | static value |
    |---|---|---|---|---|
    | D, heat diffusivity | W m⁻² K⁻¹ | 0.55 | 0.65 | 0.6 |
    | A of the region's latitudes, south to north | 100 W m⁻² | 1.4 | 4.2 | 2.1 |
    | B of the region's latitudes, south to north | W m⁻² K⁻¹ | 1.95 | 2.05 | 2.0 |
    | a0, global mean albedo | 1 | 0.3 | 0.4 | 0.354 |
    | a2, equator-to-pole albedo contrast | 1 | 0.2 | 0.3 | 0.25 |

    ## Observation space
    ``Box(-90, 90, (96/n,))`` for each agent, float32: the temperatures of its region in °C.
    ``state()`` gives all 96, within ``state_space``.

    ## Reward
    − mean over the agent's own latitudes of (T − target)², in K², not area weighted.

    ## Start and end
    50 °C everywhere. No state is terminal; an episode is truncated after 200 steps (2.2 years).

    ## Arguments
    Those of ``fedrain/EnergyBalance-v1``, and

    | name | default | meaning |
    |---|---|---|
    | ``agents`` | 6 | n, any divisor of the latitudes |
    | ``task`` | ``"ebm-v3"`` | another task by name, with the agents that it has |
    | ``render_mode`` | None | ``"rgb_array"`` or ``"human"`` |
    | ``actions`` | ``"physical"`` | ``"unit"``: scaled to [−1, 1], and clipped to that |

    ## Version history
    - v3: as in the paper.
    """

    metadata: ClassVar[dict[str, Any]] = {
        "name": "energy_balance_v3",
        "render_modes": list(RENDER_MODES),
        "render_fps": 20,
        "is_parallelizable": True,
    }

    def __init__(
        self,
        agents: int | None = None,
        render_mode: str | None = None,
        task: Any = "ebm-v3",
        actions: str = "physical",
        **options: Any,
    ) -> None:
        check_actions(actions)
        environment = make(task, agents=agents, **options)
        self.adapter = Adapter(environment, render_mode=render_mode)
        self.unit_actions = actions == "unit"
        self.render_mode = render_mode
        self.possible_agents = [f"region_{i}" for i in environment.regions]
        self.agents: list[str] = []
        # A space for each agent, so that each has a random generator of its own.
        self.observation_spaces = {
            a: self.adapter.observation_space() for a in self.possible_agents
        }
        space = self.adapter.unit_space if self.unit_actions else self.adapter.action_space
        self.action_spaces = {a: space() for a in self.possible_agents}
        columns, judged = len(environment.model.columns), environment.judged_fields
        sizes = [int(np.prod(field.shape(columns))) for field in judged]
        low = np.repeat(np.array([field.low for field in judged], np.float32), sizes)
        high = np.repeat(np.array([field.high for field in judged], np.float32), sizes)
        #: Of :meth:`state`.
        self.state_space = Box(low, high, dtype=np.float32)

    def observation_space(self, agent: str) -> Box:
        """The space of one agent's observation."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Box:
        """The space of one agent's action."""
        return self.action_spaces[agent]

    def reset(self, seed: Any = None, options: Any = None) -> tuple[dict[str, np.ndarray], Infos]:
        """Start an episode; ``options`` may change its start, target, forcing, ramp or noise."""
        # PettingZoo's own test of environments gives this, and nothing else is passed over.
        known = None if options == {"options": 1} else options
        observation = self.adapter.reset(seed, known)
        self.agents = list(self.possible_agents)
        self.adapter.show()
        return dict(zip(self.agents, observation, strict=True)), self._infos()

    def step(
        self, actions: Any
    ) -> tuple[dict[str, np.ndarray], dict[str, float], dict[str, bool], dict[str, bool], Infos]:
        """Set every agent's parameters and advance the climate by one time step."""
        agents = self.agents
        if not agents:
            raise InputError("the episode has ended: reset the environment")
        if not isinstance(actions, Mapping):
            raise InputError("actions are given by agent, as {'region_0': …}")
        for name in sorted(set(agents) ^ set(actions), key=str):
            what = "has no action" if name in agents else "is not an agent of this episode"
            raise InputError(f"{name} {what}")
        together = np.stack([self.adapter.checked(actions[agent]) for agent in agents])
        physical = self.adapter.from_unit(together) if self.unit_actions else together
        observation, reward, truncated = self.adapter.step(physical)
        self.adapter.show()
        infos = self._infos()
        if truncated:
            self.agents = []
        return (
            dict(zip(agents, observation, strict=True)),
            dict(zip(agents, reward.tolist(), strict=True)),
            dict.fromkeys(agents, False),
            dict.fromkeys(agents, truncated),
            infos,
        )

    def _infos(self) -> Infos:
        step = self.adapter.time
        return {agent: {"step": step} for agent in self.agents}

    def state(self) -> Float[np.ndarray, " number"]:
        """Every judged field of the whole globe, field after field."""
        environment = self.adapter.environment
        fields = environment.fields(self.adapter.state)
        whole = np.concatenate(
            [np.ravel(np.asarray(fields[name], np.float32)) for name, _ in environment.judged]
        )
        return np.clip(whole, self.state_space.low, self.state_space.high)

    def render(self) -> UInt8[np.ndarray, "height width 3"] | None:
        """Profile of model, static model and target, and the errors."""
        return self.adapter.render()

    def close(self) -> None:
        """Close the window, if there is one."""
        self.adapter.close()


def parallel_env(agents: int | None = None, **options: Any) -> EnergyBalanceV3:
    """ebm-v3, or another ``task``, with that many agents: see :class:`EnergyBalanceV3`.

    Args:
        agents: How many; those of the task, if left out.
        options: ``task``, ``actions``, ``render_mode``, and those of :func:`fedrain.envs.make`.

    Returns:
        PettingZoo's parallel interface to the task.
    """
    return EnergyBalanceV3(agents=agents, **options)
