"""What a person sees when a run has finished: the skill table and the pictures."""

from pathlib import Path

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from fedrain.baselines import share_reached, static
from fedrain.climate import BAND_NAMES, trajectory
from fedrain.envs import Environment
from fedrain.experiment.run import Run
from fedrain.plotting import STYLES, latitude_axis, save_figure

TIMES = (1, 40, 80, 120, 160, 200)
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
SPREAD = 1.96


def skill_report(run: Run, beside: dict[str, list[str]] | None = None) -> str:
    """AreaWRMSE of both policies beside the static model, and beside columns of one's own."""
    columns: dict[str, list[str]] = {}
    fixed = static(run.configuration.make_environment()).skill
    columns["static"] = [f"{value:.3f}" for value in (*fixed.bands, fixed.globe)]
    for policy in ("local", "global"):
        found = run.summary(policy)
        means = (*found["bands_mean"], found["global_mean"])
        spreads = (*found["bands_std"], found["global_std"])
        single = len(found["per_seed"]) == 1
        columns[policy] = [
            f"{m:.2f}" if single else f"{m:.2f} ± {s:.2f}"
            for m, s in zip(means, spreads, strict=True)
        ]
    columns |= beside or {}
    widths = [max(len(name), *map(len, cells)) for name, cells in columns.items()]
    lines = [
        "areaWRMSE (K)  " + "  ".join(n.rjust(w) for n, w in zip(columns, widths, strict=True))
    ]
    for i, band in enumerate((*BAND_NAMES, "global")):
        cells = "  ".join(c[i].rjust(w) for c, w in zip(columns.values(), widths, strict=True))
        lines.append(f"{band:<15}{cells}".rstrip())
    for policy in ("local", "global"):
        if (share := share_of_limit(run, policy)) is not None:
            lines.append(
                f"return of the {policy} policy: {100 * share:.0f} % of the way from the static "
                "model to optimal control"
            )
    return "\n".join(lines)


def share_of_limit(run: Run, policy: str) -> float | None:
    """How far the mean return without exploration is from static (0) to limit (1)."""
    returns = run.results.returns.sel(policy=policy).values.mean(-1)
    whole = returns[np.isfinite(returns)]
    if not len(whole):
        return None
    return share_reached(run.configuration.make_environment(), float(whole.mean()))


def write_figures(run: Run) -> list[Path]:
    """Return curves, the evolution of the profile, and the learnt parameters."""
    paths = []
    for name, draw in (("returns", _returns), ("profile", _profile), ("parameters", _parameters)):
        figure = Figure(layout="constrained")
        draw(run, figure)
        paths.append(run.folder / f"{name}.png")
        save_figure(figure, paths[-1])
    return paths


