"""What tests share."""

from collections.abc import Iterator

import jax
import numpy as np
import pytest
from hypothesis import settings

from fedrain.climate import ClimateModel

settings.register_profile("fedrain", deadline=None)  # times say nothing on a shared machine
settings.load_profile("fedrain")


@pytest.fixture
def x64() -> Iterator[None]:
    """Double precision for one test."""
    with jax.enable_x64(True):
        yield


def random_parameters(rng: np.random.Generator, model: ClimateModel, *batch: int) -> dict:
    """Uniform within the bounds."""
    latitudes = model.grid.latitudes
    return {
        row.symbol: rng.uniform(
            row.low, row.high, (*batch, latitudes) if row.per_latitude else batch
        )
        for row in model.table
    }
