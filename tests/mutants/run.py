"""Whether the tests notice when the code is wrong: ``make test-mutants``.

Each mutation of the tables beside this file makes one small mistake in a copy of the package and
names the tests that ought to notice. They run in a process of their own, forked from one that has
imported all that is slow to import, with what the suite has compiled at hand. A mutation is

- killed if a test fails, or does not end in time;
- survived if all of them pass: the tests do not bite;
- equivalent if the table says why no test can tell it from the code; then all have to pass;
- broken if it could not be put to the test at all: the table is wrong.

Results are kept with a hash of what they depend on, so that a run that was stopped goes on.
"""

import argparse
import contextlib
import hashlib
import importlib
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import tomllib
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
TABLES = Path(__file__).parent
RECORD = ROOT / ".pytest_cache" / "mutants.jsonl"
#: What tests read beside the package.
COPIED = ("fedrain", "tests", "examples", "docs", "pyproject.toml", "README.md", "CONTRIBUTING.md")
LINKED = ("results", "studies", "benchmarks", "Makefile", "CHANGELOG.md")
#: Of other people, and slow to import. The package itself must not be among them.
SLOW = (
    "pytest", "hypothesis", "numpy", "scipy.stats", "scipy.optimize", "jax", "jax.numpy", "optax",
    "jaxtyping", "beartype", "xarray", "netCDF4", "matplotlib.figure", "gymnasium", "pettingzoo",
    "safetensors.numpy", "tensorboardX", "climlab", "flwr.app", "flwr.serverapp.strategy",
    "flwr.clientapp", "grpc", "cryptography", "httpx", "iterative_ensemble_smoother", "optuna",
)  # fmt: skip
ENOUGH = 0.95  # of the mutations that are not equivalent
SECONDS = 300.0  # that the tests of one mutation may take
WIDTH = 80  # of a name
CONFTEST = "tests/conftest.py"
LOG = "log.txt"  # what pytest said last

Say = Callable[[str], None]


class Mutation(NamedTuple):
    """One mistake, and who ought to notice it."""

    area: str  # the table that it stands in
    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    equivalent: str = ""  # why no test can tell it from the code


def read_tables() -> list[Mutation]:
    """All mutations, table by table."""
    return [
        Mutation(path.stem, **{**row, "tests": tuple(row["tests"])})
        for path in sorted(TABLES.glob("*.toml"))
        for row in tomllib.loads(path.read_text(encoding="utf-8"))["mutation"]
    ]


def mutate(source: str, mutation: Mutation) -> str:
    """The source with the mistake."""
    return source.replace(mutation.old, mutation.new)


def misfit(mutation: Mutation, root: Path = ROOT) -> str | None:
    """Why a mutation can no longer be made, or nobody is there to notice it; None if all is well.

    It is made by replacing text, which has to be there, and only once.
    """
    path = root / mutation.file
    source = path.read_text(encoding="utf-8") if path.is_file() else ""
    if (number := source.count(mutation.old)) != 1:
        return f"{mutation.file} has its old text {number} times, not once"
    if mutation.old.split() == mutation.new.split():
        return f"{mutation.file}: is the same code"
    for test in mutation.tests:
        name, function = test.partition("[")[0].split("::")
        path = root / name
        if not path.is_file() or f"def {function}(" not in path.read_text(encoding="utf-8"):
            return f"there is no test {test}"
    return None if mutation.tests else "it names no test"


@contextlib.contextmanager
def copy_of_the_package() -> Iterator[Path]:
    """A temporary folder that is to tests what the working tree is, and may be spoilt."""
    leave = shutil.ignore_patterns("_build", "generated")
    with tempfile.TemporaryDirectory(prefix="mutants-") as name:
        folder = Path(name)
        for part in COPIED:
            whole = ROOT / part
            if whole.is_dir():
                shutil.copytree(whole, folder / part, ignore=leave)
            else:
                shutil.copy2(whole, folder / part)
        # What the suite has compiled is good for most mutations too.
        (ROOT / ".pytest_cache").mkdir(exist_ok=True)
        for part in (*LINKED, ".pytest_cache"):
            (folder / part).symlink_to(ROOT / part)
        yield folder


