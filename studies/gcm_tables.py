"""Tables of the studies of the general circulation model, from their stored results alone."""

import re
from pathlib import Path
from typing import Any

import numpy as np

from fedrain.climate import GeneralCirculationModel
from fedrain.climate.models.gcm_parameters import SPEEDY_PARAMETERS, TWIN, twin_truth
from fedrain.reading import read_json
from fedrain.tables import GAP, Table

RESULTS = Path(__file__).parent.parent / "results" / "studies" / "gcm"
EARTH = RESULTS.with_name("gcm_earth")
PAGE = Path(__file__).parent.parent / "docs" / "gcm.md"
BLOCK = re.compile(r"<!-- table (?P<name>\w+) -->\n(?P<body>.*?)<!-- end -->", re.DOTALL)
FIELDS = {
    "outgoing_longwave": "OLR",
    "absorbed_shortwave": "ASR",
    "precipitation": "precipitation",
    "air_temperature": "temperature",
}
BANDS = ("90°S–60°S", "60°S–30°S", "30°S–0°", "0°–30°N", "30°N–60°N", "60°N–90°N")
Results = dict[str, list[dict[str, Any]]]


def stored(folder: Path = RESULTS) -> Results:
    """The results of ``gcm-twin``, by cell."""
    found: Results = {}
    for path in sorted(folder.glob("*.json")):
        if "cell" in (held := read_json(path)):
            found.setdefault(held["cell"], []).append(held)
    return found


def relative(found: Results, errors: dict[str, float], kind: str = "forecast-1") -> float:
    """Errors of the judged fields, each over that of the defaults: their mean."""
    static = found["static"][0][kind]
    return float(np.mean([errors[name] / static[name] for name in FIELDS]))


def nearer(values: list[float], symbol: str) -> np.ndarray:
    """Mean distance from the truth in each band, over that of the default."""
    columns = GeneralCirculationModel().columns
    truth, default = twin_truth(columns)[symbol], SPEEDY_PARAMETERS[symbol].default
    bands = np.array_split(np.arange(len(columns)), len(BANDS))
    near = [np.abs(np.asarray(values)[own] - truth[own]).mean() for own in bands]
    far = [np.abs(default - truth[own]).mean() for own in bands]
    return np.array(near) / np.array(far)


def identifiable() -> dict[str, list[bool]]:
    """By parameter, the bands where screening calls it identifiable."""
    known: dict[str, list[bool]] = read_json(RESULTS / "screening.json")["identifiable"]["is"]
    return known


def spread(values: Any, digits: int = 0) -> str:
    """The mean of the seeds, with the lowest and the highest."""
    mean, low, high = (f"{one:.{digits}f}" for one in (np.mean(values), min(values), max(values)))
    return mean if len(values) == 1 else f"{mean} ({low}–{high})"


def skill_table(found: Results) -> Table:
    """One row for each way to find parameters: by how much lower its errors are."""
    rows, known = [], identifiable()
    order = [cell for cell in ORDER if cell in found]
    for cell in order:
        seeds = found[cell]
        static = found["static"][0]["forecast-1"]
        every = [100 * (1 - relative(found, one["forecast-1"])) for one in seeds]
        row = [seeds[0]["label"], str(len(seeds)), str(seeds[0]["days"]), spread(every)]
        row += [
            f"{100 * (1 - np.mean([one['forecast-1'][name] for one in seeds]) / static[name]):.0f}"
            for name in FIELDS
        ]
        row.append(spread([bands_nearer(one["parameters"], known)[0] for one in seeds]))
        rows.append(row)
    total = sum(map(sum, known.values()))
    head = ["", "seeds", "days a seed", "error lower, %", *(f"{n}, %" for n in FIELDS.values()),
            f"nearer, of {total} bands"]  # fmt: skip
    return Table("", head, rows)


def bands_nearer(parameters: dict[str, list[float]], known: dict[str, list[bool]]) -> Any:
    """In how many of the identifiable bands parameters are nearer to the truth, and of how many."""
    near = [nearer(parameters[s], s)[np.array(known[s])] < 1 for s in TWIN]
    return int(sum(one.sum() for one in near)), sum(len(one) for one in near)


WAYS = (
    "shared", "fed05", "never", "bands-fed05", "analysis-5", "free", "enki-forecast", "enki",
    "gradient",
)  # fmt: skip
#: With the settings that were tried first.
FIRST = "-450"
ORDER = (*WAYS, *(f"{way}{FIRST}" for way in WAYS))
SEEDS = 3


