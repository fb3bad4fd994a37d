"""Presets: hyperparameters as data that a user can copy and change.

A preset is a TOML file with a table for each algorithm; every key is a field of its class, of its
transforms or of its schedule. A table within it whose name is one of :data:`CONDITIONS` counts only
where the condition holds, so that one preset serves many tasks and no option is silently dropped.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from fedrain.agents.algorithm import Algorithm
from fedrain.agents.ddpg import DDPG
from fedrain.agents.schedule import Schedule
from fedrain.agents.td3 import TD3
from fedrain.agents.tqc import TQC
from fedrain.agents.transforms import Transforms
from fedrain.envs.spec import AgentSpec
from fedrain.errors import InputError, unknown
from fedrain.references import Registry

ALGORITHMS = Registry("algorithm", "fedrain.algorithms", {"ddpg": DDPG, "td3": TD3, "tqc": TQC})

#: Parts that an algorithm has, each with hyperparameters of its own.
PARTS: dict[str, Any] = {"transforms": Transforms, "schedule": Schedule}
#: When the table of that name within an algorithm's counts.
CONDITIONS = {
    "known_scales": "the typical size of what is seen is known",
    "known_places": "it is known where the agents are",
    "shared_climate": "several agents share a climate",
    "common_parameters": "agents set a parameter together",
    "column_parameters": "agents set parameters of each column",
}

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


def find_algorithm(algorithm: Any) -> type[Algorithm]:
    """The class of an algorithm by its name or reference, or as it is."""
    kind = ALGORITHMS.get(algorithm) if isinstance(algorithm, str) else algorithm
    if not isinstance(kind, type) or not issubclass(kind, Algorithm) or not is_dataclass(kind):
        raise InputError(f"{algorithm}: is not a dataclass that inherits from fedrain.agents.Algorithm")
    if missing := sorted(getattr(kind, "__abstractmethods__", ())):
        raise InputError(f"{kind.__name__} has no {' and no '.join(missing)}")
    return kind


def algorithm_name(kind: type[Algorithm]) -> str:
    """The table of a preset that an algorithm takes its hyperparameters from.

    One of a user's own that has none takes those of the built-in one that it inherits from.
    """
    names = {built: name for name, built in ALGORITHMS.builtin.items()}
    return next((names[one] for one in kind.__mro__ if one in names), kind.__name__.lower())


def load_algorithm(
    algorithm: Any,
    preset: str | Path = "fedrain",
    spec: AgentSpec | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Algorithm:
    """An algorithm with the hyperparameters of a preset.

    Args:
        algorithm: ``ddpg``, ``td3``, ``tqc``, ``sac``, ``file.py:Class``, or a class.
        preset: Name of a preset, or a TOML file.
        spec: The agents that it is for; without one, every condition of the preset holds.
        settings: Hyperparameters that differ from the preset's.
    """
    kind = find_algorithm(algorithm)
    try:
        tables = tomllib.loads(preset_text(preset))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{preset}: not a TOML file ({error})") from None
    own, nearest = kind.__name__.lower(), algorithm_name(kind)
    table = tables.get(own, tables.get(nearest))
    if not isinstance(table, dict):
        raise InputError(f"{preset}: the preset has no table [{nearest}]")
    values = _where(table, spec)
    values |= _flat(kind, settings or {})
    return make_algorithm(kind, values)


def _where(table: Mapping[str, Any], spec: AgentSpec | None) -> dict[str, Any]:
    """What of a preset's table counts for agents like these."""
    holds = dict.fromkeys(CONDITIONS, True)
    if spec is not None:
        holds = {
            "known_scales": spec.scale is not None,
            "known_places": spec.places is not None,
            "shared_climate": spec.shared,
            "common_parameters": bool(spec.common),
            "column_parameters": bool(spec.profiles),
        }
    values: dict[str, Any] = {}
    for name, value in table.items():
        if name not in CONDITIONS:
            values |= value if name in PARTS and isinstance(value, Mapping) else {name: value}
        elif not isinstance(value, Mapping):
            raise InputError(f"{name}: is a table of hyperparameters, not a hyperparameter")
        elif holds[name]:
            values |= value
    return values


