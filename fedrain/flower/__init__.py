"""The same experiments over Flower."""

import os

#: Flower calls nobody, installs nothing, and leaves the user's own Flower settings alone.
SETTINGS = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
}
os.environ.update(SETTINGS)  # here: Flower reads them once, as it is imported
