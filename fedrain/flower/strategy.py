"""Flower's strategies, made safe: a region that sends nonsense is named and left out.

A peer may send anything, so every reply is validated before it is aggregated. Replies are sorted by
region, because a sum of floating-point numbers depends on its order.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from operator import itemgetter
from typing import Any, NamedTuple

import jax
import numpy as np
from flwr.app import (
    Array,
    ArrayRecord,
    ConfigRecord,
    Message,
    MessageType,
    MetricRecord,
    RecordDict,
)
from flwr.serverapp import Grid as FlowerGrid
from flwr.serverapp import strategy as flower
from jaxtyping import Bool

from fedrain.errors import InputError, unknown
from fedrain.experiment.configuration import Configuration
from fedrain.experiment.folder import Say
from fedrain.flower.messages import (
    ARRAYS,
    CONFIG,
    FOREIGN,
    METRICS,
    WEIGHT,
    Payload,
    claimed_region,
    from_arrays,
    mean_payload,
    read_metrics,
    to_arrays,
)
from fedrain.io import flatten

#: Flower's strategies that may replace the plain mean.
STRATEGIES = (
    "FedAvg", "FedAvgM", "FedProx", "FedAdam", "FedAdagrad", "FedYogi", "FedMedian",
    "FedTrimmedAvg", "Krum", "MultiKrum", "Bulyan",
)  # fmt: skip
#: Attributes in which FedAdam, FedAdagrad, FedYogi and FedAvgM keep their state between rounds.
MOMENTS = ("m_t", "v_t", "momentum_vector")
MOMENTUM = 0.9  # of FedAvgM (Hsu et al. 2019)
BULYAN_REPLIES = 3  # Flower aggregates no fewer
#: A step this many times longer than the others', or than the weights themselves, is refused.
FAR = 100.0


class Reply(NamedTuple):
    """A reply that can be used."""

    message: Message
    payload: Payload
    metrics: dict[str, np.ndarray]
    weight: float
    finite: Bool[np.ndarray, " seed"]  # whether all numbers of a seed are
    foreign: bool = False  # whether it was learnt in a climate of another program


def read_reply(message: Message, like: Payload, episodes: int, weight: float) -> Reply | str:
    """A reply after that many episodes, or what is wrong with it."""
    try:
        payload = from_arrays(message.content.array_records[ARRAYS], like, "the reply")
        metrics = read_metrics(message.content)
    except Exception as error:
        why = str(error).partition("\n")[0] or type(error).__name__
        return f"it does not fit ({why})"
    finite = reduce(np.logical_and, map(_finite_seeds, jax.tree.leaves(payload)))
    if not finite.any():
        return "its numbers are not finite"
    expected = {(episodes,), (episodes, len(finite))}
    if {values.shape for values in metrics.values()} != expected:
        return "its episodes are not those of the round"
    foreign = bool(message.content.metric_records[METRICS].get(FOREIGN, 0))
    return Reply(message, payload, metrics, weight, finite, foreign)


def repair(replies: Sequence[Reply], sent: Payload) -> list[Reply]:
    """Replies in which a diverged seed is replaced by the mean of that seed in the other regions.

    So it has no influence, whatever mean is taken. If it has diverged everywhere, it is as sent.
    """
    finite = np.stack([reply.finite for reply in replies])
    weights = np.array([reply.weight for reply in replies])
    if finite.all():
        return list(replies)

    def fill(before: np.ndarray, *leaves: np.ndarray) -> np.ndarray:
        stack = np.stack(leaves)
        for seed in np.flatnonzero(~finite.all(axis=0)):
            sound = finite[:, seed] & (weights > 0)
            mean = before[seed]
            if sound.any():
                mean = np.average(stack[sound, seed], axis=0, weights=weights[sound])
            stack[~finite[:, seed], seed] = mean
        return stack

    filled = jax.tree.map(fill, sent, *(reply.payload for reply in replies))
    return [
        reply._replace(payload=jax.tree.map(itemgetter(region), filled))
        for region, reply in enumerate(replies)
    ]


def rewrite(reply: Reply) -> Message:
    """The reply with what Flower's strategies need, and nothing else that came with it."""
    metrics = MetricRecord({WEIGHT: reply.weight})
    reply.message.content = RecordDict({ARRAYS: to_arrays(reply.payload), METRICS: metrics})
    return reply.message


