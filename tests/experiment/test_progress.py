"""What people see while a run trains."""

import numpy as np

from fedrain.experiment.progress import Progress


def test_where_the_model_costs_simulated_days_are_shown_in_place_of_steps(capsys):
    """32 agents and two seeds: 1920 agent steps an episode, of 60 days, in 20 s."""
    returns = np.full((2, 32), -1.0)
    for days, said, other in ((None, "96 steps/s", "days/s"), (60.0, "3.0 days/s", "steps/s")):
        Progress(2, 1920, days=days).show(2, returns, 20.0)
        shown = capsys.readouterr().err
        assert said in shown
        assert other not in shown
