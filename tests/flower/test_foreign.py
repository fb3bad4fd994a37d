"""Agents that learnt in the climate of another program: what stands as their skill says so."""

import pytest

from fedrain.envs import make
from fedrain.errors import InputError
from fedrain.experiment import load, run
from fedrain.experiment.report import skill_report
from fedrain.flower import coupling
from fedrain.flower.coupling import RemoteClimate
from fedrain.flower.local import run_local
from fedrain.flower.messages import FOREIGN, METRICS
from fedrain.flower.server import Federation
from tests.experiment.small import SMALL
from tests.flower.machines import small


@pytest.fixture
def environment():
    return make("ebm-v3", agents=2, **SMALL)


def asked(environment, change):
    """A climate that describes itself otherwise than ours does."""
    told = coupling.describe(environment)
    change(told)
    said = []
    climate = RemoteClimate("127.0.0.1:1", None, said.append)
    climate._calls["Describe"] = lambda _: told
    return climate, said


def test_a_climate_tells_whether_it_is_the_experiments(environment):
    climate, said = asked(environment, lambda _: None)
    climate.check(environment)
    assert not climate.foreign
    assert said == []
    climate, said = asked(environment, lambda told: told.ClearField("model"))
    climate.check(environment)
    assert climate.foreign
    assert said == ["the climate at 127.0.0.1:1 does not say that it is this experiment's"]
    climate, _ = asked(environment, lambda told: setattr(told, "model", "0" * 64))
    with pytest.raises(InputError, match="not that of this experiment: another model"):
        climate.check(environment)


@pytest.mark.parametrize("foreign", [False, True])
def test_skill_is_not_called_that_of_a_climate_that_we_do_not_have(tmp_path, monkeypatch, foreign):
    def wrap(app):
        def client(message, context):
            reply = app(message, context)
            if message.metadata.message_type == "train":
                reply.content.metric_records[METRICS][FOREIGN] = int(foreign)
            return reply

        return client

    run_local(Federation(small(tmp_path, episodes=3), tmp_path / "run", False, print), wrap)
    monkeypatch.setattr(run, "known_limit", lambda _: 0.0)
    found = load(tmp_path / "run")
    assert ("climate" in found.summary()) == foreign
    assert (found.summary()["share_of_limit"] is None) == foreign
    assert ("in the climate of another program" in skill_report(found)) == foreign
    assert ("to optimal control" in skill_report(found)) == (not foreign)
