"""Files that may come from a stranger: whatever is read of one is read here.

A file is regular (no device, no pipe: they never end), of no more bytes than its kind may have,
and nested no deeper than :data:`DEPTH`; a dataset is measured before it is unpacked. What
:mod:`fedrain.io` wrote has a checksum in it, and a file that is not as it was written is refused.
"""

import hashlib
import json
import math
import os
import stat
import tomllib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors import SafetensorError, safe_open

from fedrain.errors import InputError

if TYPE_CHECKING:  # slow to import, and only NetCDF needs it
    import xarray

MIB, GIB = 1024**2, 1024**3
#: The most that is read of a file, in bytes: of text (JSON, TOML, keys), of arrays or a dataset.
TEXT, ARRAYS = 4 * MIB, 2 * GIB
#: Levels of a JSON or TOML file, which people give five.
DEPTH = 32
#: Digits of an integer in JSON: those of 64 bits.
DIGITS = 19
NOTE, CHECKSUM = "note", "sha256"
CHANGED = "is damaged or was changed: its checksum does not match"


def amount(size: int) -> str:
    """A number of bytes for people."""
    unit, name = next((u for u in ((GIB, "GiB"), (MIB, "MiB")) if size >= u[0]), (1, "bytes"))
    return f"{math.ceil(10 * size / unit) / 10:g} {name}"


@contextmanager
def open_regular(path: Path, most: int = TEXT) -> Iterator[BufferedReader]:
    """A regular file of no more than so many bytes, open for reading."""
    try:
        # Without O_NONBLOCK, to open a pipe would wait for somebody to write to it.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file") from None
    except (OSError, ValueError) as error:  # ValueError: no name has a null in it
        raise InputError(f"{path}: cannot be read ({_reason(error)})") from None
    try:
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            raise InputError(f"{path}: is a folder, not a file")
        if not stat.S_ISREG(status.st_mode):
            raise InputError(f"{path}: is not a regular file, but a device or a pipe")
        if status.st_size > most:
            raise InputError(
                f"{path}: has {amount(status.st_size)} but at most {amount(most)} is read"
            )
    except InputError:
        os.close(descriptor)
        raise
    with os.fdopen(descriptor, "rb") as file:
        yield file


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def read_bytes(path: Path, most: int = TEXT) -> bytes:
    """All of a small file."""
    with open_regular(path, most) as file:
        try:
            content = file.read(most + 1)  # it may have grown, or its size be a lie as in /proc
        except OSError as error:
            raise InputError(f"{path}: cannot be read ({_reason(error)})") from None
    if len(content) > most:
        raise InputError(f"{path}: has more than {amount(most)}: that is too large")
    return content


def read_text(path: Path, most: int = TEXT) -> str:
    """All of a small file of text."""
    try:
        return read_bytes(path, most).decode("utf-8")
    except UnicodeDecodeError:
        raise InputError(f"{path}: is not text in UTF-8") from None


def parse_json(text: str, where: object) -> Any:
    """What a JSON text from anybody says."""
    try:
        value = json.loads(text, parse_int=_whole)
    except RecursionError:
        raise _too_deep(where) from None
    except ValueError:
        raise InputError(f"{where}: is not JSON") from None
    return _shallow(value, where)


def _whole(digits: str) -> int:
    if len(digits) > DIGITS + digits.startswith("-"):
        raise ValueError("too long a number")
    return int(digits)


def parse_toml(text: str, where: object) -> dict[str, Any]:
    """What a TOML text from anybody says."""
    try:
        value = tomllib.loads(text)
    except RecursionError:
        raise _too_deep(where) from None
    except ValueError as error:  # TOMLDecodeError is one, and so is what int and date raise
        raise InputError(f"{where}: not a TOML file ({str(error).splitlines()[0]})") from None
    return _shallow(value, where)


def _too_deep(where: object) -> InputError:
    return InputError(f"{where}: is nested deeper than {DEPTH} levels")


def _shallow(value: Any, where: object) -> Any:
    """The value, if nobody who walks through it can run out of stack."""
    level = [value]
    for _ in range(DEPTH):
        inner = [tuple(v.values()) if isinstance(v, Mapping) else v for v in level]
        level = [one for v in inner if isinstance(v, list | tuple) for one in v]
        if not level:
            return value
    raise _too_deep(where)


def read_json(path: Path) -> dict[str, Any]:
    """What :func:`fedrain.io.write_json` wrote."""
    value = parse_json(read_text(path), path)
    if not isinstance(value, dict):
        raise InputError(f"{path}: is not a JSON object")
    return value


