"""The server app: a federation from the first round, or the last checkpoint, to the results."""

import secrets
import time
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Context
from flwr.serverapp import Grid as FlowerGrid
from flwr.serverapp import ServerApp

from fedrain.agents.step import start_training
from fedrain.climate.columns import is_integer
from fedrain.errors import FailureError, InputError
from fedrain.experiment.configuration import Configuration
from fedrain.experiment.course import Course
from fedrain.experiment.folder import Say, open_folder, say_if_new
from fedrain.experiment.live import Live
from fedrain.experiment.progress import Progress
from fedrain.experiment.results import write_results
from fedrain.experiment.run import Run
from fedrain.experiment.trainer import History
from fedrain.federation import actor_distance
from fedrain.flower.messages import Payload, round_config, take_payload, to_arrays
from fedrain.flower.roster import Roster
from fedrain.flower.strategy import make_strategy
from fedrain.io import flatten, unflatten, write_arrays, write_json
from fedrain.reading import read_arrays, read_json

UNFEDERATED_ROUND = 5  # episodes between reports where nothing is averaged
LOST_ROUNDS = 3  # in a row, in which no reply was usable: then it has failed


class Round(NamedTuple):
    """Episodes that are played between two exchanges."""

    first: int
    episodes: int
    adopt: bool  # whether to continue from what the server sends


def plan_rounds(configuration: Configuration) -> list[Round]:
    """A round up to each average, the next of which starts from it; or up to each report."""
    rounds, first = [], 0
    for episode in range(configuration.episodes):
        after = episode + 1
        reports = not configuration.sync_every and after % UNFEDERATED_ROUND == 0
        if configuration.averages_after(episode) or reports or after == configuration.episodes:
            adopt = first > 0 and configuration.averages_after(first - 1)
            rounds.append(Round(first, after - first, adopt))
            first = after
    return rounds


#: What a federation keeps between rounds: named arrays, and a note about them.
Kept = tuple[dict[str, np.ndarray], dict[str, Any]]


@runtime_checkable
class Store(Protocol):
    """Where a federation keeps what it needs in order to resume."""

    def save(self, arrays: dict[str, np.ndarray], note: dict[str, Any]) -> None:
        """After a round."""

    def load(self) -> Kept | None:
        """What was kept last, if anything was."""

    def remove(self) -> None:
        """When the federation has finished."""


