"""The tables of mutations fit the code, and what makes and judges them does as it says."""

from collections import Counter

import pytest

from tests.mutants.run import Mutation, misfit, mistaken, outcome_of, read_tables, report

MUTATIONS = read_tables()


def test_every_mutation_can_be_made():
    """Its old text is there, once; the new one is other code; and its tests exist."""
    wrong = [f"{m.area}: {m.name}: {why}" for m in MUTATIONS if (why := misfit(m)) is not None]
    assert not wrong, "\n".join(wrong)


def test_there_are_enough_of_them_everywhere():
    assert len(MUTATIONS) >= 100
    assert len({(m.file, m.old, m.new) for m in MUTATIONS}) == len(MUTATIONS)
    assert len({(m.area, m.name) for m in MUTATIONS}) == len(MUTATIONS)
    areas = Counter(m.area for m in MUTATIONS)
    parts = {
        "agents", "transforms", "schedule", "experiment", "federation", "climate", "envs",
        "baselines", "flower", "paper",
    }  # fmt: skip
    assert parts <= areas.keys()
    assert min(areas.values()) >= 10


def mutation(old="x + 1", new="x - 1", **more):
    given = {"file": "package/sums.py", "tests": ("tests/test_sums.py::test_one",), **more}
    return Mutation("area", "name", old=old, new=new, **given)


@pytest.fixture
def folder(tmp_path):
    for name in ("package", "tests"):
        (tmp_path / name).mkdir()
    (tmp_path / "package/sums.py").write_text("def more(x):\n    return x + 1\n")
    (tmp_path / "tests/test_sums.py").write_text("def test_one():\n    pass\n")
    return tmp_path


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({}, None),
        ({"old": "x + 2"}, "0 times, not once"),
        ({"old": "x"}, "2 times, not once"),
        ({"file": "package/other.py"}, "0 times, not once"),
        ({"new": "x  + 1"}, "the same code"),
        ({"tests": ()}, "names no test"),
        ({"tests": ("tests/test_sums.py::test_two",)}, "there is no test"),
        ({"tests": ("tests/test_other.py::test_one",)}, "there is no test"),
    ],
)
def test_what_cannot_be_made_is_said(folder, given, why):
    found = misfit(mutation(**given), folder)
    if why is None:
        assert found is None
    else:
        assert why in found


def test_a_mistake_is_made_for_a_while(folder):
    path = folder / "package/sums.py"
    before = path.read_text(), path.stat().st_mtime_ns
    with mistaken(mutation(), folder):
        assert path.read_text() == "def more(x):\n    return x - 1\n"
    assert (path.read_text(), path.stat().st_mtime_ns) == before


def test_outcomes_are_told_apart():
    """Pytest's exit status 0: all pass; 1: some fail; others: they could not be run."""
    wrong, same = mutation(), mutation(equivalent="nobody asks")
    for status, outcomes in (
        (0, ("survived", "equivalent")),
        (1, ("killed", "not equivalent")),
        (None, ("killed", "not equivalent")),  # out of time
        (-11, ("killed", "not equivalent")),  # a signal
        (2, ("broken", "broken")),
        (4, ("broken", "broken")),
        (5, ("broken", "broken")),
    ):
        assert (outcome_of(wrong, status), outcome_of(same, status)) == outcomes


@pytest.mark.parametrize(
    ("killed", "survived", "other", "enough"),
    [
        (20, 0, [], True),
        (19, 1, ["equivalent"], True),
        (18, 1, [], False),
        (20, 0, ["broken"], False),
        (20, 0, ["not equivalent"], False),
    ],
)
def test_nineteen_in_twenty_are_enough(killed, survived, other, enough):
    outcomes = ["killed"] * killed + ["survived"] * survived + other
    said = []
    assert report([(mutation(), outcome) for outcome in outcomes], said.append) is enough
    assert f"{killed / (killed + survived):.1%} of {killed + survived} mutations" in said[-1]
