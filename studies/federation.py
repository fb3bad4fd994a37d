"""When federation helps: agents with scarce and unlike data, by what they share.

Twelve agents, one for each 15° of latitude. Each has a climate of its own under a sun of its own,
starts its episodes at random, sees through sensors with errors, and is judged by its own latitudes
(ebm-v2). The agent of one region joins late: none of its data is ever seen, its place is held by a
second agent of the region beside it, and it is given the policy that the federation has for that
place. Every scheme has the same hyperparameters, warm-up and number of gradient updates.

Three errors, area-weighted, in K, after an episode without exploration: in the agent's own climate,
in climates that it has not seen (a sun 2 % brighter or dimmer, other starts), and of the late agent
in its own climate. Intervals are interquartile means with 95 % bootstrap intervals over the seeds
(Agarwal et al. 2021, as in rliable, of which this needs two functions).

    python studies/federation.py plan                  # what is missing, in order of worth
    python studies/federation.py run [--only PATTERN]  # train it; stop and start again at will
    python studies/federation.py show                  # tables and figure of what is there
    python studies/federation.py run --seeds 2 --latitudes 12 --folder /tmp/try --only '*-d2-*'

A cell's name is its preset, its scheme, its episodes of data, and a member that misbehaves:
``fedrain-every5-d10-good``.
"""

import argparse
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from cells import RESULTS
from iqm import interval_text
from jaxtyping import Float

from fedrain.agents.networks import Network
from fedrain.envs import Environment, EnvParams
from fedrain.errors import InputError
from fedrain.experiment import Configuration, configure
from fedrain.experiment.evaluation import Evaluation, evaluate
from fedrain.experiment.held import hold
from fedrain.experiment.resolve import from_dict
from fedrain.experiment.trainer import Trainer
from fedrain.federation import Sharing, mean_network
from fedrain.io import write_json
from fedrain.reading import read_json

AGENTS, LATE, MEMBER = 12, 8, 3  # 30–45°N joins late; 45–30°S may misbehave
SUN, WIDTH, UNSEEN = 20.0, 4.0, 27.3  # W m⁻²: how far suns differ, each varies, and 2 % of 1365
STARTS, OTHER_STARTS = (20.0, 60.0), (-10.0, 20.0)  # °C
NOISE = 0.02  # of the scale of temperature, 30 K
#: Gradient updates per environment step, by episodes of data: about 4000 in all, or one a step.
DATA = {2: 20, 5: 5, 10: 3, 30: 1, 100: 1}
WARMUP = 200  # steps, one episode
EPISODES_JUDGED = 4  # of each seed and kind
STEP, UPDATE = 2e-5, 1e-4  # core-seconds of an agent's step and of an update, for the plan
#: Episodes between averages, and what is averaged with whom.
SCHEMES: dict[str, tuple[int, Sharing | str]] = {
    "never": (0, "all"),
    "every1": (1, "all"),
    "shared": (0, "shared"),
    "every5": (5, "all"),
    "every10": (10, "all"),
    "personal": (1, "personal"),
    "zones": (1, "zones"),
    "neighbours": (1, "neighbours"),
    "critics": (1, Sharing(critics=True)),
}
TITLES = {
    "never": "never averaged",
    "once": "averaged once, at the end",
    "every1": "averaged after every episode",
    "every5": "after every 5 episodes",
    "every10": "after every 10 episodes",
    "personal": "after every episode, all but the last layer",
    "zones": "after every episode, with those of its 30° band",
    "neighbours": "after every episode, with its neighbours",
    "critics": "after every episode, actors and critics",
    "shared": "one policy and one memory (upper bound)",
}
PRESETS = {"fedrain": "ebm-v2", "paper": "ebm-v2", "published": "ebm-v2-published"}
MEMBERS = ("good", "silent", "hostile")
KINDS = {"own": "own climate", "unseen": "unseen climates", "late": "late region"}


@dataclass(frozen=True)
class WithoutOne(Environment):
    """An environment in which the late agent's place is held by a second agent of a region."""

    late: int = LATE

    @property
    def regions(self) -> tuple[int, ...]:
        """The region of each agent."""
        return tuple(region - (region == self.late) for region in range(self.agents))


