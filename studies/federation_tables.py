"""Tables and figure of the study ``federation``, of whatever is there."""

from pathlib import Path
from typing import Any

import numpy as np
from federation import AGENTS, DATA, KINDS, LATE, MEMBERS, PRESETS, TITLES, Trial
from federation_figure import gain_figure
from iqm import interval_text

from fedrain.plotting import save_figure
from fedrain.reading import read_json
from fedrain.tables import GAP, Table


def stored(folder: Path) -> dict[str, dict[str, Any]]:
    """Results that are there."""
    return {path.stem: read_json(path) for path in sorted(folder.glob("*.json"))}


def gains(results: dict[str, Any], preset: str, scheme: str, data: int, kind: str) -> Any:
    """By how much a scheme's errors are below those of agents that are never averaged."""
    never = results.get(Trial(preset, "never", data).name)
    name = Trial(preset, "never" if scheme == "once" else scheme, data).name
    if never is None or name not in results:
        return None
    which = "once" if scheme == "once" else "policy"
    return np.array(never["policy"][kind]) - np.array(results[name][which][kind])


def show(folder: Path, images: Path) -> None:
    """Tables, and the figure."""
    results = stored(folder)
    for preset in [p for p in PRESETS if any(name.startswith(f"{p}-") for name in results)]:
        for kind, title in KINDS.items():
            rows = []
            for scheme, text in TITLES.items():
                told = [_told(results, preset, scheme, data, kind) for data in DATA]
                if any(cell != GAP for cell in told):
                    rows.append([text, *told])
            caption = f"{preset}, {title}: error in K, interquartile mean and 95 % interval"
            print(Table(caption, ["", *map(str, DATA)], rows).markdown())
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
            members = [agent for agent in range(AGENTS) if agent != LATE]
            save_figure(gain_figure(drawn, TITLES, tuple(DATA), members, AGENTS), path)
            print(f"figure: {path}")


def _told(results: dict[str, Any], preset: str, scheme: str, data: int, kind: str) -> str:
    name = Trial(preset, "never" if scheme == "once" else scheme, data).name
    if name not in results:
        return GAP
    return interval_text(np.array(results[name]["once" if scheme == "once" else "policy"][kind]))


def members_table(results: dict[str, Any], preset: str, data: int = 10) -> str:
    """What each scheme sends, and its errors where one member is silent or hostile."""
    rows = []
    for scheme, text in TITLES.items():
        if scheme == "once" or (name := Trial(preset, scheme, data).name) not in results:
            continue
        row = [text, f"{results[name]['bytes'] / 1e3:.0f}"]
        for member in MEMBERS:
            found = results.get(Trial(preset, scheme, data, member).name)
            row.append(GAP if found is None else interval_text(np.array(found["policy"]["own"])))
        rows.append(row)
    caption = f"{preset}, {data} episodes: sent by each agent, and errors in K with one member"
    return Table(caption, ["", "kB", *MEMBERS], rows).markdown() if rows else ""
