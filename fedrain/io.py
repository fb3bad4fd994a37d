"""Files that are written whole or not at all; :mod:`fedrain.reading` reads them."""

import errno
import json
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import sleep
from typing import IO, TYPE_CHECKING, Any

import jax
import numpy as np
from safetensors.numpy import save_file

from fedrain.errors import InputError
from fedrain.reading import CHECKSUM, NOTE, digest

if TYPE_CHECKING:  # slow to import, and only NetCDF needs it
    import xarray

PARTIAL = ".partial"
LOCK = ".lock"
AN_INSTANT = 0.05  # seconds
PACKING = ("dtype", "scale_factor", "add_offset", "_FillValue")


def write_whole(path: Path, write: Callable[[Path], object], durable: bool = True) -> None:
    """Write beside the file, then put it in its place at once.

    What need not outlive a loss of power is not durable, and much quicker written.
    """
    if not path.name:
        raise InputError(f"{path}: is not the name of a file")
    partial = path.with_name(f".{path.name}{PARTIAL}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.unlink(missing_ok=True)  # a stranger's link there would be followed
        write(partial)
        if durable:
            with partial.open("rb+") as file:
                os.fsync(file.fileno())
        partial.replace(path)
    except Exception as error:
        with suppress(OSError):  # nor can it be removed from where nothing can be
            partial.unlink(missing_ok=True)
        raise _explain(path, error) from None


def is_trace(path: Path) -> bool:
    """Whether this is a lock, or what a process that was killed has left of a file."""
    return path.name == LOCK or (path.name.startswith(".") and path.suffix == PARTIAL)


def write_bytes(path: Path, content: bytes, secret: bool = False) -> None:
    """A file; a secret is its owner's from the first byte on."""

    def write(partial: Path) -> None:
        mode = 0o600 if secret else 0o644
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file:
            file.write(content)

    write_whole(path, write)


@contextmanager
def claim(path: Path) -> Iterator[bool]:
    """Hold a lock that the system lets go of when the process dies; whether it was free.

    It is tried twice, since one who only looks whether it is free holds it for an instant.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        opened = _open_lock(path)
    except OSError as error:
        raise _explain(path, error) from None
    with opened as file:
        free = _lock(file)
        if not free:
            sleep(AN_INSTANT)
            free = _lock(file)
        yield free


def _open_lock(path: Path) -> IO[str]:
    """A file that is only there to be locked; a link is not followed, a pipe not waited for."""
    if path.is_symlink():
        raise InputError(f"{path}: is a link, and a lock is a file of its own")
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    descriptor = os.open(path, flags, 0o644)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise InputError(f"{path}: is not a regular file, but a device or a pipe")
    return os.fdopen(descriptor, "r+")


def _lock(file: IO[str]) -> bool:
    try:
        import fcntl
    except ImportError:  # not everywhere, and then there is nothing to hold
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_locked(path: Path) -> bool:
    """Whether a process holds this lock; nothing is written, and the lock is free as before."""
    try:
        import fcntl

        with path.open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except (ImportError, OSError):
        return False
    return False


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Refuse a folder that another process uses."""
    with claim(folder / LOCK) as free:
        if not free:
            raise InputError(f"{folder}: is in use by another process")
        yield


def _explain(path: Path, error: Exception) -> Exception:
    text = str(error)
    if isinstance(error, OSError) or "os error" in text.lower() or "HDF" in text:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else text
        if getattr(error, "errno", None) == errno.ENOSPC or "No space" in text:
            reason = "no space left on the device"
        return InputError(f"{path}: cannot be written ({reason})")
    return error


def write_dataset(path: str | Path, dataset: "xarray.Dataset") -> None:
    """A NetCDF file, compressed with checksums, packed where a variable's encoding says so."""
    encoding = {
        name: {k: v for k, v in variable.encoding.items() if k in PACKING}
        | {"zlib": True, "complevel": 4, "fletcher32": True}
        for name, variable in dataset.data_vars.items()
        if variable.dtype.kind in "fiu" and variable.ndim
    }
    write_whole(
        Path(path), lambda partial: dataset.to_netcdf(partial, encoding=encoding, engine="netcdf4")
    )


def write_json(path: Path, value: dict[str, Any]) -> None:
    """A JSON file for people and machines."""
    text = json.dumps(value, indent=2, ensure_ascii=False) + "\n"
    write_whole(path, lambda partial: partial.write_text(text, encoding="utf-8"))


def write_arrays(
    path: Path, arrays: dict[str, np.ndarray], note: dict[str, Any], durable: bool = True
) -> None:
    """Named arrays and a note about them, as safetensors, with a checksum of both."""
    # np.ascontiguousarray would give a single number a dimension.
    contiguous = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    text = json.dumps(note)
    metadata = {NOTE: text, CHECKSUM: digest(contiguous, text)}
    write_whole(path, lambda partial: save_file(contiguous, partial, metadata=metadata), durable)


def flatten(tree: Any) -> dict[str, np.ndarray]:
    """The leaves of a pytree by the path to them."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {
        jax.tree_util.keystr(path, simple=True, separator="/"): np.asarray(leaf)
        for path, leaf in leaves
    }


def unflatten(like: Any, arrays: dict[str, np.ndarray], what: str) -> Any:
    """A pytree of the same structure, shapes and types as ``like``, from its named leaves."""
    paths, structure = jax.tree_util.tree_flatten_with_path(like)
    leaves = []
    for path, leaf in paths:
        name = jax.tree_util.keystr(path, simple=True, separator="/")
        array = arrays.get(name)
        if array is None or array.shape != leaf.shape or array.dtype != leaf.dtype:
            raise InputError(f"{what}: does not fit this configuration ({name})")
        leaves.append(array)
    return jax.tree_util.tree_unflatten(structure, leaves)
