"""Each point in which the published runs differ from the paper's text, alone.

A point is one option on top of the preset ``paper`` (docs/published.md says what each is): cells of
the matrix are trained again with it, on the same seeds as those without, and both are compared with
the published means. Each result is stored in ``results/studies/published`` as soon as it is there:
a command that is started again trains only what is missing, cheapest first, then prints its table.

    python studies/published_details.py                     # every point where it matters most
    python studies/published_details.py albedo averages     # these points
    python studies/published_details.py albedo --only '*-v3-*td3-paper'
    python studies/published_details.py --plan              # what is missing, and what it costs
    python studies/published_details.py --table             # what is there
"""

import argparse
from dataclasses import dataclass, field
from fnmatch import fnmatch
from typing import Any

import numpy as np
from cells import RESULTS, ahead, kept, markdown, skill_of, trained

from fedrain.cli.messages import add_engine
from fedrain.climate import BAND_NAMES
from fedrain.experiment import Configuration, configure
from fedrain.paper import Cell, Sample, cells, load_results, published_bands
from fedrain.paper.matrix import SCHEMES
from fedrain.paper.results import Results
from fedrain.paper.statistics import LEVEL, differ, paired, standard_errors

#: Cells whose means with preset ``paper`` are farthest from the published ones.
TD3, TQC = "ebm-v3-a6-*-td3-paper", "ebm-v2-a2-*-tqc-paper"
AVERAGED = "ebm-v3-a6-fed??-td3-paper", "ebm-v2-a2-fed??-tqc-paper"


@dataclass(frozen=True)
class Point:
    """One option, and the cells where it matters most."""

    where: tuple[str, ...]
    environment: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)

    def configuration(self, cell: Cell) -> Configuration:
        """The cell with this option and no other."""
        return configure(
            env=cell.env,
            agents=cell.agents,
            sync_every=SCHEMES[cell.scheme],
            algo=cell.algo,
            preset=cell.preset,
            seeds=cell.configuration().seeds,
            episodes=cell.configuration().episodes,
            settings=self.settings,
            **self.environment,
        )


POINTS = {
    "albedo": Point((TD3, "ebm-v1-td3-paper", TQC), {"unapplied": ["a0", "a2"]}),
    "averages": Point(AVERAGED, settings={"stale_averages": True}),
    "entropy": Point((TQC,), settings={"log_alpha_loss": True}),
    "seed": Point((TD3, TQC), settings={"one_seed": True}),
    "tanh": Point((TD3, TQC), settings={"plain_tanh": True}),
    "evaluation": Point((TD3,), {"judged_early": 1}),
    "unclipped": Point((TD3,), {"unclipped": True}),
    "warmup": Point((TD3,), settings={"warmup_steps": 999}),
}


def planned(names: list[str], only: str | None) -> list[tuple[str, Cell]]:
    """Points and cells, cheapest first."""
    found = [
        (name, cell)
        for name in names
        for pattern in (POINTS[name].where if only is None else ("*-paper",))
        for cell in cells(pattern)
        if only is None or fnmatch(cell.name, only)
    ]
    return sorted(found, key=lambda one: (one[1].cost, one[1].name, names.index(one[0])))


def is_there(name: str, cell: Cell) -> bool:
    """Whether a result is stored."""
    return (RESULTS / "published" / name / f"{cell.name}.json").exists()


def show_plan(plan: list[tuple[str, Cell]]) -> None:
    """What is missing, with an estimate of what it costs."""
    missing = [(name, cell) for name, cell in plan if not is_there(name, cell)]
    rows = [[name, cell.name, f"{cell.cost / 60:.0f}"] for name, cell in missing]
    print(markdown(rows, ["point", "cell", "core-minutes"], words=2))
    hours = sum(cell.cost for _, cell in missing) / 3600
    print(f"{len(missing)} of {len(plan)} to train: about {hours:.1f} core-hours")


def table(plan: list[tuple[str, Cell]], results: Results) -> str:
    """Published, without the point, and with it, each in standard errors from the published."""
    rows = []
    for cell in dict.fromkeys(cell for _, cell in plan):
        published = published_bands(cell)
        names = [name for name, other in plan if other == cell and is_there(name, cell)]
        if published is None or not names or cell not in results:
            continue
        rows.append(
            [cell.name, "published figures", *(_text(one) for one in published), "", "", ""]
        )
        without = results[cell].skill()
        shown = {"none": without}
        for name in names:
            found = kept(f"published/{name}", cell.name, POINTS[name].configuration(cell), _train)
            shown[name] = np.array(found["bands"])
        for name, seeds in shown.items():
            bands = [Sample.of(values) for values in seeds.T]
            pairs = list(zip(bands, published, strict=True))
            far = max(abs(standard_errors(one, other)) for one, other in pairs)
            rejected = sum(differ(one, other) < LEVEL for one, other in pairs)
            moved = "" if name == "none" else str(_moved(seeds, without))
            told = ["", name, *(_text(one) for one in bands), f"{far:.1f}", str(rejected), moved]
            rows.append(told)
    header = ["cell", "point", *BAND_NAMES, "farthest (s.e.)", "rejected of 6", "moved of 6"]
    return markdown(rows, header, words=2)


def _moved(one: np.ndarray, other: np.ndarray) -> int:
    """Bands whose mean the point moves, by Student's test paired by seed, two-sided at 5 %."""
    tails = (paired(a, b) for a, b in zip(one.T, other.T, strict=True))
    return sum(2 * min(p, 1 - p) < LEVEL for p in tails)


def _text(sample: Sample) -> str:
    return f"{sample.mean:.2f} ± {sample.std:.2f}"


def _train(configuration: Configuration) -> dict[str, Any]:
    return skill_of(trained(configuration))


def main() -> None:
    """Train what is missing, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("points", nargs="*", metavar="POINT", help=", ".join(POINTS))
    parser.add_argument(
        "--only", metavar="PATTERN", help="cells of preset paper whose name matches"
    )
    parser.add_argument("--plan", action="store_true", help="train nothing: what is missing")
    parser.add_argument("--table", action="store_true", help="train nothing: what is there")
    add_engine(parser)
    options = parser.parse_args()
    for name in options.points:
        if name not in POINTS:
            parser.error(f"there is no point {name!r}: there are {', '.join(POINTS)}")
    plan = planned(options.points or list(POINTS), options.only)
    if not plan:
        parser.error(f"no cell of preset paper matches {options.only!r}")
    if options.plan:
        show_plan(plan)
        return
    if not options.table:
        for name in dict.fromkeys(name for name, _ in plan):
            some = {cell.name: POINTS[name].configuration(cell) for n, cell in plan if n == name}
            ahead(options, f"published/{name}", some, _train)
        for name, cell in plan:
            kept(f"published/{name}", cell.name, POINTS[name].configuration(cell), _train)
    print(table(plan, load_results("results/paper")))


if __name__ == "__main__":
    main()
