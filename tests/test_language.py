"""Plain English: words of our old dialect stay out of what people read.

Checked are the documents, every text of the command line's help, and every string of the package
that is a sentence: messages, captions and docstrings.
"""

import ast
import re
from pathlib import Path

import pytest

import fedrain

PACKAGE = Path(fedrain.__file__).parent
ROOT = PACKAGE.parent
#: What we once wrote, and what a reader of this field expects. A pattern matches no other use.
DIALECT = {
    r"made again": "reproduced; computed again",
    r"(means?|results?|figures?|numbers?) comes? out": "is reproduced",
    r"(ours|means|seeds) are apart": "differ",
    r"\d\S* ?K apart": "a difference of … K",
    r"published habits?|(?<!in the )\bhabits?\b": "implementation quirks",
    r"(?<!in the )published way of working": "reference implementation",
    r"broken seeds?|seeds? (that |\d+ )?(breaks|broke)\b|has broken": "diverged seed",
    r"goes? on with|going on with|resume and go on|`--resume` goes on": "resume; continue with",
    r"whole numbers?\b": "integer",
    r"\bpictures?\b": "figure",
    r"skill of what needs no agent": "non-learning baselines",
    r"rounds? otherwise|another processor": "rounding differs between CPUs",
    r"another draw": "your numbers will differ",
    r"points? that way without|point that way without": "agree in direction but not significantly",
    r"who feels it": "where sensitivity is low",
    r"handed in\b": "sent",
    r"answered the same twice": "idempotent",
    r"updates: a step|updates a step": "gradient updates per environment step",
    r"\b(is|are|was|were) of before\b|\bof before (version|checksums)": "from before",
    r"\b(one|Python) door\b": "interface",
    r"through one lens|\bleash\b": "transforms; watchdog",
    r"\bbegin(s|ning)? anew|starts? anew|made anew|computed? anew|drawn anew": "again; restart",
    r"yardsticks?": "baseline; benchmark",
    r"\bis worked out\b|\bworks? everything out\b": "is computed",
    r"says it all|says all of it": "holds the whole experiment",
    r"(has|have) not both": "lacks one of them",
    r"cannot do with|\bcan do with\b": "cannot handle",
    r"\bat work (there|in it)\b": "is in use",
    r"in one go\b": "at once",
    r"\bbut for (the|what|a)\b": "except for",
    r"drift(ed|s)? apart": "diverge",
    r"(is|are) told (the|their|its)\b": "knows; observes",
}
PATTERNS = {re.compile(rf"(?i){words}"): instead for words, instead in DIALECT.items()}
FOREIGN = re.compile(r"```.*?```|`[^`\n]*`|\]\([^)]*\)", re.DOTALL)


def dialect(text):
    """The words that a text ought not to have, each with what to write instead."""
    plain = " ".join(text.split())
    return [(m[0], instead) for one, instead in PATTERNS.items() for m in one.finditer(plain)]


def sentences(code):
    """Strings of a program that people read: docstrings, messages, captions, help."""
    tree = ast.parse(code)
    parts = {id(part) for n in ast.walk(tree) if isinstance(n, ast.JoinedStr) for part in n.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            values = (v.value if isinstance(v, ast.Constant) else "…" for v in node.values)
            yield node.lineno, "".join(map(str, values))
        elif isinstance(getattr(node, "value", None), str) and id(node) not in parts:
            yield node.lineno, node.value


def comments(code):
    """All that stand after a hash, as one text."""
    return "\n".join(re.findall(r"#:? .*", code))


PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"]
PAGES += sorted((ROOT / "docs").glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_documents_are_in_plain_english(page):
    assert dialect(FOREIGN.sub("…", page.read_text(encoding="utf-8"))) == []


def test_the_changes_of_this_version_are_in_plain_english():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    now = text.partition("\n## Unreleased")[2].partition("\n## 0.1.0")[0]
    assert "0.2.0" in now
    assert dialect(FOREIGN.sub("…", now)) == []


@pytest.mark.parametrize(
    "room", ["cli", "climate", "envs", "baselines", "agents", "federation", "experiment", "flower",
             "tuning", "paper", "."],
)  # fmt: skip
def test_messages_help_and_docstrings_are_in_plain_english(room):
    found = {}
    files = PACKAGE.glob("*.py") if room == "." else (PACKAGE / room).rglob("*.py")
    for path in files:
        code = path.read_text(encoding="utf-8")
        texts = [*sentences(code), ("comments", comments(code))]
        for line, text in texts:
            if words := dialect(text):
                found[f"{path.relative_to(PACKAGE)}:{line}"] = words
    assert found == {}


def test_names_are_the_fields_own():
    """The renamed ones do not come back."""
    code = "\n".join(path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py"))
    for name in ("lens", "leash", "Guard", "Spaces", "odd"):
        assert re.search(rf"\b(class|def) {name}\b|\b{name} = |import {name}\b", code) is None, name
    assert not any(path.stem in ("lens", "leash", "guard", "odd") for path in PACKAGE.rglob("*.py"))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("the paper, made again", True),
        ("it is a whole\nnumber", True),
        ("seed 3 broke", True),
        ("Runs of before version 0.2", True),
        ("a whole number", True),
        ("an integer", False),
        ("the whole numbering", False),
        ("points are 3 K apart", True),
        ("2.5° apart", False),
        ("it continues with the next", False),
        ("a tax is drawn again", False),
    ],
)
def test_the_list_finds_dialect_and_nothing_else(text, found):
    assert bool(dialect(text)) == found
