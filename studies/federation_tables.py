"""Tables and figure of the study ``federation``, of whatever is there."""

from pathlib import Path
from typing import Any

import numpy as np
from federation_figure import gain_figure
from federation_trials import (
    AGENTS,
    ASKED,
    DATA,
    KINDS,
    LATE,
    MEMBER,
    MEMBERS,
    PRESETS,
    TITLES,
    Trial,
)
from federation_tuning import FACTORS
from iqm import interval, interval_text
from jaxtyping import Float

from fedrain.plotting import save_figure
from fedrain.reading import read_json
from fedrain.tables import GAP, Table

PLACES = [agent for agent in range(AGENTS) if agent != LATE]
Results = dict[str, dict[str, Any]]


def stored(folder: Path) -> Results:
    """Results that are there."""
    return {path.stem: read_json(path) for path in sorted(folder.glob("*.json"))}


def errors(
    results: Results,
    trial: Trial,
    kind: str,
    which: str = "policy",
) -> Float[np.ndarray, "seed agent"] | None:
    """Of a trial, in K; agents that are averaged once are those that never are until then."""
    if trial.scheme == "once":
        suffix = "" if trial.member == "good" else f"-{trial.member}"
        trial, which = Trial(trial.preset, "never", trial.data), f"once{suffix}"
    found = results.get(trial.name, {}).get(which)
    return None if found is None else np.array(found[kind])


def gains(
    results: Results, preset: str, scheme: str, data: int, kind: str
) -> Float[np.ndarray, "seed agent"] | None:
    """By how much a scheme's errors are below those of agents that are never averaged."""
    never = errors(results, Trial(preset, "never", data), kind)
    found = errors(results, Trial(preset, scheme, data), kind)
    return None if never is None or found is None else never - found


def show(folder: Path, images: Path) -> None:
    """Tables, and the figure."""
    results = stored(folder)
    if told := tuning_table(folder / "tuning"):
        print(told)
    for preset in [p for p in PRESETS if any(name.startswith(f"{p}-") for name in results)]:
        for kind, title in KINDS.items():
            print(errors_table(results, preset, kind, title))
        print(gains_table(results, preset))
        if told := average_table(results, preset):
            print(told)
        if told := members_table(results, preset):
            print(told)
        drawn = {
            (scheme, data): found
            for scheme in TITLES
            for data in DATA
            if scheme != "never"
            and (found := gains(results, preset, scheme, data, "own")) is not None
        }
        if drawn:
            path = images / f"federation-{preset}.png"
            save_figure(gain_figure(drawn, TITLES, tuple(DATA), PLACES, AGENTS), path)
            print(f"figure: {path}")


def _text(values: Float[np.ndarray, "seed agent"] | None) -> str:
    return GAP if values is None else interval_text(values)


def _by_data(caption: str, rows: list[list[str]]) -> str:
    some = [row for row in rows if any(cell != GAP for cell in row[1:])]
    return Table(caption, ["", *map(str, DATA)], some).markdown() if some else ""


def errors_table(results: Results, preset: str, kind: str, title: str) -> str:
    """Of all schemes, by episodes of data."""
    rows = [
        [text, *(_text(errors(results, Trial(preset, scheme, data), kind)) for data in DATA)]
        for scheme, text in TITLES.items()
    ]
    static = [errors(results, Trial(preset, "never", data), kind, "static") for data in DATA]
    rows.append(["static model", *(map(_text, static))])
    caption = f"{preset}, {title}: error in K by episodes of data, interquartile mean and 95 %"
    return _by_data(f"{caption} interval", rows)


def gains_table(results: Results, preset: str) -> str:
    """Of all schemes, and how many agents gain or lose for certain."""
    rows = []
    for scheme, text in TITLES.items():
        if scheme == "never":
            continue
        row = [text]
        for data in DATA:
            found = gains(results, preset, scheme, data, "own")
            told = _text(found)
            if found is not None:
                ends = [interval(found[:, [place]])[1:] for place in range(found.shape[1])]
                up, down = sum(low > 0 for low, _ in ends), sum(high < 0 for _, high in ends)
                told += f" ({up} up, {down} down)"
            row.append(told)
        rows.append(row)
    caption = (
        f"{preset}, own climate: gain in K over agents that are never averaged, and how many of "
        f"{len(PLACES)} agents gain or lose by more than their interval"
    )
    return _by_data(caption, rows)


def average_table(results: Results, preset: str) -> str:
    """What the average is worth that the agents would start from again, in each kind of climate."""
    rows = []
    for scheme, text in TITLES.items():
        if scheme == "once":  # judged as such
            continue
        for kind, title in KINDS.items():
            found = (errors(results, Trial(preset, scheme, data), kind, "average") for data in DATA)
            rows.append([f"{text}: {title}", *map(_text, found)])
    return _by_data(f"{preset}: error in K of the last average itself", rows)


def members_table(results: Results, preset: str, data: int = ASKED) -> str:
    """What each scheme sends, and errors of the others where one member is silent or hostile."""
    rows = []
    others = [i for i, place in enumerate(PLACES) if place != MEMBER]
    for scheme, text in TITLES.items():
        name = Trial(preset, "never" if scheme == "once" else scheme, data).name
        if name not in results:
            continue
        row = [text, f"{results[name]['once-bytes' if scheme == 'once' else 'bytes'] / 1e3:.0f}"]
        for member in MEMBERS:
            found = errors(results, Trial(preset, scheme, data, member), "own")
            row.append(GAP if found is None else interval_text(found[:, others]))
        rows.append(row)
    caption = (
        f"{preset}, {data} episodes: sent by each agent, and errors in K of all but the member "
        "that misbehaves"
    )
    return Table(caption, ["", "kB", *MEMBERS], rows).markdown() if rows else ""


def tuning_table(folder: Path) -> str:
    """What was chosen for each preset and kind of scheme, of the same trials for all."""
    rows = []
    for path in sorted(folder.glob("*.json")):
        tried = read_json(path)["trials"]
        own = [one["errors"]["own"] for one in tried]
        best = tried[int(np.argmin(own))]
        chosen = [f"{best[name]:.2g}" for name in FACTORS]
        rows.append([path.stem, str(len(tried)), *chosen, f"{min(own):.2f}", f"{max(own):.2f}"])
    header = ["", "trials", *(name.replace("_", " ") for name in FACTORS), "best (K)", "worst (K)"]
    caption = f"Chosen at {ASKED} episodes of data, on seeds from 100"
    return Table(caption, header, rows).markdown() if rows else ""
