"""What a server makes of replies, and a region of what it is sent: in numbers."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fedrain.agents.agent import Agent
from fedrain.agents.networks import Layer
from fedrain.agents.step import HEALTHY, Training
from fedrain.federation import Sharing
from fedrain.flower.messages import adopt, mean_payload, take_payload
from fedrain.flower.region import CoupledTrainer
from fedrain.flower.strategy import Reply, ReplyValidator, repair, size, step_length

RNG = np.random.default_rng(0)


def network(bias, weight=0.0):
    """Of some seeds: a bias of five numbers each."""
    bias = np.asarray(bias, np.float32)
    return {"actor": (Layer(np.full((len(bias), 2, 5), weight, np.float32), bias),)}


def reply(values, weight=1.0):
    return Reply(None, network(values), {}, weight, np.isfinite(values).all(1))


def test_a_mended_seed_has_the_weighted_mean_of_the_others():
    """Not their plain mean: what is filled in must not move the average of all."""
    values = RNG.normal(size=(3, 2, 5)).astype(np.float32)
    values[1, 0] = np.nan
    weights = (1.0, 7.0, 4.0)
    replies = [reply(v, w) for v, w in zip(values, weights, strict=True)]
    mended = repair(replies, network(np.zeros((2, 5))))
    expected = (1.0 * values[0, 0] + 4.0 * values[2, 0]) / 5.0
    np.testing.assert_allclose(mended[1].payload["actor"][0].bias[0], expected, rtol=1e-6)
    np.testing.assert_array_equal(mended[1].payload["actor"][0].bias[1], values[1, 1])
    assert [one.weight for one in mended] == list(weights)


def test_the_length_of_a_step_is_that_of_the_seeds_that_are_sound():
    """A diverged seed does not make it NaN, which is beyond no limit."""
    values = RNG.normal(size=(3, 5)).astype(np.float32)
    values[1] = np.nan
    sent = network(RNG.normal(size=(3, 5)), weight=0.5)
    found = step_length(reply(values), sent)
    steps = [(values[i] - sent["actor"][0].bias[i]).astype(float) for i in (0, 2)]
    numbers = np.concatenate([*steps, np.full(20, 0.5)])  # two seeds' 10 weights, and biases
    assert found == pytest.approx(np.sqrt((numbers**2).mean()), rel=1e-5)
    assert size(network(np.full((2, 5), 3.0), 3.0)) == pytest.approx(3.0)


def test_replies_are_averaged_in_the_order_of_the_regions():
    """In whatever order they come: a sum of floating-point numbers depends on it."""
    combined, told = [], []

    class Kept(ReplyValidator):
        rounds_before = 4

        def _check(self, replies: object) -> dict[int, Reply]:
            order = (2, 0, 3, 1)
            return {r: reply(np.full((2, 5), r), weight=1.0 + r) for r in order}

        def combine(self, server_round: int, replies: Sequence[Reply]) -> tuple[None, None]:
            combined.append((server_round, [one.weight for one in replies]))
            return None, None

    strategy = Kept()
    strategy.foreign = set()
    strategy._sent = network(np.zeros((2, 5)))
    strategy.done = lambda learnt, _: told.append(list(learnt))
    strategy.aggregate_train(3, [])
    assert combined == [(7, [1.0, 2.0, 3.0, 4.0])]
    assert told == [[0, 1, 2, 3]]


def test_the_mean_of_payloads_is_weighted_seed_by_seed():
    values = RNG.normal(size=(3, 2, 5)).astype(np.float32)
    payloads = [network(v, weight=i) for i, v in enumerate(values)]
    for weights in ((1.0, 2.0, 5.0), (2.0, 2.0, 2.0)):
        found = mean_payload(payloads, weights)["actor"][0]
        expected = np.average(values.astype(float), axis=0, weights=weights)
        np.testing.assert_allclose(found.bias, expected, rtol=1e-5)
        mean = np.average([0.0, 1.0, 2.0], weights=weights)
        np.testing.assert_allclose(found.weight, np.full((2, 2, 5), mean), rtol=1e-6)


def training(anchor=False):
    """Two agents, with two layers each."""

    def layers(start):
        return tuple(
            Layer(
                jnp.full((2, 3, 5), start + i) + jnp.arange(2.0)[:, None, None],
                jnp.full((2, 5), start + i) + jnp.arange(2.0)[:, None],
            )
            for i in range(2)
        )

    agent = Agent(layers(10.0), layers(20.0), None, layers(30.0), None, None)
    agent = agent._replace(anchor=layers(40.0)) if anchor else agent
    return Training(agent, jnp.zeros((2, 4, 3)), jnp.full(2, HEALTHY, jnp.int32))


def test_a_region_sends_its_own_agent():
    """The second of two, of both seeds; critics only where they are shared."""
    seeds = [training(), training()]
    sent = take_payload(seeds, 1, Sharing())
    assert list(sent) == ["actor"]
    assert sent["actor"][0].weight.shape == (2, 3, 5)
    assert (sent["actor"][0].weight == 11.0).all()
    assert (sent["actor"][1].bias == 12.0).all()
    both = take_payload(seeds, 0, Sharing(critics=True))
    assert (both["critic"][1].weight == 21.0).all()


@pytest.mark.parametrize("personal", [False, True])
def test_a_region_continues_from_what_was_sent(personal):
    """Its seed of it, in the layers that are shared; that is also what it is pulled to."""

    def sent(number):
        layers = tuple(
            Layer(
                np.full((2, 3, 5), number + i, np.float32) + 100 * np.arange(2)[:, None, None],
                np.full((2, 5), number + i, np.float32) + 100 * np.arange(2)[:, None],
            )
            for i in range(2)
        )
        return {"actor": jax.tree.map(lambda leaf: leaf.astype(np.float32), layers)}

    before = training(anchor=True)
    sharing = Sharing(layers=(1,)) if personal else Sharing()
    after = adopt(before, 1, [sent(1.0), sent(5.0)], sharing).agents
    for network in (after.actor, after.anchor):
        first = np.asarray(network[0].bias)[:, 0].tolist()
        assert first == ([10.0, 11.0] if personal else [101.0, 105.0])
        assert np.asarray(network[1].bias)[:, 0].tolist() == [102.0, 106.0]
    assert (after.critic[0].bias[0] == 20.0).all()


def test_a_region_tells_its_seeds_that_are_behind():
    """Fewest first: rows that a seed may still fill are not yet written for good."""
    trainer = CoupledTrainer.__new__(CoupledTrainer)
    trainer.steps = np.array([50, 30, 40])
    assert trainer.rows_filled == (30, 50)
