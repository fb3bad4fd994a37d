"""Experiments of the studies, each trained once and stored as a small JSON file."""

from argparse import Namespace
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fedrain.cluster import check_engine, connected
from fedrain.experiment import Configuration
from fedrain.experiment.evaluation import evaluate
from fedrain.experiment.resolve import from_dict
from fedrain.experiment.trainer import Trainer
from fedrain.io import write_json
from fedrain.reading import read_json
from fedrain.tables import Table

RESULTS = Path(__file__).parent.parent / "results" / "studies"
Result = dict[str, Any]
#: Called after every episode, before the next; true ends the training.
Watch = Callable[[Trainer], bool]


def trained(configuration: Configuration, watch: Watch | None = None) -> Trainer:
    """An experiment trained to its end, or until the watch ends it. Policies are the local ones."""
    trainer = Trainer(configuration, configuration.make_environment())
    trainer.begin()
    while trainer.episode < configuration.episodes:
        trainer.play(configuration.averages_after(trainer.episode))
        if watch is not None and watch(trainer):
            break
    return trainer


def skill_of(trainer: Trainer) -> Result:
    """What the policies of every seed reach, and what it took."""
    seeds = trainer.configuration.seeds
    found = evaluate(trainer.environment, trainer.algorithm, trainer.actors(), seeds)
    skills = found.skill(trainer.environment)
    return {
        "seeds": list(seeds),
        "bands": [list(skill.bands) for skill in skills],
        "global": [skill.globe for skill in skills],
        "returns": found.returns.mean(-1).tolist(),
        "seconds": float(trainer.history["seconds"].sum()),
        "core_seconds": float(trainer.history["core_seconds"].sum()),
    }


def kept(
    folder: str, name: str, configuration: Configuration, make: Callable[[Configuration], Result]
) -> Result:
    """The stored result of an experiment, or a new one, which is then stored."""
    path = RESULTS / folder / f"{name}.json"
    if path.exists():
        held = read_json(path)
        if from_dict(held["configuration"]).identity == configuration.identity:
            return held
    result = {"name": name, "configuration": configuration.as_dict(), **make(configuration)}
    write_json(path, result)
    print(f"{name}: {summary(result)}", flush=True)
    return result


def ahead(
    options: Namespace,
    folder: str,
    configurations: Mapping[str, Configuration],
    make: Callable[[Configuration], Result],
) -> None:
    """Make the missing results of some experiments on a cluster, if one is asked for."""
    if not check_engine(options.engine, options.address):
        return

    def is_there(name: str) -> bool:
        path = RESULTS / folder / f"{name}.json"
        identity = configurations[name].identity
        return path.exists() and from_dict(read_json(path)["configuration"]).identity == identity

    def keep(name: str, result: Result) -> None:
        stored_as = {"name": name, "configuration": configurations[name].as_dict()}
        write_json(RESULTS / folder / f"{name}.json", {**stored_as, **result})

    pieces = {
        name: (make, one.as_dict()) for name, one in configurations.items() if not is_there(name)
    }
    if pieces:
        with connected(options.address, print) as cluster:
            failed = cluster.run(made_of, pieces, keep, print)
        if failed:
            raise SystemExit(f"{len(failed)} of {len(pieces)} failed: run it again")


def made_of(make: Callable[[Configuration], Result], values: Result) -> Result:
    """What a worker does: the result of an experiment of the package."""
    return make(from_dict(values))


def summary(result: Result) -> str:
    """One line for people."""
    bands, globe = np.array(result["bands"]), np.array(result["global"])
    each = "  ".join(f"{m:.2f} ± {s:.2f}" for m, s in zip(bands.mean(0), bands.std(0), strict=True))
    return (
        f"{each}  global {globe.mean():.3f} ± {globe.std():.3f}, worst {globe.max():.3f}; "
        f"{result['seconds']:.0f} s, {result['core_seconds']:.0f} core-s"
    )


def markdown(rows: Iterable[Iterable[str]], header: Iterable[str], words: int = 1) -> str:
    """A table for the documentation, whose first columns are words."""
    return Table("", list(header), list(map(list, rows)), words=words).markdown().rstrip("\n")


def stored(folder: str) -> dict[str, Result]:
    """All results of a study."""
    paths = sorted((RESULTS / folder).glob("*.json"))
    return {path.stem: read_json(path) for path in paths}
