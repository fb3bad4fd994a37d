"""Constant parameters by ensemble Kalman inversion, which needs no gradient of the model.

An ensemble of parameters is drawn from a prior, run through the model, and moved towards the target
by the covariances between parameters and final fields, a number of times (ES-MDA, Emerick and
Reynolds 2013). Parameters keep their bounds by transformation: what is updated is z, standard
normal at first, and p = low + (high − low) Φ(z). The z of neighbouring columns are correlated.
"""

import time
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key
from scipy.special import ndtr

from fedrain.baselines.baseline import Baseline, episode_key, judged_end, play, precise
from fedrain.climate import Columns
from fedrain.climate.columns import check_count
from fedrain.climate.model import over_climates
from fedrain.envs import Environment, EnvParams
from fedrain.envs.options import has_own_target
from fedrain.errors import InputError, MissingExtraError

ENSEMBLE = 300
ITERATIONS = 8
NOISE = 0.01  # of the target, as a share of the scale of the first judged field: 0.3 K
MOST = 100_000  # members, or iterations
CORRELATION = 8.0  # degrees of arc over which the prior's parameters are alike


def enki(
    environment: Environment,
    seed: int = 0,
    ensemble: int = ENSEMBLE,
    iterations: int = ITERATIONS,
) -> Baseline:
    """The mean of the ensemble after the last update.

    Args:
        environment: Any environment. Agents with climates of their own have ensembles of their own.
        seed: Draws the ensemble, and the episode where something in it is random.
        ensemble: Members.
        iterations: Updates.

    Returns:
        An episode: ``actions`` ``[step, agent, action]`` in action units, ``returns`` ``[agent]``,
        skill, errors, physics and the number of model runs.
    """
    key = episode_key(seed)
    if ensemble < 2:
        raise InputError(f"an ensemble has at least 2 members, not {ensemble}")
    if iterations < 1:
        raise InputError(f"at least 1 iteration is needed, not {iterations}")
    check_count("the ensemble", ensemble, 2, MOST)
    check_count("the number of iterations", iterations, 1, MOST)
    begin = time.perf_counter()
    agents = range(len(environment.regions))
    groups = [list(agents)] if environment.shared_climate else [[agent] for agent in agents]
    with precise(environment):
        static = jnp.asarray(environment.static_actions)
        target = _target(environment, static, environment.params.free, key)
        inversions = [
            _Inversion(environment, group, seed + i, ensemble, iterations, target)
            for i, group in enumerate(groups)
        ]
        for _ in range(iterations):
            members = np.concatenate([one.members() for one in inversions], axis=1)
            final = _run(environment, jnp.asarray(members), environment.params.free, key)
            for one in inversions:
                one.update(np.asarray(final, float))
        action = np.concatenate([one.mean() for one in inversions])
        actions = np.broadcast_to(action, (environment.episode_length, *action.shape))
        return play("enki", environment, actions, key, len(groups) * ensemble * iterations, begin)


class _Inversion:
    """The ensemble of the agents of one climate."""

    def __init__(
        self,
        environment: Environment,
        agents: list[int],
        seed: int,
        ensemble: int,
        iterations: int,
        target: Float[Array, "agent value"],
    ) -> None:
        self.environment, self.agents, self.ensemble = environment, agents, ensemble
        white = np.random.default_rng(seed).standard_normal(
            (len(agents), environment.action_size, ensemble)
        )
        for agent, values in zip(agents, white, strict=True):
            _correlate(environment, agent, values)
        self.z = white.reshape(-1, ensemble)
        self.method = _import_smoother().ESMDA(
            covariance=np.tile(_variances(environment), len(agents)),
            observations=np.asarray(target, float)[agents].ravel(),
            alpha=iterations,
            seed=seed,
        )

    def members(self) -> Float[np.ndarray, "ensemble agent action"]:
        """The actions of all members; the places of those left out are filled with others."""
        return self._actions(self.z[:, np.arange(self.ensemble) % self.z.shape[1]])

    def mean(self) -> Float[np.ndarray, "agent action"]:
        """The actions of the mean of the ensemble."""
        return self._actions(self.z.mean(axis=1, keepdims=True))[0]

    def update(self, final: Float[np.ndarray, "ensemble agent value"]) -> None:
        """Move the ensemble by what its members gave; those that diverged are left out."""
        own = final[: self.z.shape[1], self.agents].reshape(self.z.shape[1], -1).T
        finite = np.isfinite(own).all(axis=0)
        if finite.sum() < 2:
            raise InputError("fewer than 2 members of the ensemble end with finite numbers")
        self.method.prepare_assimilation(Y=own[:, finite])
        self.z = self.method.assimilate_batch(X=self.z[:, finite])

    def _actions(
        self, z: Float[np.ndarray, "variable member"]
    ) -> Float[np.ndarray, "member agent action"]:
        low, high = self.environment.action_bounds
        return low + (high - low) * ndtr(z.T.reshape(-1, len(self.agents), len(low)))