def spread(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean over the seeds that have not broken, and half the width of its 95 % spread."""
    whole = values[np.isfinite(values).all(axis=tuple(range(1, values.ndim)))]
    return whole.mean(0), SPREAD * whole.std(0) / np.sqrt(len(whole))


def _returns(run: Run, figure: Figure) -> None:
    data = run.returns.returns.transpose("agent", "seed", "episode").values
    figure.set(figwidth=7.0, figheight=4.2)
    axes = figure.subplots()
    steps = run.returns.step.values
    for agent, values in enumerate(data):
        colour = PALETTE[agent % len(PALETTE)]
        mean, half = spread(-values)
        label = _region(run, agent) if len(data) <= len(PALETTE) else None
        axes.plot(steps, mean, color=colour, linewidth=1.2, label=label)
        axes.fill_between(steps, mean - half, mean + half, color=colour, alpha=0.2, linewidth=0)
    axes.set_yscale("log")
    axes.invert_yaxis()
    axes.set_xlim(0, steps[-1])
    axes.set_xlabel("Environment steps")
    axes.set_ylabel("− return of an episode (K²); better is up")
    axes.set_title(run.configuration.name)
    axes.grid(color="0.9", linewidth=0.6)
    if len(data) <= len(PALETTE):
        axes.legend(frameon=False, ncols=2, fontsize="small")


def _region(run: Run, agent: int) -> str:
    environment = run.configuration.make_environment()
    edges = environment.model.grid.edges[:: environment.region_size]
    return " to ".join(_latitude(edge) for edge in edges[agent : agent + 2])


def _latitude(degrees: float) -> str:
    return f"{abs(degrees):g}°" + ("S" if degrees < 0 else "N" if degrees > 0 else "")


def _profile(run: Run, figure: Figure) -> None:
    learnt = run.results.surface_temperature.sel(policy="local").values
    draw_evolution(figure, run.configuration.make_environment(), *spread(learnt))


def draw_evolution(
    figure: Figure,
    environment: Environment,
    mean: Float[np.ndarray, "step lat"],
    half: Float[np.ndarray, "step lat"] | None = None,
) -> None:
    """The profile at six times of an episode, with its spread, against static model and target."""
    centres = environment.model.grid.centres
    fixed = static_trajectory(environment)
    figure.set(figwidth=9.0, figheight=5.4)
    panels = figure.subplots(2, 3, sharex=True, sharey=True)
    times = [t for t in TIMES if t <= environment.episode_length]
    for axes, time in zip(panels.flat, times, strict=False):
        for key, values, label in (
            ("target", np.array(environment.target), "target"),
            ("static", fixed[time - 1], "static model"),
            ("model", mean[time - 1], "model with agents"),
        ):
            colour, style, width = STYLES[key]
            axes.plot(centres, values, color=colour, linestyle=style, linewidth=width, label=label)
        if half is not None:
            low, high = mean[time - 1] - half[time - 1], mean[time - 1] + half[time - 1]
            axes.fill_between(centres, low, high, color=STYLES["model"][0], alpha=0.2)
        axes.set_title(f"t = {time}")
        latitude_axis(axes)
        axes.set_xticks((-90, -45, 0, 45, 90), ("90°S", "45°S", "0°", "45°N", "90°N"))
    panels[0, 0].legend(frameon=False, fontsize="small", loc="lower center")
    figure.supxlabel("Latitude")
    figure.supylabel("Surface temperature (°C)")


def static_trajectory(environment: Environment) -> Float[np.ndarray, "step lat"]:
    """Profile of the static model after every step of an episode."""
    latitudes = environment.model.grid.latitudes
    start = np.full(latitudes, environment.start_temperature, np.float32)
    static_values = environment.model.table.static(latitudes)
    steps = environment.episode_length
    return np.asarray(trajectory(environment.model, start, static_values, steps))


def _parameters(run: Run, figure: Figure) -> None:
    environment = run.configuration.make_environment()
    rows = [row for row in environment.model.table if row.per_latitude]
    figure.set(figwidth=7.0, figheight=3.0 * len(rows))
    panels = np.atleast_1d(figure.subplots(len(rows), 1, sharex=True))
    for axes, row in zip(panels, rows, strict=True):
        values = run.results[row.symbol].sel(policy="local").values[:, -1]
        mean, half = spread(values)
        colour, style, width = STYLES["model"]
        centres = environment.model.grid.centres
        axes.plot(
            centres, mean, color=colour, linestyle=style, linewidth=width, label="learnt, last step"
        )
        axes.fill_between(centres, mean - half, mean + half, color=colour, alpha=0.2)
        colour, style, width = STYLES["static"]
        axes.axhline(
            row.default, color=colour, linestyle=style, linewidth=width, label="static value"
        )
        for bound in (row.low, row.high):
            axes.axhline(bound, color="0.6", linestyle=":", linewidth=1.0)
        axes.set_ylabel(f"{row.symbol} ({row.unit.replace('-2', '⁻²').replace('-1', '⁻¹')})")
        latitude_axis(axes)
    panels[0].legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=2)
    panels[-1].set_xlabel("Latitude (dotted: bounds of the parameter)")
