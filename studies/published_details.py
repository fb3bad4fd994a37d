"""Details in which the reference implementation differs from ours, one at a time.

The code published with the paper differs from ours in three details that neither the paper nor its
list of hyperparameters mentions:

    tanh   the derivative of tanh is 1 − tanh², which vanishes in float32 where a policy saturates;
           ours has a form that does not
    alpha  the entropy coefficient of TQC follows the gradient of −log α (log π + target entropy);
           ours that of −α (log π + target entropy)
    seed   every agent of a run has the same seed, and so the same first critics, random actions,
           exploration noise and draws from its memory; ours have their own

Each cell of the benchmark that is asked for is trained again with that detail as published, and
compared with the published means and ours. Usage:

    python studies/published_details.py tanh|alpha|seed [CELL …]
"""

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import jax.numpy as jnp
import numpy as np
from cells import kept, markdown, skill_of, trained

from fedrain.agents import sac, step, td3
from fedrain.climate import BAND_NAMES
from fedrain.experiment import evaluation
from fedrain.paper import Sample, cells, load_results, published_bands
from fedrain.paper.statistics import standard_errors

#: Cells whose means differ most from the published ones, for the algorithms that a detail concerns.
TD3, TQC = "ebm-v3-a6-fed*-td3-paper", "ebm-v2-a2-*-tqc-paper"


def exchange(name: str, function: Callable[..., Any], *modules: ModuleType) -> None:
    """Put another function in place of one that the modules use; an error if they do not."""
    for module in modules:
        if not hasattr(module, name):
            raise AttributeError(f"{module.__name__} has no {name}")
        setattr(module, name, function)


def plain_tanh() -> None:
    """The derivative of tanh as PyTorch has it."""
    exchange("squash", jnp.tanh, td3, sac)


def plain_alpha() -> None:
    """The entropy coefficient's gradient without the coefficient in it."""
    exchange("alpha_gradient", lambda _, logs, size: (size - logs).mean(), sac)


def one_seed() -> None:
    """Every agent draws what the first one draws."""
    own = step.agent_keys

    def the_same(seed, number, regions):  # type: ignore[no-untyped-def]
        # Not so what stands for the environment, or for all agents together.
        return own(seed, number, tuple(r if r >= step.ENVIRONMENT else 0 for r in regions))

    exchange("agent_keys", the_same, step, evaluation)


DETAILS: dict[str, tuple[Callable[[], None], tuple[str, ...]]] = {
    "tanh": (plain_tanh, (TD3, TQC)),
    "alpha": (plain_alpha, (TQC,)),
    "seed": (one_seed, (TD3, TQC)),
}


def main() -> None:
    """Train what is missing, and print the table."""
    if len(sys.argv) < 2 or sys.argv[1] not in DETAILS:
        sys.exit(f"name one of {', '.join(DETAILS)}")
    detail, *patterns = sys.argv[1:]
    apply, farthest = DETAILS[detail]
    apply()  # before anything is compiled
    ours = load_results("results/paper")
    rows = []
    for cell in [cell for pattern in patterns or farthest for cell in cells(pattern)]:
        published = published_bands(cell)
        if published is None or cell not in ours:
            sys.exit(f"{cell.name}: is not published, or not trained yet")
        found = kept(
            f"details/{detail}", cell.name, cell.configuration(), lambda c: skill_of(trained(c))
        )
        rows.append([cell.name, "published", *(f"{p.mean:.2f} ± {p.std:.2f}" for p in published)])
        as_published = [Sample.of(band) for band in np.array(found["bands"]).T]
        for name, bands in (("ours", ours[cell].bands()), (f"{detail} as published", as_published)):
            pairs = zip(bands, published, strict=True)
            told = (f"{b.mean:.2f} ± {b.std:.2f} ({standard_errors(b, p):.1f})" for b, p in pairs)
            rows.append(["", name, *told])
    header = ["cell", "areaWRMSE, K (standard errors from published)", *BAND_NAMES]
    print(markdown(rows, header, words=2))


if __name__ == "__main__":
    main()
