"""A federation over Flower's apps and strategy, in one process."""

import json
import sys
import warnings

import jax
import numpy as np
import pytest
import xarray as xr

from fedrain.cli import main
from fedrain.errors import InputError
from fedrain.experiment import configure, load, train
from fedrain.federation import Sharing
from fedrain.flower import local
from fedrain.flower.local import run_local
from fedrain.flower.server import Federation, Round, plan_rounds
from fedrain.flower.strategy import STRATEGIES
from tests.experiment.small import SMALL, small_preset
from tests.flower.faulty_nodes import CHANGES, scaled, spoil

TIMES = ["seconds", "core_seconds", "actor_distance"]


@pytest.fixture
def preset(tmp_path):
    return small_preset(tmp_path)


def small(preset, **options):
    chosen = {"env": "ebm-v2", "agents": 3, "sync_every": 3, "episodes": 10, **options}
    return configure(preset=preset, **chosen, **SMALL)


def federate(configuration, out, wrap=None, say=print, **options):
    run_local(Federation(configuration, out, False, say, **options), wrap)
    return load(out)


def same_weights(one, other, kind="local"):
    jax.tree.map(np.testing.assert_array_equal, one.actors(kind), other.actors(kind))


@pytest.mark.parametrize(
    ("env", "algo", "options"),
    [
        ("ebm-v2", "ddpg", {}),
        pytest.param("ebm-v3", "ddpg", {"seeds": 2}, marks=pytest.mark.slow),
        pytest.param("ebm-v3", "tqc", {"sharing": Sharing(critics=True)}, marks=pytest.mark.slow),
        pytest.param(
            "ebm-v3",
            "td3",
            {"sharing": Sharing(layers=(0, 1), weights=(1.0, 2.0, 0.5))},
            marks=pytest.mark.slow,
        ),
        pytest.param("ebm-v3", "td3", {"sync_every": 0}, marks=pytest.mark.slow),
    ],
)
def test_gives_the_bits_of_train(tmp_path, preset, env, algo, options):
    configuration = small(preset, env=env, algo=algo, **options)
    expected = train(configuration, tmp_path / "train")
    found = federate(configuration, tmp_path / "federate")
    xr.testing.assert_identical(found.returns.drop_vars(TIMES), expected.returns.drop_vars(TIMES))
    xr.testing.assert_identical(found.results, expected.results)
    for kind in ("local", "global"):
        same_weights(found, expected, kind)


def test_rounds():
    configuration = configure(sync_every=5, episodes=12)
    assert plan_rounds(configuration) == [
        Round(0, 5, False), Round(5, 5, True), Round(10, 2, True),
    ]  # fmt: skip
    never = plan_rounds(configure(sync_every=0, episodes=7))
    assert never == [Round(0, 5, False), Round(5, 2, False)]


class StopError(Exception):
    pass


@pytest.mark.parametrize(
    "moment", [pytest.param("before the reply", marks=pytest.mark.slow), "after the reply"]
)
def test_resumes_after_the_server_died(tmp_path, preset, moment, monkeypatch):
    """Killed while the third round is played, or when its replies are there but not kept."""
    monkeypatch.setattr(local, "CHECKPOINT_SECONDS", 0.0)
    configuration = small(preset)
    whole = federate(configuration, tmp_path / "whole")
    out = tmp_path / "stopped"
    federation = Federation(configuration, out, False, print)
    if moment == "after the reply":
        keep = federation._done

        def die(learnt, arrays):
            if federation.finished == 2:
                raise StopError
            keep(learnt, arrays)

        federation._done = die
        wrap = None
    else:

        def wrap(app):
            calls = []

            def client(message, context):
                if message.metadata.message_type == "train":
                    calls.append(context.node_id)
                    if len(calls) > 2 * configuration.agents:
                        raise StopError
                return app(message, context)

            return client

    with pytest.raises(StopError):
        run_local(federation, wrap)
    with pytest.raises(InputError, match="not finished"):
        load(out)
    said = []
    run_local(Federation(configuration, out, True, said.append))
    assert said == ["resuming after round 2 of 4"]
    same_weights(load(out), whole)
    xr.testing.assert_identical(load(out).returns.drop_vars(TIMES), whole.returns.drop_vars(TIMES))
    assert not (out / "checkpoint").exists()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("nan", "not finite"),
        ("huge", "far outside"),
        *(
            pytest.param(kind, reason, marks=pytest.mark.slow)
            for kind, reason in (
                ("shapes", "does not fit"),
                ("other", "another region"),
                ("empty", "another region"),
            )
        ),
    ],
)
def test_bad_updates_are_named_and_left_out(tmp_path, preset, change, reason):
    configuration = small(preset, episodes=9)
    said = []
    run = federate(configuration, tmp_path / "run", spoil(1, CHANGES[change]), said.append)
    refused = [line for line in said if "region 1" in line and reason in line]
    assert len(refused) == 2  # in the second and in the third round
    assert not [line for line in said if "region 0" in line or "region 2" in line]
    assert np.isfinite(run.results.areawrmse).all()
    returns = run.returns.returns.sel(seed=0)
    assert np.isfinite(returns.sel(agent=[0, 2])).all()
    assert np.isnan(returns.sel(agent=1)[3:]).all()


