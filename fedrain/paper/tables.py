"""Every table of the benchmark, from the stored results."""

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import NamedTuple

from fedrain.climate import BAND_NAMES
from fedrain.paper.claims import judge_claims
from fedrain.paper.judgement import experiment_name
from fedrain.paper.matrix import (
    DECOMPOSITIONS,
    PRESETS,
    REPRODUCTIONS,
    SCHEMES,
    Cell,
    cells,
    single_agent,
)
from fedrain.paper.published import published_bands, published_core_hours, published_skill
from fedrain.paper.results import Results, missing_cells, our_bands, static_skill
from fedrain.paper.statistics import LEVEL, Sample, differ, standard_errors
from fedrain.tables import GAP, Table, write_tables

WITHIN = 3.0  # standard errors


def make_tables(results: Results, out: Path) -> list[Path]:
    """Write every table of the benchmark.

    Args:
        results: What :func:`load_results` read.
        out: Folder to write to.

    Returns:
        The files: Markdown, LaTeX and CSV. The same results give the same bytes on one machine.
    """
    paths = []
    for preset in dict.fromkeys(preset for presets in PRESETS.values() for preset in presets):
        for env, agents in DECOMPOSITIONS:
            algos = [algo for algo, presets in PRESETS.items() if preset in presets]
            tables = [skill_table(results, env, agents, algo, preset) for algo in algos]
            name = f"skill-{env}-a{agents}-{preset}"
            paths += write_tables(tables, out / name, ("md", "tex"))
    paths += write_tables([tidy_table(results)], out / "skill", ("csv",))
    tables_by_name = {
        "agreement": agreement_table(results),
        **claims_tables(results),
        "points": points_table(results),
        "quirks": quirks_table(results),
        "limit": limit_table(results),
        "cost": cost_table(results),
        "missing": missing_table(results),
    }
    for name, table in tables_by_name.items():
        paths += write_tables([table], out / name, ("md", "tex", "csv"))
    return paths


def skill_table(results: Results, env: str, agents: int, algo: str, preset: str) -> Table:
    """One of the paper's skill tables, each line above the published one."""
    sources = {"": our_bands(results)}
    if preset in REPRODUCTIONS:
        sources["published"] = published_bands
    rows = []
    for i, band in enumerate(BAND_NAMES):
        for source, bands in sources.items():
            single = bands(Cell("ebm-v1", 1, "nofed", algo, preset))
            row = [source or band, "" if source else f"{static_skill().bands[i]:.3f}"]
            for scheme in SCHEMES:
                cell = Cell(env, agents, scheme, algo, preset)
                found, paper = bands(cell), published_skill(cell)
                gained = None
                if source and paper is not None:
                    gained = paper.gain[i]
                elif found is not None and single is not None:
                    gained = gain(found[i], single[i])
                told = GAP if gained is None else f"{gained:.1f}".replace("-", "−")
                row += [_mean(found, i), told]
            rows.append([*row, _mean(single, i)])
    return Table(
        f"{algo.upper()}, {env}, {agents} agents, preset {preset}: areaWRMSE in K",
        ["band", "static", *["mean ± std", "gain %"] * len(SCHEMES), "mean ± std"],
        rows,
        [("", 1), ("", 1), *((scheme, 2) for scheme in SCHEMES), ("ebm-v1", 1)],
    )


def gain(sample: Sample, single: Sample) -> float:
    """How far the error is below that of the single agent, in per cent."""
    return 100 * (single.mean - sample.mean) / single.mean


