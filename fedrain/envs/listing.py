"""The environments in one table, for ``fedrain envs``."""

from typing import Any

from fedrain.envs.tasks import TASKS, make
from fedrain.tables import Table

#: How each environment of the paper is made from Python; the others by :func:`fedrain.envs.make`.
ENTRY_POINTS = {
    "ebm-v1": 'gymnasium.make("fedrain/EnergyBalance-v1")',
    "ebm-v2": 'gymnasium.make("fedrain/EnergyBalance-v2", agents=6, region=0)',
    "ebm-v3": "fedrain.envs.parallel_env(agents=6)",
}


def environment_rows() -> list[dict[str, Any]]:
    """What tells the environments apart, with their default numbers of agents."""
    rows = []
    for name in TASKS.names():
        environment = make(name)
        judged = ", ".join(field.title for field in environment.judged_fields)
        rows.append(
            {
                "name": name,
                "agents": environment.agents,
                "climates": environment.climates,
                "observation": environment.observation_size,
                "action": environment.action_size,
                "reward": f"-mean squared error of {judged} over {environment.region_size} columns",
                "make": ENTRY_POINTS.get(name, f'fedrain.envs.make("{name}")'),
            }
        )
    return rows


def environment_table() -> str:
    """The rows as plain text."""
    rows = environment_rows()
    header = list(rows[0])
    return Table("", header, [[str(row[key]) for key in header] for row in rows]).text()
