"""The 65 cells of the paper's experiments.

Three algorithms × ebm-v1, and ebm-v2 and ebm-v3 with two and six agents under three schemes, with
the published habits; and TD3 and TQC, which have them, without.
"""

from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cached_property

from fedrain.errors import InputError
from fedrain.experiment import Configuration, configure

DECOMPOSITIONS = [(env, agents) for env in ("ebm-v2", "ebm-v3") for agents in (2, 6)]
SCHEMES = {"fed05": 5, "fed10": 10, "nofed": 0}
PRESETS = {"ddpg": ("paper",), "td3": ("paper", "corrected"), "tqc": ("paper", "corrected")}
SEEDS, EPISODES, EPISODE_STEPS = 10, 100, 200
#: Core-milliseconds of an agent step (docs/speed.md): the order in which cells are run.
COST = {
    "ebm-v1": {"ddpg": 3.9, "td3": 0.6, "tqc": 2.8},
    "ebm-v2": {"ddpg": 4.3, "td3": 0.7, "tqc": 3.0},
    "ebm-v3": {"ddpg": 2.8, "td3": 0.2, "tqc": 1.7},
}


@dataclass(frozen=True)
class Cell:
    """One experiment of the matrix."""

    env: str
    agents: int
    scheme: str
    algo: str
    preset: str

    def configuration(self, seeds: int = SEEDS, episodes: int = EPISODES) -> Configuration:
        """What is trained."""
        return configure(
            env=self.env,
            agents=self.agents,
            sync_every=SCHEMES[self.scheme],
            algo=self.algo,
            preset=self.preset,
            seeds=seeds,
            episodes=episodes,
        )

    @cached_property
    def name(self) -> str:
        """The name of its configuration, which is that of its files."""
        return self.configuration().name

    @property
    def agent_steps(self) -> int:
        """Steps of all agents and seeds together."""
        return self.agents * SEEDS * EPISODES * EPISODE_STEPS

    @property
    def cost(self) -> float:
        """Core-seconds, about."""
        return 1e-3 * COST[self.env][self.algo] * self.agent_steps


def cells(pattern: str | None = None) -> list[Cell]:
    """The matrix, cheapest first; ``pattern`` keeps the names that match it (``*-v3-*ddpg*``)."""
    single = [Cell("ebm-v1", 1, "nofed", a, p) for a, presets in PRESETS.items() for p in presets]
    several = [
        Cell(env, agents, scheme, algo, preset)
        for env, agents in DECOMPOSITIONS
        for scheme in SCHEMES
        for algo, presets in PRESETS.items()
        for preset in presets
    ]
    found = sorted(single + several, key=lambda cell: (cell.cost, cell.name))
    if pattern is not None:
        found = [cell for cell in found if fnmatch(cell.name, pattern)]
        if not found:
            raise InputError(f"no cell of the matrix matches {pattern!r}")
    return found
