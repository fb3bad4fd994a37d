"""Faults without end on a real deployment: ``python -m tests.flower.chaos --minutes 120``.

Server, climate and six nodes, each a process as on a machine of its own, over TLS, play one
federation after the other. Meanwhile, drawn at random: a process is killed or stopped,
its disk is full, its wires are cut, its clock jumps. After each, the time is taken to the first
round in which all regions took part. At the end every federation has finished, its skill is held
against that of federations which were left alone, and there is no process, key or temporary file.

Each fault is written to ``OUT/chaos.jsonl`` when it is over. The same command goes on where it was
stopped.
"""

import argparse
import json
import os
import random
import resource
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path

from fedrain.experiment import configure, load, train
from fedrain.flower.programs import HERE
from tests.flower.machines import Machines, processes
from tests.flower.proxy import Wires

FAULTS = ("kill", "stop", "disk", "cut", "clock")
#: What a server says of a round in which not all regions took part.
TROUBLE = ("refused", "failed", "did not answer", "no longer connected")
PATIENCE = "15"  # seconds that the climate waits for a region, of which 60 are the default
FULL_SECONDS = 600.0  # to full strength, or it is given up


class Deployment(Machines):
    """Machines whose wires can be cut, and whose clocks can be set."""

    def __init__(self, folder, configuration, shim):
        super().__init__(folder, configuration)
        self.shim, self.wires = shim, Wires()
        self.running = {}
        self.roads = {
            region: [
                self.wires.lay(("server", region), self.server_address),
                self.wires.lay(("climate", region), self.climate_address),
            ]
            for region in range(configuration.agents)
        }

    def clock(self, name):
        return self.folder / f"{name}.clock"

    def _start(self, name, command):
        self.set_clock(name, 0.0)
        own = {"FAKE_CLOCK": str(self.clock(name))}
        if self.shim is not None:
            own["LD_PRELOAD"] = str(self.shim)
        before = {key: os.environ.get(key) for key in own}
        os.environ.update(own)
        try:
            machine = super()._start(name, command)
        finally:
            for key, value in before.items():
                os.environ.pop(key) if value is None else os.environ.update({key: value})
        self.running[name] = machine
        return machine

    def set_clock(self, name, seconds):
        with self.clock(name).open("r+b" if self.clock(name).exists() else "wb") as file:
            file.write(struct.pack("d", seconds))

    def node_arguments(self, region, keys=None, folder=None):
        arguments = super().node_arguments(region, keys, folder)
        server, climate = self.roads[region]
        return [
            {self.server_address: server, self.climate_address: climate}.get(a, a)
            for a in arguments
        ]

    def again(self, name):
        """Start what has ended, as whoever runs that machine would."""
        if name == "server":
            return self.server("--resume", "--wait-seconds", "300")
        return self.climate() if name == "climate" else self.node(int(name.removeprefix("region-")))

    def climate(self, *more):
        return super().climate("--patience", PATIENCE, *more)

    def everything(self):
        self.climate()
        self.server("--wait-seconds", "600")
        for region in range(self.configuration.agents):
            self.node(region)

    def of(self, name):
        """The processes of one machine."""
        main = self.running[name].process.pid
        found, new = [main], [main]
        while new:
            new = [int(p) for one in new for p in children(one)]
            found += new
        return found


def children(pid):
    with suppress(OSError):
        return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return []


@contextmanager
def fault(kind, deployment, name, chance):
    """One fault, for as long as the context lasts."""
    pids = deployment.of(name)
    if kind == "kill":
        pid = chance.choice(pids)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        yield
    elif kind == "stop":
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
        yield
        for pid in {*pids, *deployment.of(name)}:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
    elif kind == "disk":  # every write beyond what is there fails, as where no space is left
        hard = resource.RLIM_INFINITY
        for pid in pids:
            with suppress(ProcessLookupError):
                hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)[1]
                resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, hard))
        yield
        for pid in {*pids, *deployment.of(name)}:  # those that were started meanwhile, too
            with suppress(ProcessLookupError):
                resource.prlimit(pid, resource.RLIMIT_FSIZE, (hard, hard))
    elif kind == "cut":
        mine = [w for w in deployment.wires.names if name in (w[0], f"region-{w[1]}")]
        for wire in mine:
            deployment.wires.cut(wire)
        yield
        for wire in mine:
            deployment.wires.mend(wire)
    else:
        deployment.set_clock(name, chance.choice([-1, 1]) * 10 ** chance.uniform(1, 5))
        yield
        deployment.set_clock(name, 0.0)


