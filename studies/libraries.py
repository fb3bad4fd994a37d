"""Other people's learners on the ids of the package: the table of ``docs/environments.md``.

    python studies/libraries.py run [--only PATTERN] [--task TASK] [--seeds N]
    python studies/libraries.py table       # of what is stored; both put it into the page

Every seed is stored in ``results/studies/libraries`` as soon as it is there, with what the
environment was: a command that is started again trains only what is missing, or was trained on an
environment that has changed since. ``make study-libraries`` installs what it needs.
"""

import argparse
import re
import time
from fnmatch import fnmatch
from functools import cache
from importlib.metadata import version
from typing import Any

import jax
import numpy as np
import scipy
from cells import RESULTS, markdown
from learners import LEARNERS, Learner, Policy, one_agent, several_agents

from fedrain import baselines
from fedrain.baselines.baseline import episode_key, precise
from fedrain.envs import Environment, make
from fedrain.errors import InputError
from fedrain.io import write_bytes, write_json
from fedrain.reading import read_json
from fedrain.tables import GAP

FOLDER = RESULTS / "libraries"
PAGE = RESULTS.parent.parent / "docs" / "environments.md"
TASKS = ("ebm-v1", "ebm-twin", "ebm-energy")
#: Of the task, all copies together: 24 episodes of 200 steps, 5 updates of PPO.
STEPS = 4_800
SEEDS = 5
#: Draws the start, the forcing and the weather of the episode that all are judged by.
EPISODE = 0
RESAMPLES = 10_000
#: What learns nothing, in the same table; static is 0 and the limit is 100.
UNLEARNT = {
    "random": ("random actions", {}),
    "proportional": ("proportional controller", {}),
    "constant": ("best constants, by gradient", {"goal": "return"}),
}


def described(environment: Environment) -> dict[str, Any]:
    """What an environment is, as plain values: those of a task may change."""
    params = environment.params
    return jax.tree.map(
        lambda leaf: (
            np.asarray(leaf).tolist() if isinstance(leaf, np.ndarray | jax.Array) else leaf
        ),
        {
            "agents": environment.agents,
            "episode_length": environment.episode_length,
            "judged": dict(environment.judged),
            "reward_shape": environment.reward_shape,
            "observed": list(environment.observed),
            "learnt": {row.symbol: [row.low, row.high] for row in environment.learnt},
            "start": dict(params.start),
            "forcing": dict(params.forcing),
            **{
                name: None if (value := getattr(params, name)) is None else np.asarray(value)
                for name in ("ramp", "noise", "analysis_every", "smooth")
            },
        },
    )


def environment_of(task: str, several: bool = False) -> Environment:
    """Where a learner of one agent, or of several, is judged."""
    name, options = several_agents(task) if several else (task, one_agent(task))
    return make(name, **options)


@cache
def _compiled(environment: Environment) -> tuple[Any, Any]:
    return jax.jit(environment.reset), jax.jit(environment.step)


def episode_return(environment: Environment, policy: Policy, physical: bool) -> float:
    """The return of a policy in the episode that ``fedrain baseline --seed 0`` plays, running free.

    The mean over the agents.
    """
    key, params = episode_key(EPISODE), environment.params.test
    low, high = environment.action_bounds
    total = 0.0
    with precise(environment):
        reset, step = _compiled(environment)
        state, seen = reset(jax.random.fold_in(key, 0), params)
        for t in range(environment.episode_length):
            action = np.asarray(policy(np.asarray(seen, np.float32), t), float)
            if not physical:
                action = low + (np.clip(action, -1, 1) + 1) / 2 * (high - low)
            state, seen, reward, _ = step(jax.random.fold_in(key, t + 1), state, action, params)
            total += float(reward.mean())
    return total


def run_yardsticks(task: str) -> None:
    """Static, limit and what learns nothing: those that are missing."""
    path, environment = FOLDER / f"{task}.json", environment_of(task)
    found = read_json(path) if path.exists() else {}
    if found.get("environment") != described(environment):
        found = {"task": task, "environment": described(environment), **_ends(environment)}
    for name, (_, options) in UNLEARNT.items():
        if name in found:
            continue
        try:
            played = getattr(baselines, name)(environment, seed=EPISODE, **options)
        except InputError:  # a controller of what this task does not have
            continue
        found[name] = float(played.returns.mean())
    write_json(path, found)
    print(f"{task}: static {found['static']:.1f}, limit {found['limit']:.1f}", flush=True)


def _ends(environment: Environment) -> dict[str, float]:
    """What scores 0 and what scores 100."""
    static = float(baselines.static(environment, EPISODE).returns.mean())
    return {"static": static, **_limit(environment)}


def _limit(environment: Environment) -> dict[str, float]:
    """Optimal control, and with half the iterations, which tells whether it has converged."""
    known = baselines.known_limit(environment)
    if known is not None:
        return {"limit": known}
    half, whole = (
        baselines.limit(environment, iterations=n, seed=EPISODE) for n in (300, 600)
    )  # fmt: skip
    returns = [float(one.returns.mean()) for one in (whole, half)]
    return dict(zip(("limit", "limit_of_half_the_iterations"), returns, strict=True))


