"""Register the environments with Gymnasium.

Entry points are named, not imported: ``import fedrain`` stays light.
"""

from typing import Any

import gymnasium

#: Actions in the units of the parameter table, or scaled to [−1, 1]: then the id ends in ``-unit``.
ACTIONS = ("physical", "unit")
#: Steps in an episode of every task that has an id.
EPISODE_LENGTHS = {
    "ebm-v1": 200,
    "ebm-v2": 200,
    "ebm-v3": 200,
    "ebm-energy": 400,
    "ebm-twin": 200,
    "ebm-seasonal": 180,
    "rce-zonal": 200,
    "gcm-twin": 30,
    "gcm-ncep": 90,
}
#: One agent each.
ENVIRONMENT_IDS = ("fedrain/EnergyBalance-v1", "fedrain/EnergyBalance-v2")


def _ids() -> dict[str, dict[str, Any]]:
    """The arguments of every id."""
    named: dict[str, dict[str, Any]] = {
        f"fedrain/EnergyBalance-{task[-2:]}": {"task": task}
        for task in ("ebm-v1", "ebm-v2", "ebm-v3")
    }
    for task in EPISODE_LENGTHS:
        if f"fedrain/EnergyBalance-{task[-2:]}" not in named:
            # One agent sees and sets all that the agents of the task do together.
            named[f"fedrain/{task}"] = {"task": task, "agents": 1}
    unit = {f"{name}-unit": {**kwargs, "actions": "unit"} for name, kwargs in named.items()}
    return named | unit


#: Every id, with the arguments that its environment is made with.
IDS = _ids()


def register_environments() -> None:
    """Make ``gymnasium.make`` know the environments; a second call changes nothing."""
    if ENVIRONMENT_IDS[0] in gymnasium.registry:
        return
    for name, kwargs in IDS.items():
        gymnasium.register(
            name,
            entry_point="fedrain.envs.gymnasium_adapter:registered",
            vector_entry_point="fedrain.envs.vector:registered_vector",
            max_episode_steps=EPISODE_LENGTHS[kwargs["task"]],
            kwargs=kwargs,
        )
    # v1, v2 and v3 are different experiments of the paper. Gymnasium would take them for revisions
    # of one, and warn every user of v1 that it is out of date.
    for name in IDS:
        gymnasium.registry[name].version = None
