"""Pictures of equilibria and their stability."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedrain.climate.stability.continuation import Branch, Point
from fedrain.climate.stability.global_mean import GlobalCurve
from fedrain.climate.stability.hysteresis import Hysteresis
from fedrain.climate.stability.spectrum import analytic_eigenvalues, spectrum
from fedrain.plotting import latitude_axis

#: Warm, intermediate and cold equilibria, from the Okabe–Ito palette.
STATES = (("warm", "#D55E00", "-"), ("intermediate", "#000000", "--"), ("cold", "#0072B2", "-"))
SOLAR_LABEL = "Solar constant (W m$^{-2}$)"


def diagram_figure(branch: Branch, curve: GlobalCurve, run: Hysteresis | None = None) -> Figure:
    """Bifurcation diagram: stable solid, unstable dashed, tipping points marked."""
    figure = Figure(figsize=(7.0, 4.8), layout="constrained")
    axes = figure.subplots()
    inside = (curve.solar >= branch.solar.min()) & (curve.solar <= branch.solar.max())
    solar = np.where(inside, curve.solar, np.nan)
    _by_stability(axes, solar, curve.temperature, curve.stable, "0.7", "global mean model")
    _by_stability(axes, branch.solar, branch.mean, branch.unstable == 0, "#0072B2", "by latitude")
    if run is not None:
        axes.plot(
            run.solar, run.mean, ".", color="#E69F00", markersize=3.5, zorder=4,
            label="integrated in time",
        )  # fmt: skip
    for fold in branch.folds:
        mean = float(branch.model.grid.mean(fold.temperature))
        axes.plot(fold.solar, mean, "o", color="#D55E00", markersize=7, zorder=5)
        left = fold.solar < np.mean([f.solar for f in branch.folds])
        axes.annotate(
            f"{fold.solar:.2f} W m$^{{-2}}$",
            (fold.solar, mean),
            xytext=(-10, 0) if left else (6, -12),
            textcoords="offset points",
            horizontalalignment="right" if left else "left",
            verticalalignment="center",
        )
    axes.set_xlabel(SOLAR_LABEL)
    axes.set_ylabel("Global mean temperature (°C)")
    axes.margins(x=0.02)
    axes.grid(color="0.9", linewidth=0.6)
    axes.legend(frameon=False, loc="upper left")
    return figure


def _by_stability(
    axes: Axes,
    solar: np.ndarray,
    temperature: np.ndarray,
    stable: np.ndarray,
    colour: str,
    label: str,
) -> None:
    for wanted, style, text in ((True, "-", f"{label}, stable"), (False, "--", "unstable")):
        keep = stable == wanted
        # One point more on either side, so that the two pieces meet.
        keep = keep | (np.roll(keep, 1) & ~stable) if not wanted else keep
        axes.plot(
            solar, np.where(keep, temperature, np.nan), style, color=colour, linewidth=1.8,
            label=f"{label}, {text}" if not wanted else text,
        )  # fmt: skip


def spectrum_figure(branch: Branch, points: list[Point], number: int = 10) -> Figure:
    """Largest eigenvalues of each equilibrium beside λ_n, and the effective damping."""
    figure = Figure(figsize=(7.0, 6.4), layout="constrained")
    values, damping = figure.subplots(2, 1)
    model = branch.model
    values.plot(
        range(number), analytic_eigenvalues(model, number), "x", color="0.5",
        label=r"$\lambda_n$, fixed albedo",
    )  # fmt: skip
    values.axhline(0, color="black", linewidth=0.8)
    for point, (name, colour, style) in zip(points, STATES, strict=False):
        found = spectrum(model, point.temperature, point.solar).eigenvalues[:number]
        values.plot(range(number), found, "o", color=colour, markersize=4, label=name)
        damping.plot(
            model.grid.centres,
            model.effective_damping(point.temperature, point.solar),
            style,
            color=colour,
            label=name,
        )
    values.set_xlabel("Mode $n$")
    values.set_ylabel("Eigenvalue (yr$^{-1}$)")
    values.set_yscale("symlog", linthresh=5.0)
    values.legend(frameon=False)
    values.set_title(f"Equilibria at {points[0].solar:g} W m$^{{-2}}$")
    damping.axhline(0, color="black", linewidth=0.8)
    damping.set_xlabel("Latitude")
    damping.set_ylabel("$B_{eff}$ (W m$^{-2}$ K$^{-1}$)")
    latitude_axis(damping)
    return figure


def states_figure(branch: Branch, points: list[Point]) -> Figure:
    """Temperature, albedo and leading mode of each equilibrium."""
    figure = Figure(figsize=(7.0, 8.0), layout="constrained")
    profile, albedo, mode = figure.subplots(3, 1, sharex=True)
    model = branch.model
    for point, (name, colour, style) in zip(points, STATES, strict=False):
        found = spectrum(model, point.temperature, point.solar)
        mean, growth = model.grid.mean(point.temperature), found.eigenvalues[0]
        label = f"{name}: {mean:.1f} °C, {growth:+.2f} yr$^{{-1}}$".replace("-", "−")
        label = label.replace("{−1}", "{-1}")
        profile.plot(model.grid.centres, point.temperature, style, color=colour, label=label)
        albedo.plot(model.grid.centres, model.albedo(point.temperature), style, color=colour)
        mode.plot(model.grid.centres, found.modes[:, 0], style, color=colour)
    profile.axhline(model.freezing, color="0.6", linewidth=0.8)
    profile.set_ylabel("Temperature (°C)")
    profile.set_title(f"Equilibria at {points[0].solar:g} W m$^{{-2}}$")
    albedo.set_ylabel("Albedo")
    mode.set_ylabel("Leading mode")
    mode.set_xlabel("Latitude")
    for axes in (profile, albedo, mode):
        latitude_axis(axes)
    figure.legend(
        loc="outside lower center", ncols=3, frameon=False, fontsize="small",
        title="global mean and growth rate of the leading mode", title_fontsize="small",
    )  # fmt: skip
    return figure
