"""Details in which the published runs differ from ours: cells of the benchmark with one of them.

The code published with the paper does a few things otherwise that neither the paper nor its list of
hyperparameters tells:

    tanh   the derivative of tanh is 1 − tanh², which vanishes in float32 where a policy saturates;
           ours has a form that does not
    alpha  the entropy coefficient of TQC follows the gradient of −log α (log π + target entropy);
           ours that of −α (log π + target entropy)
    seed   every agent of a run has the same seed, and so the same first critics, random actions,
           exploration noise and draws from its memory; ours have their own

Each cell that is asked for is trained once more with that detail as published, and set beside the
published means and ours. Usage:

    python studies/published_details.py tanh|alpha|seed [CELL …]
"""

import sys
from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from cells import kept, markdown, skill_of, trained

from fedrain.agents import td3, tqc
from fedrain.climate import BAND_NAMES
from fedrain.experiment import evaluation, stepping
from fedrain.paper import cells, load_results
from fedrain.paper.results import published_bands
from fedrain.paper.statistics import Sample, standard_errors

#: Where our means are farthest from the published ones, by what a detail can have to do with.
TD3, TQC = "ebm-v3-a6-fed*-td3-paper", "ebm-v2-a2-*-tqc-paper"


def plain_tanh() -> None:
    """The derivative of tanh as PyTorch has it."""
    td3.squash = tqc.squash = jnp.tanh


def plain_alpha() -> None:
    """The entropy coefficient's gradient without the coefficient in it."""
    tqc.alpha_gradient = lambda _, log_probability, size: (size - log_probability).mean()


def one_seed() -> None:
    """Every agent draws what the first one draws."""
    own = stepping.agent_keys

    def the_same(seed, step, regions):  # type: ignore[no-untyped-def]
        return own(seed, step, (0,) * len(regions))

    stepping.agent_keys = evaluation.agent_keys = the_same


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
        for name, bands in (("ours", ours[cell].bands()), (f"{detail} as there", as_published)):
            pairs = zip(bands, published, strict=True)
            told = (f"{b.mean:.2f} ± {b.std:.2f} ({standard_errors(b, p):.1f})" for b, p in pairs)
            rows.append(["", name, *told])
    print(markdown(rows, ["cell", "areaWRMSE, K (s.e. apart)", *BAND_NAMES]))


if __name__ == "__main__":
    main()
