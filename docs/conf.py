"""The documentation site: `make docs`."""

import argparse
import inspect
import re
import sys
from pathlib import Path, PurePosixPath

from docutils import nodes
from jax import Array
from jax.typing import ArrayLike
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.typing import stringify_annotation

Array.__name__ = Array.__qualname__ = "Array"  # in signatures; otherwise jaxlib._jax.Array

import fedrain  # noqa: E402
from fedrain.cli import _parser  # noqa: E402
from fedrain.envs import EnergyBalanceV1, EnergyBalanceV2, EnergyBalanceV3  # noqa: E402
from fedrain.paper import load_results, make_figures, make_tables, write_report  # noqa: E402

project = "FedRAIN"
author = "The FedRAIN developers"
copyright = "2026, The FedRAIN developers"
release = fedrain.__version__

extensions = ["myst_nb", "sphinx-mathjax-offline", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3
nb_execution_mode = "off"  # what notebooks show is stored in them: `make notebooks`
nb_merge_streams = True
exclude_patterns = ["_build", "generated/tables", "generated/command_line.md"]  # within pages
html_extra_path = ["generated/report"]
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_title = "FedRAIN"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"  # shapes are in them
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 88
# Sections of CONTRIBUTING and the like are linked from the README only.
suppress_warnings = ["myst.xref_missing"]


DOCS = Path(__file__).parent
GENERATED = DOCS / "generated"
ENVIRONMENTS = (EnergyBalanceV1, EnergyBalanceV2, EnergyBalanceV3)


def write_environment_pages() -> None:
    """The docstring of an environment, in Markdown, is its page."""
    for environment in ENVIRONMENTS:
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
    made = make_figures(results, GENERATED / "figures", folder)
    lines = [
        f"![{words_for(path.stem)}](generated/figures/{path.name})\n"
        for path in made
        if path.suffix == ".png"
    ]
    write_if_new(GENERATED / "tables" / "figures.md", "\n".join(lines))


def commands_of(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Commands that can be run, with their own commands, by what is typed."""
    inner = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    below = [child for action in inner for child in action.choices.values()]
    own = {} if below and inner[0].required else {parser.prog: parser}
    return own | {name: one for child in below for name, one in commands_of(child).items()}


def command_page(parser: argparse.ArgumentParser) -> str:
    """What the help of every command says, as Markdown; shared groups of options stand once."""
    lines, group = [], ""
    shared: dict[str, dict[str, str]] = {}  # of the first command that has a group
    for name, command in commands_of(parser).items():
        words = name.split()
        if len(words) > 2 and words[1] != group:
            lines += [f"## {' '.join(words[:2])}", ""]
        group = words[1]
        lines += [f"{'###' if len(words) > 2 else '##'} {name}", "", command.description or "", ""]
        if examples := getattr(command, "examples", {}):
            shown = [line for text, code in examples.items() for line in (f"# {text}", code)]
            lines += ["```sh", *shown, "```", ""]
        for part in command._action_groups:
            actions = [a for a in part._group_actions if a.help != argparse.SUPPRESS]
            rows = dict(option_row(a) for a in actions if a.dest != "help")
            title = part.title or ""
            if title in ("options", "positional arguments"):
                title = "option"
            elif first := shared.get(title):
                text = f"Options of the group *{title}*: as for [fedrain train](#fedrain-train)"
                without = ", ".join(option for option in first if option not in rows)
                lines += [f"{text}, without {without}." if without else f"{text}.", ""]
                rows = {option: row for option, row in rows.items() if first.get(option) != row}
            elif rows:
                shared[title] = rows
            if rows:
                lines += [f"| {title} | meaning |", "|---|---|", *rows.values(), ""]
    return "\n".join(lines)


def option_row(action: argparse.Action) -> tuple[str, str]:
    """The name of an option, and its line in the table."""
    given = f"`{', '.join(action.option_strings) or action.metavar or action.dest}`"
    value = "" if not action.option_strings or action.nargs == 0 else action.metavar
    if value is None:
        value = action.dest.upper()
    meaning = re.sub(r"([|<*])", r"\\\1", (action.help or "") % {"default": action.default})
    meaning = re.sub(r"(?<![`\w-])(--[a-z][a-z-]*)", r"`\1`", meaning)
    return given, f"| {given.rstrip('`')}{' ' * bool(value)}{value}` | {meaning} |"


def words_for(figure: str) -> str:
    """What a figure of the benchmark shows, for who cannot see it."""
    kind, _, of = figure.partition("-")
    if kind == "returns":
        return "Return of the training episodes of DDPG, TD3 and TQC in three environments"
    if kind == "skill":
        return (
            f"Errors of {of.upper()} in six bands of latitude: a panel for each environment and "
            "number of agents, with every seed, means, published means, static model and optimal "
            "control; the tables below have the numbers"
        )
    return f"Surface temperature against latitude at six times of an episode of {of}"


def show_for_both_pages(app, doctree) -> None:
    """Figures with drawings for light and for dark pages are shown as those."""
    here = Path(app.env.doc2path(app.env.docname)).parent
    for image in list(doctree.findall(nodes.image)):
        light = PurePosixPath(image["uri"]).with_suffix(".svg")
        dark = light.with_name(f"{light.stem}-dark.svg")
        if not ((here / light).exists() and (here / dark).exists()):
            continue
        copies = []
        for uri, kind in ((light, "only-light"), (dark, "only-dark")):  # the theme's names
            copy = image.deepcopy()
            copy["uri"] = str(uri)
            copy["classes"] = [*copy["classes"], kind]
            copies.append(copy)
        image.replace_self(copies)


def write_if_new(page: Path, text: str) -> None:
    """Leave a page alone that is the same, so that it is not built again."""
    page.parent.mkdir(parents=True, exist_ok=True)
    if not page.exists() or page.read_text(encoding="utf-8") != text:
        page.write_text(text, encoding="utf-8")


def describe(app, what, name, thing, options, lines: list[str]) -> None:  # noqa: ARG001
    """What the reference says of environments, which have pages, and of constants."""
    if inspect.isclass(thing) and thing in ENVIRONMENTS:
        page = f"generated/{thing.__name__}"
        lines[:] = [lines[0], "", f"Spaces, rewards and arguments: :doc:`{page}`.", ""]
    elif what == "data":
        lines[:] = comment_on(name)
    elif what == "property":  # as it is: napoleon takes what stands before a colon for a type
        lines[:] = [*inspect.cleandoc(thing.__doc__ or "").splitlines(), ""]


def comment_on(name: str) -> list[str]:
    """The comment that stands with ``#:`` above a constant, in the module that defines it."""
    room, _, constant = name.rpartition(".")
    for module in sorted(n for n in sys.modules if n.startswith(room + ".")):
        comments = ModuleAnalyzer.for_module(module).find_attr_docs()
        if ("", constant) in comments:
            return comments["", constant]
    raise LookupError(f"{name} has no comment that says what it is")


def shorten(app, what, name, thing, options, signature, returns):  # noqa: ARG001
    """Signatures without defaults that fill lines, and with types as the code has them."""
    if getattr(thing, "_is_protocol", False):
        return "", None
    try:
        given = [p.default for p in inspect.signature(thing).parameters.values()]
    except (TypeError, ValueError):
        return None
    for long in [default for default in map(repr, given) if len(default) > 40]:
        signature = (signature or "").replace(long, "...")
    long = stringify_annotation(ArrayLike, "smart")
    return tuple(text and text.replace(long, "ArrayLike") for text in (signature, returns))


def skip(app, what, name, thing, skipped, options):  # noqa: ARG001
    """Leave out the fields of named tuples, which their signature has."""
    return True if "Alias for field number" in (thing.__doc__ or "") else None


def setup(app) -> None:
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", describe, priority=600)  # after napoleon
    app.connect("autodoc-process-signature", shorten)
    app.connect("autodoc-skip-member", skip)
    app.connect("doctree-read", show_for_both_pages, priority=400)  # before images are collected


write_environment_pages()
write_if_new(GENERATED / "command_line.md", command_page(_parser()))
write_benchmark()
