"""The same training with other people's tools, which the fused loop is measured by.

Each peer is a function that trains for a number of steps, one gradient step for each, with networks
and batch of the ``paper`` preset, after its random first steps.
"""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import gymnasium
import numpy as np
import torch
from torch import nn

from fedrain.agents import DDPG, TD3, TQC, ActorCritic
from fedrain.climate.models.climlab import import_climlab
from fedrain.envs import EnergyBalanceV1, make

RANDOM_STEPS = 300
torch.set_num_threads(1)  # more cost more core time than they save for matrices this small

Train = Callable[[int], object]


def environment(latitudes: int) -> gymnasium.Env[Any, Any]:
    """Our fast environment: an agent of ``ebm-v3`` sees and sets as much as one of 16 latitudes."""
    return EnergyBalanceV1(latitudes=latitudes)


def sbx(algorithm: ActorCritic, latitudes: int) -> Train:
    """Stable baselines on JAX."""
    import sbx as library

    return _baselines(library, algorithm, latitudes)


def stable_baselines(algorithm: ActorCritic, latitudes: int) -> Train:
    """Stable baselines on PyTorch."""
    import sb3_contrib
    import stable_baselines3

    library = sb3_contrib if isinstance(algorithm, TQC) else stable_baselines3
    return _baselines(library, algorithm, latitudes)


def _baselines(library: Any, algorithm: ActorCritic, latitudes: int) -> Train:
    options: dict[str, Any] = {
        "batch_size": algorithm.batch_size,
        "learning_starts": RANDOM_STEPS,
        "train_freq": 1,
        "gradient_steps": 1,
        "buffer_size": 20_000,
        "policy_kwargs": {"net_arch": [algorithm.width] * 2},
    }
    if isinstance(algorithm, TQC):
        options["policy_kwargs"] |= {
            "n_quantiles": algorithm.quantiles,
            "n_critics": algorithm.critics,
        }
        options["top_quantiles_to_drop_per_net"] = algorithm.drop
    elif not isinstance(algorithm, DDPG):  # the peers' DDPG has no delay
        options["policy_delay"] = algorithm.policy_frequency
    name = type(algorithm).__name__
    model = getattr(library, name)("MlpPolicy", environment(latitudes), seed=0, **options)
    model.learn(RANDOM_STEPS + 20)
    return lambda steps: model.learn(steps, reset_num_timesteps=False)


class ClimlabEnvironment:
    """The climate as the published runs stepped it: climlab, untouched; for one agent or more."""

    def __init__(self, agents: int) -> None:
        reference = make("ebm-v3", agents=agents)
        self.low, self.high = reference.action_bounds
        (target,) = reference.params.target.values()
        self.target = np.array(reference.division.take(target))
        self.reset()

    def reset(self) -> np.ndarray:
        """Start an episode."""
        self.model = import_climlab().EBM_annual(num_lat=96, D=0.6, a0=0.354, a2=0.25)
        self.model.Ts[:] = 50.0
        self.steps = 0
        return self.observe()

    def observe(self) -> np.ndarray:
        """Temperatures of each agent's region."""
        return np.array(self.model.Ts).reshape(self.target.shape)

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, bool]:
        """Set the parameters, those of the globe as the mean of all proposals, and step."""
        width = self.target.shape[1]
        d, a, b, a0, a2 = np.split(actions, np.cumsum([1, width, width, 1]), axis=1)
        model = self.model
        model.subprocess["diffusion"].D = float(d.mean())
        model.subprocess["LW"].A = a.reshape(-1, 1) * 100
        model.subprocess["LW"].B = b.reshape(-1, 1)
        model.subprocess["albedo"].a0 = float(a0.mean())
        model.subprocess["albedo"].a2 = float(a2.mean())
        model.step_forward()
        temperature = self.observe()
        self.steps += 1
        reward = -np.mean((temperature - self.target) ** 2, axis=1)
        return temperature, reward, self.steps == 200