@contextlib.contextmanager
def mistaken(mutation: Mutation, folder: Path) -> Iterator[None]:
    """The copy with a mistake in it."""
    path = folder / mutation.file
    source, times = path.read_text(encoding="utf-8"), path.stat()
    path.write_text(mutate(source, mutation), encoding="utf-8")
    try:
        yield
    finally:
        path.write_text(source, encoding="utf-8")
        # The bytecode of the right source is found again by its time.
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def run_tests(tests: list[str], folder: Path, keep: bool = False) -> int | None:
    """Pytest's exit status for these tests in a process of their own; None if out of time.

    Bytecode is written only of what is right (``keep``).
    """
    child = os.fork()
    if child == 0:
        try:
            os.setsid()
            with (folder / LOG).open("wb") as file:
                os.dup2(file.fileno(), 1)
                os.dup2(file.fileno(), 2)
            status = _in_child(tests, folder, keep)
        except BaseException:  # nothing may come out of the fork
            traceback.print_exc()
            status = 70
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    end = time.monotonic() + (SECONDS if not keep else 10 * SECONDS)
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def core_seconds() -> float:
    """That all processes so far have taken of a core, whoever else is on the machine."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _in_child(tests: list[str], folder: Path, keep: bool) -> int:
    import jaxtyping
    import pytest

    # Annotations are not checked: it is the value that is to be noticed, and it is twice as quick.
    jaxtyping.install_import_hook = lambda *_: None
    os.chdir(folder)
    sys.path[:] = [str(folder), *(path for path in sys.path if path != str(TABLES))]
    os.environ["PYTHONPATH"] = str(folder)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    sys.dont_write_bytecode = not keep
    options = ["-q", "-m", "", "-p", "no:cacheprovider"]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # of what is imported already
    options += ["--tb=short"] if keep else ["--tb=no", "-x"]
    return int(pytest.main([*options, *tests], plugins=[_AnyExample()]))


class _AnyExample:
    """Hypothesis stops at the first example that fails, and looks for no simpler one."""

    def pytest_sessionstart(self) -> None:
        """After the suite has chosen its own profile, and before tests are imported."""
        from hypothesis import Phase, settings

        phases = (Phase.explicit, Phase.generate)
        settings.register_profile("mutants", deadline=None, database=None, phases=phases)
        settings.load_profile("mutants")


def key_of(mutation: Mutation, folder: Path) -> str:
    """A hash of a mutation, of the file it is made in, and of the tests that ought to notice."""
    tests = {test.split("::")[0] for test in mutation.tests}
    return hash_of(folder, [mutation.file, CONFTEST, *tests], *map(str, mutation))


def hash_of(folder: Path, files: list[str], *more: str) -> str:
    """Of the content of files, in whatever order, and of texts."""
    parts = [(folder / file).read_text(encoding="utf-8") for file in sorted(files)]
    return hashlib.sha256("\0".join([*parts, *more]).encode()).hexdigest()


def outcome_of(mutation: Mutation, status: int | None) -> str:
    """What pytest's exit status says of a mutation."""
    if status == 1 or status is None or status < 0:  # a process that dies is noticed too
        return "killed" if not mutation.equivalent else "not equivalent"
    if status == 0:
        return "equivalent" if mutation.equivalent else "survived"
    return "broken"


