"""The response of a climate whose sea is given: how much more radiation leaves if it is warmer."""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
import pytest

from fedrain.baselines.response import SeaResponse, hold_actions, respond
from fedrain.climate import Columns, Forcing, Parameter, ParameterTable
from fedrain.climate.fields import ABSORBED_SHORTWAVE, OUTGOING_LONGWAVE
from fedrain.envs import Task, make
from fedrain.envs.episode import Record
from fedrain.errors import InputError
from fedrain.experiment import configure, train
from fedrain.experiment.response import response_table

TABLE = ParameterTable((Parameter("B", "slope", "W m-2 K-1", 2.0, 1.0, 3.0, "column"),))


@dataclass(frozen=True)
class Atmosphere:
    """Air that follows a sea within days: it emits A + B T, and clouds shade −c T of sunlight."""

    forcing: str = "sst"
    costly: bool = True
    days_per_step: float = 1.0
    differentiable: bool = False
    table: ParameterTable = TABLE
    columns = Columns.zonal(4)
    fields = (OUTGOING_LONGWAVE, ABSORBED_SHORTWAVE)

    @property
    def forcings(self):
        return (Forcing(self.forcing, "K", 0.0, "warmer sea"),)

    def init(self, key):
        del key
        return {"air": jnp.zeros(4), "seen": jnp.zeros((2, 4))}

    def step(self, state, parameters, forcing, key):
        del key
        air = state["air"] + 0.2 * (forcing[self.forcing] - state["air"])
        seen = jnp.stack([230 + parameters["B"] * air, 240 - 0.5 * air])
        return {"air": air, "seen": seen}

    def observe(self, state):
        return {one.name: state["seen"][i] for i, one in enumerate(self.fields)}


def record(model, length):
    del length
    states = {"air": jnp.zeros((3, 4)), "seen": jnp.zeros((3, 2, 4))}
    return Record(
        states, jnp.array([0, 1]), jnp.array([2, 3]), {"B": jnp.array([1.0, 1.5, 2.5, 3.0])}
    )


TASK = Task(
    model=Atmosphere(), record=record, agents=4, episode_length=2, observe=(OUTGOING_LONGWAVE.name,)
)


def test_the_feedback_is_that_of_the_equations():
    """A sea that is warmer by F emits B F more and absorbs c F less: B + c for each K."""
    environment = make(TASK)
    held = jnp.asarray(environment.static_actions, jnp.float32)
    found = respond(environment, hold_actions, held)["model"]
    assert set(found) == {4.0}
    assert found[4.0].feedback == pytest.approx(2.5, abs=1e-4)
    assert found[4.0].longwave == pytest.approx(8.0, abs=1e-3)
    assert found[4.0].shortwave == pytest.approx(-2.0, abs=1e-3)
    assert found[4.0].as_dict()["warming"] is None
    halved = respond(environment, hold_actions, held, (2.0, -1.0))["model"]
    assert [round(one.feedback, 3) for one in halved.values()] == [2.5, 2.5]
    assert SeaResponse.mean([found[4.0], SeaResponse(4.0, 0.0, 0.0)]).feedback == pytest.approx(
        1.25, abs=1e-4
    )


#: The mean of B over the area of the four columns of the record's truth.
TRUTH = float(Atmosphere().columns.mean(np.array([1.0, 1.5, 2.5, 3.0])))


def test_the_truth_of_a_record_is_known_by_its_parameters():
    environment = make(TASK)
    np.testing.assert_allclose(environment.truths_actions[:, 0], [1.0, 1.5, 2.5, 3.0])
    held = jnp.asarray(environment.truths_actions, jnp.float32)
    found = respond(environment, hold_actions, held)["model"]  # compiled already, above
    assert found[4.0].feedback == pytest.approx(TRUTH + 0.5, abs=1e-3)
    # Agents that cannot reach it, or set something else, cannot show its response.
    assert make(TASK, bounds={"B": (1.2, 3.0)}).truths_actions is None
    assert make("ebm-v3", latitudes=12).truths_actions is None


@pytest.mark.slow
def test_the_response_of_a_run(tmp_path):
    experiment = configure(
        env=TASK, preset="forecast", algo="ddpg", episodes=1,
        settings={"warmup_steps": 1, "batch_size": 4, "width": 4},
    )  # fmt: skip
    run = train(experiment, tmp_path / "run", figures=False, say=str)
    found = run.respond(say=str)
    assert set(found) == {"policy", "static", "truth"}  # it has no gradient to seek constants by
    assert found["truth"][4.0].feedback == pytest.approx(TRUTH + 0.5, abs=1e-3)
    table = response_table(found)
    assert "no warming" in table
    assert f"{TRUTH + 0.5:.2f}" in table


def test_a_model_that_nothing_warms_has_no_response():
    environment = make(TASK, model=Atmosphere("wind"))
    with pytest.raises(InputError, match="Atmosphere has no forcing longwave"):
        respond(environment, hold_actions, jnp.zeros((4, 1)))