def step_length(reply: Reply, sent: Payload) -> float:
    """How far the seeds that have not diverged are from what was sent."""
    steps = jax.tree.map(lambda new, old: (new - old)[reply.finite], reply.payload, sent)
    return size(steps)


def size(payload: Payload) -> float:
    """Root mean square of all numbers."""
    leaves = jax.tree.leaves(payload)
    total = sum(float(np.linalg.norm(leaf)) ** 2 for leaf in leaves)
    return float(np.sqrt(total / sum(leaf.size for leaf in leaves)))


def _finite_seeds(leaf: np.ndarray) -> Bool[np.ndarray, " seed"]:
    return np.asarray(np.isfinite(leaf).reshape(len(leaf), -1).all(axis=1))


class ReplyValidator:
    """What every strategy here does before it aggregates: validate, name, sort."""

    nodes: dict[int, int]  # region → node, of this round
    gather: Callable[[FlowerGrid], dict[int, int]]  # those that are connected
    like: Payload
    seeds: Sequence[int]
    weights: Sequence[float]  # of the regions, in the average
    say: Say
    plan: Callable[[int], ConfigRecord]  # what a round is to do
    done: Callable[[dict[int, tuple[Payload, dict[str, np.ndarray]]], ArrayRecord | None], None]
    foreign: set[int]  # regions that have learnt in a climate of another program
    diverged: set[tuple[int, int]]  # regions and the indices of their seeds
    rounds_before: int  # played before this process began

    def configure_train(
        self,
        server_round: int,
        arrays: ArrayRecord,
        config: ConfigRecord,
        grid: FlowerGrid,  # Flower's name of this parameter
    ) -> Iterable[Message]:
        """A message to the node of every region that is connected."""
        self.nodes = self.gather(grid)
        self._sent = from_arrays(arrays, self.like, "the server")
        # Flower's optimisers note the arrays that they step from; we choose the nodes.
        super().configure_train(server_round, arrays, config, _Nodes(self.nodes))  # type: ignore[misc]
        plan = self.plan(server_round)
        self._episodes = int(str(plan["episodes"]))
        content = RecordDict({ARRAYS: arrays, CONFIG: plan})
        self._messages = {
            region: Message(content=content, message_type=MessageType.TRAIN, dst_node_id=node)
            for region, node in sorted(self.nodes.items())
        }
        return list(self._messages.values())

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Aggregate what is sound."""
        sound = dict(sorted(self._check(list(replies)).items()))
        self.foreign |= {region for region, reply in sound.items() if reply.foreign}
        learnt = {region: (reply.payload, reply.metrics) for region, reply in sound.items()}
        arrays, metrics = None, None
        if any(reply.weight for reply in sound.values()):
            repaired = repair(list(sound.values()), self._sent)
            combined, metrics = self.combine(self.rounds_before + server_round, repaired)
            arrays = None if combined is None else _single_precision(combined)
        self.done(learnt, arrays)
        return arrays, metrics

    def combine(
        self, server_round: int, replies: Sequence[Reply]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Aggregate sound replies, in the order of the regions."""
        messages = [rewrite(reply) for reply in replies]
        return super().aggregate_train(server_round, messages)  # type: ignore[misc]

    def moments(self) -> dict[str, np.ndarray]:
        """What Flower's optimisers keep from round to round."""
        return flatten({name: getattr(self, name, None) for name in MOMENTS})

    def restore(self, moments: dict[str, np.ndarray]) -> None:
        """Take back what was kept."""
        for name in MOMENTS:
            under = f"{name}/"
            own: Any = {n.removeprefix(under): a for n, a in moments.items() if n.startswith(under)}
            if name == "momentum_vector":  # Flower has a list there
                own = [own[str(i)] for i in range(len(own))]
            setattr(self, name, own or None)

    def _check(self, replies: list[Message]) -> dict[int, Reply]:
        # An answer that a node is lost comes from Flower itself, not from the node.
        regions = {node: region for region, node in self.nodes.items()}
        asked = {m.metadata.message_id: region for region, m in self._messages.items()}
        sound: dict[int, Reply] = {}
        silent = set(self.nodes)
        for message in replies:
            node = message.metadata.src_node_id
            region = regions.get(node, asked.get(message.metadata.reply_to_message_id))
            if region is None:
                self.say(f"node {node}: reply refused: it has no region here")
                continue
            silent.discard(region)
            if message.has_error():
                self.say(f"region {region} failed: {message.error.reason}")
            elif regions.get(node) != region or claimed_region(message) != region:
                self.say(f"region {region}: reply refused: it claims another region")
            elif region in sound:
                self.say(f"region {region}: reply refused: the second in one round")
            elif isinstance(reply := self._read(region, message), str):
                self.say(f"region {region}: update refused: {reply}")
            else:
                sound[region] = reply
        for region in sorted(silent):
            self.say(f"region {region} did not answer: the round continues without it")
        steps = {region: step_length(reply, self._sent) for region, reply in sound.items()}
        weights = size(self._sent)
        for region, step in steps.items():
            others = [s for other, s in steps.items() if other != region]
            if others and step > FAR * max(float(np.median(others)), weights):
                self.say(f"region {region}: update refused: it is far outside the others")
                del sound[region]
            else:
                self._name_diverged(region, sound[region])
        return sound

    def _read(self, region: int, message: Message) -> Reply | str:
        return read_reply(message, self.like, self._episodes, self.weights[region])

    def _name_diverged(self, region: int, reply: Reply) -> None:
        for index in np.flatnonzero(~reply.finite).tolist():
            if (region, index) not in self.diverged:
                self.diverged.add((region, index))
                self.say(
                    f"region {region}: seed {self.seeds[index]} has diverged (not all of its "
                    "numbers are finite): left out of the average"
                )