def _by_agent(environment: Environment, fields: dict[str, Any]) -> Any:
    """The judged fields, end to end: ``[agent, value]``."""
    agents = len(environment.regions)
    parts = [jnp.reshape(fields[name], (agents, -1)) for name, _ in environment.judged]
    return jnp.concatenate(parts, axis=-1)


def _variances(environment: Environment) -> Float[np.ndarray, " value"]:
    """Of the error that each value of a target is said to have.

    Those of the first judged field are NOISE times its scale; the others relate to them so that
    values count by what they weigh in the reward.
    """
    unit = (NOISE * environment.judged_fields[0].scale) ** 2
    shares, sizes = [], []
    for field, (_, weight) in zip(environment.judged_fields, environment.judged, strict=True):
        sizes.append(int(np.prod(field.shape(environment.region_size))))
        shares.append(weight / sizes[-1])  # of one value in the reward
    return np.repeat([unit * shares[0] / share for share in shares], sizes)


def _correlate(
    environment: Environment, agent: int, white: Float[np.ndarray, "action member"]
) -> None:
    """Make the standard normal variables of neighbouring columns alike, in place."""
    columns = environment.model.columns
    cells = np.arange(len(columns))
    if environment.shared_climate:
        cells = environment.division.cells[environment.regions[agent]]
    distance = _distance(columns, cells) / CORRELATION
    root = np.linalg.cholesky(np.exp(-(distance**2) / 2) + 1e-6 * np.eye(len(cells)))
    for row in environment.learnt:
        if row.by_column:
            own = environment.action_slices[row.symbol]
            shaped = white[own].reshape(len(cells), -1)  # levels are not correlated
            white[own] = (root @ shaped).reshape(white[own].shape)


def _distance(columns: Columns, cells: np.ndarray) -> Float[np.ndarray, "cell cell"]:
    """Between columns, in degrees: of latitude, or of the chord through the sphere."""
    north = np.deg2rad(columns.latitude[cells])
    if columns.longitude is None:
        return np.rad2deg(north[:, None] - north)
    east = np.deg2rad(columns.longitude[cells])
    place = np.stack([np.cos(north) * np.cos(east), np.cos(north) * np.sin(east), np.sin(north)])
    squares = ((place[:, :, None] - place[:, None]) ** 2).sum(0)
    return np.rad2deg(np.sqrt(squares))


@partial(jax.jit, static_argnames="environment")
def _run(
    environment: Environment,
    actions: Float[Array, "member agent action"],
    params: EnvParams,
    key: Key[Array, ""],
) -> Float[Array, "member agent value"]:
    """What every member ends with, in the regions that the agents are judged by."""

    def one(action: Float[Array, "agent action"]) -> Float[Array, "agent value"]:
        return _by_agent(environment, judged_end(environment, action, params, key)[0])

    return over_climates(environment.model, one)(actions)


@partial(jax.jit, static_argnames="environment")
def _target(
    environment: Environment,
    action: Float[Array, "agent action"],
    params: EnvParams,
    key: Key[Array, ""],
) -> Float[Array, "agent value"]:
    """What the judged fields should be at the end, which may depend on the episode."""
    if has_own_target(environment):
        return _by_agent(environment, judged_end(environment, action, params, key)[1])
    state, _ = environment.reset(key, params)
    targets = environment.targets(state, params)
    return _by_agent(environment, {n: environment.own(v) for n, v in targets.items()})


def _import_smoother() -> Any:
    try:
        import iterative_ensemble_smoother
    except ImportError:
        raise MissingExtraError("iterative_ensemble_smoother", "enki") from None
    return iterative_ensemble_smoother
