"""Equal tuning for every preset and kind of scheme of the study ``federation``.

The same nine trials for each: the preset's learning rate and exploration, times some factors, on
seeds that nothing is reported on. Agents that are never averaged, those that are, and one policy
for all may each have their own, so that no scheme is at a disadvantage with another's. What each
trial reached is kept beside what was chosen.
"""

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from federation_trials import ASKED, KINDS, Trial, judge, learning
from federation_trials import train as train_whole
from iqm import interquartile_mean

from fedrain.experiment import Configuration
from fedrain.experiment.resolve import from_dict
from fedrain.io import write_json
from fedrain.reading import read_json
from fedrain.tuning.trial import TrialTrainer

FACTORS = {"learning_rate": (1 / 3, 1.0, 3.0), "exploration_noise": (0.5, 1.0, 2.0)}
SEEDS = (100, 101, 102, 103)

Say = Callable[[str], None]
#: Of a trial that diverged: JSON has no infinity.
WORST = 1e6


def path_of(folder: Path, trial: Trial) -> Path:
    """Where the trials of a preset and kind of scheme are kept."""
    return folder / "tuning" / f"{trial.preset}-{trial.tuned_as}.json"


def tuned(
    folder: Path, trial: Trial, algo: str, seeds: int, latitudes: int, say: Say | None
) -> dict[str, float] | None:
    """The hyperparameters that a trial's scheme has; None, if they are not all tried.

    Args:
        folder: Of the study's results.
        trial: Whose they are.
        algo: The algorithm.
        seeds: At most so many of the tuning seeds.
        latitudes: Of the grid.
        say: Called with a line for each trial; without it nothing is tried.
    """
    kept, left = tries(folder, trial, algo, seeds, latitudes)
    if left and say is None:
        return None
    for values in left:
        errors = reached(trial, algo, seeds, latitudes, values)
        keep(folder, trial, kept, values, errors)
        if say is not None:
            say(f"{path_of(folder, trial).stem}: {values} {errors['own']:.3f} K")
    best = min(kept["trials"], key=lambda one: one["errors"]["own"])
    return {name: best[name] for name in FACTORS}


def tries(
    folder: Path, trial: Trial, algo: str, seeds: int, latitudes: int
) -> tuple[dict[str, Any], list[dict[str, float]]]:
    """What has been tried of a preset and kind of scheme, and what is left to try."""
    path = path_of(folder, trial)
    base = asked(trial).configuration(algo, SEEDS[:seeds], latitudes, {})
    kept: dict[str, Any] = {"configuration": base.as_dict(), "trials": []}
    if path.exists():
        found = read_json(path)
        if from_dict(found["configuration"]).identity == base.identity:
            kept = found
    done = [{name: one[name] for name in FACTORS} for one in kept["trials"]]
    return kept, [values for values in grid(base) if values not in done]


def keep(
    folder: Path,
    trial: Trial,
    kept: dict[str, Any],
    values: dict[str, float],
    errors: dict[str, float],
) -> None:
    """Add what one try has reached to those that are kept, in their file, too."""
    kept["trials"].append(values | {"errors": errors})
    write_json(path_of(folder, trial), kept)


def asked(trial: Trial) -> Trial:
    """What is tried for a preset and kind of scheme."""
    return Trial(trial.preset, trial.tuned_as, ASKED)


def grid(base: Configuration) -> list[dict[str, float]]:
    """What is tried, from the preset's own values."""
    values = [
        [float(base.hyperparameters[name]) * factor for factor in factors]
        for name, factors in FACTORS.items()
    ]
    return [dict(zip(FACTORS, one, strict=True)) for one in product(*values)]


def reached(
    trial: Trial, algo: str, seeds: int, latitudes: int, values: dict[str, float]
) -> dict[str, float]:
    """Interquartile mean of the errors of each kind in K; the program is compiled once for all."""
    trial = asked(trial)
    configuration = trial.configuration(algo, SEEDS[:seeds], latitudes, values)
    judged = configuration.make_environment()
    trainer = train_whole(TrialTrainer(configuration, learning(trial, judged)))
    errors = judge(trainer, judged, trainer.actors())
    found = {kind: interquartile_mean(np.array(errors[kind])) for kind in KINDS}
    return {kind: error if np.isfinite(error) else WORST for kind, error in found.items()}
