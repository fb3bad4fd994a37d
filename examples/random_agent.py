"""Play one episode of ebm-v1 with random actions, and save the last picture."""

import gymnasium
from matplotlib import image

import fedrain  # registers the environments

print("FedRAIN", fedrain.__version__)
env = gymnasium.make("fedrain/EnergyBalance-v1", render_mode="rgb_array")
env.action_space.seed(0)
env.reset()
total, truncated = 0.0, False
while not truncated:
    _, reward, _, truncated, _ = env.step(env.action_space.sample())
    total += reward
print(f"return {total:.0f} K²")
image.imsave("random_agent.png", env.render())
