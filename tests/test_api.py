"""All that is public has a place in the reference, and says what it is."""

import importlib
import inspect
import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parent.parent / "docs" / "api.md").read_text(encoding="utf-8")
SECTIONS = {
    part.split("\n", 1)[0].strip(): part for part in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]
}


@pytest.mark.parametrize("room", SECTIONS)
def test_the_reference_has_what_is_public(room):
    public = set(importlib.import_module(room).__all__)
    shown = set(re.findall(r"^\.\. auto\w+:: (\w+)", SECTIONS[room], re.MULTILINE))
    shown |= set(re.findall(r"`fedrain\.(\w+)`", SECTIONS[room]))
    assert shown & public == public
    assert set(re.findall(r"^\.\. auto\w+:: (\w+)", SECTIONS[room], re.MULTILINE)) <= public


def test_every_room_that_has_something_public_has_a_section():
    rooms = [f"fedrain.{name}" for name in ("climate", "envs", "baselines", "agents", "federation")]
    rooms += [f"fedrain.{name}" for name in ("experiment", "tuning", "paper", "climate.stability")]
    assert set(SECTIONS) == {"fedrain", *rooms}


@pytest.mark.parametrize("room", SECTIONS)
def test_what_is_public_is_described(room):
    """With every argument that a name does not explain by itself, and the return of functions."""
    module = importlib.import_module(room)
    for name in module.__all__:
        thing = getattr(module, name)
        if inspect.isclass(thing) or inspect.isfunction(thing):
            assert inspect.getdoc(thing), name
            for other, member in vars(thing).items() if inspect.isclass(thing) else ():
                if inspect.isfunction(member) and not other.startswith("_"):
                    assert inspect.getdoc(getattr(thing, other)), f"{name}.{other}"