class RoundFile:
    """A file, written after every round: regions on other machines keep what is theirs."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def save(self, arrays: dict[str, np.ndarray], note: dict[str, Any]) -> None:
        """After a round."""
        write_arrays(self.path, arrays, note)

    def load(self) -> Kept | None:
        """What was kept last, if anything was."""
        return read_arrays(self.path) if self.path.exists() else None

    def remove(self) -> None:
        """When the federation has finished."""
        self.path.unlink(missing_ok=True)


class Federation:
    """One experiment over any of Flower's networks."""

    def __init__(
        self,
        configuration: Configuration,
        out: Path,
        resume: bool,
        say: Say,
        strategy: str = "FedAvg",
        round_seconds: float = 3600.0,
        wait_seconds: float = 60.0,
    ) -> None:
        if (scheme := configuration.make_sharing().scheme) != "all":
            raise InputError(
                f"Flower averages all agents: {scheme!r} works with fedrain train only"
            )
        if configuration.make_algorithm().schedule.stale_averages:
            raise InputError("Flower averages what it has just received: drop stale_averages")
        if configuration.start_from is not None:
            raise InputError("a federation starts from new agents, not from those of another run")
        self.configuration, self.out, self.say = configuration, out, say
        self.round_seconds, self.wait_seconds = round_seconds, wait_seconds
        self.roster = Roster(configuration.agents, say)
        self.federation_id = secrets.token_hex(8)
        self.rounds = plan_rounds(configuration)
        self.strategy = make_strategy(strategy, configuration)
        if resume:
            say_if_new(out, say)
        open_run(configuration, out, resume, strategy)
        self.like = first_payload(configuration)
        self.arrays = to_arrays(self.like)
        self.local: dict[int, Payload] = dict.fromkeys(range(configuration.agents), self.like)
        self.history: History = _empty_history(configuration)
        self.finished = 0  # rounds
        self.lost = 0  # tries of the next round from which nothing came
        self.heard: set[int] = set()  # regions of which at least one reply could be used
        self.averaged = True  # whether the arrays have what was learnt in the last round
        self.failure: Exception | None = None
        self.live = Live(configuration, out)
        self.course: Course | None = None  # of a federation in this process
        self.answered: dict[int, int] = {}  # the last round of which a region's reply was used
        self.store: Store = RoundFile(out / "federation" / "round.safetensors")

    def run(self, network: FlowerGrid) -> None:
        """Play all rounds that are left and write the results."""
        self._load()
        # A federation that is resumed does not need the nodes that do not come back in time.
        agents = self.configuration.agents
        self.roster.gather(network, self.wait_seconds, agents, 1 if self.finished else agents)
        configuration, strategy = self.configuration, self.strategy
        done = self._episodes_done()
        self.progress = Progress(
            configuration.episodes, configuration.steps_of_an_episode, done, pause=0.0
        )
        strategy.like, strategy.say = self.like, self.say
        strategy.gather = partial(
            self.roster.gather, wait_seconds=self.wait_seconds, wanted=1, least=1
        )
        strategy.plan, strategy.done = self._plan, self._done
        self._begin = time.perf_counter()
        self._tell_watchers()
        while self.finished < len(self.rounds):  # a round that is lost is played again
            strategy.rounds_before = self.finished
            strategy.start(network, self.arrays, num_rounds=1, timeout=self.round_seconds)
        self._check_result()
        local = [self.local[region]["actor"] for region in range(configuration.agents)]
        actors = jax.tree.map(lambda *leaves: jnp.asarray(np.stack(leaves, axis=1)), *local)
        foreign = bool(strategy.foreign)
        self.live.write("writing")
        write_results(configuration, actors, self.history, self.out, foreign, self.course)
        self.live.write("finished")
        self.store.remove()

    def _check_result(self) -> None:
        """Refuse to call a result what nobody has learnt, and say whose part of it nobody has."""
        if not np.isfinite(self.history["returns"]).any():
            raise FailureError(f"{self.out}: no region has played an episode: there is no result")
        if lost := [r for r in range(self.configuration.agents) if r not in self.heard]:
            listed = ", ".join(map(str, lost))
            self.say(f"region {listed}: nothing was learnt; its policy is still the initial one")

    def _episodes_done(self) -> int:
        return self.rounds[self.finished].first if self.finished < len(self.rounds) else 0

    def _plan(self, _: int) -> ConfigRecord:
        first, episodes, adopt = self.rounds[self.finished]
        adopt = adopt and self.averaged
        return round_config(self.configuration, self.federation_id, first, episodes, adopt)

    def _done(
        self,
        learnt: dict[int, tuple[Payload, dict[str, np.ndarray]]],
        arrays: ArrayRecord | None,
    ) -> None:
        now = self.rounds[self.finished]
        self.answered |= dict.fromkeys(learnt, self.finished + 1)
        if not learnt:
            self._lose()
            return
        self.lost = 0
        self.heard |= learnt.keys()
        episodes = slice(now.first, now.first + now.episodes)
        for region, (payload, metrics) in learnt.items():
            self.local[region] = payload
            for name, values in metrics.items():
                if values.ndim == 2:
                    self.history[name][episodes, :, region] = values
                else:
                    self.history[name][episodes] = np.fmax(self.history[name][episodes], values)
        self.history["distance"][episodes.stop - 1] = self._distance()
        if arrays is not None:
            self.arrays = arrays
        self.averaged = arrays is not None
        self.finished += 1
        self._save()
        seconds = (time.perf_counter() - self._begin) / now.episodes
        self._begin = time.perf_counter()
        self.progress.show(episodes.stop, self.history["returns"][episodes.stop - 1], seconds)
        self._tell_watchers()

    def _tell_watchers(self) -> None:
        """How far it is, and how each region's node is doing."""
        regions = range(self.configuration.agents)
        nodes = [
            {
                "connected": region in self.roster.nodes,
                "answered": self.answered.get(region, 0),  # in this session of the server
                "heard": region in self.heard,
            }
            for region in regions
        ]
        rounds = {"finished": self.finished, "all": len(self.rounds), "tries": self.lost}
        done = self.rounds[self.finished - 1] if self.finished else None
        episode = 0 if done is None else done.first + done.episodes
        self.live.tell(episode, self.history, self.course, nodes=nodes, rounds=rounds)

    def _lose(self) -> None:
        """A round from which nothing came is none, and a federation of such has no result."""
        self.lost += 1
        self._tell_watchers()
        if self.lost == LOST_ROUNDS:
            raise FailureError(
                f"{self.out}: no region gave a usable reply in round "
                f"{self.finished + 1} of {len(self.rounds)}, after {LOST_ROUNDS} attempts; "
                "--resume tries it again"
            )

    def _distance(self) -> np.ndarray:
        local = [payload["actor"] for _, payload in sorted(self.local.items())]
        stacked = jax.tree.map(lambda *leaves: np.stack(leaves, axis=1), *local)
        return np.asarray(_distance(stacked))

    def _save(self) -> None:
        arrays = {f"global/{n}": a.numpy() for n, a in self.arrays.items()}
        arrays |= {f"history/{n}": a for n, a in self.history.items()}
        for region, payload in self.local.items():
            arrays |= {f"local/{region}/{n}": a for n, a in flatten(payload).items()}
        arrays |= {f"strategy/{n}": a for n, a in self.strategy.moments().items()}
        note = {
            "identity": self.configuration.identity,
            "federation_id": self.federation_id,
            "finished": self.finished,
            "averaged": self.averaged,
            "heard": sorted(self.heard),
            "foreign": sorted(self.strategy.foreign),
        }
        self.store.save(arrays, note)

    def _load(self) -> None:
        if (kept := self.store.load()) is None:
            return
        arrays, note = kept
        if note.get("identity") != self.configuration.identity:
            raise InputError(f"{self.out}: the checkpoint belongs to another configuration")

        def under(prefix: str) -> dict[str, np.ndarray]:
            return {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}

        where = f"{self.out}: the checkpoint"
        self.arrays = to_arrays(unflatten(self.like, under("global/"), where))
        self.local = {r: unflatten(self.like, under(f"local/{r}/"), where) for r in self.local}
        self.history = unflatten(self.history, under("history/"), where)
        regions = range(self.configuration.agents)
        heard, foreign = note.get("heard", list(regions)), note.get("foreign", [])
        finished, name = note.get("finished", -1), note.get("federation_id")
        right = is_integer(finished) and 0 <= finished <= len(self.rounds)
        right = right and all(isinstance(one, list) for one in (heard, foreign))
        if not right or not isinstance(name, str) or any(r not in regions for r in heard + foreign):
            raise InputError(f"{where} is damaged: it does not record how far the run had got")
        try:
            self.strategy.restore(under("strategy/"))
        except KeyError:
            raise InputError(f"{where} does not fit this configuration (strategy)") from None
        self.averaged = bool(note.get("averaged", True))
        self.strategy.foreign, self.heard = set(foreign), set(heard)
        self.finished, self.federation_id = finished, name
        self.say(f"resuming after round {self.finished} of {len(self.rounds)}")


