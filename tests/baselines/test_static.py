import numpy as np
import pytest

from fedrain.baselines import static
from fedrain.envs import make

PAPER = [11.453, 7.768, 2.730, 3.746, 6.398, 5.566]


@pytest.mark.parametrize("name", ["ebm-v1", "ebm-v2", "ebm-v3"])
@pytest.mark.parametrize("backend", ["jax", "climlab"])
def test_static_column_of_the_paper(name, backend):
    """The agents that never learn are the same in every environment, on either model."""
    result = static(make(name, agents=None if name == "ebm-v1" else 2, backend=backend))
    np.testing.assert_allclose(result.skill.bands, PAPER, atol=0.001)
    assert result.skill.globe == pytest.approx(5.896, abs=0.001)
    assert result.returns.mean() == pytest.approx(-60_358, abs=1)
