"""Tables for people: aligned whatever is in them."""

import subprocess
import sys

import pytest

from fedrain.tables import GAP, Table, counted


def test_things_are_counted_as_people_say_it():
    assert [counted(n, "seed") for n in (0, 1, 2)] == ["0 seeds", "1 seed", "2 seeds"]


def test_words_to_the_left_and_figures_to_the_right():
    rows = [["90°S–60°S", "11.453", "7.95 ± 2.19"], ["global", "−5.9", GAP]]
    assert Table("", ["areaWRMSE (K)", "static", "learnt"], rows).text().splitlines() == [
        "areaWRMSE (K)  static       learnt",
        "90°S–60°S      11.453  7.95 ± 2.19",
        "global           −5.9            –",
    ]


@pytest.mark.parametrize(
    "figure", ["−1.50", "-1.50", "+1.50", "1e−08", "nan", "−inf", "3 of 6", ""]
)
def test_what_counts_as_a_figure(figure):
    *_, line = Table("", ["x", "a long heading"], [["a", figure]]).text().splitlines()
    assert line == f"a  {figure:>14}".rstrip()


def test_columns_of_words_among_the_figures():
    rows = [["ebm-v1", "1", "mean over 96", "make()"], ["ebm-v3", "16", "mean over 6", "other()"]]
    assert Table("", ["name", "agents", "reward", "make"], rows).text().splitlines() == [
        "name    agents  reward        make",
        "ebm-v1       1  mean over 96  make()",
        "ebm-v3      16  mean over 6   other()",
    ]


def test_the_first_columns_are_words_if_they_are_said_to_be():
    table = [["48", "1.5"], ["192", "22.5"]]
    assert Table("", ["n", "K"], table).text().splitlines() == [
        "n       K",
        "48    1.5",
        "192  22.5",
    ]
    as_figures = Table("", ["n", "K"], table, words=0).text().splitlines()
    assert as_figures == ["  n     K", " 48   1.5", "192  22.5"]


@pytest.mark.parametrize("name", ["W m⁻² K⁻¹", "2 × CO₂", "½ ° ± −", "e\u0301te\u0301", "気候"])
def test_columns_stay_under_each_other(name):
    """Places on the terminal count, not characters: two for 気, none for a combining accent."""
    places = {"e\u0301te\u0301": 3, "気候": 4}.get(name, len(name))
    first, second = (
        Table("", ["name", "K"], [[name, "1.0"], ["x" * 12, "1.0"]]).text().split("\n")[1:]
    )
    assert first == name + " " * (12 - places) + "  1.0"
    assert second == "x" * 12 + "  1.0"


def test_caption_only_if_there_is_one():
    assert Table("Skill", ["a"], [["b"]]).text() == "Skill\n\na\nb"
    assert Table("", ["a"], [["b"]]).markdown() == "| a |\n| --- |\n| b |\n"
    assert Table("Skill", ["a"], [["b"]]).markdown().startswith("**Skill**\n\n| a |")


def test_headings_over_columns_are_told():
    table = Table("", ["cell", "K", "%"], [["a", "1", "2"]], [("", 1), ("local", 2)])
    assert table.text().splitlines()[0] == "cell  local K  local %"


def test_no_rows():
    assert Table("", ["cell", "minutes"], []).text() == "cell  minutes"
    assert Table("", [], []).text() == ""


def test_a_row_that_does_not_fit():
    with pytest.raises(ValueError, match="shorter"):
        Table("", ["a", "b"], [["1"]]).text()


def test_a_table_needs_no_matplotlib():
    code = "import sys, fedrain.tables; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
