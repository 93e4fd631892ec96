"""Who speaks for which node."""

import pytest

from controller.authorization.identities import CLAIMS, Identities
from controller.refusals import REFUSALS
from quorumlab.listed_principals import node_principals, super_users
from tests.controller.clusters import heartbeat, registration
from wire.messages.fetching import FetchRequest, ReplicaState
from wire.messages.quorum_epochs import VotePartition, VoteRequest, VoteTopic
from wire.security.principals import Principal
from wire.zk.control_rpc import StopReplicaRequest

ONE, TWO, NOBODY = (Principal("User", name) for name in ("CN=one,O=lab", "CN=two,O=lab", "bob"))
BOUND = Identities(node_principals("1=User:CN=one,O=lab; 2=User:CN=two,O=lab;2=User:spare;"))


def fetch(replica_id: int) -> FetchRequest:
    state = ReplicaState(replica_id=replica_id)
    return FetchRequest(max_wait_ms=0, topics=(), replica_state=state)


def vote(candidate: int) -> VoteRequest:
    partition = VotePartition(
        partition_index=0, replica_epoch=1, replica_id=candidate, last_offset_epoch=0, last_offset=0
    )
    return VoteRequest(
        topics=(VoteTopic(topic_name="__cluster_metadata", partitions=(partition,)),)
    )


@pytest.mark.parametrize(
    ("principal", "node_id", "is_own"),
    [
        (ONE, 1, True),
        (TWO, 1, False),
        (NOBODY, 1, False),
        (Principal("User", "spare"), 2, True),
        (ONE, 3, False),  # it is node 1 and no other
        (NOBODY, 3, True),  # neither is bound
    ],
)
def test_node_is_spoken_for_by_its_own(principal: Principal, node_id: int, is_own: bool) -> None:
    bodies = (registration(node_id), heartbeat(node_id, 0, 0), fetch(node_id), vote(node_id))
    for body in bodies:
        assert BOUND.are_own(principal, body) is is_own
        assert Identities({}).are_own(principal, body)


@pytest.mark.parametrize("node_id", [-1, 2, 3, 99])
def test_commands_come_from_bound_nodes_alone(node_id: int) -> None:
    for principal in (NOBODY, ONE):
        assert not BOUND.are_own(principal, StopReplicaRequest(client_id=node_id, ack_timeout_ms=0))
    assert BOUND.are_own(ONE, StopReplicaRequest(client_id=1, ack_timeout_ms=0))


def test_who_claims_another_node_can_be_refused() -> None:
    assert CLAIMS.keys() <= REFUSALS.keys()


def test_consumer_claims_to_be_no_node() -> None:
    assert BOUND.are_own(ONE, fetch(-1))


@pytest.mark.parametrize("text", ["1", "User:a", "1=alice", "one=User:a", "=User:a"])
def test_bad_list_of_nodes_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        node_principals(text)


def test_names_of_certificates_have_commas() -> None:
    named = super_users(" User:admin ;User:CN=a,OU=b;;")
    assert named == {"User:admin", "User:CN=a,OU=b"}
    with pytest.raises(ValueError, match="TYPE:NAME"):
        super_users("admin")
