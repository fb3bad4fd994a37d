"""Replies that cannot be used, wholly or in part."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from flwr.app import Message, RecordDict

from fedrain.agents.networks import Layer
from fedrain.experiment import load
from fedrain.federation import Sharing
from fedrain.flower.client import make_client_app
from fedrain.flower.internals import identify
from fedrain.flower.local import Fleet, LocalNetwork, run_local, serve
from fedrain.flower.messages import ARRAYS, LOGGED, METRICS, reply_metrics, to_arrays
from fedrain.flower.server import Federation, first_payload
from fedrain.flower.strategy import Reply, read_reply, repair
from tests.flower.faulty_nodes import CHANGES, spoil
from tests.flower.machines import small

TIMES = ["seconds", "core_seconds", "actor_distance"]


@pytest.fixture(scope="module")
def like(tmp_path_factory):
    return first_payload(small(tmp_path_factory.mktemp("preset"), seeds=2))


def reply_of(like):
    """An honest one of two episodes and two seeds."""
    identify(1, 1, 1)
    times = {name: np.ones(2) for name in ("seconds", "core_seconds")}
    history = {name: np.ones((2, 2)) for name in LOGGED} | times
    content = RecordDict({ARRAYS: to_arrays(like), METRICS: reply_metrics(1, history, 2)})
    return Message(content=content, message_type="train", dst_node_id=2)


def read(like, kind):
    reply = reply_of(like)
    return read_reply(CHANGES[kind](reply, reply), like, 2, 1.0)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("nan", "not finite"),
        ("shapes", "does not fit"),
        ("empty", "does not fit"),
        ("nothing", "does not fit"),
        ("no zip", "does not fit"),
        ("zip", "does not fit"),
        ("vast", "does not fit"),
        ("more", "more than the networks"),
    ],
)
def test_what_cannot_be_read_is_refused(like, kind, reason):
    said = read(like, kind)
    assert isinstance(said, str)
    assert reason in said
    assert len(said.splitlines()) == 1


def test_a_diverged_seed_does_not_spoil_the_others(like):
    reply = read(like, "one seed")
    assert isinstance(reply, Reply)
    assert reply.finite.tolist() == [True, False]


def network(bias):
    return {"actor": (Layer(np.zeros((4, 2, 5), np.float32), bias),)}


def test_a_diverged_seed_has_no_influence(like):
    """The weighted mean of all is that of those that are finite; as sent, if nobody is."""
    rng = np.random.default_rng(0)
    finite = np.array([[1, 1, 1, 0], [1, 0, 1, 0], [1, 1, 0, 0]], bool)
    weights = [1.0, 2.0, 0.0]
    sent = network(rng.normal(size=(4, 5)).astype(np.float32))
    values = rng.normal(size=(3, 4, 5)).astype(np.float32)
    values[~finite] = np.nan
    replies = [
        Reply(reply_of(like), network(v), {}, weight, w)
        for v, w, weight in zip(values, finite, weights, strict=True)
    ]
    repaired = np.stack([reply.payload["actor"][0].bias for reply in repair(replies, sent)])
    np.testing.assert_array_equal(repaired[finite], values[finite])
    found = np.average(repaired, axis=0, weights=weights)
    for seed in range(3):
        there = finite[:, seed]
        expected = np.average(values[there, seed], axis=0, weights=np.array(weights)[there])
        np.testing.assert_allclose(found[seed], expected, rtol=1e-6)
    before = sent["actor"][0].bias[3]
    np.testing.assert_array_equal(repaired[:, 3], np.broadcast_to(before, (3, 5)))


def federate(configuration, out, wrap=None, say=print, strategy="FedAvg"):
    run_local(Federation(configuration, out, False, say, strategy), wrap)
    return load(out)


def test_one_diverged_seed_does_not_shut_a_region_out(tmp_path):
    """The other seed has the bits of a federation where nothing diverged."""
    configuration = small(tmp_path, agents=3, episodes=6, seeds=2)
    said = []
    whole = federate(configuration, tmp_path / "whole")
    run = federate(configuration, tmp_path / "run", spoil(1, CHANGES["one seed"]), said.append)
    (line,) = said
    assert line.startswith("region 1: seed 1 has diverged (not all of its numbers are finite)")
    found, expected = (r.returns.drop_vars(TIMES) for r in (run, whole))
    xr.testing.assert_identical(found.sel(seed=0), expected.sel(seed=0))
    assert np.isfinite(found.returns).all()
    assert run.summary()["diverged_seeds"] == [1]


def test_a_seed_that_diverges_stops_as_in_train(tmp_path):
    configuration = small(tmp_path, agents=2, episodes=6, seeds=2)
    whole = federate(configuration, tmp_path / "whole")
    said = []
    federation = Federation(configuration, tmp_path / "run", False, said.append)
    federation.store = fleet = Fleet(configuration, federation.out, said.append)
    training = fleet.trainer.trainings[1]
    critic = jax.tree.map(lambda leaf: leaf.at[1].set(jnp.nan), training.agents.critic)
    fleet.trainer.trainings[1] = training._replace(agents=training.agents._replace(critic=critic))
    serve(federation, LocalNetwork(make_client_app(lambda *_: fleet, configuration.named), 2))
    run = load(tmp_path / "run")
    assert [line.split(" has ")[0] for line in said] == [
        "seed 1 stops: agent 1",
        "region 1: seed 1",
    ]
    assert run.summary()["diverged_seeds"] == [1]
    assert np.isnan(run.returns.returns.sel(seed=1)[3:]).all()
    found, expected = (r.returns.drop_vars(TIMES) for r in (run, whole))
    xr.testing.assert_identical(found.sel(seed=0), expected.sel(seed=0))


@pytest.mark.parametrize(
    ("kind", "strategy", "shares"),
    [
        ("heavy", "FedAvg", (1, 2, 1)),
        ("heavy", "FedTrimmedAvg", (1, 1, 1)),
        ("more", "FedTrimmedAvg", (1, 0, 1)),
    ],
)
def test_a_reply_cannot_weigh_more_or_bring_more(tmp_path, kind, strategy, shares):
    """Flower's own aggregation neither trips over it nor follows it."""
    sharing = Sharing(weights=(1.0, 2.0, 1.0))
    configuration = small(tmp_path, agents=3, episodes=6, sharing=sharing)
    federation = Federation(configuration, tmp_path / "run", False, print, strategy)
    federation.strategy.beta = 0.0  # trims nothing
    run_local(federation, spoil(1, CHANGES[kind]))
    local = [federation.local[region]["actor"] for region in range(3)]
    mean = jax.tree.map(lambda *leaves: np.average(leaves, axis=0, weights=shares), *local)
    arrays = [array.numpy() for array in federation.arrays.values()]
    for found, expected in zip(arrays, jax.tree.leaves(mean), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
