"""Other people's learners, each a function of a task, a seed and a number of steps.

Each has the settings of its library, but for what its documentation says to set and what a budget
of some thousand steps asks for: the ``note`` of each says which. All act in [−1, 1], as the ids do
that end in ``-unit``.
"""

import importlib.util
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import gymnasium
import numpy as np
from cells import trained

import fedrain
from fedrain.envs import make_functional, parallel_env, sb3_env
from fedrain.experiment import configure

#: Copies of the task that step together; what is counted is the steps of all of them.
COPIES = 8
#: Steps of each copy between two updates of PPO; the libraries' own are more than the budget.
ROLLOUT = 120
#: The id of each task, without its ``-unit``.
IDS = {"ebm-v1": "fedrain/EnergyBalance-v1"}

#: Ours, task by task.
PRESETS = {"ebm-v1": "fedrain", "ebm-twin": "forecast", "ebm-energy": "constants"}

#: Observations of all agents, ``[agent, number]``, and the step of the episode, to actions in
#: [−1, 1]; ours gives them in action units.
Policy = Callable[[np.ndarray, int], np.ndarray]


@dataclass(frozen=True)
class Learner:
    """Somebody's implementation of an algorithm.

    Args:
        label: For people.
        train: Of task, seed and steps, a deterministic policy.
        needs: Modules that have to be installed.
        packages: Distributions whose versions are stored.
        note: What differs from the library's own settings.
        several: Whether it learns one policy for several agents.
        physical: Whether its policy gives actions in action units.
    """

    label: str
    train: Callable[[str, int, int], Policy]
    needs: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    note: str = ""
    several: bool = False
    physical: bool = False

    @property
    def missing(self) -> list[str]:
        """What it needs and is not installed."""
        return [name for name in self.needs if importlib.util.find_spec(name) is None]


def several_agents(task: str) -> tuple[str, dict[str, Any]]:
    """The same climate and reward with several agents, each in its own region."""
    return ("ebm-v3", {"agents": 6}) if task == "ebm-v1" else (task, {})


def one_agent(task: str) -> dict[str, Any]:
    """What makes of a task one agent that sees and sets the globe."""
    return {} if task == "ebm-v1" else {"agents": 1}


def unit_id(task: str) -> str:
    """The id with actions in [−1, 1]."""
    return f"{IDS.get(task, f'fedrain/{task}')}-unit"


def _threads() -> None:
    """One, because more cost more than they save for matrices this small."""
    import torch

    torch.set_num_threads(1)


def _predicted(model: Any) -> Policy:
    return lambda seen, _: model.predict(seen, deterministic=True)[0]


