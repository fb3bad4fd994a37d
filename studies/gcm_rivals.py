"""Rivals of the agents in the studies: constants of each latitude by EnKI, and by a gradient."""

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from fedrain.envs import Environment

#: Updates of an ensemble; and forecasts of a day that a member is judged by.
ITERATIONS, FORECASTS = 3, 5
#: Steps of Adam take so many forecasts of a day; a gradient counts as so many days of the model.
BATCH, GRADIENT_COSTS = 1, 4
CORRELATION = 20.0  # degrees over which the prior's parameters are alike
POINTS = 6  # of its learning curve
#: Days between those that forecasts start from.
APART = 37
#: Of the error that a value of a target is said to have, over the spread of the prior's.
TOLERANCE = 0.1
#: What a forecast from a step of a record should show: the record's next step, unless it is said.
Known = Callable[[Any, Any], dict[str, Any]]


def _values(environment: Environment, z: Any) -> dict[str, Any]:
    """Parameters from variables that are standard normal in the prior: ``[parameter, lat]``."""
    rows = list(environment.learnt)
    share = jax.scipy.stats.norm.cdf(z)
    return {row.symbol: row.low + (row.high - row.low) * share[i] for i, row in enumerate(rows)}


def _default(environment: Environment) -> np.ndarray:
    """The variables of the default parameters."""
    from scipy.stats import norm

    columns = len(environment.model.columns)
    shares = [(r.static(columns) - r.low) / (r.high - r.low) for r in environment.learnt]
    return norm.ppf(np.array(shares))


def _full(environment: Environment, values: dict[str, Any]) -> dict[str, Any]:
    static = environment.model.table.static(len(environment.model.columns))
    return {**{k: jnp.asarray(v, jnp.float32) for k, v in static.items()}, **values}


def _constants(environment: Environment, z: np.ndarray) -> dict[str, Any]:
    return {k: np.asarray(v, float) for k, v in _values(environment, jnp.asarray(z)).items()}


