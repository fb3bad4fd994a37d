"""The environments in one table, for ``fedrain envs``."""

from typing import Any

from fedrain.envs.settings import SETTINGS, make

#: How each environment is made from Python.
ENTRY_POINTS = {
    "ebm-v1": 'gymnasium.make("fedrain/EnergyBalance-v1")',
    "ebm-v2": 'gymnasium.make("fedrain/EnergyBalance-v2", agents=6, region=0)',
    "ebm-v3": "fedrain.envs.parallel_env(agents=6)",
}


def environment_rows() -> list[dict[str, Any]]:
    """What tells the environments apart, with their default numbers of agents."""
    rows = []
    for name in SETTINGS:
        environment = make(name)
        rows.append(
            {
                "name": name,
                "agents": environment.agents,
                "climates": environment.climates,
                "observation": environment.observation_size,
                "action": environment.action_size,
                "reward": f"-mean squared error of {environment.region_size} latitudes",
                "make": ENTRY_POINTS[name],
            }
        )
    return rows


def environment_table() -> str:
    """The rows as plain text."""
    rows = environment_rows()
    head = list(rows[0])
    cells = [head, *([str(row[key]) for key in head] for row in rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip()
        for line in cells
    )
