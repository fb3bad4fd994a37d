"""FedRAIN: climate models that learn their own parameters by federated reinforcement learning.

``import fedrain`` registers the Gymnasium environments. The rooms are imported on first use:
:mod:`fedrain.climate`, :mod:`fedrain.envs` and :mod:`fedrain.baselines`.
"""

import importlib
from typing import TYPE_CHECKING, Any

from fedrain.errors import InputError, MissingExtraError
from fedrain.registration import register_environments

if TYPE_CHECKING:
    from fedrain import baselines, climate, envs

__version__ = "0.1.0"
__all__ = ["InputError", "MissingExtraError", "__version__", "baselines", "climate", "envs"]

register_environments()


def __getattr__(name: str) -> Any:
    if name in ("baselines", "climate", "envs"):
        return importlib.import_module(f"fedrain.{name}")
    raise AttributeError(f"module 'fedrain' has no attribute {name!r}")
