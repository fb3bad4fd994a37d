"""Figures of equilibria and their stability."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedrain.climate.stability.continuation import Branch, Point
from fedrain.climate.stability.global_mean import GlobalCurve
from fedrain.climate.stability.hysteresis import Hysteresis
from fedrain.climate.stability.spectrum import analytic_eigenvalues, spectrum
from fedrain.plotting import (
    BLACK,
    STATES,
    WHITE,
    draw,
    latitude_axis,
    light_grid,
    new_figure,
    style,
    threshold,
    zero_line,
)

SOLAR_LABEL = "Solar constant (W m⁻²)"


def diagram_figure(branch: Branch, curve: GlobalCurve, run: Hysteresis | None = None) -> Figure:
    """Bifurcation diagram: stable solid, unstable dashed, tipping points marked."""
    figure = new_figure(7.0, 4.8)
    axes = figure.subplots()
    inside = (curve.solar >= branch.solar.min()) & (curve.solar <= branch.solar.max())
    solar = np.where(inside, curve.solar, np.nan)
    _by_stability(axes, "global mean", solar, curve.temperature, curve.stable)
    _by_stability(axes, "by latitude", branch.solar, branch.mean, branch.unstable == 0)
    if run is not None:
        _integrated(axes, run)
    for fold in branch.folds:
        mean = float(branch.model.grid.mean(fold.temperature))
        axes.plot(
            fold.solar, mean, "o", color=BLACK, markerfacecolor=WHITE, markersize=7,
            markeredgewidth=1.4, zorder=5, label="tipping point" if fold is branch.folds[0] else "",
        )  # fmt: skip
        left = fold.solar < np.mean([f.solar for f in branch.folds])
        axes.annotate(
            f"{fold.solar:.1f} W m⁻²",
            (fold.solar, mean),
            xytext=(-10, 0) if left else (10, -12),
            textcoords="offset points",
            horizontalalignment="right" if left else "left",
            verticalalignment="center",
        )
    axes.set_xlabel(SOLAR_LABEL)
    axes.set_ylabel("Global mean temperature (°C)")
    axes.margins(x=0.02)
    light_grid(axes)
    axes.legend(frameon=False, loc="upper left")
    return figure


def _by_stability(
    axes: Axes, key: str, solar: np.ndarray, temperature: np.ndarray, stable: np.ndarray
) -> None:
    # One point more of the unstable piece, so that it meets the stable ones.
    pieces = {"stable": stable, "unstable": ~stable | (np.roll(~stable, 1) & stable)}
    for (name, keep), line in zip(pieces.items(), ("-", "--"), strict=True):
        values = np.where(keep, temperature, np.nan)
        draw(axes, key, solar, values, f"{style(key).label}, {name}", linestyle=line)


def _integrated(axes: Axes, run: Hysteresis) -> None:
    """The state in which the climate settles under each sun, on the way down and on the way up."""
    turn = int(np.argmin(run.solar))
    for key, part in (("dimming", slice(turn + 1)), ("brightening", slice(turn, None))):
        look: dict[str, Any] = {"marker": style(key).marker, "markersize": 5, "zorder": 4}
        label = f"integrated in time, {style(key).label}"
        draw(axes, key, run.solar[part], run.mean[part], label, markevery=0.06, **look)


def spectrum_figure(branch: Branch, points: list[Point], number: int = 10) -> Figure:
    """Largest eigenvalues of each equilibrium beside λ_n, and the effective damping."""
    figure = new_figure(7.0, 6.4)
    values, damping = figure.subplots(2, 1)
    model = branch.model
    modes = np.arange(number)
    values.plot(
        modes - 0.24, analytic_eigenvalues(model, number), "x", color=BLACK,
        label=r"$\lambda_n$ of a fixed albedo",
    )  # fmt: skip
    # Side by side, since many of them are the same.
    for point, key, aside in zip(points, STATES, (-0.08, 0.08, 0.24), strict=False):
        found = spectrum(model, point.temperature, point.solar).eigenvalues[:number]
        look: dict[str, Any] = {"linestyle": "none", "marker": style(key).marker, "markersize": 5}
        draw(values, key, modes + aside, found, **look)
        effective = model.effective_damping(point.temperature, point.solar)
        draw(damping, key, model.grid.centres, effective)
    values.set_xlabel("Mode $n$")
    values.set_xticks(modes)
    values.set_ylabel("Eigenvalue (yr⁻¹; linear within ±5)")
    values.set_yscale("symlog", linthresh=5.0)
    ticks = (-50, -20, -10, -5, -2, 0, 2, 5)
    values.set_yticks(ticks, [str(tick).replace("-", "−") for tick in ticks])
    values.minorticks_off()
    values.set_ylim(bottom=1.25 * min(line.get_ydata().min() for line in values.lines))
    values.set_title(f"Equilibria at {points[0].solar:g} W m⁻²")
    light_grid(values)
    damping.set_xlabel("Latitude")
    damping.set_ylabel(r"$B_\mathrm{eff}$ (W m⁻² K⁻¹)")
    latitude_axis(damping)
    for axes in (values, damping):
        zero_line(axes)
        axes.legend(frameon=False)
    return figure


def states_figure(branch: Branch, points: list[Point]) -> Figure:
    """Temperature, albedo and leading mode of each equilibrium."""
    figure = new_figure(7.0, 8.0)
    profile, albedo, mode = figure.subplots(3, 1, sharex=True)
    model = branch.model
    for point, key in zip(points, STATES, strict=False):
        found = spectrum(model, point.temperature, point.solar)
        mean, growth = model.grid.mean(point.temperature), found.eigenvalues[0]
        label = f"{style(key).label}: {mean:.1f} °C, {growth:+.2f} yr⁻¹".replace("-", "−")
        draw(profile, key, model.grid.centres, point.temperature, label)
        draw(albedo, key, model.grid.centres, model.albedo(point.temperature), "")
        draw(mode, key, model.grid.centres, found.modes[:, 0], "")
    freezing = f"freezing point, {model.freezing:g} °C".replace("-", "−")
    threshold(profile, model.freezing, freezing)
    profile.set_ylabel("Temperature (°C)")
    profile.set_title(f"Equilibria at {points[0].solar:g} W m⁻²")
    albedo.set_ylabel("Albedo")
    mode.set_ylabel("Leading mode (scaled)")
    mode.set_xlabel("Latitude")
    for axes in (profile, albedo, mode):
        latitude_axis(axes)
    figure.legend(
        loc="outside lower center", ncols=2, frameon=False, fontsize="small",
        title="Global mean temperature and growth rate of the leading mode",
        title_fontsize="small",
    )  # fmt: skip
    return figure