def _fields(kind: type[Any]) -> dict[str, Field[Any]]:
    return {field.name: field for field in fields(kind) if field.init and field.name not in PARTS}


def hyperparameter_names(kind: type[Algorithm]) -> list[str]:
    """All that can be set: of the algorithm, of its transforms and of its schedule."""
    return [name for part in (kind, *PARTS.values()) for name in _fields(part)]


def _flat(kind: type[Algorithm], values: Mapping[str, Any]) -> dict[str, Any]:
    """Hyperparameters by their own names, of whatever part; ``schedule.updates`` is ``updates``."""
    known = hyperparameter_names(kind)
    found: dict[str, Any] = {}
    for name, value in values.items():
        if name in PARTS and isinstance(value, Mapping):
            found |= _flat(kind, value)
            continue
        part, _, short = str(name).rpartition(".")
        if (part and part not in PARTS) or short not in known:
            raise unknown(f"{kind.__name__} hyperparameter", name, known)
        found[short] = value
    return found


def make_algorithm(algorithm: Any, values: Mapping[str, Any]) -> Algorithm:
    """An algorithm with these hyperparameters, each checked.

    They may be nested, as :func:`hyperparameters_of` gives them, or flat.
    """
    kind = find_algorithm(algorithm)
    name = kind.__name__.lower()
    flat = _flat(kind, values)
    for part in (kind, *PARTS.values()):
        for key, field in _fields(part).items():
            if key in flat:
                _check(f"{name}: {key}", flat[key], str(getattr(field.type, "__name__", field.type)))
            elif field.default is MISSING:
                raise InputError(f"{name}: the hyperparameter {key} is missing")
    if flat.get("shaping") and flat.get("discount") == 1:
        raise InputError(f"{name}: shaping needs a discount below 1")
    parts = {
        part: kind_of_part(**{key: flat[key] for key in _fields(kind_of_part) if key in flat})
        for part, kind_of_part in PARTS.items()
    }
    made = kind(**parts, **{key: flat[key] for key in _fields(kind) if key in flat})
    if isinstance(made, TQC) and made.drop >= made.quantiles:
        raise InputError(f"{name}: drop must leave a quantile of {made.quantiles}")
    return made


def hyperparameters_of(algorithm: Algorithm) -> dict[str, Any]:
    """All hyperparameters, with those of transforms and schedule under their names."""
    own = {key: getattr(algorithm, key) for key in _fields(type(algorithm))}
    for part, kind in PARTS.items():
        own[part] = {key: getattr(getattr(algorithm, part), key) for key in _fields(kind)}
    return own


def modernised(values: Mapping[str, Any]) -> dict[str, Any]:
    """Hyperparameters as they were stored before version 0.2, by the names of today."""
    found = dict(values)
    if found.pop("root_reward", False):
        found["reward"] = "root"
    if found.pop("log_reward", False):
        found["reward"] = "log"
    if "latitude" in found:
        found["place"] = found.pop("latitude")
    scale = found.pop("observation_scale", None)
    if scale is not None:
        if scale not in (1, 30):
            raise InputError(f"observation_scale {scale:g} is no longer an option: fields have theirs")
        found["scaled_observations"] = scale != 1
    return found


#: Hyperparameters that may be zero; all others are positive.
_MAY_BE_ZERO = (
    "drop", "warmup_steps", "policy_noise", "noise_clip", "exploration_noise", "place",
    "final_noise", "final_rate", "restraint", "proximal", "team", "reach", "knots",
    "shaping", "target_entropy",
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
    if kind == "str":
        if not isinstance(value, str):
            raise InputError(f"{what} must be text, not {value!r}")
        return
    if kind not in ("int", "float"):
        return  # a user's own, which their class checks
    numbers: tuple[type, ...] = (int,) if kind == "int" else (int, float)
    if isinstance(value, bool) or not isinstance(value, numbers):
        raise InputError(
            f"{what} must be {'an integer' if kind == 'int' else 'a number'}, not {value!r}"
        )
    assert isinstance(value, int | float)
    low_enough = value <= 1 if name in _AT_MOST_ONE else value < float("inf")
    if not low_enough or not (value >= 0 if name in _MAY_BE_ZERO else value > 0):
        raise InputError(f"{what} cannot be {value!r}")
