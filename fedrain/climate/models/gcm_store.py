"""What a general circulation model has to compute once, kept in the cache folder.

A spun-up climate takes hundreds of days, and so does the record of a truth. Both are files that
are written whole and named by a hash of all that they depend on; deleting one is safe. JAX's
compiled programs are kept there too, so that only the first start has to compile.
"""

import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, lru_cache
from importlib import metadata
from pathlib import Path
from time import sleep
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fedrain.climate.models.gcm import CirculationState, GeneralCirculationModel
from fedrain.errors import FailureError, InputError
from fedrain.io import claim, flatten, unflatten, write_arrays
from fedrain.reading import ARRAYS, read_arrays
from fedrain.references import reference_to, source_hash

#: Days between messages on the way.
TELL_EVERY = 100
RECIPE = 2  # changes with what this package makes of jcm
WAIT = 1.0  # seconds, for another process
Say = Callable[[str], None]
_ANEW: list[bool] = []  # whether nothing of the cache counts


def cache_folder() -> Path:
    """``FEDRAIN_CACHE``; or ``fedrain`` in the user's folder for caches."""
    if own := os.environ.get("FEDRAIN_CACHE"):
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "fedrain"


@cache
def keep_compiled() -> None:
    """Let JAX keep compiled programs, unless its user has said where, or that it must not."""
    from jax.experimental.compilation_cache import compilation_cache

    chosen = jax.config.values
    if chosen["jax_compilation_cache_dir"] is None and chosen["jax_enable_compilation_cache"]:
        folder = cache_folder() / "compiled"
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{folder}: cannot be written ({error.strerror})") from None
        jax.config.update("jax_compilation_cache_dir", str(folder))
        compilation_cache.reset_cache()  # it was off when something was compiled before


def identity(model: GeneralCirculationModel) -> dict[str, Any]:
    """What the climate of a model with jcm's own parameters depends on."""
    own, physics = not isinstance(model.physics, str), model.physics
    return {
        "recipe": RECIPE,
        "jcm": metadata.version("jcm"),
        "dinosaur": metadata.version("dinosaur"),
        **{name: getattr(model, name) for name in ("truncation", "layers", "surface", "start")},
        **{name: getattr(model, name) for name in ("perpetual", "days_per_step", "spin_up")},
        "physics": [reference_to(physics), source_hash(physics)] if own else physics,
    }


@lru_cache(maxsize=8)
def spun_up(model: GeneralCirculationModel) -> CirculationState:
    """The climate at the end of the spin-up, as NumPy arrays: from the cache, or computed."""
    _ = model.machine  # says what is missing before a folder is made
    keep_compiled()
    name = f"spin-up of T{model.truncation}, {model.spin_up} days"
    return _kept("start", identity(model), name, lambda say: _spin_up(model, say), _like(model))


def _spin_up(model: GeneralCirculationModel, say: Say) -> CirculationState:
    steps = max(1, model.spin_up // model.days_per_step)
    return _run(model, model.rest(), {}, steps, say)


def recorded(
    model: GeneralCirculationModel, adjust: int, days: int, every: int = 1, say: Say | None = None
) -> CirculationState:
    """The states of a model with its static parameters, day by day, with a leading axis.

    Args:
        model: Its table's static values are those of the truth.
        adjust: Steps from the spun-up climate of jcm's parameters to its own.
        days: Steps that are kept.
        every: Steps from one that is kept to the next.
        say: Told how far it is; standard error, if it is left out.
    """
    begin = spun_up(model)
    static = {k: np.asarray(v) for k, v in model.table.static(len(model.columns)).items()}
    key = {**identity(model), "adjust": adjust, "days": days, "every": every}
    key["parameters"] = {name: value.tolist() for name, value in static.items()}
    name = f"record of T{model.truncation}, {adjust} + {days} days"
    like = jax.tree.map(
        lambda one: np.empty((days, *np.shape(one)), np.asarray(one).dtype), _like(model)
    )

    def compute(tell: Say) -> CirculationState:
        values = {name: jnp.asarray(value, jnp.float32) for name, value in static.items()}
        state = _run(model, jax.tree.map(jnp.asarray, begin), values, adjust, tell)
        kept: list[CirculationState] = []
        _run(model, state, values, days * every, tell, kept.append, every)
        return jax.tree.map(lambda *parts: np.stack(parts), *kept)

    return _kept("record", key, name, compute, like, say)


def _run(
    model: GeneralCirculationModel,
    state: CirculationState,
    parameters: dict[str, Any],
    steps: int,
    say: Say,
    keep: Callable[[CirculationState], None] | None = None,
    every: int = 1,
) -> CirculationState:
    """Advance by so many steps, without forcing; a climate that blows up is an error."""
    forcing = {one.name: jnp.asarray(one.default, jnp.float32) for one in model.forcings}
    advance = _compiled(model)
    for step in range(steps):
        state = advance(state, parameters, forcing)
        if keep is not None and (step + 1) % every == 0:
            keep(jax.tree.map(np.asarray, state))
        if (step + 1) % TELL_EVERY == 0 or step + 1 == steps:
            if not all(np.isfinite(one).all() for one in jax.tree.leaves(state)):
                raise FailureError(f"the climate blows up within {step + 1} steps")
            say(f"{(step + 1) * model.days_per_step} of {steps * model.days_per_step} days")
    return jax.tree.map(np.asarray, state)


@lru_cache(maxsize=8)
def _compiled(model: GeneralCirculationModel) -> Any:
    return jax.jit(model.step)


def _like(model: GeneralCirculationModel) -> CirculationState:
    """A state in its structure, shapes and types."""
    return jax.tree.map(np.asarray, model.rest())


def _kept(
    kind: str,
    key: dict[str, Any],
    name: str,
    compute: Callable[[Say], CirculationState],
    like: CirculationState,
    say: Say | None = None,
) -> CirculationState:
    """What a file of the cache holds, or what is computed and written to it."""
    digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:16]
    path = cache_folder() / "gcm" / f"{kind}-{digest}.safetensors"
    size = sum(one.nbytes for one in jax.tree.leaves(like))

    def tell(text: str) -> None:
        (say or _to_people)(f"{name}: {text}")

    if not path.exists() or _ANEW:
        with _in_turn(path.parent / f".{kind}-{digest}.lock", tell):
            if not path.exists() or _ANEW:
                _compute(path, key, compute, tell)
    arrays, _ = read_arrays(path, max(ARRAYS, 2 * size))
    return unflatten(like, arrays, f"{path}: delete it to have it computed again")


@contextmanager
def anew(wanted: bool = True) -> Iterator[None]:
    """Within this, what the cache folder has is computed all the same."""
    if wanted:
        _ANEW.append(True)
        spun_up.cache_clear()
    try:
        yield
    finally:
        _ANEW.clear()


@contextmanager
def _in_turn(lock: Path, tell: Say) -> Iterator[None]:
    """Wait while another process computes the same."""
    waiting = False
    while True:
        with claim(lock) as free:
            if free:
                yield
                return
        if not waiting:
            tell("another process is computing it")
            waiting = True
        sleep(WAIT)


def _compute(
    path: Path, key: dict[str, Any], compute: Callable[[Say], CirculationState], tell: Say
) -> None:
    tell(f"computed once and stored in {path.parent}")
    # A model may be asked for its start within a trace. A thread of its own is in none.
    with ThreadPoolExecutor(1) as apart:
        found = apart.submit(compute, tell).result()
    write_arrays(path, flatten(found), key)


def _to_people(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
