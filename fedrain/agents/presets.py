"""Presets: hyperparameters as data that a user can copy and change.

A preset is a TOML file with a table for each algorithm; every key is a field of its class.
"""

import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, fields
from importlib import resources
from pathlib import Path
from typing import Any

from fedrain.agents.algorithm import Algorithm
from fedrain.agents.ddpg import DDPG
from fedrain.agents.td3 import TD3
from fedrain.agents.tqc import TQC
from fedrain.errors import InputError

ALGORITHMS: dict[str, type[Algorithm]] = {"ddpg": DDPG, "td3": TD3, "tqc": TQC}


def preset_names() -> list[str]:
    """The presets that come with the package."""
    folder = resources.files("fedrain.agents") / "presets"
    return sorted(
        f.name.removesuffix(".toml") for f in folder.iterdir() if f.name.endswith(".toml")
    )


def preset_text(name: str | Path) -> str:
    """The text of a preset, by its name or the path of a file."""
    path = Path(name)
    if path.suffix == ".toml":
        try:
            return path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            raise InputError(f"{path}: this preset cannot be read") from None
    if str(name) not in preset_names():
        raise unknown("preset", str(name), preset_names())
    file = resources.files("fedrain.agents") / "presets" / f"{name}.toml"
    return file.read_text(encoding="utf-8")


def load_algorithm(algorithm: str, preset: str | Path = "fedrain") -> Algorithm:
    """An algorithm with the hyperparameters of a preset."""
    if algorithm not in ALGORITHMS:
        raise unknown("algorithm", algorithm, list(ALGORITHMS))
    try:
        tables = tomllib.loads(preset_text(preset))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{preset}: not a TOML file ({error})") from None
    if not isinstance(tables.get(algorithm), dict):
        raise InputError(f"{preset}: the preset has no table [{algorithm}]")
    return make_algorithm(algorithm, tables[algorithm])


def make_algorithm(algorithm: str, values: Mapping[str, Any]) -> Algorithm:
    """An algorithm with these hyperparameters, each checked."""
    kind = ALGORITHMS[algorithm]
    known = {field.name: field for field in fields(kind) if field.init}
    for name in values:
        if name not in known:
            raise unknown(f"{algorithm} hyperparameter", name, list(known))
    for name, field in known.items():
        if name not in values:
            if field.default is MISSING:
                raise InputError(f"{algorithm}: the hyperparameter {name} is missing")
            continue
        _check(
            f"{algorithm}: {name}", values[name], str(getattr(field.type, "__name__", field.type))
        )
    if values.get("shaping") and values.get("discount") == 1:
        raise InputError(f"{algorithm}: shaping needs a discount below 1")
    made = kind(**values)
    if isinstance(made, TQC) and made.drop >= made.quantiles:
        raise InputError(f"{algorithm}: drop must leave a quantile of {made.quantiles}")
    return made


#: Hyperparameters that may be zero; all others are positive.
_MAY_BE_ZERO = (
    "drop", "warmup_steps", "policy_noise", "noise_clip", "exploration_noise", "latitude",
    "final_noise", "final_rate", "restraint", "proximal", "team", "reach", "knots",
    "shaping",
)  # fmt: skip
_AT_MOST_ONE = (
    "tau", "proximal", "discount", "final_noise", "final_rate", "common_rate", "team", "shaping",
)  # fmt: skip


def _check(what: str, value: object, kind: str) -> None:
    name = what.rsplit(" ", 1)[-1]
    if kind == "bool":
        if not isinstance(value, bool):
            raise InputError(f"{what} must be true or false, not {value!r}")
        return
    numbers: tuple[type, ...] = (int,) if kind == "int" else (int, float)
    if isinstance(value, bool) or not isinstance(value, numbers):
        raise InputError(
            f"{what} must be a{' whole' if kind == 'int' else ''} number, not {value!r}"
        )
    assert isinstance(value, int | float)
    low_enough = value <= 1 if name in _AT_MOST_ONE else value < float("inf")
    if not low_enough or not (value >= 0 if name in _MAY_BE_ZERO else value > 0):
        raise InputError(f"{what} cannot be {value!r}")


def unknown(what: str, name: str, known: list[str]) -> InputError:
    """There is no such thing; the nearest that there is."""
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.4)
    hint = f"did you mean {near[0]!r}?" if near else f"use one of {', '.join(known)}"
    return InputError(f"there is no {what} {name!r}: {hint}")
