"""What options hold, from text: numbers, pairs, names and what belongs to them."""

import argparse
import math
import tomllib
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

#: Bytes of the name of a file, of the 255 that systems admit: ours put something before and after.
LONGEST_NAME = 200
T = TypeVar("T")
Bounds = float | tuple[float, float]
Named = tuple[tuple[str, T], ...]  # name and value, as often as they are given


def number(text: str) -> float:
    """A finite number."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number")
    return value


def place(text: str) -> str:
    """Where something is to be written: a name that every library here can handle."""
    try:
        size = max((len(part.encode()) for part in text.split("/")), default=0)
    except UnicodeEncodeError:
        raise argparse.ArgumentTypeError(f"{text!a} is not text in UTF-8") from None
    if size > LONGEST_NAME:
        raise argparse.ArgumentTypeError(f"a name has at most {LONGEST_NAME} bytes, not {size}")
    return text


def pair(text: str) -> tuple[float, float]:
    """``LOW..HIGH``."""
    low, dots, high = text.partition("..")
    if not dots:
        raise argparse.ArgumentTypeError(f"{text!r} is not LOW..HIGH, such as 180..240")
    return number(low), number(high)


def bounds(text: str) -> Bounds:
    """A number, or ``LOW..HIGH``."""
    return pair(text) if ".." in text else number(text)


def named(value: Callable[[str], T]) -> Callable[[str], Named[T]]:
    """Of ``name=value``, or several of them with commas between."""

    def read(text: str) -> Named[T]:
        return tuple(_named(part, value) for part in text.split(","))

    return read


def _named(text: str, value: Callable[[str], T]) -> tuple[str, T]:
    name, equals, rest = (part.strip() for part in text.partition("="))
    if not name or not equals or not rest:
        raise argparse.ArgumentTypeError(f"{text!r} is not name=value")
    return name, value(rest)


def start(text: str) -> Named[Bounds]:
    """Where a climate starts: with a name, or without, for the first that the model has."""
    return named(bounds)(text) if "=" in text else (("", bounds(text)),)


def weights(text: str) -> Named[float]:
    """Names with or without a weight; without one it is 1."""
    parts = (part if "=" in part else f"{part}=1" for part in text.split(","))
    return tuple(_named(part, number) for part in parts)


def setting(text: str) -> Named[Any]:
    """A hyperparameter, or ``model.name`` for an option of the model: a value as in TOML."""
    return (_named(text, _toml),)


def _toml(text: str) -> Any:
    """Numbers, true and false, and lists of them, as in TOML; whatever else is text."""
    try:
        value = tomllib.loads(f"value = {text}")["value"] if "\n" not in text else text
    except tomllib.TOMLDecodeError:
        try:
            return number(text)  # such as .5
        except argparse.ArgumentTypeError:
            return text
    if isinstance(value, float) and not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{text!r} is not a finite number")
    return value if isinstance(value, bool | int | float | str | list) else text


def names(text: str) -> list[str]:
    """Names with commas between."""
    found = [part.strip() for part in text.split(",")]
    if not all(found):
        raise argparse.ArgumentTypeError(f"{text!r} is not names with commas between")
    return found


def seeds(text: str) -> int | list[int]:
    """How many, or which: ``3,5,8``; ``3,`` is the seed 3 alone."""
    try:
        if "," not in text:
            return int(text)
        return [int(part) for part in text.removesuffix(",").split(",")]
    except ValueError:
        what = "neither a number of seeds nor seeds such as 3,5,8"
        raise argparse.ArgumentTypeError(f"{text!r} is {what}") from None


def tiles(text: str) -> list[int]:
    """``ROWSxCOLS``."""
    rows, _, columns = text.lower().replace("×", "x").partition("x")
    if not (rows.isdecimal() and columns.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} is not ROWSxCOLS, such as 3x4")
    return [int(rows), int(columns)]


def merged(option: str, given: Iterable[Named[T]] | None) -> dict[str, T] | None:
    """All that an option was given, by name; None, if it was not given at all."""
    from fedrain.errors import InputError

    if given is None:
        return None
    found: dict[str, T] = {}
    for name, value in (one for part in given for one in part):
        if name in found:
            raise InputError(f"{option} {name}: is given twice" if name else f"{option}: twice")
        found[name] = value
    return found
