"""What is not of the package, and what is random, in a federation."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from flwr.app import ConfigRecord

from fedrain.errors import InputError
from fedrain.experiment.configuration import Named, references
from fedrain.experiment.trainer import Trainer
from fedrain.flower.climate import SharedClimate
from fedrain.flower.messages import read_configuration
from fedrain.flower.region import RegionHome
from tests.flower.machines import small

OWN = """
from dataclasses import dataclass
from pathlib import Path

from fedrain.climate import EnergyBalanceModel

Path(__file__).with_name("imported").touch()


@dataclass(frozen=True)
class Own(EnergyBalanceModel):
    pass
"""


@pytest.fixture
def own(tmp_path):
    file = tmp_path / "own.py"
    file.write_text(OWN, encoding="utf-8")
    return f"{file}:Own"


def sent(configuration, **changed):
    """An experiment as it comes in a message."""
    values = {**configuration.as_dict(), **changed}
    return ConfigRecord({"configuration": json.dumps(values)})


def test_nothing_is_imported_on_a_peers_word(tmp_path, own):
    message = sent(small(tmp_path), model=own)
    with pytest.raises(InputError, match="name it again with --model"):
        read_configuration(message, Named())
    assert not (tmp_path / "imported").exists()


def test_an_experiment_with_a_model_that_the_person_has_named(tmp_path, own):
    """It is the same experiment on both sides; and other ones are taken as well."""
    from fedrain.experiment import configure
    from tests.experiment.small import small_preset

    preset = small_preset(tmp_path)
    configuration = configure(env="ebm-v2", agents=2, episodes=4, preset=preset, model=own)
    named = references(configuration)
    assert named == Named(model=own)
    for known in (named, configuration.named):
        found = read_configuration(sent(configuration), known)
        assert found.identity == configuration.identity
        assert found.make_environment() == configuration.make_environment()
    plain = small(tmp_path)
    assert read_configuration(sent(plain), named).identity == plain.identity


@pytest.mark.parametrize("text", ["no JSON", "[]", "7", "{}"])
def test_a_message_without_an_experiment(text):
    with pytest.raises(InputError, match="not the configuration"):
        read_configuration(ConfigRecord({"configuration": text}), Named())


@pytest.mark.parametrize(("env", "agents", "region"), [("ebm-v3", 1, 0), ("ebm-v2", 2, 1)])
def test_what_is_random_is_that_of_the_fused_loop(tmp_path, env, agents, region):
    """Start and sensors; the actions of these episodes are random, too."""
    options = {"env": env, "agents": agents, "episodes": 2, "seeds": [5]}
    configuration = small(tmp_path, **options, start={"temperature": (20.0, 50.0)}, noise=0.1)
    fused = Trainer(configuration, configuration.make_environment())
    fused.begin()
    climate = None
    if env == "ebm-v3":
        climate = SharedClimate(configuration.make_environment(), 60.0, print)
    home = RegionHome(configuration, region, tmp_path / "home", climate)
    home.train(region, None, 0, 2)
    for _ in range(2):
        fused.play(synchronise=False)
    expected = fused.history["returns"][..., region]
    assert expected[0] != pytest.approx(expected[1], rel=1e-2)
    np.testing.assert_allclose(home.history(region)["returns"], expected, rtol=1e-4)
    rows, own = (np.asarray(t.trainings[0].rows) for t in (fused, home.trainer))
    np.testing.assert_allclose(own[0], rows[region], rtol=1e-3, atol=1e-3)


def test_flower_calls_nobody():
    """It reads this once, as it is imported."""
    code = (
        "from fedrain.cli.federate import _prepare; _prepare(); "
        "from flwr.supercore.telemetry import FLWR_TELEMETRY_ENABLED as on; print(on)"
    )
    clean = {name: value for name, value in os.environ.items() if not name.startswith("FLWR_")}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=clean, check=True
    )
    assert done.stdout.strip() == "0"
