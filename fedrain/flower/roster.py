"""Which node has which region, as nodes come and go."""

import time
from collections.abc import Callable, Iterable

from flwr.app import Message, MessageType, RecordDict
from flwr.serverapp import Grid as FlowerGrid

from fedrain.errors import InputError
from fedrain.experiment.folder import Say
from fedrain.flower.messages import claimed_region

POLL_SECONDS = 0.5
ANSWER_SECONDS = 60.0


class Roster:
    """The nodes of a federation.

    ``keys`` tells which region the key of a registered node is for; nodes without keys are asked.
    """

    def __init__(
        self, agents: int, say: Say, keys: Callable[[], dict[int, int]] | None = None
    ) -> None:
        self.agents, self.say, self.keys = agents, say, keys
        self.nodes: dict[int, int] = {}  # region → node
        self._claims: dict[int, int | None] = {}  # node → region, as the nodes say
        self._refused: set[tuple[int, str]] = set()

    def gather(
        self, network: FlowerGrid, wait_seconds: float, wanted: int, least: int
    ) -> dict[int, int]:
        """Wait for the wanted number of nodes, then accept the least; the nodes by region."""
        end = time.monotonic() + wait_seconds
        while True:
            nodes = self.refresh(network)
            late = time.monotonic() > end
            if len(nodes) >= (least if late else wanted):
                return nodes
            if late:
                listed = ", ".join(str(r) for r in range(self.agents) if r not in nodes)
                raise InputError(f"no node for region {listed} within {wait_seconds:g} s")
            time.sleep(POLL_SECONDS)

    def refresh(self, network: FlowerGrid) -> dict[int, int]:
        """The nodes that are connected now, by region."""
        online = set(network.get_node_ids())
        if self.keys is not None:
            self._claims.update(self.keys())
        else:
            self._ask(network, sorted(online - self._claims.keys()))
        for gone in [region for region, node in self.nodes.items() if node not in online]:
            self.say(f"region {gone}: its node is no longer connected")
            del self.nodes[gone]
        for node in sorted(online - set(self.nodes.values())):
            region = self._claims.get(node)
            if region is None or not 0 <= region < self.agents:
                self._refuse(node, "has no region of this experiment")
            elif region in self.nodes:
                self._refuse(
                    node, f"claims region {region}, which node {self.nodes[region]} already has"
                )
            else:
                self.nodes[region] = node
        return dict(self.nodes)

    def _ask(self, network: FlowerGrid, new: Iterable[int]) -> None:
        questions = [
            Message(content=RecordDict(), message_type=MessageType.QUERY, dst_node_id=node)
            for node in new
        ]
        if not questions:
            return
        for reply in network.send_and_receive(questions, timeout=ANSWER_SECONDS):
            if not reply.has_error():
                self._claims[reply.metadata.src_node_id] = claimed_region(reply)

    def _refuse(self, node: int, why: str) -> None:
        if (node, why) not in self._refused:
            self._refused.add((node, why))
            self.say(f"node {node} {why}: refused")