def tidy_table(results: Results) -> Table:
    """Every mean with the published one and the tests of their difference."""
    header = "env,agents,scheme,algo,preset,band,static,mean,std,seeds,gain,published_mean"
    header += ",published_std,published_gain,standard_errors,welch_p"
    ours = our_bands(results)
    rows = []
    for cell, result in results.items():
        published, paper = published_bands(cell), published_skill(cell)
        single = ours(single_agent(cell))
        for i, (band, sample) in enumerate(zip(BAND_NAMES, result.bands(), strict=True)):
            row = [cell.env, str(cell.agents), cell.scheme, cell.algo, cell.preset, band]
            row += [f"{static_skill().bands[i]:.4f}"]
            row += [f"{sample.mean:.4f}", f"{sample.std:.4f}", str(sample.number)]
            row += ["" if single is None else f"{gain(sample, single[i]):.2f}"]
            if published is None or paper is None:
                row += [""] * 5
            else:
                theirs = published[i]
                row += [f"{theirs.mean:g}", f"{theirs.std:g}", f"{paper.gain[i]:g}"]
                row += [f"{standard_errors(sample, theirs):.3f}", f"{differ(sample, theirs):.3g}"]
            rows.append(row)
    return Table("skill", header.split(","), rows)


def agreement_table(results: Results) -> Table:
    """How many published means are reproduced, for each algorithm and environment.

    Args:
        results: What :func:`load_results` read.

    Returns:
        For each preset that reproduces the paper, algorithm and environment: finished cells; means
        within three standard errors of the published ones; means that differ by Welch's test at the
        5 % level; and how many would differ by chance if all were the same. Each cell has six
        means, one for each band.

    Example:
        >>> print(agreement_table(load_results("results/paper")).markdown())
        **Our means against the published ones**
        ...
    """
    rows = []
    for preset, algo in product(REPRODUCTIONS, PRESETS):
        found = []
        for env in ("ebm-v1", "ebm-v2", "ebm-v3"):
            of = [c for c in cells() if (c.preset, c.algo, c.env) == (preset, algo, env)]
            found.append(agreement(results, of))
            rows.append([preset, algo, env, *found[-1].told()])
        rows.append([preset, algo, "all", *Agreement(*map(sum, zip(*found, strict=True))).told()])
    return Table(
        "Our means against the published ones",
        [
            "preset",
            "algorithm",
            "environment",
            "cells",
            "within 3 s.e.",
            "differ (Welch, 5 %)",
            "by chance",
        ],
        rows,
        words=3,
    )


class Agreement(NamedTuple):
    """How many of the published means some cells reproduce."""

    done: int
    cells: int
    within: int  # three standard errors
    rejected: int  # by Welch's test
    means: int

    @property
    def by_chance(self) -> float:
        """How many the test would reject if all means were the same."""
        return LEVEL * self.means

    def told(self) -> list[str]:
        """As a table shows it."""
        counts = [f"{self.done} of {self.cells}", f"{self.within} of {self.means}"]
        return [*counts, str(self.rejected), f"{self.by_chance:.1f}"]


def agreement(results: Results, matrix: list[Cell]) -> Agreement:
    """Of those cells that are finished."""
    pairs = [
        pair
        for cell in matrix
        if cell in results and (published := published_bands(cell)) is not None
        for pair in zip(results[cell].bands(), published, strict=True)
    ]
    within = sum(abs(standard_errors(ours, theirs)) <= WITHIN for ours, theirs in pairs)
    rejected = sum(differ(ours, theirs) < LEVEL for ours, theirs in pairs)
    done = sum(cell in results for cell in matrix)
    return Agreement(done, len(matrix), within, rejected, len(pairs))


def claims_tables(results: Results) -> dict[str, Table]:
    """The verdict on each of the paper's claims, and the evidence, test by test."""
    verdicts, evidence = [], []
    for claim in judge_claims(results):
        findings = [
            ("not published", GAP) if found is None else (str(found.verdict), found.evidence)
            for found in (claim.published, *claim.by_preset.values())
        ]
        told, why = (list(column) for column in zip(*findings, strict=True))
        if claim.beside != "published":
            told[0], why[0] = (f"{claim.beside}: {text}" for text in (told[0], why[0]))
        verdicts.append([claim.statement, *told])
        evidence.append([claim.statement, claim.test, *why])
    presets = (f"in ours, preset {preset}" for preset in REPRODUCTIONS)
    sources = ["in the published figures", *presets]
    words = len(sources) + 1
    return {
        "claims": Table("What holds up", ["claim", *sources], verdicts, words=words),
        "evidence": Table("Why", ["claim", "decided by", *sources], evidence, words=words + 1),
    }


