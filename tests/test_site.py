"""The documentation site: notebooks, links, what a browser shows; the first steps as written."""

import argparse
import ast
import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote
from urllib.request import urlopen

import pytest

from fedrain.cli import _parser
from tests.paper.browser import new_browser
from tests.paper.test_report import WIDTHS
from tests.test_language import dialect

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
NOTEBOOKS = sorted((DOCS / "learn").glob("*.ipynb"))
NEEDS = {"gcm": "jcm", "federation": "flwr"}  # beside the package
SHOWN = {"display_data", "stream"}


def cells(notebook, kind):
    every = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in every if cell["cell_type"] == kind]


def source(cell):
    return "".join(cell["source"])


def as_script(notebook, folder):
    """The code of a notebook as one program; what its cells write to files is there already."""
    lines = []
    for cell in cells(notebook, "code"):
        magic, _, rest = source(cell).partition("\n")
        if magic.startswith("%%writefile "):
            (folder / magic.split()[1]).write_text(rest, encoding="utf-8")
        else:
            code = source(cell).splitlines()
            lines += [line for line in code if not line.startswith("%")]
    return "\n".join(lines)


def test_there_are_seven_notebooks():
    names = {path.stem for path in NOTEBOOKS}
    assert names >= {"train", "own_target", "own_model", "own_algorithm", "federation"}
    assert names >= {"interpret", "gcm"}
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    assert all(f"learn/{name}" in index for name in names)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_show_what_they_ran(notebook, tmp_path):
    """Stored outputs: figures, no error, nothing of standard error, no counts that would change."""
    outputs = [one for cell in cells(notebook, "code") for one in cell["outputs"]]
    assert {one["output_type"] for one in outputs} <= SHOWN
    assert all(one.get("name") != "stderr" for one in outputs)
    assert any("image/png" in one.get("data", {}) for one in outputs)
    assert all(cell["execution_count"] is None for cell in cells(notebook, "code"))
    ast.parse(as_script(notebook, tmp_path))
    assert notebook.stat().st_size < 600_000


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_in_plain_english(notebook):
    assert dialect("\n".join(map(source, cells(notebook, "markdown")))) == []


@pytest.mark.slow
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run(notebook, tmp_path):
    if find_spec(NEEDS.get(notebook.stem, "fedrain")) is None:
        pytest.skip(f"needs {NEEDS[notebook.stem]}")
    script = tmp_path / "notebook.py"
    script.write_text(as_script(notebook, tmp_path), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, script], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    stored = "".join(
        "".join(one["text"])
        for cell in cells(notebook, "code")
        for one in cell["outputs"]
        if one["output_type"] == "stream"
    )
    assert words(done.stdout) == words(stored.replace(WRITES.search(stored + "\n")[0], ""))


#: What ``%%writefile`` says.
WRITES = re.compile(r"(Writing \S+\n)?")


def words(text):
    """What is printed but for numbers: these differ between processors."""
    return re.findall(r"[a-zA-Z]{3,}", text)


def test_every_page_has_a_place():
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    trees = "".join(re.findall(r"```\{toctree\}(.*?)```", index, re.DOTALL)).splitlines()
    shown = [line for line in trees if line and not line.startswith(":")]
    pages = [path.stem for path in DOCS.glob("*.md") if path.stem != "index"]
    assert sorted(shown) == sorted(pages + [f"learn/{path.stem}" for path in NOTEBOOKS])


def test_links_of_notebooks_lead_somewhere():
    for notebook in NOTEBOOKS:
        for cell in cells(notebook, "markdown"):
            for link in re.findall(r"\]\(([^)\s]+)\)", source(cell)):
                if not link.startswith("http"):
                    name = link.partition("#")[0]
                    assert (notebook.parent / name).exists(), f"{notebook.name}: {link}"


def programs(parser):
    """The commands that can be run."""
    inner = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    below = [child for action in inner for child in action.choices.values()]
    return {parser.prog, *(name for one in below for name in programs(one))}


# The site as it is built, in a browser.


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """``make docs``, without its environment."""
    if find_spec("myst_nb") is None:
        pytest.skip("needs the extra docs")
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "-q", "docs", folder / "html"],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder / "html"


