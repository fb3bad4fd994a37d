import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fedrain.agents import load_algorithm
from fedrain.agents.networks import Layer
from fedrain.envs import AgentSpec
from fedrain.errors import InputError
from fedrain.federation import Sharing, actor_distance, average, mean_network
from fedrain.federation.mixing import SCHEMES

SPEC = AgentSpec(3, (0.0, 0.0), (1.0, 1.0))


def stack(number, algo="ddpg"):
    algorithm = load_algorithm(algo)
    keys = jax.random.split(jax.random.key(0), number)
    return jax.jit(jax.vmap(lambda key: algorithm.init(key, key, SPEC)))(keys)


def test_the_mean_goes_to_all_agents():
    agents = stack(3)
    mean = mean_network(agents.actor, Sharing())
    for old, new in zip(jax.tree.leaves(agents.actor), jax.tree.leaves(mean), strict=True):
        for agent in range(3):
            np.testing.assert_allclose(new[agent], np.asarray(old).mean(0), atol=1e-6)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of what Flower imports
@pytest.mark.parametrize("weights", [None, (1.0, 2.0, 5.0)])
def test_equals_flowers_fedavg(weights):
    """The same arrays through the function that Flower's FedAvg averages replies with."""
    from flwr.app import ArrayRecord, MetricRecord, RecordDict
    from flwr.serverapp.strategy.strategy_utils import aggregate_arrayrecords

    agents = stack(3)
    replies = [
        RecordDict(
            {
                "arrays": ArrayRecord(
                    [np.asarray(leaf[i]) for leaf in jax.tree.leaves(agents.actor)]
                ),
                "metrics": MetricRecord({"share": 1.0 if weights is None else weights[i]}),
            }
        )
        for i in range(3)
    ]
    expected = aggregate_arrayrecords(replies, "share").to_numpy_ndarrays()
    mean = mean_network(agents.actor, Sharing(weights=weights))
    for ours, theirs in zip(jax.tree.leaves(mean), expected, strict=True):
        np.testing.assert_allclose(ours[0], theirs, atol=1e-6)


def test_one_agent_changes_nothing():
    agents = stack(1)
    after = average(agents, Sharing(critics=True), jnp.asarray(True))
    jax.tree.map(np.testing.assert_array_equal, after, agents)


def test_only_actors_travel():
    agents = stack(3)
    after = average(agents, Sharing(), jnp.asarray(True))
    jax.tree.map(
        np.testing.assert_array_equal, after._replace(actor=None), agents._replace(actor=None)
    )
    assert not np.array_equal(after.actor[0].weight, agents.actor[0].weight)


def test_critics_travel_on_request():
    agents = stack(3)
    after = average(agents, Sharing(critics=True), jnp.asarray(True))
    np.testing.assert_array_equal(after.critic[0].weight[0], after.critic[0].weight[2])
    np.testing.assert_array_equal(after.target_critic[0].weight, agents.target_critic[0].weight)


def test_personal_layers_stay():
    agents = stack(3)
    after = average(agents, Sharing(layers=(0, 1)), jnp.asarray(True))
    np.testing.assert_array_equal(after.actor[2].weight, agents.actor[2].weight)
    np.testing.assert_array_equal(after.actor[1].weight[0], after.actor[1].weight[2])


def test_not_now():
    agents = stack(3)
    after = average(agents, Sharing(), jnp.asarray(False))
    jax.tree.map(np.testing.assert_array_equal, after, agents)


def test_distance_is_zero_after_an_average():
    agents = stack(6)
    assert actor_distance(agents.actor) > 0.01
    after = average(agents, Sharing(), jnp.asarray(True))
    np.testing.assert_allclose(actor_distance(after.actor), 0, atol=1e-7)


@pytest.mark.parametrize(
    "change",
    [{"weights": (1.0, -1.0)}, {"weights": (0.0, 0.0)}, {"layers": (-1,)}, {"scheme": "zone"}],
)
def test_bad_sharing(change):
    with pytest.raises(InputError):
        Sharing(**change)


def test_weights_must_be_one_for_each_agent():
    with pytest.raises(InputError, match="2 weights for 3 agents"):
        Sharing(weights=(1.0, 1.0)).check(3, 3)


