"""Ways in which a file goes wrong: bytes, text, JSON, headers of arrays, and datasets."""

import json
import struct
import tempfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import xarray as xr

from fedrain.errors import InputError
from fedrain.io import write_dataset

#: What JSON and TOML may have in the place of anything.
VALUES = [
    None, True, False, 0, -1, 1, 2, 7, 2**31, 2**63, -(2**63), 10**30, 0.5, -0.0, 1e-320, 1e308,
    float("inf"), float("nan"), "", "a", "ebm-v1", "ebm-v3", "gcm-twin", "file.py:Task",
    "os:system", "\ud800", "\x00", "../../etc/passwd", "x" * 3000, [], [[]], {},
    {"a": 1}, [1, 2], [0.0] * 12, [[1, 2], [3]], "D", "A", "surface_temperature", "log", "NaN",
]  # fmt: skip
TOML = [
    "1", "-1", "0", "1e400", "nan", "inf", "true", "''", "'x'", "[]", "{}", "[[1]]", "1979-05-27",
    "07:32:00", "9" * 400, "9" * 5000, "0x" + "f" * 40, "{ low = 0, high = 1 }", "[ 1, 'a', true ]",
    "{ low = 1, high = 1e308, log = true }", "[" * 5000, "'''", "1_000", "{ low = nan, high = 3 }",
]  # fmt: skip


def pick(rng, values):
    return values[int(rng.integers(len(values)))]


def in_bytes(content, rng):
    """Flip, cut, repeat, insert or zero a few places."""
    data = bytearray(content)
    for _ in range(int(rng.integers(1, 4))):
        place = int(rng.integers(len(data) + 1)) if rng.random() < 0.7 else int(rng.integers(64))
        place, size = min(place, len(data)), int(2 ** rng.uniform(0, 10))
        way = int(rng.integers(7))
        if way == 0 and data:
            data[min(place, len(data) - 1)] ^= 1 << int(rng.integers(8))
        elif way == 1:
            data[place : place + size] = rng.bytes(size)
        elif way == 2:
            del data[place:]
        elif way == 3:
            del data[place : place + size]
        elif way == 4:
            data[place:place] = data[place : place + size]
        elif way == 5:
            data[place : place + 8] = pick(rng, [b"\xff" * 8, b"\0" * 8, b"\x7f" + b"\xff" * 7])
        else:
            data[place : place + size] = bytes(size)
    return bytes(data)


def places(value, path=()):
    """Every place in a JSON value, as keys from the top."""
    found = [path]
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in items:
            found += places(inner, (*path, key))
    return found


def in_value(value, rng):
    """Something else in one place of a JSON value, or something less, or more."""
    value = json.loads(json.dumps(value))
    for _ in range(int(rng.integers(1, 3))):
        if not value:
            break
        *above, last = pick(rng, [path for path in places(value) if path])
        holder = value
        for key in above:
            holder = holder[key]
        way = int(rng.integers(5))
        if way == 0:
            del holder[last]
        elif way == 1 and isinstance(holder, dict):
            holder[pick(rng, ["", "a", "episodes", "model", "\ud800", last])] = holder.pop(last)
        elif way == 2 and isinstance(holder[last], int | float):
            holder[last] = pick(rng, [-1, 2, 1000, 2**40, -0.5, 1e-9]) * holder[last]
        elif way == 3 and isinstance(holder[last], list | str):
            holder[last] = holder[last] * pick(rng, [0, 2, 50])
        else:
            holder[last] = pick(rng, VALUES)
    return value


def in_json(content, rng):
    """Of a JSON file."""
    if rng.random() < 0.2:
        return in_bytes(content, rng)
    if rng.random() < 0.05:
        depth = int(10 ** rng.uniform(1, 5.5))
        return b'{"env": ' + b"[" * depth + b"]" * depth + b"}"
    return json.dumps(in_value(json.loads(content), rng)).encode()


