"""The cells of the study ``federation``: what is trained, and how it is judged."""

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from fedrain.agents.networks import Network
from fedrain.envs import Environment, EnvParams
from fedrain.envs.episode import State
from fedrain.experiment import Configuration, configure
from fedrain.experiment.evaluation import Evaluation, evaluate
from fedrain.experiment.held import hold
from fedrain.experiment.resolve import from_dict
from fedrain.experiment.trainer import Trainer
from fedrain.federation import Sharing, mean_network

AGENTS, LATE, MEMBER = 12, 8, 3  # 30–45°N joins late; 45–30°S may misbehave
SUN, WIDTH, UNSEEN = 20.0, 4.0, 27.3  # W m⁻²: how far suns differ, each varies, and 2 % of 1365
STARTS, OTHER_STARTS = (20.0, 60.0), (-10.0, 20.0)  # °C
NOISE = 0.02  # of the scale of temperature, 30 K
#: Gradient updates per environment step, by episodes of data: about 1800 in all, or one a step.
DATA = {2: 6, 5: 2, 10: 1, 30: 1, 100: 1}
WARMUP = 100  # steps, half an episode
EPISODES_JUDGED = 4  # of each seed and kind
#: Core-seconds of an agent's step and of an update, and of compiling, for the plan.
STEP, UPDATE, COMPILE = 2e-5, 2e-4, 20.0
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
ASKED = 10  # episodes with which it is asked what a member does, and hyperparameters are chosen
_CRITICS = f"fedrain-critics-d{ASKED}-good"
KINDS = {"own": "own climate", "unseen": "unseen climates", "late": "late region"}


@dataclass(frozen=True)
class WithoutSome(Environment):
    """An environment in which the places of some are held by second agents of the regions beside.

    Args:
        away: Regions whose agents are not there.
        liar: The agent whose rewards have the wrong sign, if one has.
    """

    away: tuple[int, ...] = (LATE,)
    liar: int | None = None

    @property
    def regions(self) -> tuple[int, ...]:
        """The region of each agent."""
        return tuple(region - (region in self.away) for region in range(self.agents))

    def reward(self, state: State, params: EnvParams) -> Float[Array, " agent"]:
        """As it is, but for the liar's."""
        true = super().reward(state, params)
        return true if self.liar is None else true.at[self.liar].multiply(-1)


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

    @property
    def tuned_as(self) -> str:
        """The scheme whose learning rate and exploration it has: each kind has its own."""
        return self.scheme if self.scheme in ("never", "shared") else "every1"

    def configuration(
        self, algo: str, seeds: int | tuple[int, ...], latitudes: int, tuned: dict[str, float]
    ) -> Configuration:
        """What is trained; suns and the late agent are the study's own."""
        every, sharing = SCHEMES[self.scheme]
        made = configure(
            env=PRESETS[self.preset],
            agents=AGENTS,
            latitudes=latitudes,
            sync_every=every,
            sharing=sharing,
            algo=algo,
            preset=self.preset,
            seeds=seeds,
            episodes=self.data,
            settings={"warmup_steps": WARMUP, "updates": DATA[self.data], **tuned},
            start={"temperature": STARTS},
            noise=NOISE,
        )
        if self.member == "silent" and every:
            made = replace(made, sharing={**made.sharing, "weights": present()})
        return made


def trials() -> list[Trial]:
    """All of them, the most telling first.

    What is never averaged before its data ends is left out, and so is what the published runs'
    stale averages cannot be. Members misbehave, and critics are averaged, in one place alone.
    """
    every = [Trial(p, s, d) for p in PRESETS for s in SCHEMES for d in DATA]
    shared = [s for s in SCHEMES if s not in ("never", "critics")]
    every += [Trial("fedrain", s, ASKED, m) for s in shared for m in MEMBERS[1:]]
    every = [one for one in every if one.data > SCHEMES[one.scheme][0]]
    every = [one for one in every if one.preset != "published" or SCHEMES[one.scheme][1] == "all"]
    every = [one for one in every if one.scheme != "critics" or one.name == _CRITICS]
    presets, schemes, data = list(PRESETS), list(SCHEMES), [ASKED, 2, 30, 5, 100]

    def worth(one: Trial) -> tuple[int, ...]:
        main, ours = one.scheme in schemes[:3], one.preset == "fedrain"
        if one.data == 100:
            turn = 4 if main else 6
        elif one.member != "good":
            turn = 3
        elif ours:
            turn = 0 if main else 2
        else:
            turn = 1 if main else 5
        return (
            turn, presets.index(one.preset), data.index(one.data), MEMBERS.index(one.member),
            schemes.index(one.scheme),
        )  # fmt: skip

    return sorted(every, key=worth)


