"""Models and tasks of a person's own, made from the class or the function that was named.

Whatever can be named by reference can be called, ``subprocess:Popen`` too, so it is looked at
first: a class is called only if it is one of climate models, a function of a task only if it needs
no arguments.
"""

import inspect
from collections.abc import Mapping
from typing import Any

from fedrain.climate.model import FUNCTIONS, PARTS, first_line
from fedrain.envs.task import Task
from fedrain.errors import InputError, unknown
from fedrain.references import OF_OTHERS


def made_task(found: Any, named: object) -> Task:
    """A task as it is, or of the function (or the class of tasks) that gives it.

    Args:
        found: What was found by that name.
        named: The name, for messages.
    """
    is_class = isinstance(found, type)
    if inspect.isfunction(found) or (is_class and issubclass(found, Task)):
        if needed := _needed(found):
            raise InputError(
                f"{named}: needs {', '.join(needed)}: a task is a fedrain.envs.Task, or a function "
                "without arguments that gives one"
            )
        try:
            found = found()
        except InputError:
            raise
        except OF_OTHERS as error:
            raise InputError(f"{named}: cannot be made ({first_line(error)})") from None
    elif is_class:
        raise InputError(f"{named}: is not a fedrain.envs.Task, but the class {found.__name__}")
    if not isinstance(found, Task):
        raise InputError(f"{named}: is not a fedrain.envs.Task, but a {type(found).__name__}")
    return found


def _needed(function: Any) -> list[str]:
    """Arguments that have to be given."""
    parameters = inspect.signature(function).parameters.values()
    free = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    return [p.name for p in parameters if p.default is p.empty and p.kind not in free]


def made_model(found: Any, options: Mapping[str, Any] | None) -> Any:
    """A model as it is, or of its class or the function that gives it, with options of that."""
    if not isinstance(found, type) and not inspect.isfunction(found):
        if options:
            raise InputError("a model that is made already takes no options")
        return found
    if isinstance(found, type):
        check_class(found)
    allowed = inspect.signature(found).parameters
    takes_any = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in allowed.values())
    for name in options or {}:
        if name not in allowed and not takes_any:
            raise unknown(f"option of {found.__name__}", name, list(allowed))
    try:
        return found(**(options or {}))
    except InputError:
        raise
    except OF_OTHERS as error:
        raise InputError(f"{found.__name__} cannot be made ({first_line(error)})") from None


def check_class(kind: type) -> None:
    """Refuse a class that is not one of climate models; nothing of it is called."""
    if all(callable(getattr(kind, name, None)) for name in FUNCTIONS):
        return
    declared = {name for one in kind.__mro__ for name in inspect.get_annotations(one)}
    if missing := [part for part in PARTS if not hasattr(kind, part) and part not in declared]:
        raise InputError(
            f"{kind.__name__} has no {' and no '.join(missing)}: a climate model has "
            f"{', '.join(PARTS)}"
        )
    wrong = next(name for name in FUNCTIONS if not callable(getattr(kind, name, None)))
    raise InputError(f"{kind.__name__}: its {wrong} must be a function")
