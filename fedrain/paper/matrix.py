"""The 104 cells of the paper's experiments.

DDPG, TD3 and TQC on ebm-v1, and on ebm-v2 and ebm-v3 with two and six agents under three federation
schemes: 39 cells as the published runs were, preset ``published``, and 39 as the paper's text has
them, preset ``paper``. TD3 and TQC have implementation quirks in both, so each of their 26 cells is
in the matrix once more without them, preset ``corrected``.
"""

from dataclasses import dataclass, replace
from fnmatch import fnmatch
from functools import cache

from fedrain.errors import InputError
from fedrain.experiment import Configuration, configure

DECOMPOSITIONS = [(env, agents) for env in ("ebm-v2", "ebm-v3") for agents in (2, 6)]
SCHEMES = {"fed05": 5, "fed10": 10, "nofed": 0}  # episodes between averages
PRESETS = {
    "ddpg": ("published", "paper"),
    "td3": ("published", "paper", "corrected"),
    "tqc": ("published", "paper", "corrected"),
}
#: Presets that stand for the paper: the first of which there is a cell is its reproduction.
REPRODUCTIONS = ("published", "paper")
SEEDS, EPISODES, EPISODE_STEPS = 10, 100, 200
#: Core-milliseconds per agent step (docs/speed.md), which decide the order of training.
COST = {
    "ebm-v1": {"ddpg": 3.9, "td3": 0.6, "tqc": 2.8},
    "ebm-v2": {"ddpg": 4.3, "td3": 0.7, "tqc": 3.0},
    "ebm-v3": {"ddpg": 2.8, "td3": 0.2, "tqc": 1.7},
}


@dataclass(frozen=True)
class Cell:
    """One experiment of the matrix.

    Args:
        env: ``ebm-v1``, ``ebm-v2`` or ``ebm-v3``.
        agents: 1 for ebm-v1, otherwise 2 or 6.
        scheme: ``fed05`` or ``fed10``, average every 5 or 10 episodes, or ``nofed``, never.
        algo: ``ddpg``, ``td3`` or ``tqc``.
        preset: ``published``, ``paper`` or ``corrected``.

    Example:
        >>> Cell("ebm-v3", 6, "fed05", "ddpg", "paper").name
        'ebm-v3-a6-fed05-ddpg-paper'
    """

    env: str
    agents: int
    scheme: str
    algo: str
    preset: str

    def configuration(self, seeds: int = SEEDS, episodes: int = EPISODES) -> Configuration:
        """The experiment to train, with the paper's ten seeds and 100 episodes by default."""
        return _configuration(self, seeds, episodes)

    @property
    def name(self) -> str:
        """The name of its configuration, and of its files."""
        name = self.configuration().name
        return name.replace("-published", "", 1) if self.preset == "published" else name

    @property
    def agent_steps(self) -> int:
        """Environment steps, summed over agents and seeds."""
        return self.agents * SEEDS * EPISODES * EPISODE_STEPS

    @property
    def cost(self) -> float:
        """Estimated core-seconds of the training."""
        return 1e-3 * COST[self.env][self.algo] * self.agent_steps


@cache
def _configuration(cell: Cell, seeds: int, episodes: int) -> Configuration:
    published = cell.preset == "published"
    return configure(
        env=f"{cell.env}-published" if published else cell.env,
        agents=cell.agents,
        sync_every=SCHEMES[cell.scheme],
        algo=cell.algo,
        preset=cell.preset,
        seeds=range(1, seeds + 1) if published else seeds,  # as the published runs
        episodes=episodes,
    )


def preset_order(preset: str) -> int:
    """Where a preset stands in tables: what reproduces the published runs comes first."""
    return (*REPRODUCTIONS, "corrected").index(preset)


def single_agent(cell: Cell) -> Cell:
    """One agent for the globe (ebm-v1) with the same algorithm and preset."""
    return replace(cell, env="ebm-v1", agents=1, scheme="nofed")


def cells(pattern: str | None = None) -> list[Cell]:
    """The cells of the matrix, cheapest first.

    Args:
        pattern: Keep only cells whose name matches this shell pattern, such as ``*-v3-*ddpg*``.

    Returns:
        All 104 cells, or those that match.

    Raises:
        InputError: If no cell matches.

    Example:
        >>> len(cells()), [cell.name for cell in cells("ebm-v1-td3-*")]
        (104, ['ebm-v1-td3-corrected', 'ebm-v1-td3-paper', 'ebm-v1-td3-published'])
    """
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
