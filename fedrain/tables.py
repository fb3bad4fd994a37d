"""The one table printer: a table for a terminal, as Markdown, LaTeX with booktabs, or CSV."""

import csv
import io
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate, zip_longest
from pathlib import Path
from textwrap import wrap
from typing import Any
from unicodedata import combining, east_asian_width

from fedrain.io import write_whole

GAP = "–"  # where there is no figure
SPREAD = " ± "
ROWS_OF_A_PAGE = 40
BETWEEN = "  "  # columns of plain text
LEAST_WIDTH = 12  # of a column that is wrapped
#: A cell that is a figure, with or without its spread and unit, or that has none to show.
FIGURE = re.compile(rf"\s*|{GAP}|[-−+]?(\d.*|inf|nan)")
LATEX = {
    "%": r"\%",
    "&": r"\&",
    "_": r"\_",
    "#": r"\#",
    "−": "$-$",
    "²": "$^2$",
    "→": r"$\to$",
    "°": r"$^\circ$",
    "±": r"$\pm$",
    "½": r"$\frac12$",
}


def counted(number: int, what: str) -> str:
    """``1 seed``, ``2 seeds``."""
    return f"{number} {what}{'s' * (number != 1)}"


@dataclass(frozen=True)
class Table:
    """Text by row and column, words in the first columns, figures in the others.

    ``groups`` are headings that stand over several columns.
    """

    caption: str
    header: list[str]
    rows: list[list[str]]
    groups: list[tuple[str, int]] = field(default_factory=list)
    words: int = 1

    @property
    def _names(self) -> list[str]:
        """What each column is called without a heading over it."""
        if not self.groups:
            return self.header
        above = [title for title, span in self.groups for _ in range(span)]
        return [f"{a} {h}".strip() for a, h in zip(above, self.header, strict=True)]

    def markdown(self) -> str:
        """For the web; without a caption only the table."""
        header = self._names
        lines = [
            header,
            [*["---"] * self.words, *["---:"] * (len(header) - self.words)],
            *self.rows,
        ]
        body = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        caption = f"**{self.caption}**\n\n" if self.caption else ""
        return f"{caption}{body}\n"

    def text(self, width: int | None = None) -> str:
        """For a terminal: columns of words to the left, columns of figures to the right.

        The first ``words`` columns are words whatever is in them. Of the others, those that hold
        something else than figures are words too. There is no line end after the last row.

        Args:
            width: Characters of a line, if the last column is to be wrapped so that lines fit.
        """
        columns, used = [], 0
        rows = [[[cell] for cell in row] for row in (self._names, *self.rows)]
        for i in range(len(self._names)):
            left = i < self.words or not all(FIGURE.fullmatch(row[i]) for row in self.rows)
            if width is not None and i == len(self._names) - 1:
                for row in rows:
                    row[i] = wrap(row[i][0], max(width - used, LEAST_WIDTH)) or [""]
            widest = max(_width(line) for row in rows for line in row[i])
            used += widest + len(BETWEEN)
            columns.append((widest, left))
        body = [
            BETWEEN.join(
                _pad(cell, *column) for cell, column in zip(line, columns, strict=True)
            ).rstrip()
            for row in rows
            for line in zip_longest(*row, fillvalue="")
        ]
        return "\n".join([self.caption, "", *body] if self.caption else body)

    def latex(self) -> str:
        """For a paper that uses booktabs, and longtable for what may not fit on a page."""
        wide = max(len(text) for row in self.rows for text in row) > 60 if self.rows else False
        share = 0.95 / self.words - 0.02  # of the line, with the space between columns left out
        word = rf"p{{{share:.3f}\linewidth}}" if wide else "l"
        columns = word * self.words + "c" * (len(self.header) - self.words)
        caption = rf"\caption{{{_escape(self.caption)}}}"
        head = self._latex_head()
        rows = [f"{' & '.join(map(_escape, row))} \\\\" for row in self.rows]
        if wide or len(rows) > ROWS_OF_A_PAGE:
            begin = [r"\begingroup\small", rf"\begin{{longtable}}{{{columns}}}", caption + r"\\"]
            begin += [*head, r"\endfirsthead", *head, r"\endhead", r"\bottomrule", r"\endfoot"]
            end = [r"\end{longtable}", r"\endgroup"]
        else:
            begin = [r"\begin{table}", r"\centering\small", caption]
            begin += [rf"\begin{{tabular}}{{{columns}}}", *head]
            end = [r"\bottomrule", r"\end{tabular}", r"\end{table}"]
        return "\n".join([*begin, *rows, *end, ""])

    def _latex_head(self) -> list[str]:
        lines = [r"\toprule"]
        if self.groups:
            cells = [rf"\multicolumn{{{span}}}{{c}}{{{_escape(t)}}}" for t, span in self.groups]
            lines.append(f"{' & '.join(cells)} \\\\")
            ends = list(accumulate(span for _, span in self.groups))
            rules = [
                rf"\cmidrule(lr){{{end - span + 1}-{end}}}"
                for (title, span), end in zip(self.groups, ends, strict=True)
                if title
            ]
            lines.append("".join(rules))
        return [*lines, f"{' & '.join(map(_escape, self.header))} \\\\", r"\midrule"]

    def csv(self) -> str:
        """For programs: plain numbers, a mean and its spread in two columns, no column twice."""
        columns = []
        for i, name in enumerate(self._names):
            values = [row[i] for row in self.rows]
            if any(SPREAD in value for value in values):
                parts = [(*value.split(SPREAD), "")[:2] for value in values]
                mean, std = zip(*parts, strict=True)
                columns += [[f"{name} mean", *mean], [f"{name} std", *std]]
            else:
                columns.append([name, *values])
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerows(
            ["" if value == GAP else value.replace("−", "-") for value in row]
            for row in zip(*columns, strict=True)
        )
        return text.getvalue()


def write_tables(tables: list[Table], path: Path, formats: tuple[str, ...]) -> list[Path]:
    """One file for each format, with all tables one after the other."""
    writers = {"md": Table.markdown, "tex": Table.latex, "csv": Table.csv}
    paths = []
    for name in formats:
        text = "\n".join(writers[name](table) for table in tables)
        paths.append(path.with_suffix(f".{name}"))
        write_whole(paths[-1], partial(Path.write_text, data=text, encoding="utf-8"))
    return paths


def _pad(text: str, width: int, left: bool) -> str:
    space = " " * (width - _width(text))
    return text + space if left else space + text


def _width(text: str) -> int:
    """Places that a text takes on a terminal, where some characters take two and some none."""
    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def _escape(text: str) -> str:
    return "".join(LATEX.get(character, character) for character in text)


def finite(value: Any) -> Any:
    """The same with null for what is not finite, since JSON has no NaN."""
    if isinstance(value, Mapping):
        return {key: finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