def in_toml(content, rng):
    """Of a TOML file: its lines and values."""
    if rng.random() < 0.2:
        return in_bytes(content, rng)
    lines = content.decode().split("\n")
    for _ in range(int(rng.integers(1, 4))):
        i, way = int(rng.integers(len(lines))), int(rng.integers(5))
        if way == 0:
            del lines[i]
        elif way == 1:
            lines.insert(i, pick(rng, lines))
        elif way == 2:
            lines.insert(
                i, pick(rng, ["[ddpg]", "[common]", "[[ddpg]]", "[ddpg.known_scales]", "a.b.c = 1"])
            )
        else:
            name = lines[i].partition("=")[0].strip() or "width"
            lines[i] = f"{name} = {pick(rng, TOML)}"
        lines = lines or [""]
    return "\n".join(lines).encode()


def in_arrays(content, rng):
    """Of a file of named arrays: its bytes, its header, its note; with its checksum, or none."""
    if rng.random() < 0.4:
        return in_bytes(content, rng)
    (size,) = struct.unpack("<Q", content[:8])
    header, rest = json.loads(content[8 : 8 + size]), content[8 + size :]
    told = header["__metadata__"]
    if rng.random() < 0.5:
        told.pop("sha256", None)
    way = int(rng.integers(4))
    if way == 0:
        told["note"] = json.dumps(in_value(json.loads(told["note"]), rng))
    elif way == 1:
        told["note"] = pick(rng, ["", "3", "[]", "{", "[" * 10**5, '"a"', told["note"][:-3]])
    elif way == 2:
        header = in_value(header, rng)
    else:
        told.pop("sha256", None)
        rest = in_bytes(rest, rng)
        rest = (rest + bytes(len(content)))[: len(content) - 8 - size]  # as long as it was
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + rest


def in_dataset(content, rng):
    """Of a NetCDF file: its bytes; or its names, dimensions, types, coordinates and numbers."""
    if rng.random() < 0.4:
        return in_bytes(content, rng)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.nc"
        path.write_bytes(content)
        with xr.open_dataset(path, decode_times=False) as file:
            data = file.load()
        for _ in range(int(rng.integers(1, 3))):
            with suppress(ValueError, TypeError):  # what xarray itself refuses to make
                data = _other(data, rng)
        for variable in data.variables.values():
            variable.encoding = {}
        try:
            write_dataset(path, data)
        except (InputError, ValueError, TypeError):
            return in_bytes(content, rng)
        return path.read_bytes()


def _other(data, rng):
    names, dimensions = list(data.variables), list(data.sizes)
    if not names or not dimensions:
        return xr.Dataset()
    name, along, way = pick(rng, names), pick(rng, dimensions), int(rng.integers(11))
    if way == 0:
        return data.drop_vars(name)
    if way == 1:
        return data.isel({along: slice(None, None, -1)})
    if way == 2:
        return data.isel({along: slice(int(rng.integers(data.sizes[along] + 1)))})
    if way == 3:
        return data.transpose(*rng.permutation(dimensions).tolist())
    if way == 4:
        return data.isel({along: 0}, drop=bool(rng.integers(2)))
    if way == 5:
        return (
            data.rename({name: pick(rng, ["x", "lat", "time", "skt"])})
            if name not in ("x", "lat", "time", "skt")
            else data
        )
    if way == 6:
        return data.drop_vars([one for one in names if along in data[one].dims])
    kind = data[name].dtype.kind
    if way == 7:
        to = pick(rng, [str, np.int8, np.float16 if kind != "U" else str, np.uint64])
        to = np.float32 if to is np.float16 else to
        values = data[name].values
        return data.assign(
            {
                name: (
                    data[name].dims,
                    values.astype(str)
                    if to is str or kind == "U"
                    else np.nan_to_num(values).astype(to),
                )
            }
        )
    if way == 8 and kind == "f":
        fill = pick(rng, [np.nan, np.inf, -1e30, 1e308, 0.0])
        return data.assign({name: data[name].where(rng.random(data[name].shape) < 0.5, fill)})
    if way == 9:
        attributes = {"units": pick(rng, ["", "K", "degC", "days since x", 3, "m" * 999])}
        return data.assign({name: data[name].assign_attrs(attributes)})
    return data.assign_attrs(configuration=pick(rng, ["", "{}", "[" * 9999, "3"]))
