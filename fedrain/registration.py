"""Register the environments with Gymnasium.

Entry points are named, not imported: ``import fedrain`` stays light.
"""

import gymnasium
from gymnasium.envs.registration import WrapperSpec

ENVIRONMENT_IDS = ("fedrain/EnergyBalance-v1", "fedrain/EnergyBalance-v2")

PHYSICAL_ACTIONS = WrapperSpec("PhysicalActions", "fedrain.envs:PhysicalActions", kwargs={})


def register_environments() -> None:
    """Make ``gymnasium.make`` know the environments; a second call changes nothing."""
    if ENVIRONMENT_IDS[0] in gymnasium.registry:
        return
    for name in ENVIRONMENT_IDS:
        version = name[-2:].upper()
        gymnasium.register(
            name,
            entry_point=f"fedrain.envs:EnergyBalance{version}",
            additional_wrappers=(PHYSICAL_ACTIONS,),
        )
    # v1 and v2 are different experiments of the paper. Gymnasium would take them for revisions
    # of one, and warn every user of v1 that it is out of date.
    for name in ENVIRONMENT_IDS:
        gymnasium.registry[name].version = None
