"""The documentation site: `make docs`."""

import inspect
from pathlib import Path

import fedrain
from fedrain.envs import EnergyBalanceV1, EnergyBalanceV2, EnergyBalanceV3
from fedrain.paper import load_results, make_figures, make_tables, write_report

project = "FedRAIN"
author = "The FedRAIN developers"
copyright = "2026, The FedRAIN developers"
release = fedrain.__version__

extensions = ["myst_parser", "sphinx-mathjax-offline", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "generated/tables"]  # tables stand within pages
html_extra_path = ["generated/report"]
html_theme = "furo"
html_title = "FedRAIN"
autodoc_member_order = "bysource"
autodoc_typehints = "none"
# Sections of CONTRIBUTING and the like are linked from the README only.
suppress_warnings = ["myst.xref_missing"]


DOCS = Path(__file__).parent
GENERATED = DOCS / "generated"


def write_environment_pages() -> None:
    """The docstring of an environment is its page."""
    for environment in (EnergyBalanceV1, EnergyBalanceV2, EnergyBalanceV3):
        first, rest = inspect.cleandoc(environment.__doc__ or "").split("\n", 1)
        name = environment.__name__
        text = f"# {name}\n\n{first}\n{rest}\n"
        write_if_new(GENERATED / f"{name}.md", text)


def write_benchmark() -> None:
    """Tables, figures and report of the benchmark, from the results in the checkout."""
    folder = DOCS.parent / "results" / "paper"
    results = load_results(folder)
    make_tables(results, GENERATED / "tables")
    write_report(results, folder, GENERATED / "report" / "report.html")
    figures = [
        path for path in make_figures(results, GENERATED / "figures") if path.suffix == ".png"
    ]
    lines = [f"![{path.stem}](generated/figures/{path.name})\n" for path in figures]
    write_if_new(GENERATED / "tables" / "figures.md", "\n".join(lines))


def write_if_new(page: Path, text: str) -> None:
    """Leave a page alone that is the same, so that it is not built again."""
    page.parent.mkdir(parents=True, exist_ok=True)
    if not page.exists() or page.read_text(encoding="utf-8") != text:
        page.write_text(text, encoding="utf-8")


write_environment_pages()
write_benchmark()