def enki_constants(
    environment: Environment,
    seed: int,
    days: int,
    forecasts: bool = False,
    known: Known | None = None,
    apart_in_time: int = APART,
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The mean of an ensemble after each update of ES-MDA, and the days that it took so far.

    Members are judged by the mean over the last 20 of 30 days that run free; or by that of
    forecasts of a day, which all members start from the same steps of the record.
    """
    import iterative_ensemble_smoother as ies

    model, record = environment.model, environment.params.record
    forcing = {one.name: jnp.float32(one.default) for one in model.forcings}
    length = FORECASTS if forecasts else environment.episode_length
    ensemble = days // (ITERATIONS * length)
    judged = [name for name, _ in environment.judged]
    last = int(record.training[1])

    def flat(shown: dict[str, Any]) -> Any:
        return jnp.concatenate([shown[name].ravel() for name in judged])

    def seen(state: Any) -> Any:
        return flat(model.observe(state))

    target = known or (lambda record, day: model.observe(record.at(day + 1)))

    @jax.jit
    def run(record: Any, z: Any, first: Any) -> Any:
        values = _full(environment, _values(environment, z))

        def free(state: Any, number: Any) -> Any:
            del number
            state = model.step(state, values, forcing)
            return state, seen(state)

        def forecast(carry: Any, number: Any) -> Any:
            day = (first + apart_in_time * number) % last
            return carry, seen(model.step(record.at(day), values, forcing))

        start = record.at(first)
        every = jax.lax.scan(forecast if forecasts else free, start, jnp.arange(length))[1]
        return every.mean(0) if forecasts else every[length - environment.judged_over :].mean(0)

    random = np.random.default_rng(seed)
    latitudes = model.columns.latitude
    apart = (latitudes[:, None] - latitudes) / CORRELATION
    root = np.linalg.cholesky(np.exp(-(apart**2) / 2) + 1e-6 * np.eye(len(latitudes)))
    rows = len(environment.learnt)
    white = random.standard_normal((rows, len(latitudes), ensemble))
    prior = np.einsum("ab,rbe->rae", root, white).reshape(-1, ensemble)
    z = prior + _default(environment).reshape(-1, 1)
    first = int(random.integers(*np.asarray(record.training)))
    if forecasts:
        truth = np.mean([np.asarray(flat(target(record, (first + apart_in_time * i) % last)))
                         for i in range(length)], axis=0, dtype=float)  # fmt: skip
    else:
        states = jax.vmap(seen)(jax.tree.map(lambda every: every[:last], record.states))
        truth = np.asarray(states, float).mean(0)
    method = None
    for iteration in range(ITERATIONS):
        members = z.T.reshape(ensemble, rows, len(latitudes))
        # All members start on the same day: what differs is what their parameters do.
        outcomes = [np.asarray(run(record, jnp.asarray(m, jnp.float32), first)) for m in members]
        results = np.stack(outcomes, axis=1).astype(float)
        if method is None:
            noise = TOLERANCE * results.std(axis=1) + 1e-6
            if not forecasts:  # the weather of a month is noise too
                noise = np.maximum(noise, _weather(environment, seen))
            elif known:  # and of some days that are not those of the target
                steps = jnp.arange(last)
                apart = jax.vmap(lambda i: seen(record.at(i)) - flat(known(record, i)))(steps)
                noise = np.maximum(noise, np.asarray(apart).std(axis=0) / np.sqrt(length))
            method = ies.ESMDA(covariance=noise**2, observations=truth, alpha=ITERATIONS, seed=seed)
        finite = np.isfinite(results).all(axis=0)
        method.prepare_assimilation(Y=results[:, finite])
        z[:, finite] = method.assimilate_batch(X=z[:, finite])
        mean = z.mean(axis=1).reshape(rows, len(latitudes))
        yield ensemble * (iteration + 1) * length, _constants(environment, mean)


def _weather(environment: Environment, seen: Any) -> np.ndarray:
    """Standard deviation of the mean over the judged days, from parts of the record."""
    record, over = environment.params.record, environment.judged_over
    last = int(record.training[1])
    every = np.asarray(jax.vmap(seen)(jax.tree.map(lambda one: one[:last], record.states)), float)
    parts = np.stack([every[i : i + over].mean(0) for i in range(0, last - over, over)])
    return parts.std(axis=0)


def gradient_constants(
    environment: Environment, seed: int, days: int, rate: float = 0.05, known: Known | None = None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Adam on the squared errors of forecasts of a day, through the model's own gradient."""
    model, record = environment.model, environment.params.record
    forcing = {one.name: jnp.float32(one.default) for one in model.forcings}
    weights = jnp.asarray(model.columns.weights / model.columns.weights.sum(), jnp.float32)
    target = known or (lambda record, day: model.observe(record.at(day + 1)))

    def loss(z: Any, record: Any, day: Any) -> Any:
        values = _full(environment, _values(environment, z))
        state = jax.checkpoint(lambda v: model.step(record.at(day), v, forcing))(values)
        shown, wanted = model.observe(state), target(record, day)
        total = 0.0
        for name, weight in environment.judged:
            squares = ((shown[name] - wanted[name]) ** 2).reshape(len(weights), -1).mean(1)
            total = total + weight * (weights * squares).sum()
        return total

    slope = jax.jit(jax.value_and_grad(loss))
    method = optax.adam(rate)
    z = jnp.asarray(_default(environment), jnp.float32)
    moments = method.init(z)
    random = np.random.default_rng(seed)
    steps = days // (BATCH * GRADIENT_COSTS)
    for step in range(steps):
        slopes = []
        for day in random.integers(*np.asarray(record.training), size=BATCH):
            value, own = slope(z, record, jnp.int32(day))
            if np.isfinite(value) and bool(jnp.isfinite(own).all()):
                slopes.append(own)
        if not slopes:
            raise RuntimeError("no gradient of this step is finite")
        change, moments = method.update(sum(slopes) / len(slopes), moments)
        z = z + change * (1 - 0.9 * step / steps)
        if (step + 1) * POINTS // steps > step * POINTS // steps:
            yield (step + 1) * BATCH * GRADIENT_COSTS, _constants(environment, np.asarray(z))