class Chaos:
    """Faults on one deployment after the other, until the time is over."""

    def __init__(self, folder, records, minutes, seed, pause, shim):
        self.folder, self.records, self.pause, self.shim = folder, records, pause, shim
        self.begin = time.monotonic() - 60 * records.minutes
        self.end = self.begin + 60 * minutes
        self.chance = random.Random(f"{seed} {len(records.all)}")

    def note(self, **values):
        self.records.add(minutes=round((time.monotonic() - self.begin) / 60, 3), **values)

    def run(self, configuration):
        while time.monotonic() < self.end:
            place = Path(tempfile.mkdtemp(prefix="federation-", dir=self.folder))
            try:
                self.one(place, configuration)
            except AssertionError as error:  # processes that do not end
                self.note(lost=f"{place.name}: {error}")

    def one(self, place, configuration):
        with Deployment(place, configuration, self.shim) as deployment:
            deployment.everything()
            self.wait_for_full_strength(deployment, 0, FULL_SECONDS)
            while not self.finished(deployment):
                if time.monotonic() < self.end:
                    self.inject(deployment)
                self.rest(deployment, self.chance.uniform(0.5, 1.5) * self.pause)
            skill = load(deployment.out).summary()["global_mean"]
            deployment.wires.close()
        if left := deployment.left():
            self.note(lost=f"processes left: {left}")
        secrets = [p for p in place.rglob("*.key") if not p.is_relative_to(deployment.keys)]
        partial = list(place.rglob("*.partial"))
        if secrets or partial:
            self.note(lost=f"files left: {[str(p) for p in secrets + partial]}")
        self.note(skill=skill)
        say(f"federation: {skill:.3f} K")

    def inject(self, deployment):
        kind, name = self.chance.choice(FAULTS), self.chance.choice(sorted(deployment.running))
        if kind == "clock" and self.shim is None:
            return
        lasts = self.chance.uniform(3.0, 20.0)
        say(f"{kind} {name} for {lasts:.0f} s")
        with fault(kind, deployment, name, self.chance):
            self.rest(deployment, 0.0 if kind == "kill" else lasts)
        if self.finished(deployment):
            return
        said = len(self.server_log(deployment))
        begin = time.monotonic()
        reached = self.wait_for_full_strength(deployment, said, FULL_SECONDS)
        seconds = round(time.monotonic() - begin, 1)
        if self.finished(deployment):  # too near the end to tell
            return
        self.note(fault=kind, machine=name, lasts=round(lasts), full_after=seconds)
        say(f"  full strength after {seconds:.1f} s")
        if not reached:
            self.note(lost=f"{kind} {name}: not at full strength after {seconds:.0f} s")

    def rest(self, deployment, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end and not self.finished(deployment):
            self.restart(deployment)
            time.sleep(0.2)

    def restart(self, deployment):
        """Whoever has ended is started again, but a server that has finished."""
        for name, machine in list(deployment.running.items()):
            code = machine.process.poll()
            if code is not None and not (name == "server" and code == 0):
                self.note(restarted=name, status=code)
                deployment.again(name)

    def wait_for_full_strength(self, deployment, said, seconds):
        """Until a round has ended in which the server missed no region."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and not self.finished(deployment):
            self.restart(deployment)
            lines = self.server_log(deployment)[said:].splitlines()
            ends = [i for i, line in enumerate(lines) if line.startswith("episode ")]
            for one, two in pairwise(ends):
                if not any(word in line for line in lines[one:two] for word in TROUBLE):
                    return True
            time.sleep(0.2)
        return self.finished(deployment)

    @staticmethod
    def server_log(deployment):
        return deployment.running["server"].said()

    @staticmethod
    def finished(deployment):
        return deployment.running["server"].process.poll() == 0


class Records:
    """What happened so far, a line of JSON each, in a file that outlives this process."""

    def __init__(self, path):
        self.path = path
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        self.all = [json.loads(line) for line in lines]

    def add(self, **record):
        self.all.append(record)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")

    @property
    def minutes(self):
        return max((record.get("minutes", 0.0) for record in self.all), default=0.0)

    def of(self, key):
        return [record[key] for record in self.all if key in record]

    def table(self):
        rows = ["| fault | times | full strength after: median | longest |", "|---|---:|---:|---:|"]
        faults = [
            (record["fault"], record["full_after"]) for record in self.all if "fault" in record
        ]
        for kind in (*FAULTS, "all"):
            found = [seconds for one, seconds in faults if kind in (one, "all")]
            if found:
                middle, longest = statistics.median(found), max(found)
                rows.append(f"| {kind} | {len(found)} | {middle:.1f} s | {longest:.1f} s |")
        return "\n".join(rows)

    def report(self):
        skills, lost = self.of("skill"), self.of("lost")
        print(self.table())
        print(
            f"{len(self.of('fault'))} faults in {self.minutes:.0f} min on {HERE}; "
            f"{len(self.of('restarted'))} restarts"
        )
        if len(skills) > 1:
            middle, spread = statistics.mean(skills), statistics.stdev(skills)
            print(f"areaWRMSE of {len(skills)} federations: {middle:.3f} ± {spread:.3f} K")
        for alone in self.of("alone"):
            middle, spread = statistics.mean(alone), statistics.stdev(alone)
            print(f"left alone, {len(alone)} seeds: {middle:.3f} ± {spread:.3f} K")
        for line in lost:
            print(f"LOST: {line}")
        return int(bool(lost))


def say(text):
    print(text, file=sys.stderr, flush=True)


def built_shim(folder):
    """The clock that can be set, where there is a C compiler."""
    out = folder / "clock.so"
    source = Path(__file__).with_name("clock.c")
    try:
        subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", out, source, "-ldl"], check=True)
    except (OSError, subprocess.CalledProcessError):
        say("no C compiler: clocks do not jump")
        return None
    return out


def left_alone(folder, configuration, seeds):
    """Skill of the same experiment where nothing happens: of its own seed, and of others."""
    values = json.loads(json.dumps(configuration.as_dict()))
    from fedrain.experiment.resolve import from_dict

    other = from_dict({**values, "seeds": list(range(seeds))})
    run = train(other, folder / "alone", say=lambda _: None, figures=False, progress=False)
    return [one["global"] for one in run.summary()["per_seed"]]


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.flower.chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=120.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--pause", type=float, default=15.0, help="seconds between faults, mean")
    parser.add_argument("--episodes", type=int, default=60, help="of each federation")
    parser.add_argument("--agents", type=int, default=6)
    parser.add_argument("--alone", type=int, default=10, help="seeds that are left alone (10)")
    parser.add_argument("--out", type=Path, help="folder of chaos.jsonl (a temporary one)")
    options = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # nohup and & ignore it: so would all
    out = Path(tempfile.mkdtemp(prefix="chaos-")) if options.out is None else options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="machines-", dir=out))
    temporary = folder / "tmp"
    temporary.mkdir()
    os.environ["TMPDIR"] = tempfile.tempdir = str(temporary)
    os.environ.setdefault("MALLOC_ARENA_MAX", "2")  # 16 processes on one machine
    # As on machines that have taken part in a federation before.
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(out / "compiled"))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")
    configuration = configure(
        "ebm-v3", agents=options.agents, episodes=options.episodes, sync_every=1, latitudes=24,
        episode_length=50,
    )  # fmt: skip
    records = Records(out / "chaos.jsonl")
    chaos = Chaos(folder, records, options.minutes, options.seed, options.pause, built_shim(folder))
    chaos.run(configuration)
    if more := [str(path) for path in temporary.rglob("*")]:
        chaos.note(lost=f"left: {more}")
    if more := [line for pid, line in processes(str(folder)).items() if pid != os.getpid()]:
        chaos.note(lost=f"left: {more}")
    if options.alone > 1 and not records.of("alone"):
        records.add(alone=left_alone(folder, configuration, options.alone))
    if not records.of("lost"):
        shutil.rmtree(folder)
    return records.report()


if __name__ == "__main__":
    sys.exit(main())
