"""The documentation site: `make docs`."""

import inspect
from pathlib import Path

import fedrain
from fedrain.envs import EnergyBalanceV1, EnergyBalanceV2, EnergyBalanceV3

project = "FedRAIN"
author = "The FedRAIN developers"
copyright = "2026, The FedRAIN developers"
release = fedrain.__version__

extensions = ["myst_parser", "sphinx-mathjax-offline", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "FedRAIN"
autodoc_member_order = "bysource"
autodoc_typehints = "none"
# Sections of CONTRIBUTING and the like are linked from the README only.
suppress_warnings = ["myst.xref_missing"]


def write_environment_pages() -> None:
    """The docstring of an environment is its page."""
    folder = Path(__file__).parent / "generated"
    folder.mkdir(exist_ok=True)
    for environment in (EnergyBalanceV1, EnergyBalanceV2, EnergyBalanceV3):
        first, rest = inspect.cleandoc(environment.__doc__ or "").split("\n", 1)
        name = environment.__name__
        text = f"# {name}\n\n{first}\n{rest}\n"
        page = folder / f"{name}.md"
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")


write_environment_pages()