def points_table(results: Results) -> Table:
    """Global error of agents as in the published runs and as in the paper's text."""
    return _between(
        results,
        "published",
        "paper",
        "What the points of the published runs do: areaWRMSE of the globe in K, mean ± std",
    )


def quirks_table(results: Results) -> Table:
    """Global error of TD3 and TQC with the implementation quirks and without."""
    return _between(
        results,
        "paper",
        "corrected",
        "What the implementation quirks do: areaWRMSE of the globe in K, mean ± std",
    )


def _between(results: Results, preset: str, other: str, caption: str) -> Table:
    """Cells that there are with both presets, and which is better."""
    rows = []
    for cell, result in results.items():
        same = replace(cell, preset=other)
        if cell.preset != preset or same not in results:
            continue
        one, two = result.globe(), results[same].globe()
        p = differ(one, two)
        better = GAP if p >= LEVEL else preset if one.mean < two.mean else other
        both = (f"{sample.mean:.2f} ± {sample.std:.2f}" for sample in (one, two))
        rows.append([experiment_name(cell), *both, f"{p:.2g}", better])
    return Table(caption, ["cell", preset, other, "Welch p", "better"], rows)


def missing_table(results: Results) -> Table:
    """The cells that ``fedrain benchmark run`` would train, and an estimate of what they cost."""
    rows = [[cell.name, f"{cell.cost / 60:.0f}"] for cell in missing_cells(results)]
    told = f"{len(rows)} of {len(cells())} cells are not trained yet" if rows else "All are trained"
    return Table(told, ["cell", "core-minutes, estimated"], rows)


def limit_table(results: Results) -> Table:
    """Where each cell lies between the static model and optimal control.

    The global policy of agents that are never averaged while they learn is left out: the average of
    actors that have diverged from each other means nothing.
    """
    rows = []
    for cell, result in results.items():
        row = [cell.name]
        for policy in ("local", "global"):
            if policy == "global" and cell.scheme == "nofed":
                row += [GAP] * 3
                continue
            value, share = result.evaluation_return(policy), result.share_of_limit(policy)
            row += [f"{result.globe(policy).mean:.2f}", f"{value:.0f}", f"{100 * share:.0f}"]
        rows.append([text.replace("-", "−") if i else text for i, text in enumerate(row)])
    return Table(
        "From the static model (0 %) to optimal control (100 %), by the return without exploration",
        ["cell", *["error (K)", "return", "%"] * 2],
        rows,
        [("", 1), ("local", 3), ("global", 3)],
    )


def cost_table(results: Results) -> Table:
    """Time that each cell took, and what the reference implementation would need."""
    rows = [_cost(cell.name, {cell: result}) for cell, result in results.items()]
    for algo in PRESETS:
        if same := {cell: result for cell, result in results.items() if cell.algo == algo}:
            rows.append(_cost(f"all {len(same)} of {algo}", same))
    rows.append(_cost(f"all {len(results)}", results))
    return Table(
        "Time of the training of ten seeds, and of climlab and PyTorch for as many steps",
        ["cell", "minutes", "core-minutes", "core-ms a step", "core-hours", "times"],
        rows,
        [("", 1), ("here", 3), ("published way", 2)],
    )


def _cost(name: str, results: Results) -> list[str]:
    core = sum(result.core_hours for result in results.values())
    steps = sum(cell.agent_steps for cell in results)
    published = sum(published_core_hours(cell) for cell in results)
    return [
        name,
        f"{60 * sum(result.hours for result in results.values()):.1f}",
        f"{60 * core:.1f}",
        f"{3.6e6 * core / steps:.2f}",
        f"{published:.1f}",
        f"{published / core:.1f}",
    ]


def _mean(samples: list[Sample] | None, band: int) -> str:
    return GAP if samples is None else f"{samples[band].mean:.2f} ± {samples[band].std:.3f}"
