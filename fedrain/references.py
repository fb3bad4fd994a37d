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
import json
import reprlib
import sys
import sysconfig
import textwrap
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cached_property
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

from fedrain.errors import InputError, unknown

#: Modules that come from files of one's own, and where they keep their code.
_OWN = "fedrain_own_"
_CODE = "__fedrain_code__"
#: Where the classes of plain values are, which have no source that matters.
_PLAIN = ("builtins", "numpy", "types", "collections", "pathlib")
#: Objects that were named by reference, by their id, and the module that makes each.
_MAKERS: dict[int, tuple[Any, ModuleType]] = {}
#: Modules that were found beside a file of one's own, and the folder of each.
_HELPERS: dict[str, str] = {}
#: What somebody else's code may end with; SystemExit would end us without a word.
OF_OTHERS = (Exception, SystemExit)
#: Where no file of one's own is.
_NOT_OWN = (f"{Path(__file__).parent}/", f"{sysconfig.get_path('stdlib')}/", "<")


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
    def _plugins(self) -> dict[str, Any]:  # entry points, of importlib or of its backport
        return {point.name: point for point in metadata.entry_points(group=self.group)}

    def names(self) -> list[str]:
        """All that there are."""
        return [*self.builtin, *(name for name in self._plugins if name not in self.builtin)]

    def is_known(self, text: object) -> bool:
        """Whether a name stands for something of the package or of a plug-in."""
        return isinstance(text, str) and text in self.names()

    def get(self, text: Any) -> Any:
        """What a name or a reference stands for. Call it on a person's word only."""
        if not self.is_known(text) and not (isinstance(text, str) and is_reference(text)):
            if isinstance(text, str) and text.endswith(".py"):
                raise InputError(f"{text}: say which {self.kind} in the file, as {text}:Name")
            raise unknown(self.kind, text, self.names())
        if text in self.builtin:
            return self.builtin[text]
        if text in self._plugins:
            with _one_line(f"the plug-in {text!r}"):
                return self._plugins[text].load()
        return load(text, self.kind)


def load(text: str, kind: str) -> Any:
    """Import what a reference names."""
    where, _, name = text.rpartition(":")
    if not where or not name:
        raise InputError(f"{text!r} names no {kind}: write file.py:Name or package.module:Name")
    module = _module(where)
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            raise unknown(f"{kind} in {where} called", name, _names(module))
        found = getattr(found, part)
    if module.__name__.split(".")[0] != "fedrain":  # our own counts as its version, however named
        _MAKERS[id(found)] = found, module  # kept, so that no other object can get its id
    return found


def _module(where: str) -> ModuleType:
    return _load_file(where) if where.endswith(".py") else _load_module(where)


def _names(module: ModuleType) -> list[str]:
    """What is made in a module, as far as one can tell: no imports, no plain numbers or text."""
    own, imported = [], _imported(module)
    for name, value in vars(module).items():
        if name.startswith("_") or name in imported or inspect.ismodule(value):
            continue
        if inspect.isclass(value) or inspect.isroutine(value):
            made_here = value.__module__ == module.__name__
        else:
            made_here = type(value).__module__ not in (*_PLAIN, "typing")
        own += [name] if made_here else []
    return own


def _imported(module: ModuleType) -> set[str]:
    """The names that a module has from others."""
    try:
        tree = ast.parse(vars(module).get(_CODE) or inspect.getsource(module))
    except (OSError, TypeError, SyntaxError):
        return set()
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    return {alias.asname or alias.name.split(".")[0] for one in imports for alias in one.names}


def _load_module(name: str) -> ModuleType:
    with _one_line(name):
        if importlib.util.find_spec(name.split(".")[0]) is None:
            # An installed command does not look for modules in the folder where it is called.
            sys.path.append(str(Path.cwd()))
        return importlib.import_module(name)


def _load_file(name: str) -> ModuleType:
    path = Path(name)
    if not path.is_file():
        raise InputError(f"{name}: there is no such file")
    code = path.read_bytes()
    # One module for one content, however often and by whatever path it is named: equal models are
    # then of equal class, and nothing is compiled twice.
    unique = f"{_OWN}{path.stem}_{hashlib.sha256(code).hexdigest()[:16]}"
    if unique in sys.modules:
        return sys.modules[unique]
    spec = importlib.util.spec_from_file_location(unique, path.resolve())
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    module.__dict__[_CODE] = code  # the file may be another when somebody asks for its hash
    sys.modules[unique] = module
    try:
        with _one_line(name), _beside(path.resolve().parent):
            # What was hashed is what runs.
            exec(compile(code, str(path.resolve()), "exec"), module.__dict__)
    except BaseException:
        del sys.modules[unique]
        raise
    return module


@contextmanager
def _beside(folder: Path) -> Iterator[None]:
    """Let a file import those beside it, while it is loaded; what is installed comes first."""
    own = str(folder)
    for name, other in list(_HELPERS.items()):
        if other != own:  # a helper of the same name beside another file is another helper
            sys.modules.pop(name, None)
            del _HELPERS[name]
    before = set(sys.modules)
    importlib.invalidate_caches()
    if added := own not in sys.path:
        sys.path.append(own)
    try:
        yield
    finally:
        if added and own in sys.path:
            sys.path.remove(own)
        for name in set(sys.modules) - before:
            file = getattr(sys.modules[name], "__file__", None)
            if file and Path(file).is_relative_to(folder) and not name.startswith(_OWN):
                _HELPERS[name] = own


