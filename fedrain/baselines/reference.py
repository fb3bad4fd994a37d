"""Where a return lies between the static model and what optimal control allows.

Optimal control takes a minute, so its returns in the built-in tasks come with the package:
``data/limits.json``, with the command that gives them.
"""

import json
from dataclasses import replace
from importlib.resources import files
from typing import Any

from fedrain.baselines.optimise import has_gradient
from fedrain.baselines.static import static
from fedrain.envs import Environment, make
from fedrain.envs.tasks import same_task

#: What does not change the return of an action sequence.
UNSEEN: dict[str, Any] = {"unclipped": False, "judged_early": 0, "judged_over": 1}


def known_limit(environment: Environment) -> float | None:
    """Mean return of the agents under optimal control; None where it is not known.

    What agents see does not matter to it, nor which steps their skill is judged by. Agents of a
    shared climate have the same limit together, however many there are.

    Args:
        environment: Any environment.

    Returns:
        In the unit of rewards, or None.
    """
    table = json.loads((files("fedrain.baselines") / "data" / "limits.json").read_text("utf-8"))
    kind, note = ("-published", ", albedo not applied") if environment.unapplied else ("", "")
    if environment.shared_climate or environment.agents == 1:
        name, own = f"shared{note}", make(f"ebm-v1{kind}")
    else:
        name, own = f"own, {environment.agents} agents{note}", make(f"ebm-v2{kind}")
        own = replace(own, agents=environment.agents)
    if name not in table["return"] or environment.model != own.model:
        return None
    every = environment.learnt == environment.model.table.learnt()
    seen_alike = replace(
        environment,
        params=environment.params._replace(noise=None),
        agents=own.agents,
        shared_climate=own.shared_climate,
        local_observation=own.local_observation,
        observed=own.observed,
        **UNSEEN,
        learn=None if every else environment.learn,
        tiles=None,
    )
    same = same_task(seen_alike, replace(own, **UNSEEN))
    return float(table["return"][name]) if same else None


def unknown_limit(environment: Environment) -> str | None:
    """What to tell people, once, where the limit is not known; None where it is.

    Args:
        environment: Any environment.

    Returns:
        One line, or None.
    """
    if known_limit(environment) is not None:
        return None
    if not has_gradient(environment):
        return "the limit of this task is not known: its model is not differentiable"
    return (
        "the limit of this task is not known: `fedrain baseline limit`, with the same options of "
        "the environment, computes it (it is not stored)"
    )


def share_reached(
    environment: Environment,
    mean_return: float,
    best: float | None = None,
    worst: float | None = None,
) -> float | None:
    """Share of the way from the static model (0) to the limit (1); None where it is not known.

    Args:
        environment: Where the return was reached.
        mean_return: Mean of the agents' returns.
        best: The limit, if one has worked it out; the known one, if it is left out.
        worst: Likewise, the static model's.

    Returns:
        0 for the static model, 1 for the limit; None where the limit is not known.
    """
    best = known_limit(environment) if best is None else best
    if best is None:
        return None
    if worst is None:
        worst = float(static(environment).returns.mean())
    return (mean_return - worst) / (best - worst)