def test_the_mean_without_a_region_is_that_of_the_others(tmp_path, preset):
    """The honest regions continue from their own mean."""
    configuration = small(preset, episodes=6)
    federation = Federation(configuration, tmp_path / "run", False, print)
    run_local(federation, spoil(1, scaled(np.inf)))
    honest = [federation.local[region]["actor"] for region in (0, 2)]
    expected = jax.tree.map(lambda a, b: (a + b) / 2, *honest)
    found = {name: array.numpy() for name, array in federation.arrays.items()}
    leaves = jax.tree.leaves(expected)
    for leaf, array in zip(leaves, found.values(), strict=True):
        np.testing.assert_allclose(array, leaf, rtol=1e-6, atol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("name", STRATEGIES)
def test_flowers_other_strategies(tmp_path, preset, name):
    if name == "FedProx":
        preset.write_text(preset.read_text().replace("[ddpg]", "[ddpg]\nproximal = 0.1"))
    configuration = small(preset, episodes=6, agents=6)
    run = federate(configuration, tmp_path / "run", strategy=name)
    assert np.isfinite(run.returns.returns).all()


@pytest.mark.slow
def test_a_pull_towards_the_last_average(tmp_path, preset):
    """FedProx as the fused loop has it, too: the stronger it is, the closer the agents stay."""
    plain = preset.read_text()
    distances = []
    for pull in (0.0, 0.05, 1.0):
        preset.write_text(plain.replace("[ddpg]", f"[ddpg]\nproximal = {pull}"))
        configuration = small(preset, episodes=5)
        run = federate(
            configuration, tmp_path / str(pull), strategy="FedProx" if pull else "FedAvg"
        )
        if pull == 0.05:
            same_weights(run, train(configuration, tmp_path / "train"))
        distances.append(float(run.returns.actor_distance[-1, 0]))
    assert distances[0] > 1.5 * distances[1] > 0
    assert distances[2] == pytest.approx(0, abs=1e-7)  # held to the average altogether


def test_unknown_strategy(tmp_path, preset):
    with pytest.raises(InputError, match="proximal"):
        Federation(small(preset), tmp_path / "run", False, print, strategy="FedProx")
    with pytest.raises(InputError, match="FedMedian"):
        Federation(small(preset), tmp_path / "run", False, print, strategy="FedMedain")


def test_command(tmp_path, preset, capsys):
    """What the command leaves is a run that ``fedrain evaluate`` reads."""
    out = str(tmp_path / "run")
    arguments = ["--env", "ebm-v2", "--agents", "2", "--episodes", "1", "--algo", "td3"]
    command = ["federate", *arguments, "--preset", str(preset), "--out", out]
    assert main([*command, "--engine", "smoke"]) == 2
    assert main(command) == 0
    assert "90°S–60°S" in capsys.readouterr().out
    assert main(["evaluate", out, "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["bands_mean"]) == 6
    assert main(command) == 2  # the folder holds this experiment already
    assert "--resume" in capsys.readouterr().err


def test_without_flower(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "flwr", None)
    assert main(["federate"]) == 2
    assert "pip install 'fedrain[flower]'" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("env", ["ebm-v2", "ebm-v3"])
def test_simulation_gives_what_local_gives(tmp_path, preset, env):
    """On Flower's own engine, to float32 tolerance."""
    pytest.importorskip("ray")
    from fedrain.flower.simulation import run_simulation

    configuration = small(preset, env=env, agents=2, episodes=9)
    expected = federate(configuration, tmp_path / "local")
    federation = Federation(configuration, tmp_path / "simulation", False, print)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Ray's
        run_simulation(federation)
    found = load(tmp_path / "simulation")
    np.testing.assert_allclose(found.returns.returns, expected.returns.returns, rtol=1e-4)
    for one, other in zip(*(jax.tree.leaves(r.actors()) for r in (found, expected)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-2, atol=2e-4)
    assert not (tmp_path / "simulation" / "federation" / "homes").exists()


def test_without_ray(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "ray", None)
    command = ["federate", "--engine", "simulation", "--episodes", "1"]
    assert main([*command, "--out", str(tmp_path / "run")]) == 2
    assert "pip install 'fedrain[simulation]'" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
