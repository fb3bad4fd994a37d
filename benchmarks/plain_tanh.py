"""What the derivative of tanh does: cells of the benchmark with 1 − tanh², as the published runs.

FedRAIN's ``squash`` has the same derivative in a form that does not vanish in float32 where a
policy saturates. Each cell that is asked for is trained once more with the plain one, and set
beside the published means and ours. Usage:

    python benchmarks/plain_tanh.py ['ebm-v2-a2-*-tqc-paper' …]
"""

import sys

import jax.numpy as jnp
import numpy as np
from cells import kept, markdown, skill_of, trained

from fedrain.agents import td3, tqc
from fedrain.benchmark import cells, load_results
from fedrain.benchmark.results import published_bands
from fedrain.benchmark.statistics import Sample, standard_errors
from fedrain.climate import BAND_NAMES

#: Where our means are farthest from the published ones.
FARTHEST = ("ebm-v2-a2-*-tqc-paper", "ebm-v3-a6-fed05-td3-paper")


def main() -> None:
    """Train what is missing, and print the table."""
    td3.squash = tqc.squash = jnp.tanh  # before anything is compiled
    ours = load_results("benchmark/results")
    rows = []
    for cell in [cell for pattern in sys.argv[1:] or FARTHEST for cell in cells(pattern)]:
        published = published_bands(cell)
        if published is None or cell not in ours:
            sys.exit(f"{cell.name}: is not published, or not trained yet")
        found = kept("plain_tanh", cell.name, cell.configuration(), lambda c: skill_of(trained(c)))
        rows.append([cell.name, "published", *(f"{p.mean:.2f} ± {p.std:.2f}" for p in published)])
        plain = [Sample.of(band) for band in np.array(found["bands"]).T]
        for name, bands in (("ours", ours[cell].bands()), ("plain tanh", plain)):
            pairs = zip(bands, published, strict=True)
            told = (f"{b.mean:.2f} ± {b.std:.2f} ({standard_errors(b, p):.1f})" for b, p in pairs)
            rows.append(["", name, *told])
    print(markdown(rows, ["cell", "areaWRMSE, K (s.e. apart)", *BAND_NAMES]))


if __name__ == "__main__":
    main()