class _Nodes:
    """As much of Flower's network as a strategy needs in order to choose nodes."""

    def __init__(self, nodes: dict[int, int]) -> None:
        self.nodes = nodes

    def get_node_ids(self) -> list[int]:
        """Those that have a region."""
        return list(self.nodes.values())


class RegionMean(ReplyValidator, flower.FedAvg):
    """Flower's FedAvg with the mean of the fused loop, so that both give the same bits."""

    def combine(
        self,
        server_round: int,  # noqa: ARG002
        replies: Sequence[Reply],
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """The weighted mean, region by region."""
        weights = [reply.weight for reply in replies]
        return to_arrays(mean_payload([reply.payload for reply in replies], weights)), None


class RegionProx(RegionMean, flower.FedProx):
    """Flower's FedProx: the same mean, of agents that are pulled towards the last one."""


def make_strategy(name: str, configuration: Configuration) -> Any:
    """One of Flower's strategies by name, made safe; the federation sets its other attributes."""
    if name not in STRATEGIES:
        raise unknown("strategy", name, list(STRATEGIES))
    own = {"FedAvg": RegionMean, "FedProx": RegionProx}
    kind = own.get(name) or type(name, (ReplyValidator, getattr(flower, name)), {})
    options: dict[str, Any] = {
        "fraction_evaluate": 0.0,
        "min_train_nodes": 1,
        "min_available_nodes": 1,
        "train_metrics_aggr_fn": _no_metrics,
    }
    if name == "FedProx":
        options["proximal_mu"] = pull = configuration.make_algorithm().schedule.proximal
        if not pull:
            raise InputError("FedProx needs a preset with the hyperparameter proximal above 0")
    if name == "FedAvgM":
        options["server_momentum"] = MOMENTUM
    if name == "Bulyan" and configuration.agents < BULYAN_REPLIES:
        raise InputError(f"Bulyan needs {BULYAN_REPLIES} agents, not {configuration.agents}")
    strategy = kind(**options)
    strategy.seeds = configuration.seeds
    strategy.diverged, strategy.foreign = set(), set()
    strategy.weights = configuration.make_sharing().weights or (1.0,) * configuration.agents
    return strategy


def _single_precision(arrays: ArrayRecord) -> ArrayRecord:
    """Some of Flower's strategies return double precision."""
    if all(array.dtype == "float32" for array in arrays.values()):
        return arrays
    return ArrayRecord({n: Array(np.asarray(a.numpy(), np.float32)) for n, a in arrays.items()})


def _no_metrics(_: list[RecordDict], __: str) -> MetricRecord:
    """The server keeps the numbers of every region; their mean is meaningless."""
    return MetricRecord()
