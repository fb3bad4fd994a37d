import os
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from fedrain.errors import InputError
from fedrain.io import PARTIAL, alone_in, write_arrays, write_bytes, write_dataset, write_json
from fedrain.reading import read_arrays


@pytest.mark.parametrize("shape", [(), (1,), (0,), (3, 1), (2, 3, 4)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.uint32, bool])
def test_arrays_come_back_as_they_were(tmp_path, shape, dtype):
    values = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    write_arrays(tmp_path / "a", {"one": values, "turned": values.T}, {"episode": 3})
    found, note = read_arrays(tmp_path / "a")
    for name, array in (("one", values), ("turned", values.T)):
        assert (found[name].shape, found[name].dtype) == (array.shape, array.dtype)
        np.testing.assert_array_equal(found[name], array)
    assert note == {"episode": 3}


def test_what_has_to_outlive_a_loss_of_power_is_on_the_disk_before_it_is_in_its_place(
    tmp_path, monkeypatch
):
    """The file's own content, and not yet under its name; what need not, is not waited for."""
    synced = []
    path = tmp_path / "a.safetensors"
    values = {"one": np.arange(5.0)}

    def note(number):
        synced.append((Path(f"/proc/self/fd/{number}").resolve().name, path.exists()))

    monkeypatch.setattr(os, "fsync", note)
    write_arrays(path, values, {}, durable=False)
    assert synced == []
    path.unlink()
    write_arrays(path, values, {})
    assert synced == [(f".{path.name}{PARTIAL}", False)]
    np.testing.assert_array_equal(read_arrays(path)[0]["one"], values["one"])


WRITERS = {
    "arrays": lambda path: write_arrays(path, {"one": np.arange(3.0)}, {}),
    "bytes": lambda path: write_bytes(path, b"ours"),
    "dataset": lambda path: write_dataset(path, xr.Dataset({"one": ("x", np.arange(3.0))})),
    "json": lambda path: write_json(path, {"ours": 1}),
}


@pytest.mark.parametrize("write", WRITERS.values(), ids=list(WRITERS))
@pytest.mark.parametrize("before", ["link", "pipe", "file"])
@pytest.mark.parametrize("name", ["a", f".a{PARTIAL}"])
def test_nothing_is_written_through_what_a_stranger_has_put_there(tmp_path, write, before, name):
    """In a stranger's folder, a link by a name that we write to may lead to a file of the user."""
    (own := tmp_path / "own").write_text("precious")
    (folder := tmp_path / "folder").mkdir()
    path = folder / name
    {"link": lambda: path.symlink_to(own), "pipe": lambda: os.mkfifo(path), "file": path.touch}[
        before
    ]()
    write(folder / "a")
    assert own.read_text() == "precious"
    assert [one.name for one in folder.iterdir()] == ["a"]
    assert (folder / "a").is_file()
    assert not (folder / "a").is_symlink()


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda path, own: path.symlink_to(own), "is a link"),
        (lambda path, _: os.mkfifo(path), "is not a regular file"),
    ],
)
def test_a_lock_that_is_no_file(tmp_path, make, reason):
    (own := tmp_path / "own").write_text("precious")
    (folder := tmp_path / "folder").mkdir()
    make(folder / ".lock", own)
    with pytest.raises(InputError, match=rf"\.lock: {reason}"), alone_in(folder):
        pass
    assert own.read_text() == "precious"


def test_a_lock_is_held_once(tmp_path):
    busy = pytest.raises(InputError, match="is in use by another process")
    with alone_in(tmp_path), busy, alone_in(tmp_path):
        pass
    with alone_in(tmp_path):
        pass