@dataclass(frozen=True)
class Trial:
    """One cell of the study."""

    preset: str
    scheme: str
    data: int
    member: str = "good"

    @property
    def name(self) -> str:
        """Of its file."""
        return f"{self.preset}-{self.scheme}-d{self.data}-{self.member}"

    def configuration(self, algo: str, seeds: int, latitudes: int) -> Configuration:
        """What is trained; suns and the late agent are the study's own."""
        every, sharing = SCHEMES[self.scheme]
        if self.member == "silent":
            weights = tuple(float(i != MEMBER) for i in range(AGENTS))
            whole = Sharing(scheme=sharing) if isinstance(sharing, str) else sharing
            sharing = replace(whole, weights=weights)
        return configure(
            env=PRESETS[self.preset],
            agents=AGENTS,
            latitudes=latitudes,
            sync_every=every,
            sharing=sharing,
            algo=algo,
            preset=self.preset,
            seeds=seeds,
            episodes=self.data,
            settings={"warmup_steps": WARMUP, "updates": DATA[self.data]},
            start={"temperature": STARTS},
            noise=NOISE,
        )


def trials() -> list[Trial]:
    """All of them, the most telling first: our preset with little data, then the rest.

    What is never averaged before its data ends is left out, and so is what the published runs'
    stale averages cannot be.
    """
    every = [Trial(p, s, d) for p in PRESETS for s in SCHEMES for d in DATA]
    every += [Trial("fedrain", s, 10, m) for s in ("every1", "neighbours") for m in MEMBERS[1:]]
    every = [one for one in every if one.data > SCHEMES[one.scheme][0]]
    every = [one for one in every if one.preset != "published" or SCHEMES[one.scheme][1] == "all"]
    main = ("never", "every1", "shared")

    def worth(one: Trial) -> tuple[int, ...]:
        presets, schemes = list(PRESETS), list(SCHEMES)
        return (
            one.preset != "fedrain",
            one.data == 100,
            one.scheme not in main,
            one.member != "good",
            presets.index(one.preset),
            one.data,
            schemes.index(one.scheme),
        )

    return sorted(every, key=worth)


def suns() -> Float[np.ndarray, "agent 2"]:
    """Bounds of the change of each agent's solar constant, in no order of latitude."""
    centres = SUN * np.random.default_rng(0).permutation(np.linspace(-1, 1, AGENTS))
    return centres[:, None] + WIDTH / 2 * np.array([-1.0, 1.0])


def climate(environment: Environment, shift: float = 0.0, training: bool = False) -> EnvParams:
    """Of each agent its own sun, or one that it has not seen."""
    own = suns() + shift
    if training:  # where the late agent's place is held, so is its climate
        own[LATE] = own[LATE - 1]
    params = environment.params
    starts = params.start if not shift else {"temperature": np.array(OTHER_STARTS)}
    return params._replace(forcing=params.forcing | {"solar": own}, start=starts)


def run_trial(trial: Trial, configuration: Configuration) -> dict[str, Any]:
    """Train all seeds of a cell and judge them."""
    judged = configuration.make_environment()
    fields = {f: getattr(judged, f) for f in judged.__dataclass_fields__}
    environment = WithoutOne(**fields | {"params": climate(judged, training=True)})
    trainer = Trainer(configuration, environment)
    trainer.begin()
    hostile = trial.member == "hostile"
    while trainer.episode < configuration.episodes:
        due = configuration.averages_after(trainer.episode)
        trainer.play(due and not hostile)
        if due and hostile:
            trainer.trainings = [t._replace(agents=corrupted(t.agents)) for t in trainer.trainings]
            trainer.synchronise()
    result = {"policy": judge(trainer, judged, trainer.actors())}
    if trial.scheme == "never":
        mean = mean_network  # one of all agents of a seed, given back to each
        averaged = jax.vmap(lambda actor: mean(actor, Sharing()))(trainer.actors())
        result["once"] = judge(trainer, judged, averaged)
    result["static"] = judge(trainer, judged, None)
    return result | {
        "bytes": bytes_sent(trainer, configuration),
        "core_seconds": float(trainer.history["core_seconds"].sum()),
        "diverged": len(trainer.diverged),
    }


def corrupted(agents: Any) -> Any:
    """What the averages see where one member sends its actor with all signs changed."""
    sign = jnp.where(jnp.arange(AGENTS) == MEMBER, -1.0, 1.0)
    shaped = jax.tree.map(
        lambda leaf: leaf * sign.reshape(-1, *(1,) * (leaf.ndim - 1)), agents.actor
    )
    return agents._replace(actor=shaped)


