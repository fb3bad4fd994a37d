"""Flower's strategies, made safe: a region that sends nonsense is named and left out.

Replies are sorted by region, because a sum of floating-point numbers depends on its order.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

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

Say = Callable[[str], None]

#: Flower's strategies that may stand in for the plain mean.
STRATEGIES = (
    "FedAvg", "FedAvgM", "FedAdam", "FedAdagrad", "FedYogi", "FedMedian", "FedTrimmedAvg",
    "Krum", "MultiKrum", "Bulyan",
)  # fmt: skip
#: A step this many times longer than the others', or than the weights themselves, is refused.
FAR = 100.0


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
        record = RecordDict({ARRAYS: arrays, CONFIG: self.plan(server_round)})
        return [
            Message(content=record, message_type=MessageType.TRAIN, dst_node_id=node)
            for _, node in sorted(self.nodes.items())
        ]

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Aggregate what is sound."""
        sound = sorted(self._check(list(replies)).items())
        # Some strategies take a reply apart as they read it.
        learnt = {
            region: (
                from_arrays(message.content.array_records[ARRAYS], self.like, f"region {region}"),
                read_metrics(message.content),
            )
            for region, message in sound
        }
        arrays, metrics = None, None
        if sound:
            combined, metrics = self.combine(server_round, [message for _, message in sound])
            arrays = None if combined is None else _single_precision(combined)
        self.done(learnt, arrays)
        return arrays, metrics

    def combine(
        self, server_round: int, replies: Sequence[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Aggregate sound replies, in the order of the regions."""
        return super().aggregate_train(server_round, replies)  # type: ignore[misc]

    def _check(self, replies: list[Message]) -> dict[int, Message]:
        regions = {node: region for region, node in self.nodes.items()}
        sound: dict[int, Message] = {}
        for message in replies:
            node = message.metadata.src_node_id
            region = regions.get(node)
            if region is None:
                self.say(f"node {node} has no region here: its reply is refused")
            elif message.has_error():
                self.say(f"region {region} failed: {message.error.reason}")
            elif region_of(message) != region:
                self.say(f"region {region}: its reply is of another region, and refused")
            elif region in sound:
                self.say(f"region {region}: a second reply in one round is refused")
            elif (problem := self._problem(message, region)) is not None:
                self.say(f"region {region}: its update is refused: {problem}")
            else:
                sound[region] = message
        steps = {region: self._step(message) for region, message in sound.items()}
        size = _size(self._sent)
        for region, step in steps.items():
            others = [s for other, s in steps.items() if other != region]
            if others and step > FAR * max(float(np.median(others)), size):
                self.say(f"region {region}: its update is refused: far outside the others")
                del sound[region]
        return sound

    def _problem(self, message: Message, region: int) -> str | None:
        try:
            weight = message.content.metric_records[METRICS][WEIGHT]
            from_arrays(message.content.array_records[ARRAYS], self.like, f"region {region}")
        except (KeyError, ValueError, InputError) as error:
            return f"it does not fit ({error})"
        arrays = message.content.array_records[ARRAYS].values()
        if not all(np.isfinite(array.numpy()).all() for array in arrays):
            return "a number in it is not finite"
        if not isinstance(weight, float) or not 0 <= weight < np.inf:
            return "it has no proper weight"
        return None

    def _step(self, message: Message) -> float:
        arrays = message.content.array_records[ARRAYS]
        return _size({n: array.numpy() - self._sent[n] for n, array in arrays.items()})


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
        replies: Sequence[Message],
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """The weighted mean, region by region."""
        payloads = [
            from_arrays(m.content.array_records[ARRAYS], self.like, "a region") for m in replies
        ]
        weights = [float(m.content.metric_records[METRICS][WEIGHT]) for m in replies]  # type: ignore[arg-type]
        return to_arrays(mean_payload(payloads, weights)), None


def make_strategy(name: str) -> Any:
    """A strategy of Flower's by its name, made safe; its attributes are still to be set."""
    if name not in STRATEGIES:
        raise unknown("strategy", name, list(STRATEGIES))
    kind = RegionMean if name == "FedAvg" else type(name, (Guard, getattr(flower, name)), {})
    options: dict[str, Any] = {
        "fraction_evaluate": 0.0,
        "min_train_nodes": 1,
        "min_available_nodes": 1,
        "train_metrics_aggr_fn": _no_metrics,
    }
    return kind(**options)


def _single_precision(arrays: ArrayRecord) -> ArrayRecord:
    return ArrayRecord({n: Array(np.asarray(a.numpy(), np.float32)) for n, a in arrays.items()})


def _no_metrics(_: list[RecordDict], __: str) -> MetricRecord:
    """The server keeps the numbers of every region; their mean has no meaning."""
    return MetricRecord()


def _size(arrays: dict[str, np.ndarray]) -> float:
    total = sum(float((np.asarray(a, float) ** 2).sum()) for a in arrays.values())
    return float(np.sqrt(total / sum(a.size for a in arrays.values())))
