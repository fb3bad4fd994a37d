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
from fedrain.experiment.configuration import Configuration
from fedrain.experiment.training import Say
from fedrain.flower.payload import Payload, mean_payload
from fedrain.flower.records import ARRAYS, CONFIG, from_arrays, region_of, to_arrays
from fedrain.flower.replies import Reply, mend, read_reply, rewrite, size, step_length
from fedrain.io import flatten

#: Flower's strategies that may stand in for the plain mean.
STRATEGIES = (
    "FedAvg", "FedAvgM", "FedProx", "FedAdam", "FedAdagrad", "FedYogi", "FedMedian",
    "FedTrimmedAvg", "Krum", "MultiKrum", "Bulyan",
)  # fmt: skip
#: Where FedAdam, FedAdagrad, FedYogi and FedAvgM keep what they remember.
MOMENTS = ("m_t", "v_t", "momentum_vector")
MOMENTUM = 0.9  # of FedAvgM (Hsu et al. 2019)
BULYAN_REPLIES = 3  # Flower takes no mean of fewer
#: A step this many times longer than the others', or than the weights themselves, is refused.
FAR = 100.0


class Guard:
    """What every strategy here does before it aggregates: check, name, sort."""

    nodes: dict[int, int]  # region → node, of this round
    gather: Callable[[Grid], dict[int, int]]  # those that are there
    like: Payload
    seeds: Sequence[int]
    weights: Sequence[float]  # of the regions, in the average
    say: Say
    plan: Callable[[int], ConfigRecord]  # what a round is to do
    done: Callable[[dict[int, tuple[Payload, dict[str, np.ndarray]]], ArrayRecord | None], None]
    broken: set[tuple[int, int]]  # regions and the seeds that have broken there
    rounds_before: int  # played before this process began

    def configure_train(
        self,
        server_round: int,
        arrays: ArrayRecord,
        config: ConfigRecord,
        grid: Grid,
    ) -> Iterable[Message]:
        """A message to the node of every region that is there."""
        self.nodes = self.gather(grid)
        self._sent = from_arrays(arrays, self.like, "the server")
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
        learnt = {region: (reply.payload, reply.metrics) for region, reply in sound.items()}
        arrays, metrics = None, None
        if any(reply.weight for reply in sound.values()):
            mended = mend(list(sound.values()), self._sent)
            combined, metrics = self.combine(self.rounds_before + server_round, mended)
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
        """Go on with what was kept."""
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
                self.say(f"node {node} has no region here: its reply is refused")
                continue
            silent.discard(region)
            if message.has_error():
                self.say(f"region {region} failed: {message.error.reason}")
            elif regions.get(node) != region or region_of(message) != region:
                self.say(f"region {region}: its reply is of another region, and refused")
            elif region in sound:
                self.say(f"region {region}: a second reply in one round is refused")
            elif isinstance(reply := self._read(region, message), str):
                self.say(f"region {region}: its update is refused: {reply}")
            else:
                sound[region] = reply
        for region in sorted(silent):
            self.say(f"region {region} did not answer: the round goes on without it")
        steps = {region: step_length(reply, self._sent) for region, reply in sound.items()}
        weights = size(self._sent)
        for region, step in steps.items():
            others = [s for other, s in steps.items() if other != region]
            if others and step > FAR * max(float(np.median(others)), weights):
                self.say(f"region {region}: its update is refused: far outside the others")
                del sound[region]
            else:
                self._name_broken(region, sound[region])
        return sound

    def _read(self, region: int, message: Message) -> Reply | str:
        return read_reply(message, self.like, self._episodes, self.weights[region])

    def _name_broken(self, region: int, reply: Reply) -> None:
        for index in np.flatnonzero(~reply.whole).tolist():
            if (region, index) not in self.broken:
                self.broken.add((region, index))
                self.say(
                    f"region {region}: seed {self.seeds[index]} has a number that is not finite: "
                    "left out of its average"
                )


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
    if name == "FedAvgM":
        options["server_momentum"] = MOMENTUM
    if name == "Bulyan" and configuration.agents < BULYAN_REPLIES:
        raise InputError(f"Bulyan needs {BULYAN_REPLIES} agents, not {configuration.agents}")
    strategy = kind(**options)
    strategy.seeds = configuration.seeds
    strategy.broken = set()
    strategy.weights = configuration.make_sharing().weights or (1.0,) * configuration.agents
    return strategy


def _single_precision(arrays: ArrayRecord) -> ArrayRecord:
    """What some of Flower's strategies make double."""
    if all(array.dtype == "float32" for array in arrays.values()):
        return arrays
    return ArrayRecord({n: Array(np.asarray(a.numpy(), np.float32)) for n, a in arrays.items()})


def _no_metrics(_: list[RecordDict], __: str) -> MetricRecord:
    """The server keeps the numbers of every region; their mean has no meaning."""
    return MetricRecord()
