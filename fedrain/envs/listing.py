"""The environments in one table, for ``fedrain envs``."""

from typing import Any

from fedrain.climate import Regions
from fedrain.envs.environment import Environment
from fedrain.envs.observation import Observation
from fedrain.envs.task import Task
from fedrain.envs.tasks import TASKS, find_task, make
from fedrain.tables import Table, counted

#: How each environment of the paper is made from Python; the others by :func:`fedrain.envs.make`.
ENTRY_POINTS = {
    "ebm-v1": 'gymnasium.make("fedrain/EnergyBalance-v1")',
    "ebm-v2": 'gymnasium.make("fedrain/EnergyBalance-v2", agents=6, region=0)',
    "ebm-v3": "fedrain.envs.parallel_env(agents=6)",
}


def environment_rows() -> list[dict[str, Any]]:
    """How the environments differ, with their default numbers of agents."""
    rows = []
    for name in TASKS.names():
        task = find_task(name)
        shown = _sketch(task) if task.extra else _shown(make(name))
        judged = ", ".join(field.title for field in shown.pop("judged"))
        columns = shown.pop("columns")
        rows.append(
            {
                "name": name,
                **shown,
                "summary": task.summary,
                "reward": f"-mean squared error of {judged} over {counted(columns, 'column')}",
                "make": ENTRY_POINTS.get(name, f'fedrain.envs.make("{name}")'),
            }
        )
    return rows


def _shown(environment: Environment) -> dict[str, Any]:
    return {
        "agents": environment.agents,
        "climates": environment.climates,
        "observation": environment.observation_size,
        "action": environment.action_size,
        "judged": environment.judged_fields,
        "columns": environment.region_size,
    }


def _sketch(task: Task) -> dict[str, Any]:
    """The same of a task that needs an extra, which may not be there, and hours to be made."""
    model: Any = task.model() if callable(task.model) else task.model
    cells = Regions(model.columns, task.agents, task.tiles, task.overlap).size
    fields = {field.name: field for field in model.fields}
    judged = [fields[name] for name in task.judge or (model.fields[0].name,)]
    observed = [one.name for one in judged] if task.observe is None else task.observe
    places = model.columns.coordinates.shape[1]
    seen = Observation.of(observed, model.fields, judged, cells, places)
    return {
        "agents": task.agents,
        "climates": 1,
        "observation": len(seen.scale),
        "action": len(model.table.learnt(task.learn).action_bounds(cells)[0]),
        "judged": judged,
        "columns": cells,
    }


def environment_table() -> str:
    """The rows as plain text, no wider than a terminal of 80 columns."""
    rows = environment_rows()
    header = ["name", "agents", "observation", "action", "summary"]
    table = Table("", header, [[str(row[key]) for key in header] for row in rows])
    how = 'From Python: fedrain.envs.make("ebm-v3"); with --json: rewards, entry points'
    return f"{table.text(width=80)}\n\n{how}"
