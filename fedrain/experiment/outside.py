"""What a stored experiment has from outside the package, and who may make it be imported.

A stored reference to a model, a task or an algorithm is never imported on the word of the file that
holds it: whoever opens the experiment names it again (:class:`Named`). What was named is compared
with what is stored before anything of it is called, and what differs is said.
"""

import inspect
import reprlib
from collections.abc import Mapping
from typing import Any

from fedrain.agents.presets import find_algorithm
from fedrain.envs.tasks import OWN_MODELS, find_model, find_task
from fedrain.errors import InputError, unknown
from fedrain.experiment.configuration import KINDS, Configuration, Named
from fedrain.references import (
    check_same,
    check_source,
    fingerprint,
    is_own_function,
    is_reference,
    reference_to,
)

NO_EXPERIMENT = "this is not the configuration of an experiment"


def stored_sources(values: Mapping[str, Any]) -> dict[str, Any]:
    """What a stored experiment tells of its things from outside, which may be anything."""
    found = values.get("sources") or {}
    if not isinstance(found, Mapping) or not {*found} <= {*KINDS}:
        raise InputError(NO_EXPERIMENT)
    return dict(found)


def recognised(configuration: Configuration, named: Named) -> Named:
    """The things from outside that an experiment needs, each as a person has named it."""
    found: dict[str, Any] = {}
    for kind, registry in KINDS.items():
        stored, given = getattr(configuration, kind), getattr(named, kind)
        if stored is None:
            if given is not None:
                raise InputError(
                    f"this experiment has no {registry.kind} of its own: drop --{kind}"
                )
            continue
        if registry.is_known(stored):
            if given is not None and name_of(given) != stored:
                raise InputError(f"the {registry.kind} of this experiment is {stored}, not {given}")
            continue
        if not isinstance(stored, str) or not is_reference(stored):
            raise unknown(registry.kind, stored, registry.names())
        if given is None:
            # Not as a command to copy: it is what a stranger's folder may want to be run.
            form = "file.py:task" if kind == "env" else "file.py:Class"
            raise InputError(
                f"the {registry.kind} of this experiment is not part of FedRAIN: if it is yours, "
                f"name it again with --{kind} {form} (the folder calls it "
                f"{reprlib.repr(stored)})"
            )
        found[kind] = _compared(kind, given, configuration)
    return Named(**found)


def _compared(kind: str, given: Any, configuration: Configuration) -> Any:
    """What a person has named, if it is what was trained; nothing is called before."""
    registry, options = KINDS[kind], configuration.environment.get("model_options")
    stored = configuration.sources.get(kind, {})
    named = registry.get(given) if isinstance(given, str) else given
    check_source(registry.kind, stored, named, given)
    is_function = kind == "model" and inspect.isfunction(named)
    if is_function and options and named not in OWN_MODELS and not is_own_function(named):
        # The arguments are the folder's, and functions of all kinds are installed.
        raise InputError(
            f"{reference_to(named)}: a function of an installed package is not called with "
            "arguments from a folder: name a class"
        )
    thing = _find(kind, given, options)
    check_same(registry.kind, stored, thing, given)
    return thing


def _find(kind: str, given: Any, options: Mapping[str, Any] | None) -> Any:
    if kind != "model":
        return {"env": find_task, "algo": find_algorithm}[kind](given)
    made = isinstance(given, str | type) or callable(given)
    return find_model(given, options if made else None)


def accepted(values: Mapping[str, Any], named: Named) -> dict[str, Any]:
    """A stored configuration that the things named here suit, whatever their sources are now.

    What was stored stays, and so do the run's identity and its checkpoint; sources that are
    accepted are listed beside it. Fields that differ make another experiment all the same.
    """
    sources = stored_sources(values)
    options = (values.get("environment") or {}).get("model_options")
    for kind in sources:
        if (given := getattr(named, kind, None)) is None:
            continue
        text = isinstance(given, str)  # then the hash is that of its file, and nothing is made
        thing = KINDS[kind].get(given) if text else _find(kind, given, options)
        now = fingerprint(thing, given)["source"]
        stored = sources[kind] if isinstance(sources[kind], Mapping) else {}
        known = list(stored.get("accepted") or ())
        if now not in (stored.get("source"), *known):
            sources[kind] = {**stored, "accepted": [*known, now]}
    return {**values, "sources": sources}


def name_of(given: Any) -> str:
    """How a task, a model or an algorithm is called: by name, or else by reference."""
    if isinstance(given, str):
        return given
    for registry in KINDS.values():
        for name, thing in registry.builtin.items():
            if thing is given:
                return name
    return reference_to(given)
