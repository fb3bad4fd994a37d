import numpy as np
import pytest

from fedrain.baselines import static
from fedrain.climate import band_skill
from fedrain.envs import make
from fedrain.envs.rollout import _rollout

PAPER = [11.453, 7.768, 2.730, 3.746, 6.398, 5.566]


@pytest.mark.parametrize("name", ["ebm-v1", "ebm-v2", "ebm-v3"])
@pytest.mark.parametrize("backend", ["jax", "climlab"])
def test_static_column_of_the_paper(name, backend):
    """The agents that never learn are the same in every environment, on either model."""
    result = static(make(name, agents=None if name == "ebm-v1" else 2, backend=backend))
    np.testing.assert_allclose(result.skill.bands, PAPER, atol=0.001)
    assert result.skill.globe == pytest.approx(5.896, abs=0.001)
    assert result.returns.mean() == pytest.approx(-60_358, abs=1)


def test_compiled_once_for_equal_environments():
    """Whatever their starts, targets and forcings."""
    changes = [{}, {"start": 10.0}, {"target": [5.0] * 12}, {"forcing": {"longwave": -3.7}}]
    _rollout.clear_cache()
    found = [static(make("ebm-v1", latitudes=12, **one)).skill.globe for one in changes]
    assert _rollout._cache_size() == 1
    assert len(set(found)) == len(changes)


def test_judged_at_the_step_that_the_task_says():
    environment = make("ebm-v1", latitudes=12, episode_length=8, judged_early=3)
    found = static(environment)
    (name,) = found.fields
    target = environment.params.target[name]
    assert found.skill == band_skill(environment.model.columns, found.fields[name][4], target)
