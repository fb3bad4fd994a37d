"""A node's side: the agent that stays from message to message."""

import jax
import numpy as np
import pytest
from flwr.app import Context, Message, RecordDict

from fedrain.errors import InputError
from fedrain.flower import node
from fedrain.flower.climate import SharedClimate
from fedrain.flower.credentials import Credentials
from fedrain.flower.internals import identify
from fedrain.flower.messages import ARRAYS, CONFIG, read_metrics, round_config, to_arrays
from fedrain.flower.server import first_payload
from tests.flower.machines import small


@pytest.fixture
def configuration(tmp_path):
    return small(tmp_path, env="ebm-v3", agents=1, episodes=8)


class Elsewhere(SharedClimate):
    """The climate as a node sees it; it may be lost at a step."""

    lost_at = None

    def check(self, environment):
        pass

    def step(self, region, episode, time, action):
        if (episode.number, time) == self.lost_at:
            raise InputError("no climate at 192.0.2.1:9001 for 600 s")
        return super().step(region, episode, time, action)


@pytest.fixture
def climate(configuration, monkeypatch):
    climate = Elsewhere(configuration.make_environment(), 5.0, print)
    monkeypatch.setattr(node, "RemoteClimate", lambda *_: climate)
    return climate


def ask(resident, configuration, first, federation_id="one"):
    """A round of two episodes."""
    identify(1, 1, 1)
    config = round_config(configuration, federation_id, first, 2, adopt=False)
    content = RecordDict({ARRAYS: to_arrays(first_payload(configuration)), CONFIG: config})
    message = Message(content=content, message_type="train", dst_node_id=2)
    context = Context(1, 2, {"region": 0}, RecordDict(), {})
    return read_metrics(resident.answer(message, context).content)["returns"]


@pytest.mark.slow
def test_a_node_recovers_from_an_error_in_mid_episode(tmp_path, configuration, climate):
    """From what it had learnt up to the round before."""
    resident = node.Resident(0, tmp_path / "home", "192.0.2.1:9001", None, print)
    assert np.isfinite(ask(resident, configuration, 0)).all()
    climate.lost_at = (3, 5)
    with pytest.raises(InputError, match="no climate at"):
        ask(resident, configuration, 2)
    assert np.isfinite(ask(resident, configuration, 4)).all()
    _, home = resident._held
    assert home.rounds_played == [0, 4]
    assert home.trainer.steps.tolist() == [40]


def test_a_node_keeps_the_last_federations(tmp_path, configuration, climate):
    """One that is resumed after another was tried has its memory; the oldest is removed."""
    said = []
    resident = node.Resident(0, tmp_path / "home", "192.0.2.1:9001", None, said.append)
    for federation_id in ("first", "a", "b", "a"):
        ask(resident, configuration, 0, federation_id)
    ask(resident, configuration, 2, "a")
    assert resident._held[1].rounds_played == [0, 2]
    assert not [line for line in said if "memory" in line]
    ask(resident, configuration, 4, "c")
    assert said[-1] == "region 0 joins at episode 4: its memory is empty"
    kept = {path.name.split("-")[-1] for path in (tmp_path / "home").glob("run-*")}
    assert kept == {"a", "b", "c"}


def test_an_agent_that_diverges_does_not_end_the_round(tmp_path, configuration, climate):
    """Its parameters are not handed in, and the other seed continues."""
    both = small(tmp_path, env="ebm-v3", agents=1, episodes=8, seeds=2)
    climate.patience = 0.1
    said = []
    resident = node.Resident(0, tmp_path / "home", "192.0.2.1:9001", None, said.append)
    ask(resident, both, 0)
    trainer = resident._held[1].trainer
    agents = trainer.trainings[1].agents
    diverged = {
        name: jax.tree.map(lambda leaf: leaf * np.nan, getattr(agents, name))
        for name in ("actor", "critic")
    }
    trainer.trainings[1] = trainer.trainings[1]._replace(agents=agents._replace(**diverged))
    returns = ask(resident, both, 2)
    assert np.isfinite(returns[:, 0]).all()
    assert np.isnan(returns[:, 1]).all()


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be made"):
        node.Resident(0, tmp_path / "file", None, None, print)


def test_a_damaged_authority(tmp_path):
    (tmp_path / "authority.pem").write_text("nothing of the kind")
    with pytest.raises(InputError, match=r"authority.pem: is not a certificate"):
        node._obstacle("192.0.2.1:9000", Credentials(tmp_path))