@contextmanager
def _one_line(name: str) -> Iterator[None]:
    """Say in one line what somebody else's code did when it was imported."""
    try:
        yield
    except OF_OTHERS as error:
        raise InputError(f"{name}: cannot be imported ({told(error)})") from None


def told(error: BaseException) -> str:
    """What an error of somebody else's code says, and where in their file: for a line of ours."""
    lines = str(error).splitlines()
    text = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
    places = [
        f"{Path(frame.f_code.co_filename).name}:{line}"
        for frame, line in traceback.walk_tb(error.__traceback__)
        if _is_own(frame.f_code.co_filename)
    ]
    return f"{text}; {places[-1]}" if places else text


def is_own_function(thing: Any) -> bool:
    """Whether this is a function of a user's file: of none that is installed, nor of Python's."""
    return inspect.isfunction(thing) and _is_own(thing.__code__.co_filename)


def _is_own(file: str) -> bool:
    """Whether a file is a user's: not of this package, of another that is installed, or Python."""
    return not file.startswith(_NOT_OWN) and not {"site-packages", "dist-packages"} & {
        *Path(file).parts
    }


def _kind(thing: Any) -> Any:
    """The class of an object; a class or a function itself."""
    return thing if inspect.isclass(thing) or inspect.isfunction(thing) else type(thing)


def reference_to(thing: Any) -> str:
    """How a class, function or object would be named again."""
    kind = _kind(thing)
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    if file and (kind.__module__ == "__main__" or kind.__module__.startswith(_OWN)):
        return f"{Path(file).name}:{kind.__qualname__}"
    return f"{kind.__module__}:{kind.__qualname__}"


def is_ours(thing: Any) -> bool:
    """Whether a class or an object is of this package."""
    return _kind(thing).__module__.split(".")[0] == "fedrain"


def fingerprint(thing: Any, given: object = None) -> dict[str, Any]:
    """What tells whether a thing is the one that it was: a hash of its source, and its fields.

    Args:
        thing: A class, a function or an object.
        given: How it was named. Of a reference the hash is that of its file, which may make an
            object of a class from elsewhere.
    """
    if isinstance(given, str) and is_reference(given):
        source = _hash_of(_module(given.rpartition(":")[0]))
    else:
        source = source_hash(thing)
    return {"source": source, "fields": stored_fields(thing)}


def source_hash(thing: Any) -> str:
    """Of the code that it is defined in, comments and layout left out; "" where there is none.

    An object that was named by reference, such as a task, counts as the file that makes it. The
    package's own code is that of its version; what one of its dataclasses holds counts.
    """
    if id(thing) in _MAKERS:
        return _hash_of(_MAKERS[id(thing)][1])
    if not is_ours(thing):
        kind = _kind(thing)
        module = sys.modules.get(kind.__module__)
        return _hash_of(kind if module is None or module.__name__ == "__main__" else module)
    if not is_dataclass(thing) or inspect.isclass(thing):
        return ""
    held = [getattr(thing, f.name) for f in fields(thing) if f.compare]
    hashes = [source_hash(one) for one in held if _kind(one).__module__ not in _PLAIN]
    return ":".join(one for one in hashes if one)


def _hash_of(code: Any) -> str:
    """Of the source of a module or a class."""
    try:
        text = vars(code).get(_CODE) or textwrap.dedent(inspect.getsource(code))
        text = ast.unparse(ast.parse(text))
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
    if inspect.isclass(value) or inspect.isroutine(value):
        return value.__qualname__
    if is_dataclass(value):
        return stored_fields(value)
    text = repr(value)
    return type(value).__qualname__ if " at 0x" in text else text


def check_source(kind: str, stored: object, named: Any, given: object) -> None:
    """Refuse a thing whose source is not the stored one, before anything of it is called.

    Args:
        kind: What it is, for messages.
        stored: What :func:`fingerprint` gave once, as a file tells it.
        named: What a person has named: the class, the function or the object itself.
        given: How it was named.
    """
    told = stored if isinstance(stored, Mapping) else {}
    if not isinstance(told.get("source"), str) or not isinstance(told.get("fields"), Mapping):
        raise InputError(
            f"this experiment does not record the source of its {kind}, so it cannot be compared"
        )
    if not isinstance(given, str | type):
        return  # made already, or of a function: the object itself is compared
    if fingerprint(named, given)["source"] not in _sources(told):
        raise InputError(
            f"the {kind} {reference_to(named)} is not the one that was trained: {CHANGED}"
        )


def _sources(stored: Mapping[str, Any]) -> list[Any]:
    """Hashes of the source that was stored, and of those that were accepted since."""
    more = stored.get("accepted")
    return [stored.get("source"), *(more if isinstance(more, list) else ())]


CHANGED = "its source has changed (train --resume --accept-changes accepts that)"


def check_same(kind: str, stored: Mapping[str, Any], named: Any, given: object = None) -> None:
    """Refuse a thing that is not the one it was when it was stored, and say what differs."""
    now = fingerprint(named, given)
    was, own = stored.get("fields") or {}, now["fields"]
    other = sorted(n for n in {*was, *own} if _text(was.get(n)) != _text(own.get(n)))
    say = reprlib.repr  # a field may be a long array
    what = [f"{n} is {say(own.get(n))}, was {say(was.get(n))}" for n in other]
    if now["source"] not in _sources(stored):
        what.append(CHANGED)
    if what:
        raise InputError(
            f"the {kind} {reference_to(named)} is not the one that was trained: {'; '.join(what)}"
        )


def _text(value: Any) -> str:
    """For comparison: NaN is NaN, and the order of keys says nothing."""
    return json.dumps(value, sort_keys=True)