def sb3_ppo(task: str, seed: int, steps: int) -> Policy:
    """PPO of stable-baselines3."""
    from stable_baselines3 import PPO

    _threads()
    env = sb3_env(task, COPIES, **one_agent(task))
    n_steps = min(ROLLOUT, steps // COPIES)
    return _predicted(PPO("MlpPolicy", env, n_steps=n_steps, seed=seed, device="cpu").learn(steps))


def sb3_sac(task: str, seed: int, steps: int) -> Policy:
    """SAC of stable-baselines3."""
    from stable_baselines3 import SAC

    _threads()
    env = sb3_env(task, COPIES, **one_agent(task))
    return _predicted(SAC("MlpPolicy", env, seed=seed, device="cpu").learn(steps))


def sb3_td3(task: str, seed: int, steps: int) -> Policy:
    """TD3 of stable-baselines3, which explores only if it is given noise."""
    from stable_baselines3 import TD3
    from stable_baselines3.common.noise import NormalActionNoise

    _threads()
    env = sb3_env(task, COPIES, **one_agent(task))
    number = env.action_space.shape[0]
    noise = NormalActionNoise(np.zeros(number), np.full(number, 0.1))
    model = TD3("MlpPolicy", env, action_noise=noise, seed=seed, device="cpu")
    return _predicted(model.learn(steps))


def sbx_sac(task: str, seed: int, steps: int) -> Policy:
    """SAC of sbx, which is stable-baselines3 on JAX."""
    from sbx import SAC

    env = sb3_env(task, COPIES, **one_agent(task))
    return _predicted(SAC("MlpPolicy", env, seed=seed).learn(steps))


def sbx_sac_every(task: str, seed: int, steps: int) -> Policy:
    """The same with a gradient step for every step of every copy."""
    from sbx import SAC

    env = sb3_env(task, COPIES, **one_agent(task))
    return _predicted(SAC("MlpPolicy", env, gradient_steps=-1, seed=seed).learn(steps))


def sbx_ppo(task: str, seed: int, steps: int) -> Policy:
    """PPO of sbx."""
    from sbx import PPO

    env = sb3_env(task, COPIES, **one_agent(task))
    n_steps = min(ROLLOUT, steps // COPIES)
    return _predicted(PPO("MlpPolicy", env, n_steps=n_steps, seed=seed).learn(steps))


def supersuit_ppo(task: str, seed: int, steps: int) -> Policy:
    """PPO of stable-baselines3, one policy for the agents of a PettingZoo environment."""
    import supersuit
    from stable_baselines3 import PPO
    from stable_baselines3.common.utils import set_random_seed

    _threads()
    name, options = several_agents(task)
    env = supersuit.pettingzoo_env_to_vec_env_v1(parallel_env(task=name, actions="unit", **options))
    env = supersuit.concat_vec_envs_v1(env, COPIES, base_class="stable_baselines3")
    # Not `PPO(seed=seed)`: it asks the environments for `seed`, which SuperSuit's do not have.
    set_random_seed(seed)
    env.venv.reset(seed=seed)
    n_steps = min(ROLLOUT, steps // COPIES)
    agents = env.num_envs // COPIES
    model = PPO("MlpPolicy", env, n_steps=n_steps, batch_size=64 * agents, device="cpu")
    return _predicted(model.learn(steps * agents))


def skrl_ppo(task: str, seed: int, steps: int) -> Policy:
    """PPO of skrl on ``gymnasium.make_vec``."""
    import torch
    from skrl.agents.torch.ppo import PPO
    from skrl.envs.wrappers.torch import wrap_env
    from skrl.memories.torch import RandomMemory
    from skrl.trainers.torch import SequentialTrainer
    from skrl.utils import set_seed
    from skrl.utils.model_instantiators.torch import deterministic_model, gaussian_model

    _threads()
    set_seed(seed)
    env = wrap_env(gymnasium.make_vec(unit_id(task), num_envs=COPIES), verbose=False)
    layers = [{"name": "net", "input": "OBSERVATIONS", "layers": [64, 64], "activations": "elu"}]
    spaces = {"observation_space": env.observation_space, "action_space": env.action_space}
    kind = {**spaces, "device": env.device, "network": layers}
    models = {
        "policy": gaussian_model(**kind, output="ACTIONS"),
        "value": deterministic_model(**kind, output="ONE"),
    }
    quiet = {"write_interval": 0, "checkpoint_interval": 0, "directory": tempfile.gettempdir()}
    rollouts = min(16, steps // COPIES)  # its own number
    memory = RandomMemory(memory_size=rollouts, num_envs=COPIES, device=env.device)
    agent = PPO(
        models=models,
        memory=memory,
        cfg={"rollouts": rollouts, "experiment": quiet},
        device=env.device,
        **spaces,
    )
    trainer = {
        "timesteps": steps // COPIES,
        "headless": True,
        "disable_progressbar": True,
        "close_environment_at_exit": False,  # it logs then, when there may be nowhere to
    }
    SequentialTrainer(cfg=trainer, env=env, agents=agent).train()
    agent.enable_training_mode(False)

    def act(seen: np.ndarray, _: int) -> np.ndarray:
        with torch.no_grad():
            inputs = {"observations": torch.as_tensor(seen)}
            return agent.policy.act(inputs, role="policy")[1]["mean_actions"].numpy()

    return act


@cache
def _rejax(task: str, steps: int) -> tuple[Any, Any]:
    import jax
    import rejax

    env, params = make_functional(task, unit=True, **one_agent(task))
    n_steps = min(ROLLOUT, steps // COPIES)
    algorithm = rejax.PPO.create(
        env=env,
        env_params=params,
        num_envs=COPIES,
        num_steps=n_steps,
        total_timesteps=steps,
        eval_freq=steps,
        skip_initial_evaluation=True,
    ).replace(eval_callback=lambda *_: ())  # evaluated as all the others
    return algorithm, jax.jit(algorithm.train)


def rejax_ppo(task: str, seed: int, steps: int) -> Policy:
    """PPO of rejax, for environments in gymnax's form."""
    import jax

    algorithm, train = _rejax(task, steps)
    state, _ = train(jax.random.key(seed))

    @jax.jit
    def act(seen: Any) -> Any:
        # Its own `act` draws; the mean of the normal distribution is what it draws around.
        return algorithm.actor.apply(state.actor_ts.params, seen, method="_action_dist").mode()

    return lambda seen, _: np.asarray(act(seen))


def _ours(task: str, seed: int, steps: int, **options: Any) -> Policy:
    import jax
    import jax.numpy as jnp

    from fedrain.agents.step import EVALUATION, agent_keys
    from fedrain.experiment.evaluation import policy_actions

    episodes = max(1, steps // fedrain.envs.make(task).episode_length)
    cell = configure(env=task, seeds=[seed], episodes=episodes, **options)
    trainer = trained(cell)
    environment, algorithm = trainer.environment, trainer.algorithm
    actor = jax.tree.map(lambda leaf: leaf[0], trainer.actors())
    keys = agent_keys(
        jnp.uint32(seed), EVALUATION, algorithm.schedule.streams(environment.regions)
    )  # fmt: skip

    @jax.jit
    def act(seen: Any, step: Any) -> Any:
        return policy_actions(environment, algorithm, actor, seen, keys, step)

    return lambda seen, step: np.asarray(act(seen.astype("f4"), np.int32(step)))


def ours_one(task: str, seed: int, steps: int) -> Policy:
    """DDPG of this package, one agent."""
    return _ours(task, seed, steps, **one_agent(task), sync_every=0, preset=PRESETS[task])


def ours_several(task: str, seed: int, steps: int) -> Policy:
    """DDPG of this package, several agents that share a policy or average theirs."""
    name, options = several_agents(task)
    return _ours(name, seed, steps, **options, preset=PRESETS[task], **_sharing(task))


def _sharing(task: str) -> dict[str, Any]:
    return {} if task == "ebm-v1" else {"sharing": "shared", "sync_every": 0}


_ROLLOUT = f"`n_steps={ROLLOUT}`"
_PRESET = ", ".join(f"`{preset}`" for preset in PRESETS.values())
_SB3 = {"needs": ("torch", "stable_baselines3"), "packages": ("stable_baselines3", "torch")}
_SBX = {"needs": ("sbx",), "packages": ("sbx-rl",)}
LEARNERS = {
    "sb3-ppo": Learner("stable-baselines3 PPO", sb3_ppo, note=_ROLLOUT, **_SB3),
    "sb3-sac": Learner("stable-baselines3 SAC", sb3_sac, **_SB3),
    "sb3-td3": Learner("stable-baselines3 TD3", sb3_td3, note="`action_noise` of 0.1", **_SB3),
    "sbx-ppo": Learner("sbx PPO", sbx_ppo, note=_ROLLOUT, **_SBX),
    "sbx-sac": Learner("sbx SAC", sbx_sac, **_SBX),
    "sbx-sac-every": Learner("sbx SAC", sbx_sac_every, note="`gradient_steps=-1`", **_SBX),
    "skrl-ppo": Learner(
        "skrl PPO",
        skrl_ppo,
        needs=("torch", "skrl"),
        packages=("skrl", "torch"),
        note="two layers of 64",
    ),
    "rejax-ppo": Learner(
        "rejax PPO (gymnax's form)",
        rejax_ppo,
        needs=("rejax",),
        packages=("rejax", "gymnax"),
        note=f"`num_steps={ROLLOUT}`",
    ),
    "supersuit-ppo": Learner(
        "SuperSuit, stable-baselines3 PPO",
        supersuit_ppo,
        needs=("torch", "supersuit", "stable_baselines3"),
        packages=("SuperSuit", "stable_baselines3", "torch"),
        note=f"{_ROLLOUT}, a batch of 64 for each agent",
        several=True,
    ),
    "fedrain-one": Learner(
        "FedRAIN DDPG, one agent", ours_one, note=_PRESET, physical=True
    ),
    "fedrain-several": Learner(
        "FedRAIN DDPG, several agents", ours_several, note=_PRESET, several=True, physical=True
    ),
}  # fmt: skip
