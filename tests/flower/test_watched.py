"""What those who watch a federation are told of its nodes."""

import json

import numpy as np

from fedrain.experiment import configure
from fedrain.experiment.course import read_course
from fedrain.experiment.live import PROGRESS
from fedrain.flower.running import federate
from tests.experiment.small import SMALL, small_preset


def test_nodes_rounds_and_course(tmp_path):
    """Of a federation in this process, whose course is that of ``fedrain train``."""
    configuration = configure(
        preset=small_preset(tmp_path), agents=2, sync_every=1, episodes=3, **SMALL
    )
    said = []
    run = federate(configuration, tmp_path / "run", figures=False, watch=True, say=said.append)
    assert said[0].startswith("watch at http://127.0.0.1:")
    told = json.loads((run.folder / PROGRESS).read_text("utf-8"))
    assert told["state"] == "finished"
    assert told["rounds"] == {"finished": 3, "all": 3, "tries": 0}
    assert told["nodes"] == [{"connected": True, "answered": 3, "heard": True}] * 2
    returns = run.returns.returns.transpose("episode", "agent", "seed").values[..., 0]
    np.testing.assert_allclose(told["returns"], returns, rtol=1e-4)
    course = read_course(run.folder, configuration, "weights.safetensors")
    np.testing.assert_allclose(told["profile"], course.surface_temperature[-1, 0], rtol=1e-4)