class Page(HTMLParser):
    """The ids and the links of a page."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links = set(), []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.ids |= {given["id"]} if given.get("id") else set()
        self.ids |= {given["name"]} if tag == "a" and given.get("name") else set()
        self.links += [given[name] for name in ("href", "src") if given.get(name)]


@pytest.mark.slow
def test_every_link_of_the_site_leads_somewhere(site):
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    assert len(pages) > 30
    broken = []
    for path, page in pages.items():
        for link in page.links:
            if re.match(r"[a-z]+:", link) or path.name == "report.html":
                continue
            name, _, anchor = link.partition("#")
            other = path if not name else (path.parent / unquote(name.split("?")[0])).resolve()
            other = other / "index.html" if other.is_dir() else other
            known = other in pages and anchor and other.name != "report.html"
            if not other.exists() or (known and unquote(anchor) not in pages[other].ids):
                broken.append(f"{path.name}: {link}")
    assert sorted(set(broken)) == []


@pytest.mark.slow
def test_the_command_line_page_has_every_command(site):
    text = (site / "command_line.html").read_text(encoding="utf-8")
    for name in programs(_parser()):
        assert name in text


@pytest.fixture(scope="module")
def browser():
    browser = new_browser()
    yield browser
    browser.quit()


SEEN = ["index", "first_steps", "glossary", "faq", "architecture", "command_line"]


@pytest.mark.slow
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", [*SEEN, *(f"learn/{path.stem}" for path in NOTEBOOKS)])
def test_pages_in_a_browser(site, browser, name, width, theme):
    """Nothing wider than the screen, nothing on the console; the front page's figure in sight."""
    wide, high = WIDTHS[width]
    screen = {"width": wide, "height": high, "deviceScaleFactor": 1, "mobile": wide < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia",
        {"features": [{"name": "prefers-color-scheme", "value": theme}]},
    )
    browser.get((site / f"{name}.html").as_uri())
    assert browser.get_log("browser") == []
    across = browser.execute_script("return document.documentElement.scrollWidth")
    assert across <= wide
    shown = browser.execute_script(
        "return [...document.querySelectorAll('article img')].map("
        "(one) => [one.getBoundingClientRect().top, one.getBoundingClientRect().height,"
        " one.naturalWidth, one.alt])"
    )
    assert all(text and not text.endswith((".png", ".svg")) for *_, text in shown)
    assert all(natural > 0 for _, tall, natural, _ in shown if tall)
    if name == "index":  # a panel of it on a phone, all of it on a laptop
        ((top, tall),) = [(top, tall) for top, tall, *_ in shown if tall]
        assert top + (tall if wide > 500 else 250) <= high
    dark = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", dark)[:3])) < 200) == (theme == "dark")


# What a stranger types.

FIRST_STEPS = (DOCS / "first_steps.md").read_text(encoding="utf-8")
STEPS = re.findall(r"^## (.+?)$.*?```sh\n(.*?)```", FIRST_STEPS, re.MULTILINE | re.DOTALL)


def test_first_steps_are_short():
    names = [name for name, _ in STEPS]
    assert names == ["Install", "Train", "Film", "Watch", "Your own target", "Your own model"]
    assert all(len(block.strip().splitlines()) < 10 for _, block in STEPS)


def rows_of(text):
    """The numbers of every line of a table that `make run` prints, by what the line is called."""
    found = re.findall(r"^(\S.*?)  +(\d[\d. ±]*)$", text, re.MULTILINE)
    return {name: list(map(float, re.findall(r"\d+\.?\d*", values))) for name, values in found}


@pytest.mark.slow
def test_first_steps_as_written(tmp_path):
    """In a fresh clone, one after the other, by one shell; what is printed is what the page says.

    Rounding differs between processors and learning amplifies it, so what was learnt has a
    tolerance; the static model has none to speak of.
    """
    subprocess.run(["git", "clone", "-q", ROOT, tmp_path / "clone"], check=True)
    ends = [block for name, block in STEPS if name != "Watch"]
    # Nor how the tests compile, which rounds differently.
    own = ("PYTHONPATH", "VIRTUAL_ENV", "XLA_FLAGS", "JAX_")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(own)}
    shell = {"cwd": tmp_path / "clone", "env": environment, "text": True}
    done = subprocess.run(
        ["bash", "-c", "\n".join(["set -e", *ends])], capture_output=True, **shell
    )
    assert done.returncode == 0, done.stdout + done.stderr
    runs = tmp_path / "clone" / "runs"
    assert {"six-agents", "glacial", "ocean"} <= {path.name for path in runs.iterdir()}
    assert (runs / "six-agents" / "film.gif").stat().st_size > 10_000
    watch = f". .venv/bin/activate\nexec {dict(STEPS)['Watch']}"
    with subprocess.Popen(["bash", "-c", watch], stderr=subprocess.PIPE, **shell) as page:
        address = next(found for line in page.stderr if (found := re.search(r"http://\S+", line)))
        with urlopen(address[0]) as answer:
            assert answer.status == 200
        page.terminate()
    end = done.stdout.index("return of the local policy")
    told, shown = rows_of(FIRST_STEPS), rows_of(done.stdout[:end])
    assert len(told) >= 12
    for name, values in told.items():
        assert shown[name][0] == pytest.approx(values[0], rel=1e-3, abs=1e-3), name
        assert shown[name][1] == pytest.approx(values[1], rel=0.5, abs=0.5), name
    assert shown["global"][1] == pytest.approx(told["global"][1], abs=0.5)
