"""Files of a run, loaded without running anything in them."""

import json
from pathlib import Path
from typing import Any

import jax
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from fedrain.errors import InputError
from fedrain.files import write_whole


def write_json(path: Path, value: dict[str, Any]) -> None:
    """A JSON file for people and machines."""
    text = json.dumps(value, indent=2, ensure_ascii=False) + "\n"
    write_whole(path, lambda partial: partial.write_text(text, encoding="utf-8"))


def read_json(path: Path) -> dict[str, Any]:
    """What :func:`write_json` wrote."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise InputError(f"{path}: cannot be read, or is not JSON") from None
    if not isinstance(value, dict):
        raise InputError(f"{path}: is not a JSON object")
    return value


def write_arrays(
    path: Path, arrays: dict[str, np.ndarray], note: dict[str, Any], durable: bool = True
) -> None:
    """Named arrays and a note about them, as safetensors."""
    metadata = {"note": json.dumps(note)}
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    write_whole(path, lambda partial: save_file(contiguous, partial, metadata=metadata), durable)


def read_arrays(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """What :func:`write_arrays` wrote."""
    try:
        with safe_open(path, framework="numpy") as file:
            note = json.loads((file.metadata() or {})["note"])
            return {name: file.get_tensor(name) for name in file.keys()}, note  # noqa: SIM118
    except (OSError, SafetensorError, KeyError, ValueError):
        raise InputError(f"{path}: the file is missing, cut short or damaged") from None


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
