"""Who is let in: nodes, and the regions that they say or prove they have."""

import pytest

from fedrain.errors import InputError
from fedrain.flower.local import LocalNetwork
from fedrain.flower.roster import Roster


def roster(claims, agents=3):
    """Of nodes whose keys tell their regions, and what is said."""
    said = []
    return Roster(agents, said.append, lambda: claims), said


class Connected(LocalNetwork):
    """Of which no more than the nodes is asked."""

    def __init__(self, *nodes):
        self.nodes = list(nodes)

    def get_node_ids(self):
        return self.nodes


def test_who_is_let_in():
    """One node for each region of the experiment; who else comes is refused, and told of once."""
    claims = {11: 0, 12: 2, 13: 0, 14: 3, 15: -1}
    found, said = roster(claims)
    for _ in range(2):
        assert found.refresh(Connected(15, 14, 13, 12, 11, 16)) == {0: 11, 2: 12}
    assert said == [
        "node 13 claims region 0, which node 11 already has: refused",
        *(f"node {node} has no region of this experiment: refused" for node in (14, 15, 16)),
    ]


def test_a_region_whose_node_has_gone_can_be_taken_over():
    found, said = roster({11: 0, 12: 1, 13: 0})
    assert found.refresh(Connected(11, 12)) == {0: 11, 1: 12}
    assert found.refresh(Connected(12, 13)) == {1: 12, 0: 13}
    assert said == ["region 0: its node is no longer connected"]


def test_the_wanted_are_waited_for_and_the_least_are_enough():
    found, _ = roster({11: 0, 12: 2})
    assert found.gather(Connected(11, 12), 60.0, 2, 2) == {0: 11, 2: 12}
    assert found.gather(Connected(11, 12), 0.0, 3, 2) == {0: 11, 2: 12}
    with pytest.raises(InputError, match="no node for region 1 within 0 s"):
        found.gather(Connected(11, 12), 0.0, 3, 3)
