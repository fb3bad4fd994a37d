"""``python -m fedrain``."""

import sys

from fedrain.cli import main

sys.exit(main())