def latest(found: Results, way: str) -> list[dict[str, Any]]:
    """Results of one way: with the settings that were tried first, where later ones lack seeds."""
    own = found.get(way, [])
    return own if len(own) >= SEEDS else found.get(f"{way}{FIRST}", own)


def distance_table(found: Results, cell: str = "shared") -> Table:
    """Distance from the truth over that of the default, by band; brackets: not identifiable."""
    known, rows = identifiable(), []
    for symbol in TWIN:
        each = [nearer(one["parameters"][symbol], symbol) for one in latest(found, cell)]
        every, worst = np.mean(each, axis=0), np.max(each, axis=0)
        row = [f"`{symbol}`"]
        for band, own in enumerate(known[symbol]):
            text = f"{every[band]:.2f} ({worst[band]:.2f})"
            row.append(text if own else f"[{text}]")
        rows.append(row)
    return Table("", ["", *BANDS], rows)


def screening_table(number: int = 12) -> Table:
    """What does most to a day: root mean square responses at the bound that does more."""
    held, rows = read_json(RESULTS / "screening.json"), []
    for symbol, one in list(held["parameters"].items()):
        if len(rows) >= number and symbol not in TWIN:
            continue
        end = max(("low", "high"), key=lambda e: one[e]["day"]["absorbed_shortwave"])
        day = [f"{one[end]['day'][name]:.2g}" for name in FIELDS]
        score = f"{held['score'][symbol]:.1f}"
        rows.append([f"`{symbol}`", one["name"], f"{one[end]['value']:g}", *day, score])
    head = ["", "parameter", "at", *FIELDS.values(), "all"]
    return Table("", head, rows, words=2)


def free_table(found: Results) -> Table:
    """Errors of the mean over 300 days that run free, where they were computed."""
    rows = []
    for cell in ("static", *ORDER, "truth"):
        seeds = [one for one in found.get(cell, []) if "climate" in one]
        if seeds:
            label = {"static": "defaults", "truth": "the truth's own"}.get(cell, seeds[0]["label"])
            values = [spread([one["climate"][name] for one in seeds], 2) for name in FIELDS]
            rows.append([label, str(len(seeds)), *values])
    return Table("", ["", "runs", *FIELDS.values()], rows)


def earth_results() -> dict[str, dict[str, Any]]:
    """Those of ``gcm-ncep`` that have been judged: the defaults first."""
    paths = sorted(EARTH.glob("*.json"), key=lambda path: (path.stem != "static", path.stem))
    return {p.stem: held for p in paths if "errors" in (held := read_json(p))}


def earth_table(found: dict[str, dict[str, Any]]) -> Table:
    """Errors, energy budget and response, of the defaults and of every seed."""
    rows = []
    for name, one in found.items():
        lower = 100 * (1 - one["total"] / found["static"]["total"])
        label = "defaults" if name == "static" else one["label"]
        row = [label, str(one["days"]) if one["days"] else GAP]
        row += [f"{one['errors'][field]:.2f}" for field in found["static"]["errors"]]
        row.append(f"{lower:.0f}" if name != "static" else GAP)
        row += [f"{value:.1f}" for value in one["budget"].values()]
        row += [f"{value:.2f}".replace("-", "−") for value in one["response"].values()]
        rows.append(row)
    judged = [FIELDS[field] for field in found["static"]["errors"]] if found else []
    head = ["", "days", *judged, "error lower, %", "OLR", "ASR", "net", "ΔOLR", "ΔASR", "feedback"]
    return Table("", head, rows)


def tables() -> dict[str, Table]:
    """All that the documentation shows, by the name of their place there."""
    found, earth = stored(), earth_results()
    made = {
        "screening": screening_table(),
        "skill": skill_table(found),
        "distance": distance_table(found),
        "free": free_table(found),
    }
    return made | ({"earth": earth_table(earth)} if earth else {})


def blocks(text: str) -> dict[str, str]:
    """The tables that stand in a page, between comments with their names."""
    return {one["name"]: one["body"] for one in BLOCK.finditer(text)}


def write() -> None:
    """Print every table, and put it into its place in the documentation."""
    made = tables()
    for name, table in made.items():
        print(f"{name}\n\n{table.text()}\n")

    def new(place: re.Match[str]) -> str:
        name = place["name"]
        body = made[name].markdown() if name in made else place["body"]
        return f"<!-- table {name} -->\n{body}<!-- end -->"

    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(BLOCK.sub(new, text), encoding="utf-8")
