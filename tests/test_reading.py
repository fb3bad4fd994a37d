"""Whatever a stranger puts in place of a file: one line, and neither memory nor time is lost."""

import json
import os
import struct

import numpy as np
import pytest
import xarray as xr

from fedrain.cli import main
from fedrain.climate import read_zonal_mean
from fedrain.climate.models import gcm_store
from fedrain.errors import InputError
from fedrain.io import write_arrays, write_dataset
from fedrain.reading import (
    ARRAYS,
    DEPTH,
    TEXT,
    amount,
    check_dataset,
    parse_json,
    parse_toml,
    read_arrays,
    read_dataset,
    read_json,
    read_note,
    read_text,
)

READERS = [read_text, read_json, read_arrays, read_note, read_dataset, read_zonal_mean]


def sparse(path, size):
    with path.open("wb") as file:
        file.truncate(size)


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda path: path.symlink_to("/dev/zero"), "a device or a pipe"),
        (os.mkfifo, "a device or a pipe"),
        (lambda path: path.mkdir(), "is a folder"),
        (lambda path: path.symlink_to(path.name), r"cannot be read|missing"),
        (lambda path: sparse(path, 10**13), "but at most"),
        (lambda _: None, r"there is no such file|the file is missing"),
        (lambda path: path.write_bytes(b""), r"not JSON|damaged"),
        (lambda path: path.write_bytes(b"\xff\xfe\x00"), r"not text in UTF-8|damaged"),
    ],
    ids=["device", "pipe", "folder", "loop", "vast", "none", "empty", "bytes"],
)
def test_what_is_no_file_of_ours(tmp_path, read, make, reason):
    make(path := tmp_path / "file")
    if read is read_text and path.is_file() and not path.stat().st_size:
        return  # an empty text is a text
    with pytest.raises(InputError, match=reason) as refused:
        read(path)
    assert len(str(refused.value).splitlines()) == 1


@pytest.mark.parametrize("parse", [parse_json, parse_toml])
@pytest.mark.parametrize("depth", [DEPTH + 1, 2000, 100_000])
def test_nested_deeper_than_the_stack(parse, depth):
    text = "[" * depth + "]" * depth
    with pytest.raises(InputError, match=f"deeper than {DEPTH} levels"):
        parse(text if parse is parse_json else f"a = {text}", "file")


def test_no_deeper_is_read():
    inner = "[" * (DEPTH - 1) + "]" * (DEPTH - 1)
    assert parse_json(f'{{"a": {inner}}}', "file")["a"] == json.loads(inner)


def test_a_note_that_is_nested_deeper_than_the_stack(tmp_path):
    """In the header of a file that is right otherwise."""
    note = "[" * 100_000 + "]" * 100_000
    header = json.dumps({"__metadata__": {"note": note}}).encode()
    path = tmp_path / "weights.safetensors"
    path.write_bytes(struct.pack("<Q", len(header)) + header)
    for read in (read_arrays, read_note):
        with pytest.raises(InputError, match="deeper"):
            read(path)


@pytest.mark.parametrize("number", ["1" + "0" * 19, "-9" + "0" * 19, "1" * 5000])
def test_numbers_of_more_than_64_bits(number):
    with pytest.raises(InputError, match="is not JSON"):
        parse_json(f'{{"seeds": {number}}}', "file")


def test_every_byte_of_the_arrays_counts(tmp_path):
    """A checksum is of names, types, shapes, numbers and the note."""
    path, random = tmp_path / "a", np.random.default_rng(0)
    numbers = random.normal(size=(5, 7)).astype(np.float32)
    write_arrays(path, {"one": numbers, "two": np.arange(3)}, {"episode": 3})
    whole = path.read_bytes()
    (size,) = struct.unpack("<Q", whole[:8])
    for place in [*random.integers(8 + size, len(whole), 20), whole.index(b"episode") + 10]:
        changed = bytearray(whole)
        changed[place] ^= 1
        path.write_bytes(changed)
        with pytest.raises(InputError, match=r"checksum|damaged|its note"):
            read_arrays(path)
    path.write_bytes(whole.replace(b'"two"', b'"tow"'))
    with pytest.raises(InputError, match="checksum"):
        read_arrays(path)


