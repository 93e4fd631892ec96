"""What the simulator does to the processes of a cluster, as a real one would do it to itself."""

from random import Random

import pytest

from controller.controller import Controller
from jepsen_like.sim.assemblies.cluster.nodes import ClusterNode
from quorum.core.effects import Append, Reply, Request
from quorum.core.turn import Turn
from quorum.node.member import Member
from quorum.raft.raft_node import RaftNode
from tests.controller.clusters import registration
from tests.controller.test_controller import config
from tests.quorum.replicas import Replicas


@pytest.mark.parametrize("voters", [(1,), (1, 2, 3)])
def test_what_was_decided_in_a_turn_is_written_before_the_leader_resigns_in_it(
    voters: tuple[int, ...],
) -> None:
    """And what comes after it is refused. Found by cluster seeds 5021 and 116501017."""
    nodes: dict[int, ClusterNode] = {}

    def build(raft: RaftNode) -> Member:
        controller = Controller(config(raft.node_id), raft, Random(raft.node_id), 0)
        member = Member(raft, {"controller": controller})
        nodes[raft.node_id] = ClusterNode(raft=raft, member=member, controller=controller)
        return member

    cluster = Replicas(voters, build=build)
    node = nodes[cluster.elect().node_id]
    cluster.run(300)
    epoch, end_offset = node.leader.epoch, node.end_offset
    turn = Turn[str]()
    turn.add_request(Request(token=1, body=registration(7), listener="CONTROLLER"), "broker")
    turn.add(node.resign)
    turn.add_request(Request(token=2, body=registration(8), listener="CONTROLLER"), "broker")
    effects = turn.take(node.member, cluster.now_ms)
    refused = {each.token for each in turn.leaving([]) if isinstance(each, Reply)}
    assert any(isinstance(effect, Append) for effect in effects)
    assert node.raft.replica.log.epochs.epoch_at(end_offset) == epoch
    assert node.controller is not None
    assert not node.controller.is_active
    assert refused >= {1, 2}
    assert node.end_offset == end_offset + 1
