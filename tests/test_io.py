import os
from pathlib import Path

import numpy as np
import pytest

from fedrain.io import PARTIAL, write_arrays
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
