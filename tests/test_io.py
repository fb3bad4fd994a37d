import numpy as np
import pytest

from fedrain.io import write_arrays
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
