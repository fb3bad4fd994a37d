"""Where a return lies between the static model and what optimal control allows.

Optimal control takes a minute, so its returns in the standard environments come with the package:
``data/limits.json``, with the command that gives them.
"""

import json
from dataclasses import replace
from importlib.resources import files

from fedrain.baselines.static import static
from fedrain.envs import Environment, make


def known_limit(environment: Environment) -> float | None:
    """Mean return of the agents under optimal control, where it is known.

    Agents of a shared climate have the same limit together, however many there are.
    """
    table = json.loads((files("fedrain.baselines") / "data" / "limits.json").read_text("utf-8"))
    if environment.shared_climate or environment.agents == 1:
        single = make("ebm-v1")
        alone = replace(
            environment,
            agents=1,
            shared_climate=single.shared_climate,
            local_observation=single.local_observation,
        )
        return table["return"]["shared"] if alone == single else None
    if environment != make("ebm-v2", agents=environment.agents):
        return None
    return table["return"].get(f"own, {environment.agents} agents")


def share_reached(environment: Environment, mean_return: float) -> float | None:
    """Share of the way from the static model (0) to the limit (1); None where it is not known."""
    best = known_limit(environment)
    if best is None:
        return None
    worst = float(static(environment).returns.mean())
    return (mean_return - worst) / (best - worst)