def published(algorithm: ActorCritic, latitudes: int) -> Train:
    """One process, climlab, PyTorch: the way of working of the published runs."""
    env = ClimlabEnvironment(96 // latitudes)
    agents = [TorchAgent(algorithm, latitudes, env.low, env.high) for _ in env.target]
    _run(env, agents, RANDOM_STEPS, learning=False)
    return lambda steps: _run(env, agents, steps, learning=True)


def _run(env: ClimlabEnvironment, agents: "list[TorchAgent]", steps: int, learning: bool) -> None:
    """Act, remember, learn: so many steps of agents."""
    observation = env.reset()
    for _ in range(steps // len(agents)):
        pairs = list(zip(agents, observation, strict=True))
        actions = np.stack([agent.explore(seen, learning) for agent, seen in pairs])
        after, reward, ended = env.step(actions)
        for i, (agent, seen) in enumerate(pairs):
            agent.remember(seen, actions[i], reward[i], after[i])
            if learning:
                agent.update()
        observation = env.reset() if ended else after


class TorchAgent:
    """DDPG, TD3 or TQC in PyTorch, written plainly."""

    def __init__(
        self, algorithm: ActorCritic, size: int, low: np.ndarray, high: np.ndarray
    ) -> None:
        torch.manual_seed(0)
        self.algorithm = algorithm
        self.tqc = isinstance(algorithm, TQC)
        self.low, self.high = low, high
        self.centre = torch.tensor((high + low) / 2, dtype=torch.float32)
        self.half = torch.tensor((high - low) / 2, dtype=torch.float32)
        actions, width = len(low), algorithm.width
        self.sizes = [size, actions, 1, size]
        outputs = 2 * actions if self.tqc else actions
        self.actor = _network(size, width, outputs)
        number = algorithm.critics if isinstance(algorithm, TQC | TD3) else 1
        last = algorithm.quantiles if isinstance(algorithm, TQC) else 1
        self.critics = nn.ModuleList([_network(size + actions, width, last) for _ in range(number)])
        self.target_actor, self.target_critics = deepcopy(self.actor), deepcopy(self.critics)
        self.log_alpha = torch.zeros((), requires_grad=True)
        self.actor_optimiser = torch.optim.Adam(self.actor.parameters(), 1e-3)
        self.critic_optimiser = torch.optim.Adam(self.critics.parameters(), 1e-3)
        self.alpha_optimiser = torch.optim.Adam([self.log_alpha], 1e-3)
        self.memory = np.zeros((20_000, sum(self.sizes)), np.float32)
        self.filled = 0
        self.rng = np.random.default_rng(0)

    def explore(self, observation: np.ndarray, learning: bool) -> np.ndarray:
        """The policy with noise, or before there is one an action at random."""
        if not learning:
            return self.rng.uniform(self.low, self.high)
        with torch.no_grad():
            seen = torch.tensor(observation, dtype=torch.float32)
            action = self.policy(self.actor, seen)[0].numpy()
        noise = 0.2 * self.half.numpy() * self.rng.standard_normal(len(action))
        return np.clip(action + noise, self.low, self.high)

    def remember(
        self, observation: np.ndarray, action: np.ndarray, reward: float, after: np.ndarray
    ) -> None:
        """One row of the memory."""
        row = np.concatenate([observation, action, [reward], after])
        self.memory[self.filled % len(self.memory)] = row
        self.filled += 1

    def policy(self, actor: nn.Module, observation: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Action, and for TQC its log-probability."""
        output = actor(observation)
        if not self.tqc:
            return (self.centre + self.half * torch.tanh(output),)
        mean, raw = output.chunk(2, -1)
        normal = torch.distributions.Normal(mean, (-5 + 3.5 * (torch.tanh(raw) + 1)).exp())
        draw = normal.rsample()
        squashed = torch.tanh(draw)
        volume = torch.log(self.half * (1 - squashed**2) + 1e-6)
        return self.centre + self.half * squashed, (normal.log_prob(draw) - volume).sum(-1)

    def update(self) -> None:
        """One gradient step."""
        algorithm = self.algorithm
        rows = self.rng.integers(0, min(self.filled, len(self.memory)), algorithm.batch_size)
        batch = torch.from_numpy(self.memory[rows])
        before, action, reward, after = batch.split(self.sizes, -1)
        with torch.no_grad():
            target = reward + 0.99 * self.target(after)
        pair = torch.cat([before, action], -1)
        values = torch.stack([critic(pair) for critic in self.critics])
        loss = _quantile_huber(values, target) if self.tqc else ((values - target) ** 2).mean()
        _descend(self.critic_optimiser, loss)
        if self.filled % algorithm.policy_frequency == 0:
            for _ in range(algorithm.policy_frequency if self.tqc else 1):
                self.update_policy(before)
            for slow, fast in (
                (self.target_actor, self.actor),
                (self.target_critics, self.critics),
            ):
                with torch.no_grad():
                    for t, o in zip(slow.parameters(), fast.parameters(), strict=True):
                        t.lerp_(o, algorithm.tau)

    def target(self, after: torch.Tensor) -> torch.Tensor:
        """What the critics are to learn, without reward and discount."""
        if self.tqc:
            action, log_probability = self.policy(self.actor, after)
            pair = torch.cat([after, action], -1)
            values = torch.cat([critic(pair) for critic in self.target_critics], -1)
            return values.sort(-1)[0] - self.log_alpha.exp() * log_probability[:, None]
        (action,) = self.policy(self.target_actor, after)
        pair = torch.cat([after, action], -1)
        return torch.stack([critic(pair) for critic in self.target_critics]).min(0)[0]

    def update_policy(self, before: torch.Tensor) -> None:
        """One gradient step of the actor."""
        action, *rest = self.policy(self.actor, before)
        pair = torch.cat([before, action], -1)
        if not self.tqc:
            _descend(self.actor_optimiser, -self.critics[0](pair).mean())
            return
        values = torch.stack([critic(pair) for critic in self.critics]).mean((0, 2))
        alpha = self.log_alpha.exp()
        _descend(self.actor_optimiser, (alpha.detach() * rest[0] - values).mean())
        _descend(self.alpha_optimiser, -(alpha * (rest[0].detach() - len(self.half))).mean())


def _network(size: int, width: int, outputs: int) -> nn.Module:
    return nn.Sequential(
        nn.Linear(size, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
        nn.Linear(width, outputs),
    )  # fmt: skip


def _descend(optimiser: torch.optim.Optimizer, loss: torch.Tensor) -> None:
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()


def _quantile_huber(values: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    number = values.shape[-1]
    level = (torch.arange(number) + 0.5) / number
    error = target[None, :, None, :] - values[..., None]
    size = error.abs()
    huber = torch.where(size > 1, size - 0.5, 0.5 * error**2)
    return ((level[:, None] - (error < 0).float()).abs() * huber).mean()


PEERS = {"sbx": sbx, "stable-baselines3": stable_baselines, "published way": published}
