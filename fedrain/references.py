"""Models, tasks and algorithms by name: built in, of an installed plug-in, or of one's own.

``ebm-v3`` is a name; ``package.module:Name`` and ``file.py:Name`` are references. A reference is
imported only when a person names it: what a file or a message says of one is compared with what
the person named, and never imported on its word.
"""

import ast
import hashlib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cached_property
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

from fedrain.errors import InputError, unknown


def is_reference(text: str) -> bool:
    """Whether this is ``module:Name`` or ``file.py:Name``, and not a plain name."""
    return ":" in text


@dataclass(frozen=True)
class Registry:
    """Things of one kind that go by name: those of the package, and those of plug-ins.

    A plug-in is an installed package that names its things as entry points of ``group``.
    """

    kind: str
    group: str
    builtin: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def _plugins(self) -> dict[str, metadata.EntryPoint]:
        return {point.name: point for point in metadata.entry_points(group=self.group)}

    def names(self) -> list[str]:
        """All that there are."""
        return [*self.builtin, *(name for name in self._plugins if name not in self.builtin)]

    def is_known(self, text: object) -> bool:
        """Whether a name stands for something of the package or of a plug-in."""
        return isinstance(text, str) and text in self.names()

    def get(self, text: str) -> Any:
        """What a name or a reference stands for. Call it on a person's word only."""
        if text in self.builtin:
            return self.builtin[text]
        if text in self._plugins:
            return self._plugins[text].load()
        if not isinstance(text, str) or not is_reference(text):
            raise unknown(self.kind, text, self.names())
        return load(text, self.kind)


def load(text: str, kind: str) -> Any:
    """Import what a reference names."""
    where, _, name = text.rpartition(":")
    if not where or not name:
        raise InputError(f"{text!r} names no {kind}: write file.py:Name or package.module:Name")
    module = _load_file(where) if where.endswith(".py") else _load_module(where)
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            raise unknown(f"{part!r} in {where} for a {kind}: no name", name, _names(module))
        found = getattr(found, part)
    return found


def _names(module: ModuleType) -> list[str]:
    own = [n for n, v in vars(module).items() if getattr(v, "__module__", None) == module.__name__]
    return [name for name in own if not name.startswith("_")]


def _load_module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except Exception as error:
        raise InputError(f"{name}: cannot be imported ({_first_line(error)})") from None


def _load_file(name: str) -> ModuleType:
    path = Path(name)
    if not path.is_file():
        raise InputError(f"{name}: there is no such file")
    code = path.read_bytes()
    # One module for one content, however often and by whatever path it is named: equal models are
    # then of equal class, and nothing is compiled twice.
    unique = f"fedrain_own_{path.stem}_{hashlib.sha256(code).hexdigest()[:16]}"
    if unique in sys.modules:
        return sys.modules[unique]
    spec = importlib.util.spec_from_file_location(unique, path.resolve())
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[unique] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[unique]
        raise InputError(f"{name}: cannot be imported ({_first_line(error)})") from None
    return module


def _first_line(error: Exception) -> str:
    text = str(error).splitlines()
    return f"{type(error).__name__}: {text[0]}" if text else type(error).__name__


def reference_to(thing: Any) -> str:
    """How a class, function or object would be named again."""
    kind = thing if inspect.isclass(thing) or inspect.isfunction(thing) else type(thing)
    module = sys.modules.get(kind.__module__)
    file = getattr(module, "__file__", None)
    if file and (kind.__module__ == "__main__" or kind.__module__.startswith("fedrain_own_")):
        return f"{Path(file).name}:{kind.__qualname__}"
    return f"{kind.__module__}:{kind.__qualname__}"


def is_ours(thing: Any) -> bool:
    """Whether a class or an object is of this package."""
    kind = thing if inspect.isclass(thing) or inspect.isfunction(thing) else type(thing)
    return kind.__module__.split(".")[0] == "fedrain"


def fingerprint(thing: Any) -> dict[str, Any]:
    """What tells whether a thing is the one that it was: a hash of its source, and its fields."""
    return {"source": source_hash(thing), "fields": stored_fields(thing)}


def source_hash(thing: Any) -> str:
    """Of the code that it is defined in, comments and layout left out; "" where there is none."""
    kind = thing if inspect.isclass(thing) or inspect.isfunction(thing) else type(thing)
    module = sys.modules.get(kind.__module__)
    try:
        text = inspect.getsource(kind if kind.__module__ == "__main__" else module or kind)
        text = ast.unparse(ast.parse(inspect.cleandoc(text)))
    except (OSError, TypeError, SyntaxError):
        return ""
    return hashlib.sha256(text.encode()).hexdigest()


def stored_fields(thing: Any) -> dict[str, Any]:
    """The fields of a dataclass as JSON can hold them; numbers and text as they are."""
    if not is_dataclass(thing) or inspect.isclass(thing):
        return {}
    return {f.name: _plain(getattr(thing, f.name)) for f in fields(thing) if f.compare}


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    return stored_fields(value) if is_dataclass(value) else repr(value)


def check_same(kind: str, stored: Mapping[str, Any], named: Any) -> None:
    """Refuse a thing that is not the one it was when it was stored, and say what differs."""
    now = fingerprint(named)
    was, own = stored.get("fields") or {}, now["fields"]
    other = sorted(name for name in {*was, *own} if was.get(name) != own.get(name))
    what = [f"{name} is {own.get(name)!r}, was {was.get(name)!r}" for name in other]
    if stored.get("source") != now["source"]:
        what.append("its source has changed")
    if what:
        raise InputError(
            f"the {kind} {reference_to(named)} is not the one that was trained: {'; '.join(what)}"
        )
