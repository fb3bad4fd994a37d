"""Search spaces as data: a TOML file with a table for each algorithm, as presets are."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from importlib import resources
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from fedrain.agents import ALGORITHMS, Algorithm
from fedrain.agents.presets import find_algorithm, hyperparameter_names
from fedrain.errors import InputError, unknown
from fedrain.reading import parse_toml, read_text

Value = bool | int | float | str


@runtime_checkable
class Trial(Protocol):
    """What suggests a value, as Optuna's trials do."""

    def suggest_int(self, name: str, low: int, high: int, *, step: int, log: bool) -> int:
        """An integer."""

    def suggest_float(
        self, name: str, low: float, high: float, *, step: float | None, log: bool
    ) -> float:
        """A number."""

    def suggest_categorical(self, name: str, choices: tuple[Value, ...]) -> Any:
        """One of some values."""


@dataclass(frozen=True)
class Range:
    """Numbers from low to high: integers, if both are; evenly by magnitude, if log.

    Args:
        low: Lowest value.
        high: Highest value.
        log: Whether values are drawn evenly by magnitude.
        step: From one value to the next; 1 between integers, none between other numbers.
    """

    low: int | float
    high: int | float
    log: bool = False
    step: int | float | None = None

    @property
    def ends(self) -> tuple[Value, ...]:
        """Values that have to be allowed for all to be."""
        return self.low, self.high

    def suggest(self, name: str, trial: Trial) -> Value:
        """A value to try."""
        if isinstance(self.low, int) and isinstance(self.high, int):
            step = int(self.step or 1)
            return trial.suggest_int(name, self.low, self.high, step=step, log=self.log)
        return trial.suggest_float(name, self.low, self.high, step=self.step, log=self.log)

    def holds(self, value: object) -> bool:
        """Whether a value is in the range."""
        return isinstance(value, int | float) and self.low <= value <= self.high


@dataclass(frozen=True)
class Choice:
    """Some values.

    Args:
        values: Numbers, text, true or false.
    """

    values: tuple[Value, ...]

    @property
    def ends(self) -> tuple[Value, ...]:
        """Values that have to be allowed for all to be."""
        return self.values

    def suggest(self, name: str, trial: Trial) -> Value:
        """A value to try."""
        return trial.suggest_categorical(name, self.values)

    def holds(self, value: object) -> bool:
        """Whether a value is one of them."""
        return value in self.values


#: What is searched: a range or a choice, by the name of the hyperparameter.
Space = dict[str, Range | Choice]


def load_space(algorithm: str | type[Algorithm], path: str | Path | None = None) -> Space:
    """The space of an algorithm: the published one, or that of a file.

    An algorithm of your own without a table takes that of the built-in one that it inherits from.

    Args:
        algorithm: ``ddpg``, another name, ``file.py:Class``, or a class.
        path: The file, if it is your own.

    Returns:
        A range or a choice, by the name of the hyperparameter.
    """
    kind = find_algorithm(algorithm)
    if path is None:
        text = (resources.files("fedrain.tuning") / "space.toml").read_text(encoding="utf-8")
    else:
        text = read_text(Path(path))
    tables = parse_toml(text, path)
    table = next((tables[name] for name in _tables(kind) if name in tables), None)
    if not isinstance(table, dict) or not table:
        own = _tables(kind)[0]
        if path is None:
            raise InputError(
                f"{kind.__name__} has no search space: give --space FILE, with a table [{own}]"
            )
        raise InputError(f"{path}: the search space has no table [{own}]")
    known = hyperparameter_names(kind)
    for name in table:
        if name not in known:
            raise unknown(f"{kind.__name__} hyperparameter", name, known)
    return {name: _dimension(name, value) for name, value in table.items()}


def _tables(kind: type[Algorithm]) -> list[str]:
    """Names of the tables that may be an algorithm's: its own, and the nearest built-in one's."""
    built_in = {one: name for name, one in ALGORITHMS.builtin.items()}
    nearest = [built_in[one] for one in kind.__mro__ if one in built_in][:1]
    return [kind.__name__.lower(), *nearest]


def _dimension(name: str, value: Any) -> Range | Choice:
    if isinstance(value, list) and value and all(isinstance(v, Value) for v in value):
        return Choice(tuple(value))
    if isinstance(value, Mapping):
        extra = set(value) - {field.name for field in fields(Range)}
        low: Any = value.get("low")
        high: Any = value.get("high")
        if not extra and _is_number(low) and _is_number(high) and low < high:
            if value.get("log", False) and (low <= 0 or "step" in value):
                raise InputError(f"{name}: a logarithmic range is above 0 and has no step")
            step: Any = value.get("step", 1)
            integers = isinstance(low, int) and isinstance(high, int)
            if not _is_number(step) or step <= 0 or (integers and not isinstance(step, int)):
                raise InputError(f"{name}: a step is above 0, and an integer between integers")
            return Range(**value)
    raise InputError(f"{name}: a range is {{ low = …, high = … }}, a choice [ …, … ]")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
