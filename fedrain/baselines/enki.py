"""Constant parameters by ensemble Kalman inversion, which needs no gradient of the model.

An ensemble of parameters is drawn from a prior, run through the model, and moved towards the target
by the covariances between parameters and final temperatures, a number of times (ES-MDA, Emerick and
Reynolds 2013). Parameters keep their bounds by transformation: what is updated is z, standard
normal at first, and p = low + (high − low) Φ(z). Along latitude, neighbours' z are correlated.
"""

import time
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.stats import norm

from fedrain.baselines.baseline import Baseline, check_seed, play
from fedrain.envs import Environment
from fedrain.envs.rollout import rollout
from fedrain.errors import InputError, MissingExtraError

ENSEMBLE = 300
ITERATIONS = 8
NOISE = 0.3  # K, of the target
CORRELATION = 8.0  # degrees of latitude over which the prior's parameters are alike


def enki(
    environment: Environment,
    seed: int = 0,
    ensemble: int = ENSEMBLE,
    iterations: int = ITERATIONS,
) -> Baseline:
    """The mean of the ensemble after the last update. Agents with own climates go one by one."""
    check_seed(seed)
    if ensemble < 2:
        raise InputError(f"an ensemble has at least 2 members, not {ensemble}")
    if iterations < 1:
        raise InputError(f"there is at least 1 iteration, not {iterations}")
    begin = time.perf_counter()
    if environment.shared_climate or environment.only_region is not None:
        parts = [environment]
    else:
        parts = [replace(environment, only_region=region) for region in environment.regions]
    with jax.enable_x64(True):
        found = [_invert(part, seed + i, ensemble, iterations) for i, part in enumerate(parts)]
        action = np.concatenate(found)
        actions = np.broadcast_to(action, (environment.episode_length, *action.shape))
        return play("enki", environment, actions, len(parts) * ensemble * iterations, begin)


def _invert(
    environment: Environment, seed: int, ensemble: int, iterations: int
) -> Float[np.ndarray, "agent action"]:
    smoother = _import_smoother()
    target = np.asarray(environment.own_target, float).ravel()
    prior = np.random.default_rng(seed)
    z = _prior(environment, prior.standard_normal((_size(environment), ensemble)))
    method = smoother.ESMDA(
        covariance=np.full(len(target), NOISE**2), observations=target, alpha=iterations, seed=seed
    )
    for _ in range(iterations):
        final = np.asarray(_run(environment, jnp.asarray(_parameters(environment, z)))).T
        whole = np.isfinite(final).all(axis=0)
        if whole.sum() < 2:
            raise InputError("fewer than 2 members of the ensemble have finite temperatures")
        z, final = z[:, whole], final[:, whole]  # members that failed are left out from here on
        method.prepare_assimilation(Y=final)
        z = method.assimilate_batch(X=z)
    return _parameters(environment, z.mean(axis=1, keepdims=True))[0]


def _size(environment: Environment) -> int:
    return len(environment.regions) * environment.action_size


def _parameters(
    environment: Environment, z: Float[np.ndarray, "variable member"]
) -> Float[np.ndarray, "member agent action"]:
    low, high = environment.action_bounds
    shape = (-1, len(environment.regions), environment.action_size)
    return low + (high - low) * norm.cdf(z.T.reshape(shape))


def _prior(
    environment: Environment, white: Float[np.ndarray, "variable member"]
) -> Float[np.ndarray, "variable member"]:
    """Standard normal variables, correlated along latitude."""
    spacing = environment.model.grid.centres[1] - environment.model.grid.centres[0]
    cell = np.arange(environment.latitudes_set)
    distance = spacing * (cell[:, None] - cell) / CORRELATION
    root = np.linalg.cholesky(np.exp(-(distance**2) / 2) + 1e-6 * np.eye(len(cell)))
    shaped = white.reshape(len(environment.regions), environment.action_size, -1).copy()
    slices = environment.model.table.action_slices(environment.latitudes_set)
    for row in environment.model.table:
        if row.per_latitude:
            shaped[:, slices[row.symbol]] = root @ shaped[:, slices[row.symbol]]
    return shaped.reshape(white.shape)


@partial(jax.jit, static_argnames="environment")
def _run(
    environment: Environment, actions: Float[Array, "member agent action"]
) -> Float[Array, "member cell"]:
    """Final temperatures of every member, of the cells that the agents are judged by."""

    def one(action: Float[Array, "agent action"]) -> Float[Array, " cell"]:
        shape = (environment.episode_length, *action.shape)
        played = rollout(environment, jnp.broadcast_to(action, shape))
        target = jnp.asarray(environment.own_target)
        return (environment.own_error(played.temperature[-1]) + target).ravel()

    return jax.vmap(one)(actions)


def _import_smoother():  # type: ignore[no-untyped-def]
    try:
        import iterative_ensemble_smoother
    except ImportError:
        raise MissingExtraError("iterative_ensemble_smoother", "enki") from None
    return iterative_ensemble_smoother