def suns() -> Float[np.ndarray, "agent 2"]:
    """Bounds of the change of each agent's solar constant, in no order of latitude."""
    centres = SUN * np.random.default_rng(0).permutation(np.linspace(-1, 1, AGENTS))
    return centres[:, None] + WIDTH / 2 * np.array([-1.0, 1.0])


def climate(environment: Environment, shift: float = 0.0, away: tuple[int, ...] = ()) -> EnvParams:
    """Of each agent its own sun, or one that it has not seen; of one away, its neighbour's."""
    own = suns() + shift
    for agent in away:
        own[agent] = own[agent - 1]
    params = environment.params
    starts = params.start if not shift else {"temperature": np.array(OTHER_STARTS)}
    return params._replace(forcing=params.forcing | {"solar": own}, start=starts)


def learning(trial: Trial, judged: Environment) -> Environment:
    """The environment that a trial's agents learn in.

    Of one memory a member cannot send another actor: it sends nothing, or rewards of the wrong
    sign.
    """
    one_memory = trial.scheme == "shared"
    away = (MEMBER, LATE) if one_memory and trial.member == "silent" else (LATE,)
    liar = MEMBER if one_memory and trial.member == "hostile" else None
    fields = {f: getattr(judged, f) for f in judged.__dataclass_fields__}
    params = climate(judged, away=away)
    return WithoutSome(**fields | {"params": params}, away=away, liar=liar)


def train(trainer: Trainer, hostile: bool = False) -> Trainer:
    """To the end; before every average a hostile member changes what it sends."""
    configuration = trainer.configuration
    trainer.begin()
    while trainer.episode < configuration.episodes:
        due = configuration.averages_after(trainer.episode)
        trainer.play(due and not hostile)
        if due and hostile:
            trainer.trainings = [
                one._replace(agents=one.agents._replace(actor=corrupted(one.agents.actor)))
                for one in trainer.trainings
            ]
            trainer.synchronise()
    return trainer


def run_trial(trial: Trial, configuration: Configuration) -> dict[str, Any]:
    """Train all seeds of a cell and judge them."""
    judged = configuration.make_environment()
    hostile = trial.member == "hostile" and bool(configuration.sync_every)
    trainer = train(Trainer(configuration, learning(trial, judged)), hostile)
    actors, sharing = trainer.actors(), configuration.make_sharing()
    given = jax.vmap(corrupted)(actors) if hostile else actors
    result: dict[str, Any] = {"policy": judge(trainer, judged, actors)}
    if configuration.sync_every:
        result["average"] = judge(trainer, judged, averaged(given, sharing))
    if trial.scheme == "never":
        silent = Sharing(weights=present())
        result["once"] = judge(trainer, judged, averaged(actors, Sharing()))
        result["once-silent"] = judge(trainer, judged, averaged(actors, silent))
        lied = averaged(jax.vmap(corrupted)(actors), Sharing())
        result["once-hostile"] = judge(trainer, judged, lied)
        result["once-bytes"] = bytes_sent(trainer, Sharing(), 1)
    result["static"] = judge(trainer, judged, None)
    rounds = sum(map(configuration.averages_after, range(configuration.episodes)))
    return result | {
        "bytes": bytes_sent(trainer, sharing, rounds),
        "core_seconds": float(trainer.history["core_seconds"].sum()),
        "diverged": len(trainer.diverged),
    }


def of_values(trial: Trial, values: dict[str, Any]) -> dict[str, Any]:
    """The same, for a worker of a cluster."""
    return run_trial(trial, from_dict(values))


def present() -> tuple[float, ...]:
    """How much each counts where one member sends nothing."""
    return tuple(float(agent != MEMBER) for agent in range(AGENTS))


def averaged(actors: Network, sharing: Sharing) -> Network:
    """One mean of each seed's agents, or of those that share, given back to each."""
    return jax.vmap(lambda actor: mean_network(actor, sharing))(actors)


def corrupted(actor: Network) -> Network:
    """What the averages see where one member sends its actor with all signs changed."""
    sign = jnp.where(jnp.arange(AGENTS) == MEMBER, -1.0, 1.0)
    return jax.tree.map(lambda leaf: leaf * sign.reshape(-1, *(1,) * (leaf.ndim - 1)), actor)


def bytes_sent(trainer: Trainer, sharing: Sharing, rounds: int) -> float:
    """By each agent of a run, up and down, in so many rounds; of one memory, its rows."""
    training = trainer.trainings[0]
    if sharing.one_policy:
        return 4.0 * training.rows.size / AGENTS
    actor = training.agents.actor
    sent = [layer for i, layer in enumerate(actor) if sharing.layers is None or i in sharing.layers]
    each = sum(leaf.size for leaf in jax.tree.leaves(sent)) / AGENTS
    if sharing.critics:
        each += sum(leaf.size for leaf in jax.tree.leaves(training.agents.critic)) / AGENTS
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