def test_arrays_of_before_checksums_are_read(tmp_path):
    from safetensors.numpy import save_file

    save_file({"one": np.arange(3.0)}, tmp_path / "a", metadata={"note": '{"episode": 3}'})
    arrays, note = read_arrays(tmp_path / "a")
    assert arrays["one"].tolist() == [0, 1, 2]
    assert note == {"episode": 3}


def test_what_unpacks_to_more_than_is_read(tmp_path):
    """A file of a few kB that would be 80 GB in memory."""
    import netCDF4

    with netCDF4.Dataset(tmp_path / "vast.nc", "w") as file:
        for name, size in (("time", 10**4), ("lat", 10**3), ("lon", 10**3)):
            file.createDimension(name, size)
        file.createVariable("skt", "f8", ("time", "lat", "lon"), zlib=True)
        file.createVariable("lat", "f8", ("lat",))[:] = np.linspace(-90, 90, 1000)
    for read in (read_dataset, read_zonal_mean):
        with pytest.raises(
            InputError,
            match=rf"at most {amount(ARRAYS)} is read|{amount(ARRAYS)} is the most that is read",
        ):
            read(tmp_path / "vast.nc")


def test_a_text_of_the_most_that_is_read(tmp_path):
    (tmp_path / "a").write_bytes(b" " * TEXT)
    assert len(read_text(tmp_path / "a")) == TEXT
    (tmp_path / "a").write_bytes(b" " * (TEXT + 1))
    with pytest.raises(InputError, match="at most"):
        read_text(tmp_path / "a")


GOOD = {"x": ("seed", np.arange(3.0)), "y": (("seed", "band"), np.zeros((3, 2)))}
COORDINATES = {"seed": [0, 1, 2], "band": ["south", "north"]}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda data: data.isel(band=[1, 0]), "coordinate 'band' is not"),
        (lambda data: data.isel(seed=[0, 1]), "coordinate 'seed' is not"),
        (lambda data: data.drop_vars("band"), "coordinate 'band' is not"),
        (lambda data: data.drop_vars("x"), "no variable 'x'"),
        (lambda data: data.transpose("band", "seed"), "dimensions of 'y' are band, seed"),
        (lambda data: data.assign(x=("seed", ["a", "b", "c"])), "'x' has no numbers"),
        (lambda data: data.assign(y=data.y.mean("band")), "dimensions of 'y' are seed"),
        (lambda data: data.assign_coords(seed=["a", "b", "c"]), "coordinate 'seed' is not"),
    ],
)
def test_a_dataset_of_something_else(tmp_path, change, reason):
    path, data = tmp_path / "a.nc", xr.Dataset(GOOD, COORDINATES)
    variables = {"x": ("seed",), "y": ("seed", "band")}
    write_dataset(path, data)
    check_dataset(path, read_dataset(path), COORDINATES, variables)
    write_dataset(path, change(data))
    with pytest.raises(InputError, match=reason):
        check_dataset(path, read_dataset(path), COORDINATES, variables)


@pytest.mark.parametrize("name", ["configuration.json", "weights.safetensors"])
@pytest.mark.parametrize("make", [lambda p: p.symlink_to("/dev/zero"), os.mkfifo])
def test_commands_on_a_folder_of_devices_and_pipes(tmp_path, capsys, name, make):
    """They neither fill the memory nor wait for ever."""
    for other in ("returns.nc", "skill.nc", "weights.safetensors", "configuration.json"):
        make(tmp_path / other) if other == name else (tmp_path / other).write_text("{}")
    for command in (["evaluate"], ["train", "--resume", "--out"], ["train", "--from"]):
        assert main([*command, str(tmp_path)]) == 2
        assert capsys.readouterr().err.count("\n") == 1


def test_what_a_model_keeps_for_itself_may_be_larger_than_a_strangers_file(tmp_path, monkeypatch):
    """A record of many days is computed for hours: it must not be refused afterwards."""
    monkeypatch.setenv("FEDRAIN_CACHE", str(tmp_path))
    monkeypatch.setattr(gcm_store, "ARRAYS", 100)
    values = {"temperature": np.arange(1000.0)}
    found = gcm_store._kept("record", {}, "a record", lambda _: values, values, lambda _: None)
    np.testing.assert_array_equal(found["temperature"], values["temperature"])
