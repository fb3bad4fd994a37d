"""What people see while a run trains."""

import io

import numpy as np

from fedrain.experiment.progress import Progress


def test_where_the_model_costs_simulated_days_are_shown_in_place_of_steps():
    """32 agents and two seeds: 1920 agent steps an episode, of 60 days, in 20 s."""
    returns = np.full((2, 32), -1.0)
    for days, said in ((None, "96 steps/s"), (60.0, "3.0 days/s")):
        stream = io.StringIO()
        Progress(2, 1920, stream=stream, days=days).show(2, returns, 20.0)
        assert said in stream.getvalue()
        assert ("steps/s" in stream.getvalue()) == (days is None)
