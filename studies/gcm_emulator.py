"""An emulator of a day's forecast in ``gcm-twin``, on which the settings of its agents are chosen.

    python studies/gcm_emulator.py sample            # 400 days of the model, 80 core-seconds
    python studies/gcm_emulator.py try DAYS SETTINGS  # as '{"learning_rate": 0.001}': three seeds

The error of a day's forecast at a latitude is fitted by a polynomial in the learnt parameters
there (all squares and products, and cubes) and in those of its neighbours (linear), less the same
of the truth; what the fit leaves is noise, which grows with the distance from the truth. Agents
learn on it in some seconds what takes them minutes on the model. It is no judge of anything: what
was chosen with it is trained and judged on the model, on other seeds.
"""

import json
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from gcm_skill import default_forcing, in_full, twin
from gcm_tables import bands_nearer, identifiable, nearer
from jaxtyping import Array, ArrayLike, Float
from scipy.stats import norm

from fedrain.climate import Columns, GeneralCirculationModel, ParameterTable
from fedrain.climate.fields import Field
from fedrain.climate.models.gcm_parameters import TWIN, twin_truth
from fedrain.envs import Task
from fedrain.envs.catalogue import CIRCULATION
from fedrain.envs.episode import Record
from fedrain.experiment import configure
from fedrain.experiment.evaluation import policy_actions
from fedrain.experiment.training import Session

SAMPLES = Path(__file__).parent.parent / "runs" / "gcm-samples.npz"
NUMBER, TRAINING = 400, 300
SEEDS = (100, 101, 102)
REACH = 10.0  # degrees over which the sampled parameters are alike
#: Of the noise: the least, and at what root mean square distance (in half-ranges) it is all there.
LEAST, FAR = 0.06, 0.6
TASK = CIRCULATION["gcm-twin"]
NAMES = tuple(dict(TASK.judge))  # type: ignore[arg-type]


def scaled(values: dict[str, Any], xp: Any = np) -> Any:
    """The learnt parameters in [−1, 1]: ``[lat, parameter]``."""
    rows = [GeneralCirculationModel().table[symbol] for symbol in TWIN]
    parts = [(xp.asarray(values[r.symbol]) - r.low) / (r.high - r.low) * 2 - 1 for r in rows]
    return xp.stack(parts, -1)


@cache
def truth() -> Float[np.ndarray, "lat parameter"]:
    """The truth's parameters, likewise."""
    return scaled(twin_truth(GeneralCirculationModel().columns))


def features(u: Any, xp: Any = np) -> Any:
    """What the errors of a latitude are linear in, ``[lat, feature]``: nothing with the truth's."""
    t, size = truth(), len(TWIN)
    d = u - t
    pairs = [(a, b) for a in range(size) for b in range(a, size)]
    products = [u[:, a] * u[:, b] - t[:, a] * t[:, b] for a, b in pairs]
    none = xp.zeros((1, size))
    south, north = xp.concatenate([none, d[:-1]]), xp.concatenate([d[1:], none])
    return xp.concatenate([d, xp.stack(products, -1), u**3 - t**3, south, north], -1)


def sample() -> None:
    """Errors of forecasts with random parameters, smooth in latitude, on random training days."""
    environment = twin()
    model, record = environment.model, environment.params.record

    @jax.jit
    def forecast(record: Any, values: Any, day: Any) -> Any:
        shown = model.observe(model.step(record.at(day), values, default_forcing()))
        known = model.observe(record.at(day + 1))
        return {name: shown[name] - known[name] for name in NAMES}

    random, latitude = np.random.default_rng(5), model.columns.latitude
    near = np.exp(-(((latitude[:, None] - latitude) / REACH) ** 2) / 2)
    near /= np.sqrt((near**2).sum(1, keepdims=True))
    seen, errors = [], []
    for _ in range(NUMBER):
        values = {}
        for symbol in TWIN:
            row = model.table[symbol]
            wide = random.choice([0.5, 1.0, 1.0])
            share = norm.cdf(near @ random.standard_normal(len(latitude)) * wide)
            values[symbol] = row.low + (row.high - row.low) * share
        day = jnp.int32(random.integers(0, TRAINING))
        shown = jax.device_get(forecast(record, in_full(values), day))
        seen.append(scaled(values))
        errors.append(np.concatenate([shown[n].reshape(len(latitude), -1) for n in NAMES], -1))
    SAMPLES.parent.mkdir(exist_ok=True)
    np.savez(SAMPLES, seen=np.array(seen), errors=np.array(errors))