def run_seed(task: str, name: str, learner: Learner, seed: int) -> None:
    """One seed of a learner, unless it is there."""
    path, environment = FOLDER / f"{task}-{name}.json", environment_of(task, learner.several)
    known = {
        "task": task,
        "learner": name,
        "steps": STEPS,
        "environment": described(environment),
        "versions": {one: version(one) for one in ("jax", *learner.packages)},
    }
    held = read_json(path) if path.exists() else {}
    if any(held.get(key) != known[key] for key in ("steps", "environment")):
        held = {**known, "returns": {}, "core_seconds": {}}
    if str(seed) in held["returns"]:
        return
    begin = time.process_time()
    policy = learner.train(task, seed, STEPS)
    spent = time.process_time() - begin
    held["returns"][str(seed)] = episode_return(environment, policy, learner.physical)
    held["core_seconds"][str(seed)] = round(spent, 1)
    write_json(path, held)
    print(f"{task} {name} {seed}: {held['returns'][str(seed)]:.1f}, {spent:.0f} s", flush=True)


def run(only: str, tasks: list[str], seeds: int) -> None:
    """All that is missing."""
    chosen = {name: one for name, one in LEARNERS.items() if fnmatch(name, only)}
    for name in [name for name, one in chosen.items() if one.missing]:
        print(f"{name} is left out: {', '.join(chosen.pop(name).missing)} not installed")
    for task in tasks:
        run_yardsticks(task)
        for name, learner in chosen.items():
            for seed in range(seeds):
                run_seed(task, name, learner, seed)


def interquartile_mean(*scores: np.ndarray, axis: int = -1) -> Any:
    """The mean of the middle half of the scores of all tasks together."""
    return scipy.stats.trim_mean(np.concatenate(scores, axis), 0.25, axis)


def interval(*scores: np.ndarray) -> tuple[float, float]:
    """Of the interquartile mean: 95 %, by a bootstrap over the seeds of each task by itself."""
    found = scipy.stats.bootstrap(
        scores,
        interquartile_mean,
        n_resamples=RESAMPLES,
        method="percentile",
        rng=np.random.default_rng(0),
    )
    return float(found.confidence_interval.low), float(found.confidence_interval.high)


def score(returned: float | np.ndarray, yardsticks: dict[str, Any]) -> Any:
    """0: as the static model; 100: as optimal control; halfway between is halfway in kelvin.

    A return is minus a sum of squares: taken as it is, a tenth of the static error would already be
    99, and ten times that error −9 900.
    """
    static, limit, found = (
        np.sqrt(-np.asarray(one)) for one in (yardsticks["static"], yardsticks["limit"], returned)
    )
    return 100 * (static - found) / (static - limit)


def _scores(task: str, name: str) -> np.ndarray | None:
    path, yardsticks = FOLDER / f"{task}-{name}.json", read_json(FOLDER / f"{task}.json")
    returns = list(read_json(path)["returns"].values()) if path.exists() else []
    if len(returns) < SEEDS:
        return None
    return score(np.array(returns), yardsticks)


def _text(scores: np.ndarray | None) -> str:
    if scores is None:
        return GAP
    low, high = interval(scores)
    return f"{interquartile_mean(scores):.0f} ({low:.0f} to {high:.0f})"


def table() -> str:
    """Every learner whose seeds are all stored, the best of the first task first."""
    tasks = [task for task in TASKS if (FOLDER / f"{task}.json").exists()]
    rows: list[tuple[float, list[str]]] = []
    for name, learner in LEARNERS.items():
        found = [_scores(task, name) for task in tasks]
        if any(one is not None for one in found):
            order = -np.inf if found[0] is None else float(interquartile_mean(found[0]))
            rows.append((order, [learner.label, learner.note, *map(_text, found)]))
    for name, (label, _) in UNLEARNT.items():
        held = [read_json(FOLDER / f"{task}.json") for task in tasks]
        alone = [float(score(one[name], one)) if name in one else None for one in held]
        texts = [GAP if one is None else f"{one:.0f}" for one in alone]
        rows.append((-np.inf if alone[0] is None else alone[0], [label, "", *texts]))
    rows.sort(key=lambda row: -row[0])
    header = ["learner", "set beside its defaults", *(f"`{task}`" for task in tasks)]
    return markdown([row for _, row in rows], header, words=2)


def write_table() -> None:
    """Print the table, and put it where the page has the old one."""
    found = table()
    page = PAGE.read_text("utf-8")
    page = re.sub(r"\| learner \|.*?(?=\n\n)", lambda _: found, page, flags=re.DOTALL)
    write_bytes(PAGE, page.encode())
    print(found)


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=("run", "table"))
    parser.add_argument("--only", default="*", help="learners, as a pattern")
    parser.add_argument("--task", choices=TASKS, action="append", help="one of them alone")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    options = parser.parse_args()
    if options.command == "run":
        run(options.only, options.task or list(TASKS), options.seeds)
    write_table()


if __name__ == "__main__":
    main()