def digest(arrays: Mapping[str, np.ndarray], note: str) -> str:
    """A hash of named arrays and the note about them."""
    total = hashlib.sha256(note.encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        shape = np.shape(arrays[name])  # ascontiguousarray gives a single number a dimension
        total.update(json.dumps([name, array.dtype.str, shape]).encode())
        total.update(array.reshape(-1).view(np.uint8).data)
    return total.hexdigest()


def file_digest(path: Path) -> str:
    """The SHA-256 of a file's bytes, as ``sha256sum`` gives it."""
    with open_regular(path, ARRAYS) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_arrays(path: Path, most: int = ARRAYS) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """What :func:`fedrain.io.write_arrays` wrote: arrays by name, and the note about them.

    Files from before checksums are read as they are; see :func:`has_checksum`.
    """
    with _tensors(path, most) as file:
        told = file.metadata() or {}
        note = _note(path, told)
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    if CHECKSUM in told and digest(arrays, told[NOTE]) != told[CHECKSUM]:
        raise InputError(f"{path}: {CHANGED}")
    return arrays, note


def read_note(path: Path) -> dict[str, Any]:
    """The note of such a file, and no array: that nothing was changed is not looked at."""
    with _tensors(path) as file:
        return _note(path, file.metadata() or {})


def has_checksum(path: Path) -> bool:
    """Whether such a file tells its checksum; those from before version 0.2 do not."""
    with _tensors(path) as file:
        return CHECKSUM in (file.metadata() or {})


@contextmanager
def _tensors(path: Path, most: int = ARRAYS) -> Iterator[Any]:
    damaged = f"{path}: the file is missing, cut short or damaged"
    if not path.exists():
        raise InputError(damaged)
    with open_regular(path, most):  # one that is no file, or too large, is not opened below
        pass
    try:
        with safe_open(path, framework="numpy") as file:
            yield file
    except InputError:
        raise
    except MemoryError:
        raise InputError(f"{path}: its arrays need more memory than there is") from None
    # The format has types of numbers that NumPy has not.
    except (OSError, SafetensorError, KeyError, ValueError, TypeError, AttributeError):
        raise InputError(damaged) from None


def _note(path: Path, told: Mapping[str, str]) -> dict[str, Any]:
    note = parse_json(told[NOTE], f"{path}: its note")
    if not isinstance(note, dict):
        raise InputError(f"{path}: its note is not a JSON object")
    return note


def read_dataset(path: Path, remedy: str = "", most: int = ARRAYS) -> "xarray.Dataset":
    """All of a NetCDF file, and what can be done about one that is damaged."""
    with open_dataset(path, remedy, most) as data:
        if (size := sum(variable.nbytes for variable in data.variables.values())) > most:
            raise InputError(
                f"{path}: unpacks to {amount(size)} but at most {amount(most)} is read"
            )
        return data.load()


@contextmanager
def open_dataset(path: Path, remedy: str = "", most: int = ARRAYS) -> Iterator["xarray.Dataset"]:
    """A NetCDF file, of which nothing but the names and sizes has been read."""
    import xarray

    with open_regular(path, most):
        pass
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of names and values that a file cannot mean
            with xarray.open_dataset(
                path, engine="netcdf4", decode_times=False, decode_timedelta=False
            ) as data:
                yield data
    except InputError:
        raise
    except MemoryError:
        raise InputError(f"{path}: needs more memory than there is") from None
    except Exception:  # HDF5 has many ways to say so
        raise InputError(f"{path}: is not a NetCDF file, or is damaged{remedy}") from None


def check_dataset(
    path: Path,
    data: "xarray.Dataset",
    coordinates: Mapping[str, Sequence[Any] | np.ndarray],
    variables: Mapping[str, tuple[str, ...]],
) -> None:
    """Refuse a dataset without these coordinates, values and all, or these variables.

    Args:
        path: For the message.
        data: What was read.
        coordinates: By dimension, the values along it, in their order.
        variables: By name, the dimensions that its numbers have.
    """
    for name, expected in coordinates.items():
        found = data[name].values if name in data.variables else np.zeros(0)
        if not _same(found, np.asarray(expected)):
            raise InputError(f"{path}: its coordinate {name!r} is not that of the run")
    for name, dimensions in variables.items():
        if name not in data.data_vars:
            raise InputError(f"{path}: has no variable {name!r}")
        variable = data[name]
        if variable.dtype.kind not in "fiu":
            raise InputError(f"{path}: {name!r} has no numbers")
        if tuple(map(str, variable.dims)) != dimensions:
            told = ", ".join(map(str, variable.dims)) or "none"
            raise InputError(f"{path}: the dimensions of {name!r} are {told}")


def _same(found: np.ndarray, expected: np.ndarray) -> bool:
    if found.shape != expected.shape:
        return False
    if expected.dtype.kind not in "fiu":
        return bool(found.astype(str).tolist() == expected.tolist())
    return found.dtype.kind in "fiu" and bool(np.allclose(found, expected, rtol=1e-9, atol=1e-9))
