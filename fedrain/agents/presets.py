"""Presets: hyperparameters as data that a user can copy and change.

A preset is a TOML file with a table for each algorithm, and one, ``[common]``, of what is the same
for all. Every key is a field of the algorithm's class, of its transforms or of its schedule. A
table within one of these whose name is in :data:`CONDITIONS` counts only where the condition
holds, so that one preset serves many tasks and no option is silently dropped.
"""

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, fields
from importlib import resources
from pathlib import Path
from typing import Any

from fedrain.agents.algorithm import Algorithm
from fedrain.agents.ddpg import DDPG
from fedrain.agents.sac import SAC
from fedrain.agents.schedule import Schedule
from fedrain.agents.td3 import TD3
from fedrain.agents.tqc import TQC
from fedrain.agents.transforms import Transforms
from fedrain.envs.spec import AgentSpec
from fedrain.errors import InputError, unknown
from fedrain.reading import parse_toml, read_text
from fedrain.references import OF_OTHERS, Registry, is_ours, told

#: Algorithms by name: those of the package, and of others that have an entry point
#: ``fedrain.algorithms``.
ALGORITHMS = Registry(
    "algorithm", "fedrain.algorithms", {"ddpg": DDPG, "td3": TD3, "tqc": TQC, "sac": SAC}
)

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
#: Options that act through others, and are refused where those are off.
ACTS_THROUGH = {"reach": "team", "common_hold": "common_noise", "common_rate": "common_constant"}
COMMON = "common"


def preset_names() -> list[str]:
    """The presets that come with the package.

    Returns:
        Their names, in order of the alphabet.
    """
    folder = resources.files("fedrain.agents") / "presets"
    return sorted(
        f.name.removesuffix(".toml") for f in folder.iterdir() if f.name.endswith(".toml")
    )


def preset_text(name: str | Path) -> str:
    """The text of a preset, by its name or the path of a file.

    Args:
        name: Of a preset of the package, or the path of a TOML file.

    Returns:
        TOML, to be copied and changed.
    """
    path = Path(name)
    if path.suffix == ".toml":
        return read_text(path)
    if str(name) not in preset_names():
        raise unknown("preset", str(name), preset_names())
    file = resources.files("fedrain.agents") / "presets" / f"{name}.toml"
    return file.read_text(encoding="utf-8")


def find_algorithm(algorithm: Any) -> type[Algorithm]:
    """The class of an algorithm by its name or reference, or as it is.

    Args:
        algorithm: ``ddpg``, ``td3``, ``tqc``, ``sac``, ``file.py:Class``, or a class.

    Returns:
        A class that inherits from :class:`Algorithm` and lacks nothing.
    """
    kind = ALGORITHMS.get(algorithm) if isinstance(algorithm, str) else algorithm
    if not isinstance(kind, type) or not issubclass(kind, Algorithm):
        raise InputError(f"{algorithm}: is not a class that inherits from fedrain.agents.Algorithm")
    if missing := sorted(getattr(kind, "__abstractmethods__", ())):
        raise InputError(f"{kind.__name__} has no {' and no '.join(missing)}")
    for one in kind.__mro__[: kind.__mro__.index(Algorithm)]:
        if "__dataclass_params__" not in vars(one) and inspect.get_annotations(one):
            # Its defaults would be those of the class that it inherits from, without a word.
            raise InputError(
                f"{one.__name__}: decorate it with @dataclass(frozen=True, kw_only=True)"
            )
    return kind


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

    Returns:
        The algorithm, of which :meth:`Algorithm.check` says whether it suits the agents.
    """
    kind = find_algorithm(algorithm)
    tables = parse_toml(preset_text(preset), preset)
    values = _where(tables.get(COMMON, {}), spec)
    own, nearest = kind.__name__.lower(), _nearest(kind)
    if own not in tables and nearest is not None:
        if nearest not in tables:
            raise InputError(f"{preset}: the preset has no table [{nearest}]")
        values |= _where(tables[nearest], spec)
    for name in redeclared(kind):
        values.pop(name, None)
    values |= _where(tables.get(own, {}), spec)
    chosen = _flat(kind, settings or {})
    # Who sets team to 0 need not set the preset's reach, too.
    values = without_idle(values, off=[name for name, value in chosen.items() if not value])
    return make_algorithm(kind, values | chosen)


def without_idle(values: Mapping[str, Any], off: Iterable[str]) -> dict[str, Any]:
    """Hyperparameters without those that act through others which are off."""
    idle = {name for name, needed in ACTS_THROUGH.items() if needed in off}
    return {name: value for name, value in values.items() if name not in idle}


def _nearest(kind: type[Algorithm]) -> str | None:
    """The built-in algorithm that a class is or inherits from: it takes that one's table."""
    names = {built: name for name, built in ALGORITHMS.builtin.items()}
    return next((names[one] for one in kind.__mro__ if one in names), None)


def redeclared(kind: type[Algorithm]) -> set[str]:
    """Fields that a user's classes declare: their defaults count, not the preset's."""
    others = [one for one in kind.__mro__ if issubclass(one, Algorithm) and not is_ours(one)]
    return {name for one in others for name in inspect.get_annotations(one)}


def _holds(spec: AgentSpec | None) -> dict[str, bool]:
    """Which of the conditions hold for agents like these."""
    if spec is None:
        return dict.fromkeys(CONDITIONS, True)
    return {
        "known_scales": spec.scale is not None,
        "known_places": spec.places is not None,
        "shared_climate": spec.shared,
        "common_parameters": bool(spec.common),
        "column_parameters": bool(spec.profiles),
    }


