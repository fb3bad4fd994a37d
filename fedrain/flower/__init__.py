"""The same experiments over Flower: :func:`federate` is ``fedrain federate`` from Python."""

import importlib
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedrain.flower.running import federate

__all__ = ["federate"]

#: Flower calls nobody, installs nothing, and leaves the user's own Flower settings alone.
SETTINGS = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
}
os.environ.update(SETTINGS)  # here: Flower reads them once, as it is imported


def __getattr__(name: str) -> Any:
    if name == "federate":
        return importlib.import_module("fedrain.flower.running").federate
    raise AttributeError(f"module 'fedrain.flower' has no attribute {name!r}")
