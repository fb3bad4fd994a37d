"""Before any test imports the package: every array annotation in it is checked at run time."""

from jaxtyping import install_import_hook

install_import_hook("fedrain", "beartype.beartype")
