import gymnasium
import numpy as np
import pytest

from fedrain.climate import Columns
from fedrain.envs import TASKS, make, parallel_env, rollout
from fedrain.envs.listing import environment_rows, environment_table
from fedrain.envs.render import Renderer
from fedrain.errors import InputError
from fedrain.registration import ENVIRONMENT_IDS
from tests.climate.models import AIR, Layered

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


def static_curve(env) -> np.ndarray:
    env.render()
    return env.unwrapped.adapter._renderer.figure.profiles["static"].get_ydata()


def model_curve(env) -> np.ndarray:
    return env.unwrapped.adapter._renderer.figure.profiles["model"].get_ydata()


@pytest.mark.parametrize("backend", ["jax", "climlab"])
def test_the_static_model_has_the_start_and_forcing_of_the_episode(backend):
    """Played with the static values, the model is the static model, wherever the episode starts."""
    options = {"start": (0.0, 40.0), "forcing": {"longwave": (-8.0, 8.0)}, "noise": 0.2}
    env = gymnasium.make(
        V1, latitudes=12, episode_length=10, render_mode="rgb_array", backend=backend, **options
    )
    static = env.unwrapped.adapter.environment.static_actions[0]
    curves = []
    for seed in range(3):
        env.reset(seed=seed)
        np.testing.assert_allclose(static_curve(env), model_curve(env), atol=1e-4)
        for _ in range(4):
            env.step(static)
        np.testing.assert_allclose(static_curve(env), model_curve(env), atol=1e-3)
        curves.append(static_curve(env)[0])
    assert len(set(curves)) == 3


def test_the_target_of_the_episode():
    env = gymnasium.make(V1, latitudes=12, episode_length=10, render_mode="rgb_array")
    for target in (np.zeros(12), np.linspace(-20.0, 20.0, 12)):
        env.reset(options={"target": target})
        env.render()
        figure = env.unwrapped.adapter._renderer.figure
        np.testing.assert_allclose(figure.target_line.get_ydata(), target)
        errors = figure.errors["model"].get_ydata()
        np.testing.assert_allclose(errors, model_curve(env) - target)


def test_any_model_is_drawn_as_zonal_means():
    columns = Columns.lat_lon(6, 4)
    target = np.full((24, 3), 260.0)
    env = parallel_env(
        agents=6, model=Layered(columns=columns), judge=[AIR], target=target, episode_length=5,
        render_mode="rgb_array",
    )  # fmt: skip
    env.reset()
    env.step({agent: env.action_space(agent).sample() for agent in env.agents})
    assert env.render().ndim == 3
    figure = env.adapter._renderer.figure
    air = np.asarray(env.adapter.state.climate[AIR][0])
    expected = air.mean(-1).reshape(6, 4).mean(1)
    np.testing.assert_allclose(figure.profiles["model"].get_ydata(), expected, rtol=1e-5)
    assert figure.profile_axes.get_ylabel() == "Air temperature (K)"
    assert figure.error_axes.get_ylabel() == "Error (K)"


def test_the_table_of_environments_has_them_all():
    text = environment_table()
    for name in TASKS.names():
        assert name in text
        assert " ".join(TASKS.get(name).summary.split()[:2]) in text
    assert max(map(len, text.splitlines())) <= 80
    by_name = {row["name"]: row for row in environment_rows()}
    assert (by_name["ebm-v3"]["observation"], by_name["ebm-v3"]["action"]) == (16, 35)
