"""ebm-v1 and ebm-v2 as Gymnasium environments."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box
from gymnasium.utils import RecordConstructorArgs
from jaxtyping import Float, UInt8

from fedrain.envs.adapter import Adapter
from fedrain.envs.render import RENDER_MODES
from fedrain.envs.tasks import make
from fedrain.errors import InputError

Observation = Float[np.ndarray, " obs"]


class _SingleAgent(gymnasium.Env[np.ndarray, np.ndarray]):
    """One agent of the functional environment behind Gymnasium's interface.

    The raw environment takes actions scaled to [−1, 1], as Gymnasium's checker asks for and many
    learners like; :class:`PhysicalActions` is around it when ``gymnasium.make`` makes it.
    """

    metadata: dict[str, Any] = {"render_modes": list(RENDER_MODES), "render_fps": 20}

    def __init__(self, adapter: Adapter) -> None:
        self.adapter = adapter
        self.render_mode = adapter.render_mode
        self.observation_space = adapter.observation_space()
        self.physical_action_space = adapter.action_space()
        self.action_space = Box(-1.0, 1.0, self.physical_action_space.shape, np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode; ``options`` may change its start, target, forcing, ramp or noise."""
        super().reset(seed=seed)
        observation = self.adapter.reset(seed, options)
        self.adapter.show()
        return observation[0], {"step": 0}

    def step(self, action: np.ndarray) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Set the parameters and advance the climate by one time step."""
        low, high = self.adapter.environment.action_bounds
        scaled = self.adapter.checked(action)
        if np.abs(scaled).max() > 1:
            raise InputError(
                "actions of the raw environment are within [-1, 1]; "
                "those of gymnasium.make are in physical units"
            )
        physical = low + (scaled + 1) / 2 * (high - low)
        observation, reward, truncated = self.adapter.step(physical[None])
        self.adapter.show()
        info = {"step": self.adapter.time}
        return observation[0], float(reward[0]), False, truncated, info

    def render(self) -> UInt8[np.ndarray, "height width 3"] | None:
        """Profile of model, static model and target, and the errors."""
        return self.adapter.render()

    def close(self) -> None:
        """Close the window, if there is one."""
        self.adapter.close()


class PhysicalActions(
    gymnasium.ActionWrapper[np.ndarray, np.ndarray, np.ndarray], RecordConstructorArgs
):
    """Take actions in the units of the parameter table, and clip them to its bounds."""

    def __init__(self, env: gymnasium.Env[np.ndarray, np.ndarray]) -> None:
        RecordConstructorArgs.__init__(self)
        gymnasium.ActionWrapper.__init__(self, env)
        raw = env.unwrapped
        assert isinstance(raw, _SingleAgent)
        self.adapter = raw.adapter
        self.action_space = raw.physical_action_space

    def action(self, action: np.ndarray) -> Float[np.ndarray, " action"]:
        """The same action scaled to [−1, 1]."""
        low, high = self.adapter.environment.action_bounds
        scaled = (self.adapter.checked(action) - low) / (high - low) * 2 - 1
        return np.clip(scaled, -1, 1)


class EnergyBalanceV1(_SingleAgent):
    """One agent sets the parameters of a whole climate: ``fedrain/EnergyBalance-v1``.

    ## Description
    The Budyko–Sellers energy balance model of the zonal mean surface temperature on 96 latitudes,
    90 steps a year. The agent sets the outgoing longwave radiation A + B T of each latitude, the
    heat diffusivity D and the albedo a0 + a2 P2(sin φ) at every step, and is to bring the
    temperature to the observed climatology (NCEP/NCAR Reanalysis 1, 1981–2010) and keep it there.
    This is ebm-v1 of the FedRAIN-Lite paper.

    ## Action space
    ``Box(195,)``, float32; values outside the bounds are clipped, NaN is refused. These are the
    actions of what ``gymnasium.make`` gives; the raw environment in it,
    ``env.unwrapped``, takes the same parameters scaled to [−1, 1].

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
    | ``episode_length`` | 200 | steps |
    | ``target`` | NCEP | NetCDF file, or temperatures in °C on the latitudes |
    | ``backend`` | ``"jax"`` | ``"climlab"`` runs the same model on climlab, in float64 |
    | ``model`` | | a climate model of your own |
    | ``render_mode`` | None | ``"rgb_array"`` or ``"human"`` |

    ## Version history
    - v1: as in the paper.
    """

    def __init__(self, render_mode: str | None = None, **options: Any) -> None:
        super().__init__(Adapter(make("ebm-v1", **options), render_mode=render_mode))


class EnergyBalanceV2(_SingleAgent):
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

    ## Version history
    - v2: as in the paper.
    """

    def __init__(
        self, agents: int = 6, region: int = 0, render_mode: str | None = None, **options: Any
    ) -> None:
        environment = make("ebm-v2", agents=agents, region=region, **options)
        super().__init__(Adapter(environment, render_mode=render_mode))
