"""Experiments small enough to train in a test."""

from pathlib import Path

PRESET = """
[ddpg]
learning_rate = 1e-3
tau = 0.02
batch_size = 16
width = 16
exploration_noise = 0.2
policy_frequency = 2
warmup_steps = 20

[td3]
learning_rate = 1e-3
tau = 0.02
batch_size = 16
width = 16
exploration_noise = 0.2
policy_frequency = 3
warmup_steps = 20

[sac]
actor_learning_rate = 1e-3
critic_learning_rate = 1e-3
alpha_learning_rate = 1e-3
tau = 0.02
batch_size = 16
width = 16
policy_frequency = 2
target_frequency = 1
warmup_steps = 20

[tqc]
actor_learning_rate = 1e-3
critic_learning_rate = 1e-3
alpha_learning_rate = 1e-3
tau = 0.02
batch_size = 16
width = 16
policy_frequency = 3
target_frequency = 2
quantiles = 5
critics = 2
warmup_steps = 20
"""


#: Options of DDPG, all on.
OPTIONS = """
scaled_observations = true
unit_actions = true
reward = "root"
reward_scale = 0.1
shaping = 0.3
place = 3
knots = 1
common_noise = true
common_hold = 3
common_constant = true
common_rate = 0.5
team = 0.3
reach = 40.0
final_noise = 0.1
final_rate = 0.2
updates = 2
"""


def small_preset(folder: Path, options: str = "") -> Path:
    path = folder / "small.toml"
    path.write_text(PRESET.replace("[ddpg]\n", f"[ddpg]\n{options}"), encoding="utf-8")
    return path


#: A climate of 12 latitudes and episodes of 10 steps.
SMALL = {"latitudes": 12, "episode_length": 10}
