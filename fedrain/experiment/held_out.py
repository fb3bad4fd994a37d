"""Skill on episodes that were kept from training, beside those that were trained on."""

from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from fedrain.agents.networks import Network
from fedrain.climate.columns import is_integer
from fedrain.climate.fields import unit_text
from fedrain.climate.models.host import clear_failures
from fedrain.envs.options import TRAIN, changed_params, split_of
from fedrain.envs.tasks import find_task
from fedrain.errors import InputError
from fedrain.experiment.configuration import Configuration
from fedrain.experiment.evaluation import Evaluation, evaluate
from fedrain.experiment.held import hold
from fedrain.tables import Table

if TYPE_CHECKING:
    from fedrain.experiment.run import Run

#: Episodes that each seed plays of each split.
EPISODES = 16


@clear_failures()
def held_out(
    run: "Run", split: str, policy: str = "local", episodes: int = EPISODES
) -> dict[str, Any]:
    """Errors in episodes of a split and in as many of the training's, each drawn afresh.

    Args:
        run: A finished run.
        split: ``validation``, ``test`` or another of its task.
        policy: ``local``, each agent's own, or ``global``, their average.
        episodes: How many each seed plays of each; policies and static model play the same.

    Returns:
        ``train`` and the split, each with ``policy`` and ``static`` {field: mean error over seeds
        and episodes} and ``per_seed`` {field: [error of the policy]}; and ``gap`` {field: by how
        much the policy's error is greater than in training}.
    """
    seeds, actors = run.whole_actors(policy)
    return held_out_of(run.configuration, seeds, actors, split, episodes)


def held_out_of(
    configuration: Configuration,
    seeds: tuple[int, ...],
    actors: Network,
    split: str,
    episodes: int = EPISODES,
) -> dict[str, Any]:
    """The same of actors, stacked as seed, agent, that are in no folder.

    Args:
        configuration: The experiment that they are of.
        seeds: Whatever is random in their episodes is derived from these.
        actors: Their weights.
        split: As of :func:`held_out`.
        episodes: Likewise.

    Returns:
        What :func:`held_out` returns.
    """
    if not is_integer(episodes) or episodes < 1:
        raise InputError(f"episodes must be an integer from 1, not {episodes!r}")
    environment, algorithm = configuration.make_environment(), configuration.make_algorithm()
    named = configuration.named.env
    task = find_task(configuration.env if named is None else named)

    def played(name: str) -> dict[str, Any]:
        params = changed_params(environment, split_of(task, configuration.env, name))
        ours, static = list[dict[str, Any]](), list[dict[str, Any]]()
        for i, seed in enumerate(seeds):
            numbers = _numbers(seed, episodes)
            copies = jax.tree.map(lambda leaf, i=i: np.repeat(leaf[i : i + 1], episodes, 0), actors)
            ours.append(_means(evaluate(environment, algorithm, copies, numbers, params)))
            still = hold(environment, environment.static_actions, numbers, params)
            static.append(_means(still))
        return {
            "policy": {n: float(np.mean([one[n] for one in ours])) for n in ours[0]},
            "static": {n: float(np.mean([one[n] for one in static])) for n in static[0]},
            "per_seed": {n: [one[n] for one in ours] for n in ours[0]},
        }

    def _means(evaluation: Evaluation) -> dict[str, float]:
        judged = {name for name, _ in environment.judged}
        errors = evaluation.errors(environment)
        return {n: float(np.mean(e)) for n, e in errors.items() if n in judged}

    found = {TRAIN: played(TRAIN), split: played(split)}
    both = (found[split]["policy"], found[TRAIN]["policy"])
    gap = {name: both[0][name] - both[1][name] for name in both[0]}
    return {"episodes": episodes, "seeds": list(seeds), **found, "gap": gap}


def _numbers(seed: int, episodes: int) -> tuple[int, ...]:
    """What is random in each episode is derived from one of these, and not from the seed itself."""
    keys = jax.vmap(jax.random.fold_in, (None, 0))(jax.random.key(seed), np.arange(episodes))
    return tuple(int(number) for number in jax.vmap(jax.random.bits)(keys))


def held_out_table(run: "Run", found: dict[str, Any], split: str) -> str:
    """For people: mean errors of the static model and of the policies."""
    environment = run.configuration.make_environment()
    rows = []
    for field in environment.judged_fields:
        unit, name = unit_text(field.difference_unit), field.name
        errors = [found[s][who][name] for s in (TRAIN, split) for who in ("static", "policy")]
        rows.append([f"{name.replace('_', ' ')} ({unit})", *(f"{e:.2f}" for e in errors),
                     f"{found['gap'][name]:+.2f}"])  # fmt: skip
    head = ["global error", "train: static", "learnt", f"{split}: static", "learnt", "gap"]
    return Table("", head, rows).text()