def import_what_is_slow() -> None:
    """So that it need not be imported for each mutation."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in SLOW:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)


class Record:
    """What is known already, by a hash of all that it depends on."""

    def __init__(self, path: Path) -> None:
        self.path = path
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        self.outcomes = {row["key"]: row["outcome"] for row in map(json.loads, lines)}

    def add(self, key: str, name: str, outcome: str) -> None:
        """Known from now on, whenever the run is stopped."""
        self.outcomes[key] = outcome
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"key": key, "name": name, "outcome": outcome}) + "\n")


def run(mutations: list[Mutation], record: Record, say: Say) -> list[tuple[Mutation, str]]:
    """Each mutation and what became of it; those that are known are not run again."""
    found: list[tuple[Mutation, str]] = []
    with copy_of_the_package() as folder:
        keys = {mutation: key_of(mutation, folder) for mutation in mutations}
        new = [mutation for mutation in mutations if keys[mutation] not in record.outcomes]
        if new:
            say(f"{len(new)} of {len(mutations)} are to be run; seconds are those of one core")
            import_what_is_slow()
        for mutation in mutations:
            if mutation in new:
                check_tests(mutation, new, record, folder, say)
                begin = core_seconds()
                with mistaken(mutation, folder):
                    status = run_tests(list(mutation.tests), folder)
                outcome, name = outcome_of(mutation, status), f"{mutation.area}: {mutation.name}"
                say(f"{outcome:<14} {name:<{WIDTH}} {core_seconds() - begin:6.1f} s")
                if outcome == "broken":
                    say((folder / LOG).read_text())
                else:
                    record.add(keys[mutation], name, outcome)
                found.append((mutation, outcome))
            else:
                found.append((mutation, record.outcomes[keys[mutation]]))
    return found


def check_tests(
    mutation: Mutation, new: list[Mutation], record: Record, folder: Path, say: Say
) -> None:
    """The tests that are to notice pass as long as nothing is wrong; in each file, all at once."""
    for file in dict.fromkeys(test.split("::")[0] for test in mutation.tests):
        tests = sorted({t for m in new for t in m.tests if t.startswith(f"{file}::")})
        package = [str(path.relative_to(folder)) for path in (folder / "fedrain").rglob("*.py")]
        key = hash_of(folder, [file, CONFTEST, *package], *tests)
        if key in record.outcomes:
            continue
        begin = core_seconds()
        if run_tests(tests, folder, keep=True) != 0:
            sys.exit(f"{(folder / LOG).read_text()}\nthe tests fail without any mutation")
        say(f"{'sound':<14} {file:<{WIDTH}} {core_seconds() - begin:6.1f} s")
        record.add(key, file, "sound")


def report(found: list[tuple[Mutation, str]], say: Say) -> bool:
    """Say what became of all; whether it is enough."""
    outcomes = ("killed", "survived", "equivalent", "not equivalent", "broken")
    say("")
    say(f"{'area':<12}" + "".join(f"{outcome:>15}" for outcome in outcomes))
    for area in [*dict.fromkeys(mutation.area for mutation, _ in found), "all"]:
        own = [outcome for mutation, outcome in found if area in (mutation.area, "all")]
        say(f"{area:<12}" + "".join(f"{own.count(outcome):>15}" for outcome in outcomes))
    for mutation, outcome in found:
        if outcome != "killed":
            why = f" ({mutation.equivalent})" if outcome == "equivalent" else ""
            say(f"{outcome}: {mutation.area}: {mutation.name}{why}")
    number = {outcome: [o for _, o in found].count(outcome) for outcome in outcomes}
    counted = number["killed"] + number["survived"]
    share = number["killed"] / counted if counted else 1.0
    say(f"{share:.1%} of {counted} mutations are killed, {number['equivalent']} are equivalent")
    return share >= ENOUGH and not number["broken"] and not number["not equivalent"]


def main() -> None:
    """Run what is not known yet, and end with status 1 where tests do not bite enough."""
    parser = argparse.ArgumentParser(description="Put mutations of the code to the tests.")
    parser.add_argument("words", nargs="*", help="only mutations whose area or name has one")
    parser.add_argument("--afresh", action="store_true", help="forget what is known")
    given = parser.parse_args()
    mutations = read_tables()
    chosen = [
        m
        for m in mutations
        if not given.words or any(word in f"{m.area}: {m.name}" for word in given.words)
    ]
    wrong = [f"{m.area}: {m.name}: {why}" for m in chosen if (why := misfit(m)) is not None]
    if wrong:
        sys.exit("\n".join(wrong))
    RECORD.parent.mkdir(exist_ok=True)
    if given.afresh:
        RECORD.unlink(missing_ok=True)

    def say(text: str) -> None:
        print(text, flush=True)

    sys.exit(0 if report(run(chosen, Record(RECORD), say), say) else 1)


if __name__ == "__main__":
    main()