def _where(table: Any, spec: AgentSpec | None) -> dict[str, Any]:
    """What of a preset's table counts for agents like these."""
    if not isinstance(table, Mapping):
        raise InputError("a preset has a table of hyperparameters for each algorithm")
    holds = _holds(spec)
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

    Args:
        algorithm: ``ddpg``, ``td3``, ``tqc``, ``sac``, ``file.py:Class``, or a class.
        values: Hyperparameters by name: those without a default, and any others.

    Returns:
        The algorithm, with its transforms and its schedule.
    """
    kind = find_algorithm(algorithm)
    name = kind.__name__.lower()
    flat = _flat(kind, values)
    for part in (kind, *PARTS.values()):
        for key, field in _fields(part).items():
            if key in flat:
                flat[key] = _checked(f"{name}: {key}", flat[key], field)
            elif field.default is MISSING and field.default_factory is MISSING:
                raise InputError(f"{name}: the hyperparameter {key} is missing")
    parts = {
        part: kind_of_part(**{key: flat[key] for key in _fields(kind_of_part) if key in flat})
        for part, kind_of_part in PARTS.items()
    }
    try:
        made = kind(**parts, **{key: flat[key] for key in _fields(kind) if key in flat})
    except InputError:
        raise
    except OF_OTHERS as error:
        raise InputError(f"{kind.__name__} cannot be made ({told(error)})") from None
    if made.transforms.shaping and made.discount == 1:
        raise InputError(f"{name}: shaping needs a discount below 1")
    try:
        hash(made)
    except TypeError:
        raise InputError(f"{name}: a hyperparameter is a number, text or a tuple of them") from None
    return made


def hyperparameters_of(algorithm: Algorithm) -> dict[str, Any]:
    """All hyperparameters, with those of transforms and schedule under their names."""
    own = {key: getattr(algorithm, key) for key in _fields(type(algorithm))}
    for part, kind in PARTS.items():
        own[part] = {key: getattr(getattr(algorithm, part), key) for key in _fields(kind)}
    return own


def modernised(values: Mapping[str, Any], spec: AgentSpec | None = None) -> dict[str, Any]:
    """Hyperparameters as they were stored before version 0.2, by the names of today.

    An option that could not apply was then dropped without a word: with the ``spec`` of the agents
    it is left out here, too. So is one that acts through another which is off.
    """
    if any(part in values for part in PARTS):
        return {name: _without_idle_part(name, value) for name, value in values.items()}
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
            raise InputError(
                f"observation_scale {scale!r} is no longer an option: fields have theirs"
            )
        found["scaled_observations"] = scale != 1
    dropped = {name for one, holds in _holds(spec).items() if not holds for name in _NEEDS[one]}
    found = without_idle(found, [n for n in ACTS_THROUGH.values() if not found.get(n)])
    return {name: value for name, value in found.items() if name not in dropped}


def _without_idle_part(name: str, value: Any) -> Any:
    """Transforms or a schedule as stored, with what acts through others that are off at rest."""
    if name not in PARTS or not isinstance(value, Mapping):
        return value
    active = without_idle(value, [one for one in value if not value[one]])
    return {one: active.get(one, getattr(PARTS[name](), one, None)) for one in value}


#: Options that each condition is for.
_NEEDS = {
    "known_scales": ("scaled_observations",),
    "known_places": ("place",),
    "shared_climate": ("team", "reach"),
    "common_parameters": ("common_noise", "common_hold", "common_constant", "common_rate"),
    "column_parameters": ("knots",),
}
#: Hyperparameters of the package that may be zero; its others are positive.
_MAY_BE_ZERO = (
    "drop", "warmup_steps", "policy_noise", "noise_clip", "exploration_noise", "place", "discount",
    "final_noise", "final_rate", "restraint", "proximal", "team", "reach", "knots", "shaping",
    "noise_reach", "memory",
)  # fmt: skip
_AT_MOST_ONE = (
    "tau", "proximal", "discount", "final_noise", "final_rate", "common_rate", "team", "shaping",
)  # fmt: skip
_OURS = {name for kind in ALGORITHMS.builtin.values() for name in hyperparameter_names(kind)}
_KINDS: dict[str, tuple[str, tuple[type, ...]]] = {
    "bool": ("true or false", (bool,)),
    "str": ("text", (str,)),
    "int": ("an integer", (int,)),
    "float": ("a number", (int, float)),
}


def _checked(what: str, value: Any, field: Field[Any]) -> Any:
    """The value, if it is of its field's type and within its range.

    The range of a field of their own is for a user's class to check; lists, as JSON has them, are
    tuples again.
    """
    kind = str(getattr(field.type, "__name__", field.type))
    if kind not in _KINDS:
        return tuple(value) if isinstance(value, list) else value
    called, types = _KINDS[kind]
    if not isinstance(value, types) or (isinstance(value, bool) and kind != "bool"):
        raise InputError(f"{what} must be {called}, not {value!r}")
    if not isinstance(value, int | float) or kind == "bool" or field.name not in _OURS:
        return value
    low_enough = value <= 1 if field.name in _AT_MOST_ONE else value < float("inf")
    if not low_enough or not (value >= 0 if field.name in _MAY_BE_ZERO else value > 0):
        raise InputError(f"{what} cannot be {value!r}")
    return value
