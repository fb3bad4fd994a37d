import jax
import jax.numpy as jnp
import numpy as np

from fedrain.agents.replay import Batch, pack, row_size, take, unpack


def test_rows_hold_what_they_are_given():
    rng = np.random.default_rng(0)
    transition = Batch(*(jnp.asarray(rng.normal(size=s)) for s in ((5, 4), (5, 3), (5,), (5, 4))))
    rows = pack(transition)
    assert rows.shape == (5, row_size(4, 3))
    jax.tree.map(np.testing.assert_array_equal, unpack(rows, 4), transition)


def test_draws_are_uniform_over_what_is_filled():
    rows = jnp.arange(20.0).reshape(2, 10, 1)
    bits = jax.random.bits(jax.random.key(0), (2, 70_000))
    for agent, drawn in enumerate(np.asarray(take(rows, bits, jnp.asarray(7)))):
        counts = np.bincount(drawn[:, 0].astype(int) - 10 * agent, minlength=10)
        assert counts[7:].sum() == 0
        # Each count is binomial with mean 10 000 and standard deviation 93.
        assert np.abs(counts[:7] - 10_000).max() < 5 * 93


def test_draws_are_of_the_latest_rows():
    rows = jnp.arange(20.0).reshape(2, 10, 1)
    bits = jax.random.bits(jax.random.key(0), (2, 40_000))
    for filled, expected in ((3, {0, 1, 2}), (4, {0, 1, 2, 3}), (9, {5, 6, 7, 8})):
        for agent, drawn in enumerate(np.asarray(take(rows, bits, jnp.asarray(filled), last=4))):
            values, counts = np.unique(drawn[:, 0].astype(int) - 10 * agent, return_counts=True)
            assert set(values.tolist()) == expected
            assert np.abs(counts - 40_000 / len(expected)).max() < 5 * 100