@cache
def fitted() -> tuple[Float[np.ndarray, "lat feature number"], Float[np.ndarray, "lat number"]]:
    """Weights of the features, and the root mean square of what they leave."""
    with np.load(SAMPLES) as held:
        seen, errors = held["seen"], held["errors"]
    every = np.stack([features(one) for one in seen])
    weights, rest = [], []
    for i in range(seen.shape[1]):
        own = np.linalg.lstsq(every[:, i], errors[:, i], rcond=None)[0]
        weights.append(own)
        rest.append((errors[:, i] - every[:, i] @ own).std(0))
    return np.array(weights), np.array(rest)


def errors_of(u: Any, xp: Any = np) -> tuple[Any, Any]:
    """Errors of a forecast and the standard deviation of their noise: ``[lat, number]``."""
    weights, rest = fitted()
    distance = xp.sqrt(((u - truth()) ** 2).mean(-1, keepdims=True)) / FAR
    return xp.einsum("if,ifk->ik", features(u, xp), weights), rest * (distance + LEAST)


@dataclass(frozen=True)
class Emulated:
    """Shows what a forecast is wrong by, where the truth shows nothing at all."""

    table: ParameterTable = ParameterTable(
        tuple(GeneralCirculationModel().table[symbol] for symbol in TWIN)
    )
    forcings = ()
    differentiable = False
    days_per_step = 1

    @property
    def columns(self) -> Columns:
        """Those of the model."""
        return GeneralCirculationModel().columns

    @property
    def fields(self) -> tuple[Field, ...]:
        """Those that are judged."""
        every = {one.name: one for one in GeneralCirculationModel().fields}
        return tuple(every[name] for name in NAMES)

    def init(self, key: Any = None) -> Any:
        """A day of the truth."""
        del key
        return jax.tree.map(lambda one: one[0], states())

    def step(self, state: Any, parameters: Any, forcing: Any = None, key: Any = None) -> Any:
        """The next day."""
        del forcing
        errors, noise = errors_of(scaled(parameters, jnp), jnp)
        errors = errors + noise * jax.random.normal(key, errors.shape)
        return {"shown": errors.astype(jnp.float32), "day": state["day"] + 1}

    def observe(self, state: Any) -> dict[str, Float[Array, "lat ..."]]:
        """Errors of the judged fields; the last has the levels."""
        shown, first = state["shown"], len(NAMES) - 1
        return {name: shown[:, i] for i, name in enumerate(NAMES[:-1])} | {
            NAMES[-1]: shown[:, first:]
        }


def states() -> dict[str, ArrayLike]:
    """Of the truth, day by day."""
    shape = (NUMBER, *fitted()[1].shape)
    return {"shown": jnp.zeros(shape), "day": jnp.arange(NUMBER, dtype=jnp.int32)}


def record(model: Emulated, length: int) -> Record:
    """In two parts, as that of the model."""
    del model
    return Record(
        states(), jnp.array([0, TRAINING - length]), jnp.array([TRAINING + 20, NUMBER - length])
    )


def attempt(days: int, settings: dict[str, Any]) -> None:
    """Train a shared policy on three seeds, and say how near the truth it comes."""
    options = {name: getattr(TASK, name) for name in (
        "agents", "episode_length", "learn", "judge", "observe", "analysis_every", "judged_over",
        "overlap",
    )}  # fmt: skip
    experiment = configure(
        env=Task(model=Emulated(), record=record, **options), seeds=list(SEEDS), algo="ddpg",
        episodes=days // TASK.episode_length, preset="forecast", sharing="shared",
        settings=settings,
    )  # fmt: skip
    environment, algorithm = experiment.make_environment(), experiment.make_algorithm()
    _, seen = environment.reset(params=environment.params)
    known = identifiable()
    with tempfile.TemporaryDirectory() as folder:
        session = Session(experiment, Path(folder) / "run", str, None, False)
        session.run()
        keys = jax.random.split(jax.random.key(0), len(environment.regions))
        for number, seed in enumerate(SEEDS):
            actors = jax.tree.map(lambda leaf, own=number: leaf[own], session.trainer.actors())
            action = policy_actions(environment, algorithm, actors, seen, keys, jnp.int32(0))
            own = environment.own_parameters(action)
            values = {s: np.asarray(own[s], float).tolist() for s in TWIN}
            near, of = bands_nearer(values, known)
            worst = max(nearer(values[s], s)[np.array(known[s])].max()
                        for s in TWIN if any(known[s]))  # fmt: skip
            print(f"seed {seed}: nearer in {near} of {of} bands, at worst {worst:.2f}", flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "sample":
        sample()
    else:
        attempt(int(sys.argv[2]), json.loads(sys.argv[3]))
