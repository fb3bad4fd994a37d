"""All that is public has a place in the reference, and says what it is."""

import dataclasses
import enum
import importlib
import inspect
import re
from pathlib import Path

import pytest

from fedrain.agents import SAC, TD3, TQC, Algorithm
from fedrain.climate import ClimateModel, HostModel
from fedrain.experiment import Policy, Run

PAGE = (Path(__file__).parent.parent / "docs" / "api.md").read_text(encoding="utf-8")
SECTIONS = {
    part.split("\n", 1)[0].strip(): part for part in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]
}
#: Names that have a place in the reference.
PUBLIC = set(re.findall(r"^\.\. autoclass:: (\w+)", PAGE, re.MULTILINE))


@pytest.mark.parametrize("room", SECTIONS)
def test_the_reference_has_what_is_public(room):
    public = set(importlib.import_module(room).__all__)
    shown = set(re.findall(r"^\.\. auto\w+:: (\w+)", SECTIONS[room], re.MULTILINE))
    shown |= set(re.findall(r"`fedrain\.(\w+)`", SECTIONS[room]))
    assert shown & public == public
    assert set(re.findall(r"^\.\. auto\w+:: (\w+)", SECTIONS[room], re.MULTILINE)) <= public


def test_every_room_that_has_something_public_has_a_section():
    rooms = [f"fedrain.{name}" for name in ("climate", "envs", "baselines", "agents", "federation")]
    rooms += [f"fedrain.{name}" for name in ("experiment", "flower", "tuning", "paper")]
    rooms += ["fedrain.climate.stability"]
    assert set(SECTIONS) == {"fedrain", *rooms}


def described(doc: str) -> set[str]:
    """The arguments that a docstring describes: in its ``Args``, or in a table of its own."""
    told = set(re.findall(r"^\| ``(\w+)`` \|", doc, re.MULTILINE))
    for section in doc.split("Args:\n")[1:]:
        section = re.split(r"^\S|^(?:Returns|Raises|Example):", section, flags=re.MULTILINE)[0]
        told |= set(re.findall(r"^ +(\w+): ", section, re.MULTILINE))
    return told


def parameters_of(function) -> list[str]:
    return [name for name in inspect.signature(function).parameters if name != "self"]


def undescribed(function, doc: str) -> list[str]:
    """What a function takes or gives, and its docstring does not tell."""
    missing = [name for name in parameters_of(function) if name not in described(doc)]
    given = inspect.signature(function).return_annotation
    returns = given not in (None, "None", inspect.Signature.empty, type(None))
    return missing + ["what it returns"] * (returns and "Returns:\n" not in doc)


def constructor_of(kind) -> list[str]:
    """The arguments that make an object of a class; of what cannot be made, or is listed, none."""
    if getattr(kind, "_is_protocol", False) or issubclass(kind, (enum.Enum, BaseException)):
        return []
    if dataclasses.is_dataclass(kind):
        return [field.name for field in dataclasses.fields(kind) if field.init]
    if issubclass(kind, tuple):
        return list(kind._fields)
    if kind.__init__ is object.__init__:
        return []
    every = inspect.signature(kind.__init__).parameters.values()
    return [p.name for p in every if p.name != "self" and p.kind is not p.VAR_KEYWORD]


@pytest.mark.parametrize("room", SECTIONS)
def test_what_is_public_is_described(room):
    """Every argument of functions and classes, what functions return, and every method."""
    module = importlib.import_module(room)
    missing = {}
    for name in module.__all__:
        thing = getattr(module, name)
        if inspect.isfunction(thing):
            missing[name] = undescribed(thing, inspect.getdoc(thing) or "")
        elif inspect.isclass(thing):
            # What a class inherits is told by those that have a page of their own.
            shown = [one for one in thing.__mro__ if one.__name__ in PUBLIC]
            known = set().union(*(described(inspect.getdoc(one) or "") for one in shown))
            missing[name] = [one for one in constructor_of(thing) if one not in known]
            assert inspect.getdoc(thing), name
            for other, member in vars(thing).items():
                if inspect.isfunction(member) and not other.startswith("_"):
                    assert inspect.getdoc(getattr(thing, other)), f"{name}.{other}"
    assert {name: what for name, what in missing.items() if what} == {}


#: What own_model.md and own_algorithm.md tell people to write, or to write anew.
CONTRACT = [
    *((ClimateModel, name) for name in ("init", "step", "observe")),
    *((HostModel, name) for name in ("init_host", "step_host", "observe")),
    *((Algorithm, name) for name in ("init", "act", "explore", "update")),
    *((TD3, n) for n in ("target_action", "target_value", "policy_value", "value_loss")),
    *((kind, "target_values") for kind in (SAC, TQC)),
    *((kind, n) for kind in (SAC, TQC) for n in ("value_loss", "policy_value")),
    *((kind, "actor_loss") for kind in (TD3, SAC)),
    *((kind, n) for kind in (TD3, SAC) for n in ("policy_steps", "update_policy", "finish")),
    (Run, "evaluate"), (Run, "policy"), (Run, "scenarios"), (Run, "respond"), (Policy, "__call__"),
]  # fmt: skip


def told_of(kind, name) -> str:
    """What a class says of a method, and what those say from which it is inherited."""
    own = (vars(one)[name] for one in kind.__mro__ if name in vars(one))
    return "\n".join(inspect.getdoc(one) or "" for one in own)


@pytest.mark.parametrize(("kind", "name"), CONTRACT, ids=lambda one: getattr(one, "__name__", one))
def test_the_contracts_are_described(kind, name):
    assert undescribed(getattr(kind, name), told_of(kind, name)) == []


def test_what_is_not_described_would_be_found():
    def bare(one: int, two: int) -> int:
        """It adds.

        Args:
            one: A number.
        """
        return one + two

    assert undescribed(bare, inspect.getdoc(bare)) == ["two", "what it returns"]
