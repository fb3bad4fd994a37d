"""Flower's strategies, made safe: a region that sends nonsense is named and left out.

Replies are sorted by region, because a sum of floating-point numbers depends on its order.
"""

from collections.abc import Callable, Iterable, Sequence
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
from flwr.serverapp import Grid
from flwr.serverapp import strategy as flower

from fedrain.agents.presets import unknown
from fedrain.errors import InputError
from fedrain.experiment.configuration import Configuration
from fedrain.experiment.storage import flatten
from fedrain.experiment.training import Say
from fedrain.federation.flower.payload import Payload, mean_payload
from fedrain.federation.flower.records import (
    ARRAYS,
    CONFIG,
    METRICS,
    WEIGHT,
    from_arrays,
    read_metrics,
    region_of,
    to_arrays,
)

#: Flower's strategies that may stand in for the plain mean.
STRATEGIES = (
    "FedAvg", "FedAvgM", "FedProx", "FedAdam", "FedAdagrad", "FedYogi", "FedMedian",
    "FedTrimmedAvg", "Krum", "MultiKrum", "Bulyan",
)  # fmt: skip
#: A step this many times longer than the others', or than the weights themselves, is refused.
FAR = 100.0


class Reply(NamedTuple):
    """A reply that can be used."""

    message: Message
    payload: Payload
    weight: float


class Guard:
    """What every strategy here does before it aggregates: check, name, sort."""

    nodes: dict[int, int]  # region → node, of this round
    gather: Callable[[Grid], dict[int, int]]  # those that are there
    like: Payload
    say: Say
    plan: Callable[[int], ConfigRecord]  # what a round is to do
    done: Callable[[dict[int, tuple[Payload, dict[str, np.ndarray]]], ArrayRecord | None], None]

    def configure_train(
        self,
        server_round: int,
        arrays: ArrayRecord,
        config: ConfigRecord,
        grid: Grid,
    ) -> Iterable[Message]:
        """A message to the node of every region that is there."""
        self.nodes = self.gather(grid)
        self._sent = {name: array.numpy() for name, array in arrays.items()}
        # Flower's optimisers note what they step from; whom they would ask is for us to say.
        super().configure_train(server_round, arrays, config, _Nodes(self.nodes))  # type: ignore[misc]
        plan = self.plan(server_round)
        self._episodes = int(str(plan["episodes"]))
        record = RecordDict({ARRAYS: arrays, CONFIG: plan})
        self._messages = {
            region: Message(content=record, message_type=MessageType.TRAIN, dst_node_id=node)
            for region, node in sorted(self.nodes.items())
        }
        return list(self._messages.values())

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Aggregate what is sound."""
        sound = dict(sorted(self._check(list(replies)).items()))
        # Some strategies take a reply apart as they read it.
        learnt = {
            region: (reply.payload, read_metrics(reply.message.content))
            for region, reply in sound.items()
        }
        arrays, metrics = None, None
        if sound:
            combined, metrics = self.combine(server_round, list(sound.values()))
            arrays = None if combined is None else _single_precision(combined)
        self.done(learnt, arrays)
        return arrays, metrics

    def combine(
        self, server_round: int, replies: Sequence[Reply]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Aggregate sound replies, in the order of the regions."""
        return super().aggregate_train(server_round, [reply.message for reply in replies])  # type: ignore[misc]

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
                self.say(f"node {node} has no region here: its reply is refused")
                continue
            silent.discard(region)
            if message.has_error():
                self.say(f"region {region} failed: {message.error.reason}")
            elif regions.get(node) != region or region_of(message) != region:
                self.say(f"region {region}: its reply is of another region, and refused")
            elif region in sound:
                self.say(f"region {region}: a second reply in one round is refused")
            elif isinstance(reply := self._read(message), str):
                self.say(f"region {region}: its update is refused: {reply}")
            else:
                sound[region] = reply
        for region in sorted(silent):
            self.say(f"region {region} did not answer: the round goes on without it")
        steps = {region: self._step(reply.payload) for region, reply in sound.items()}
        size = _size(self._sent)
        for region, step in steps.items():
            others = [s for other, s in steps.items() if other != region]
            if others and step > FAR * max(float(np.median(others)), size):
                self.say(f"region {region}: its update is refused: far outside the others")
                del sound[region]
        return sound

    def _read(self, message: Message) -> Reply | str:
        """A reply, or what is wrong with it."""
        try:
            weight = message.content.metric_records[METRICS][WEIGHT]
            payload = from_arrays(message.content.array_records[ARRAYS], self.like, "the reply")
            metrics = read_metrics(message.content)
        except (KeyError, ValueError, TypeError, InputError) as error:
            return f"it does not fit ({error})"
        leaves = jax.tree.leaves(payload)
        if not all(np.isfinite(leaf).all() for leaf in leaves):
            return "a number in it is not finite"
        expected = {(self._episodes,), (self._episodes, len(leaves[0]))}
        if {values.shape for values in metrics.values()} != expected:
            return "it tells of other episodes than those of the round"
        if not isinstance(weight, float) or not 0 <= weight < np.inf:
            return "it has no proper weight"
        return Reply(message, payload, weight)

    def _step(self, payload: Payload) -> float:
        return _size({n: leaf - self._sent[n] for n, leaf in flatten(payload).items()})


class _Nodes:
    """As much of a grid as a strategy needs in order to choose nodes."""

    def __init__(self, nodes: dict[int, int]) -> None:
        self.nodes = nodes

    def get_node_ids(self) -> list[int]:
        """Those that have a region."""
        return list(self.nodes.values())


class RegionMean(Guard, flower.FedAvg):
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
    """A strategy of Flower's by its name, made safe; its attributes are still to be set."""
    if name not in STRATEGIES:
        raise unknown("strategy", name, list(STRATEGIES))
    own = {"FedAvg": RegionMean, "FedProx": RegionProx}
    kind = own.get(name) or type(name, (Guard, getattr(flower, name)), {})
    options: dict[str, Any] = {
        "fraction_evaluate": 0.0,
        "min_train_nodes": 1,
        "min_available_nodes": 1,
        "train_metrics_aggr_fn": _no_metrics,
    }
    if name == "FedProx":
        options["proximal_mu"] = pull = configuration.make_algorithm().proximal
        if not pull:
            raise InputError("FedProx needs a preset with the hyperparameter proximal above 0")
    return kind(**options)


def _single_precision(arrays: ArrayRecord) -> ArrayRecord:
    """What some of Flower's strategies make double."""
    if all(array.dtype == "float32" for array in arrays.values()):
        return arrays
    return ArrayRecord({n: Array(np.asarray(a.numpy(), np.float32)) for n, a in arrays.items()})


def _no_metrics(_: list[RecordDict], __: str) -> MetricRecord:
    """The server keeps the numbers of every region; their mean has no meaning."""
    return MetricRecord()


def _size(arrays: dict[str, np.ndarray]) -> float:
    total = sum(float(np.linalg.norm(a)) ** 2 for a in arrays.values())
    return float(np.sqrt(total / sum(a.size for a in arrays.values())))
