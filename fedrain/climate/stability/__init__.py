"""How the climate behaves: equilibria, their stability, and where it tips (the paper's A.2)."""

from fedrain.climate.stability.continuation import Branch, Point, follow, newton
from fedrain.climate.stability.feedback import FeedbackModel
from fedrain.climate.stability.global_mean import GlobalCurve, global_curve, global_equilibria
from fedrain.climate.stability.hysteresis import Hysteresis, hysteresis, stairs
from fedrain.climate.stability.spectrum import Spectrum, analytic_eigenvalues, spectrum
from fedrain.climate.stability.step_albedo import step_equilibria

__all__ = [
    "Branch",
    "FeedbackModel",
    "GlobalCurve",
    "Hysteresis",
    "Point",
    "Spectrum",
    "analytic_eigenvalues",
    "follow",
    "global_curve",
    "global_equilibria",
    "hysteresis",
    "newton",
    "spectrum",
    "stairs",
    "step_equilibria",
]