def test_layers_must_exist():
    with pytest.raises(InputError, match="from 0 to 2"):
        Sharing(layers=(3,)).check(6, 3)


def test_a_zone_of_no_weight_is_refused():
    with pytest.raises(InputError, match="without others to average with"):
        Sharing(scheme="zones", weights=(0.0, *[1.0] * 5)).check(6, 3)


@pytest.mark.parametrize("scheme", list(SCHEMES))
@pytest.mark.parametrize("weights", [None, (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)])
def test_averages_keep_what_is_the_same(scheme, weights):
    """Rows of a mixing matrix sum to one: agents that are alike stay as they are."""
    sharing = Sharing(scheme=scheme, weights=weights)
    matrix = sharing.matrix(6)
    np.testing.assert_allclose(matrix.sum(1), 1)
    assert (matrix >= 0).all()
    alike = jax.tree.map(lambda leaf: jnp.repeat(leaf[:1], 6, axis=0), stack(6).actor)
    after = mean_network(alike, sharing)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), after, alike)


def test_zones_and_neighbours_are_those_beside():
    zones, near = (Sharing(scheme=s).matrix(12) for s in ("zones", "neighbours"))
    np.testing.assert_array_equal(zones, np.kron(np.eye(6), np.full((2, 2), 0.5)))
    np.testing.assert_allclose(near[5, 4:7], [0.25, 0.5, 0.25])
    np.testing.assert_allclose(near[0, :2], [2 / 3, 1 / 3])
    assert np.count_nonzero(near) == 12 + 2 * 11


def test_neighbours_average_by_their_matrix():
    agents, sharing = stack(4), Sharing(scheme="neighbours")
    after = average(agents, sharing, jnp.asarray(True))
    weight = np.asarray(agents.actor[0].weight)
    expected = np.einsum("ij,jkl->ikl", sharing.matrix(4), weight)
    np.testing.assert_allclose(after.actor[0].weight, expected, atol=1e-6)


def test_the_anchor_is_the_last_average():
    """Of FedProx: what agents are pulled to moves with every average, and only then."""
    agents = stack(3)
    old = jax.tree.map(lambda leaf: leaf + 5.0, agents.actor)
    anchored = agents._replace(anchor=old)
    for now in (True, False):
        after = average(anchored, Sharing(weights=(1.0, 2.0, 5.0)), jnp.asarray(now))
        for actor, anchor, found in zip(
            *map(jax.tree.leaves, (agents.actor, old, after.anchor)), strict=True
        ):
            mean = np.average(np.asarray(actor, float), axis=0, weights=(1.0, 2.0, 5.0))
            expected = np.broadcast_to(mean, actor.shape) if now else anchor
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_matrices_of_who_is_averaged_with_whom():
    """Of four agents with weights 1 to 4: each row adds up to one, and is who it should be."""
    weights = (1.0, 2.0, 3.0, 4.0)
    expected = {
        "all": np.tile(np.arange(1, 5) / 10, (4, 1)),
        # Half for each neighbour: of 1, 2, 3, 4 times ½, 1, ½.
        "neighbours": [
            [1 / 2, 1 / 2, 0, 0],
            [1 / 8, 1 / 2, 3 / 8, 0],
            [0, 1 / 6, 1 / 2, 1 / 3],
            [0, 0, 3 / 11, 8 / 11],
        ],
        "shared": np.eye(4),
    }
    for scheme, matrix in expected.items():
        np.testing.assert_allclose(Sharing(weights=weights, scheme=scheme).matrix(4), matrix)


def test_distance_is_the_root_mean_square_from_the_mean():
    rng = np.random.default_rng(0)
    weight, bias = rng.normal(size=(3, 2, 4)), rng.normal(size=(3, 4))
    both = np.concatenate([weight.reshape(3, -1), bias], axis=1)
    expected = np.sqrt(((both - both.mean(0)) ** 2).mean())
    network = (Layer(jnp.asarray(weight, jnp.float32), jnp.asarray(bias, jnp.float32)),)
    assert float(actor_distance(network)) == pytest.approx(expected, rel=1e-5)
