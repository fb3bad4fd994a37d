"""FedRAIN: climate models that learn their own parameters by federated reinforcement learning.

``import fedrain`` registers the Gymnasium environments. The rooms are imported on first use:
:mod:`fedrain.climate`, :mod:`fedrain.envs`, :mod:`fedrain.baselines`, :mod:`fedrain.agents`,
:mod:`fedrain.federation` and :mod:`fedrain.experiment`. ``fedrain.train``, ``fedrain.load`` and
``fedrain.watch`` are those of the last.
"""

import importlib
from typing import TYPE_CHECKING, Any

from fedrain.errors import FailureError, InputError, MissingExtraError
from fedrain.registration import register_environments

if TYPE_CHECKING:
    from fedrain import agents, baselines, climate, envs, experiment, federation
    from fedrain.experiment import configure, load, train, watch

__version__ = "0.2.0"
__all__ = [
    "FailureError",
    "InputError",
    "MissingExtraError",
    "__version__",
    "agents",
    "baselines",
    "climate",
    "configure",
    "envs",
    "experiment",
    "federation",
    "load",
    "train",
    "watch",
]

register_environments()


def __getattr__(name: str) -> Any:
    if name in ("agents", "baselines", "climate", "envs", "experiment", "federation"):
        return importlib.import_module(f"fedrain.{name}")
    if name in ("configure", "load", "train", "watch"):
        return getattr(importlib.import_module("fedrain.experiment"), name)
    raise AttributeError(f"module 'fedrain' has no attribute {name!r}")