def open_run(configuration: Configuration, out: Path, resume: bool, strategy: str) -> None:
    """Make the run folder of a federation, or make sure that it is this one's."""
    stored = out / "configuration.json"
    if resume and stored.exists():
        episodes = read_json(stored).get("episodes")
        if episodes != configuration.episodes:
            raise InputError(
                f"{out}: has {episodes} episodes, not {configuration.episodes}, and a federation "
                "cannot be extended"
            )
    open_folder(configuration, out, resume)
    path = out / "federation.json"
    if path.exists():
        if (held := read_json(path).get("strategy")) != strategy:
            raise InputError(f"{out}: was started with --strategy {held}, not {strategy}")
    elif (out / "checkpoint").exists():
        raise InputError(f"{out}: is a folder of fedrain train: choose another --out")
    elif not Run.is_finished(out):
        write_json(path, {"strategy": strategy})


def make_server_app(federation: Federation) -> ServerApp:
    """The app that runs a federation on the network that it is given."""
    app = ServerApp()

    @app.main()
    def main(network: FlowerGrid, context: Context) -> None:  # noqa: ARG001
        try:
            federation.run(network)
        except Exception as error:
            federation.failure = error
            raise

    return app


def first_payload(configuration: Configuration) -> Payload:
    """What every region starts from, and what all that is sent looks like."""
    spec, algorithm = configuration.make_environment().spec, configuration.make_algorithm()
    seeds = [
        start_training(algorithm, spec, (0,), jnp.asarray(seed, jnp.uint32), 1)
        for seed in configuration.seeds
    ]
    return take_payload(seeds, 0, configuration.make_sharing())


_distance = jax.jit(jax.vmap(actor_distance))


def _empty_history(configuration: Configuration) -> History:
    shape: tuple[Any, ...] = (configuration.episodes, len(configuration.seeds))
    history = {
        name: np.full((*shape, configuration.agents), np.nan, np.float32)
        for name in ("returns", "critic_loss", "actor_loss", "q")
    }
    history["distance"] = np.full(shape, np.nan, np.float32)
    return history | {n: np.full(shape[:1], np.nan) for n in ("seconds", "core_seconds")}
