import gymnasium
import numpy as np
import pytest

from fedrain.envs import make, rollout
from fedrain.envs.render import Renderer
from fedrain.errors import InputError
from fedrain.registration import ENVIRONMENT_IDS

V1, V2 = ENVIRONMENT_IDS


def test_pixels_change_with_the_state():
    env = gymnasium.make(V1, render_mode="rgb_array")
    env.reset()
    first = env.render()
    assert first.dtype == np.uint8
    assert first.shape[2] == 3
    for _ in range(20):
        env.step(env.action_space.low)
    assert (env.render() != first).any()


def test_curves_are_model_static_model_and_target():
    env = gymnasium.make(V2, agents=6, region=2, render_mode="rgb_array")
    env.reset()
    for _ in range(3):
        env.step(env.action_space.sample())
    env.render()
    adapter = env.unwrapped.adapter
    figure = adapter._renderer.figure
    model = np.asarray(adapter.state.climate[0], float)
    np.testing.assert_allclose(figure.profiles["model"].get_ydata(), model)
    np.testing.assert_allclose(
        figure.errors["model"].get_ydata(),
        model - adapter.environment.params.target["surface_temperature"],
    )
    core = make("ebm-v1")
    static = rollout(core, np.broadcast_to(core.static_actions.astype("f4"), (3, 1, 195)))
    np.testing.assert_allclose(
        figure.profiles["static"].get_ydata(), static.state.climate[-1, 0], atol=1e-4
    )
    assert "Step 3 of 200" in figure.profile_axes.get_title()


def test_a_screen_is_not_needed(caplog):
    env = gymnasium.make(V1, render_mode="human")
    env.reset()
    env.step(env.action_space.sample())
    assert "no screen" in caplog.text  # drawn without being asked, as Gymnasium wants it
    assert "Step 1 of 200" in env.unwrapped.adapter._renderer.figure.profile_axes.get_title()
    assert env.render() is None
    env.close()
    env.close()


def test_environments_have_windows_of_their_own():
    envs = [gymnasium.make(V1, render_mode="human") for _ in range(2)]
    for env in envs:
        env.reset()
    first, second = (env.unwrapped.adapter._renderer.figure.figure for env in envs)
    assert first is not second
    assert len(first.axes) == 2
    for env in envs:
        env.close()


def test_the_agents_region_is_shaded():
    shaded, plain = (
        Renderer(make("ebm-v2", agents=6, region=region), "rgb_array").figure
        for region in (4, None)
    )
    (band,) = shaded.profile_axes.patches
    assert (band.get_x(), band.get_width()) == (30, 30)
    assert not plain.profile_axes.patches


def test_unknown_mode():
    with pytest.raises(InputError, match="no render mode 'ansi': use one of human, rgb_array"):
        Renderer(make("ebm-v1"), "ansi")


def test_no_mode():
    env = gymnasium.make(V1, disable_env_checker=True).unwrapped
    env.reset()
    with pytest.raises(InputError, match="choose a render mode"):
        env.render()