def bytes_sent(trainer: Trainer, configuration: Configuration) -> float:
    """By each agent of a run, up and down; of one memory, its rows."""
    training = trainer.trainings[0]
    if configuration.make_sharing().one_policy:
        return 4.0 * training.rows.size / AGENTS
    kept = configuration.make_sharing().layers
    actor = training.agents.actor
    shared = [layer for i, layer in enumerate(actor) if kept is None or i in kept]
    each = sum(leaf.size for leaf in jax.tree.leaves(shared)) / AGENTS
    if configuration.make_sharing().critics:
        each += sum(leaf.size for leaf in jax.tree.leaves(training.agents.critic)) / AGENTS
    rounds = sum(map(configuration.averages_after, range(configuration.episodes)))
    return 2 * 4.0 * each * rounds


def judge(
    trainer: Trainer, environment: Environment, actors: Network | None
) -> dict[str, list[Any]]:
    """Error of each seed and agent; without actors, that of the static model."""
    seeds = trainer.configuration.seeds
    numbers = tuple(EPISODES_JUDGED * seed + i for seed in seeds for i in range(EPISODES_JUDGED))

    def errors(shift: float) -> Float[np.ndarray, "seed agent"]:
        params = climate(environment, shift)
        if actors is None:
            played = hold(environment, environment.static_actions, numbers, params)
        else:
            copies = jax.tree.map(lambda leaf: jnp.repeat(leaf, EPISODES_JUDGED, 0), actors)
            played = evaluate(environment, trainer.algorithm, copies, numbers, params)
        found = by_region(environment, played)
        return found.reshape(len(seeds), EPISODES_JUDGED, AGENTS).mean(1)

    own, unseen = errors(0.0), (errors(UNSEEN) + errors(-UNSEEN)) / 2
    members = [agent for agent in range(AGENTS) if agent != LATE]
    return {
        "own": own[:, members].tolist(),
        "unseen": unseen[:, members].tolist(),
        "late": own[:, [LATE]].tolist(),
    }


def by_region(environment: Environment, played: Evaluation) -> Float[np.ndarray, "play agent"]:
    """Root of the area-weighted mean square error of each agent's latitudes at the end."""
    ((name, _),) = environment.judged
    last = np.stack([environment.judged_mean(values) for values in played.fields[name]])
    squares = (last - played.target[name]) ** 2
    weights = environment.model.columns.weights
    cells = environment.division.cells
    total = (weights[cells] * squares[:, cells]).sum(-1)
    return np.sqrt(total / weights[cells].sum(-1))


def show_plan(missing: list[Trial], number: int, seeds: int) -> None:
    """What is missing, in order of worth, with an estimate of what it costs."""
    hours = 0.0
    for trial in missing:
        steps = seeds * AGENTS * 200 * trial.data
        cost = STEP * steps + UPDATE * DATA[trial.data] * max(steps - seeds * AGENTS * WARMUP, 0)
        hours += cost / 3600
        print(f"{trial.name}: {cost / 60:.0f} core-minutes")
    print(f"{len(missing)} of {number} to train: about {hours:.1f} core-hours")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("plan", "run", "show"))
    parser.add_argument("--only", default="*", metavar="PATTERN", help="some cells")
    parser.add_argument("--seeds", type=int, default=20, metavar="N")
    parser.add_argument("--algo", default="td3")
    parser.add_argument("--latitudes", type=int, default=24, metavar="N")
    parser.add_argument("--folder", type=Path, default=RESULTS / "federation", metavar="DIR")
    options = parser.parse_args()
    plan = [one for one in trials() if fnmatch(one.name, options.only)]
    if not plan:
        parser.error(f"no cell matches {options.only!r}")
    if options.what == "show":
        from federation_tables import show

        images = RESULTS.parent.parent / "docs" / "images"
        show(options.folder, images if options.folder.parent == RESULTS else options.folder)
        return
    missing = list[Trial]()
    for trial in plan:
        path = options.folder / f"{trial.name}.json"
        try:
            configuration = trial.configuration(options.algo, options.seeds, options.latitudes)
        except InputError as error:
            print(f"{trial.name}: cannot be: {error}")
            continue
        if path.exists():
            held = from_dict(read_json(path)["configuration"])
            if held.identity == configuration.identity:
                continue
        if options.what == "plan":
            missing.append(trial)
            continue
        result = run_trial(trial, configuration)
        write_json(path, {"name": trial.name, "configuration": configuration.as_dict(), **result})
        own = interval_text(np.array(result["policy"]["own"]))
        print(f"{trial.name}: {own} K, {result['core_seconds']:.0f} core-s", flush=True)
    if options.what == "plan":
        show_plan(missing, len(plan), options.seeds)


if __name__ == "__main__":
    main()
