"""Wrong files and messages without end: ``python -m tests.fuzz --count 20000``.

Every case has a number, and is the same whenever it is played with the same seed. A worker plays
them, with so much memory beside what it begins with and so much time for each; one that dies or
hangs is replaced. A case is well when it is refused in one line, or gives a result: the right one
wherever a checksum could tell. Every other is kept in ``corpus``, which the test suite plays again.
"""

import argparse
import hashlib
import json
import os
import resource
import select
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

CORPUS = Path(__file__).parent / "corpus"
SECONDS, MEMORY = 10.0, 2 * 1024**3
STARTING_SECONDS = 900.0
#: As a user has it, but compiled as for the tests.
PLAIN = {
    "FEDRAIN_UNCHECKED": "1",
    "XLA_FLAGS": "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false",
    "JAX_COMPILATION_CACHE_DIR": str(Path(__file__).parents[2] / ".pytest_cache" / "compiled"),
}


class HangError(BaseException):
    """A case that takes too long; nobody catches it on the way."""


def _hang(*_):
    raise HangError


def memory_now():
    """Bytes of address space of this process."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def play(kind, content):
    """What comes of it: ``same``, ``refused`` or ``other``; or how it failed."""
    from fedrain.errors import FailureError, InputError

    begin = time.monotonic()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = kind.play(content)
    except (InputError, FailureError) as error:
        said = str(error)
        said.encode("utf-8", errors="backslashreplace")
        if len(said.splitlines()) != 1 or len(said) > 4000:
            return f"FAILED: not one line: {said[:200]!r}"
        outcome = "refused"
    except HangError:
        return f"FAILED: takes more than {SECONDS:g} s"
    except MemoryError:
        return "FAILED: MemoryError"
    except Exception as error:
        import traceback

        frame = traceback.extract_tb(error.__traceback__)[-1]
        return (
            f"FAILED: {type(error).__name__}: {error} ({Path(frame.filename).name}:{frame.lineno})"
        )
    else:
        outcome = "same" if result is None or result == kind.right_result else "other"
        if kind.checked and outcome == "other":
            return "FAILED: another result"
    took = time.monotonic() - begin
    return outcome if took < SECONDS else f"FAILED: takes {took:.1f} s"


def prepared(folder):
    """All kinds, with what the right content gives, which must not be refused."""
    from dataclasses import make_dataclass

    from tests.fuzz.kinds import make_kinds

    known = {}
    for name, kind in make_kinds(folder).items():
        fields = vars(kind) | {"right_result": kind.play(kind.right)}
        known[name] = make_dataclass("Prepared", fields)(**fields)
    return known


def case(kinds, seed, number):
    """Name and content of a case."""
    rng = np.random.default_rng([seed, number])
    shares = np.array([kind.share for kind in kinds.values()])
    name = list(kinds)[int(rng.choice(len(kinds), p=shares / shares.sum()))]
    kind = kinds[name]
    return name, kind.mutate(kind.right, rng)


def work(first, count, seed):
    """Play cases; a line of JSON before and after each."""
    with tempfile.TemporaryDirectory() as name:
        kinds = prepared(Path(name))
        signal.signal(signal.SIGALRM, _hang)
        warnings.simplefilter("ignore")  # of xarray, as things go wrong
        most = memory_now() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (most, resource.getrlimit(resource.RLIMIT_AS)[1]))
        for called, name, content in kept() if first == 0 else ():
            outcome = in_time(kinds[called], content)
            if outcome.startswith("FAILED"):
                outcome += f" ({called}/{name})"
            tell({"case": -1, "kind": "(kept)", "outcome": outcome})
        for number in range(first, first + count):
            tell({"case": number})
            try:
                called, content = case(kinds, seed, number)
            except Exception:  # ours: what is to be wrong cannot even be written
                tell({"case": number, "kind": "(not made)", "outcome": "refused"})
                continue
            outcome = in_time(kinds[called], content)
            if outcome.startswith("FAILED"):
                keep(called, content)
            tell({"case": number, "kind": called, "outcome": outcome})


def in_time(kind, content):
    """What comes of it within the time that it may take."""
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        return play(kind, content)
    except HangError:
        return f"FAILED: takes more than {SECONDS:g} s"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def kept():
    """The cases of earlier runs that failed, and must not again: kind, name and content."""
    return [(p.parent.name, p.name, p.read_bytes()) for p in sorted(CORPUS.glob("*/*"))]


def tell(values):
    print(json.dumps(values), file=sys.__stdout__, flush=True)


def keep(kind, content):
    """Put a case among those that the test suite plays again."""
    folder = CORPUS / kind
    folder.mkdir(parents=True, exist_ok=True)
    (folder / hashlib.sha256(content).hexdigest()[:16]).write_bytes(content)


def run(count, seed, first=0):
    """All cases; how many there were by kind and outcome, and the failures."""
    outcomes, failures, done = Counter(), {}, first
    begin = said = time.monotonic()
    ended = []  # by an interrupt: what was played until then counts
    signal.signal(signal.SIGINT, lambda *_: ended.append(True))
    while done < first + count:
        command = [sys.executable, "-m", "tests.fuzz", "--worker"]
        command += ["--seed", str(seed), "--first", str(done), "--count", str(first + count - done)]
        worker = subprocess.Popen(command, stdout=subprocess.PIPE, env=os.environ | PLAIN)
        at, patience, buffered = None, STARTING_SECONDS, b""
        while True:
            ready, _, _ = select.select([worker.stdout], [], [], patience)
            if ended:
                ready = []
            read = os.read(worker.stdout.fileno(), 1 << 16) if ready else b""
            if not read:
                worker.kill()
                worker.wait()
                break
            buffered += read
            *lines, buffered = buffered.split(b"\n")
            for line in lines:
                told = json.loads(line)
                at, patience = told["case"], 6 * SECONDS
                if "outcome" in told:
                    done = max(done, at + 1)
                    at = None
                    outcome = told["outcome"]
                    failed = outcome.startswith("FAILED")
                    outcomes[told["kind"], "failed" if failed else outcome] += 1
                    if failed:
                        failures[told["case"]] = f"{told['kind']}: {outcome}"
            if time.monotonic() - said > 60:
                said = time.monotonic()
                rate = (done - first) / (said - begin)
                print(
                    f"{done - first} of {count}, {rate:.1f}/s, failed: {len(failures)}",
                    file=sys.stderr,
                    flush=True,
                )
        if ended or done >= first + count:
            break
        if at is None:
            raise SystemExit("fuzz: the worker ended before its first case")
        outcomes["worker", "failed"] += 1
        failures[at] = f"the worker died ({worker.returncode}) or hung"
        done = at + 1
    return outcomes, failures, time.monotonic() - begin


def table(outcomes):
    """Cases by kind."""
    from fedrain.tables import Table

    columns = ["refused", "same", "other", "failed"]
    kinds = sorted({kind for kind, _ in outcomes})
    rows = [[kind, *(str(outcomes[kind, one]) for one in columns)] for kind in kinds]
    rows.append(
        ["all", *(str(sum(n for (_, o), n in outcomes.items() if o == one)) for one in columns)]
    )
    return Table("", ["kind", *columns], rows).markdown()


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work(options.first, options.count, options.seed)
        return 0
    outcomes, failures, seconds = run(options.count, options.seed, options.first)
    for number, what in failures.items():
        print(f"case {number}: {what}")
    print(table(outcomes))
    played = sum(n for (kind, _), n in outcomes.items() if kind != "(kept)")
    print(f"{played} cases from {options.first} in {seconds:.0f} s; failed: {len(failures)}")
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
