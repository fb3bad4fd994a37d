"""Before any test imports the package: every array annotation in it is checked at run time.

Not where strangers' input is tried (``tests.fuzz``): users have no such net.
"""

import os

from jaxtyping import install_import_hook

if "FEDRAIN_UNCHECKED" not in os.environ:
    install_import_hook("fedrain", "beartype.beartype")
