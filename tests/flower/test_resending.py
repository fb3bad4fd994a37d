"""What Flower loses on its way, it is asked for again."""

from types import SimpleNamespace

import pytest
from flwr.app import ConfigRecord, Error, Message, RecordDict

from fedrain.flower import internals
from fedrain.flower.internals import RESEND_SECONDS, PromptNetwork


class Clock:
    """Time that passes when somebody sleeps."""

    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


class Network(PromptNetwork):
    """A SuperLink that answers a node's messages after so many of them were lost."""

    def __init__(self, clock, lost, takes=0.0):
        self.clock, self.lost, self.takes = clock, dict(lost), takes
        self.pushed, self.replies = [], []

    def push_messages(self, messages):
        names = []
        for message in messages:
            node = message.metadata.dst_node_id
            name = f"{node}-{sum(m.metadata.dst_node_id == node for _, m in self.pushed)}"
            message.metadata.__dict__["_message_id"] = name
            self.pushed.append((self.clock.now, message))
            names.append(name)
            self.lost[node] = self.lost.get(node, 0) - 1
            if self.lost[node] < 0:
                reply = Message(Error(code=0, reason="answered"), reply_to=message)
                self.replies.append((self.clock.now + self.takes, reply))
        return names

    def pull_messages(self, names):
        ready = [(at, r) for at, r in self.replies if at <= self.clock.now]
        found = [pair for pair in ready if pair[1].metadata.reply_to_message_id in names]
        self.replies = [pair for pair in self.replies if not any(pair is one for one in found)]
        return [reply for _, reply in found]


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    for name in ("task", "run", "node"):
        monkeypatch.setattr(internals.TaskIdentity, f"_{name}_id", 1)
    monkeypatch.setattr(
        internals, "time", SimpleNamespace(monotonic=made.monotonic, sleep=made.sleep)
    )
    return made


def messages(*nodes):
    content = RecordDict({"config": ConfigRecord({"first-episode": 3})})
    return [Message(content=content, message_type="train", dst_node_id=node) for node in nodes]


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_a_message_that_was_lost_is_sent_again(clock, lost):
    """After 10 s, then twice as long; the reply is to what was sent first, and there is one."""
    network = Network(clock, {7: lost})
    replies = network.send_and_receive(messages(6, 7))
    times = [round(at) for at, message in network.pushed if message.metadata.dst_node_id == 7]
    assert times == [0, RESEND_SECONDS, 3 * RESEND_SECONDS][: lost + 1]
    assert sum(message.metadata.dst_node_id == 6 for _, message in network.pushed) == 1
    assert [reply.metadata.reply_to_message_id for reply in replies] == ["6-0", "7-0"]
    first, *copies = (m for _, m in network.pushed if m.metadata.dst_node_id == 7)
    for copy in copies:
        assert copy.metadata.message_id != first.metadata.message_id
        assert copy.metadata.message_type == "train"
        assert copy.content["config"]["first-episode"] == 3


def test_whoever_takes_long_is_not_asked_without_end(clock):
    """A round of an hour: eight copies, and the first reply is taken."""
    network = Network(clock, {}, takes=3600.0)
    replies = network.send_and_receive(messages(7))
    assert len(replies) == 1
    assert clock.now == pytest.approx(3600, abs=1)
    assert len(network.pushed) == 9  # at 0, 10, 30, 70, 150, 310, 630, 1270 and 2550 s


def test_it_ends_in_time(clock):
    network = Network(clock, {7: 99})
    assert network.send_and_receive(messages(7), timeout=60.0) == []
    assert clock.now == pytest.approx(60, abs=1)
