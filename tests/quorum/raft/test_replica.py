"""What a replica knows of itself and of others, whatever its role."""

from uuid import UUID

import pytest

from quorum.core.types import Endpoint, ReplicaKey
from quorum.raft.voter_history import record_of
from quorum.raft.voters import VoterSet
from tests.quorum.builders import replica
from tests.quorum.replicas import dynamic_voter, endpoint, listeners
from wire.control_records import KRaftVersion


def test_leader_is_asked_for_at_bootstrap_servers_and_other_voters() -> None:
    assert replica().discovery_servers == (endpoint(2), endpoint(3))
    server = Endpoint(-2, "somewhere", 1)
    node = replica(bootstrap_servers=(server,))
    assert node.discovery_servers == (server, endpoint(2), endpoint(3))


def test_voter_is_where_the_voters_say_and_anybody_else_where_it_says_itself() -> None:
    assert replica(listeners=listeners(7)).endpoint == endpoint(1)
    own = Endpoint(1, endpoint(7).host, endpoint(7).port)
    assert replica((2, 3), listeners=listeners(7)).endpoint == own
    assert replica((2, 3)).endpoint is None


def test_node_that_does_not_sync_is_no_voter_whatever_is_said_of_it() -> None:
    node = replica((2, 3), syncs=False)
    assert not node.is_voter
    assert replica((1,)).is_sole_voter
    assert not replica((1, 2)).is_sole_voter


@pytest.mark.parametrize("syncs", [True, False])
def test_voter_may_campaign_until_its_removal_is_committed(*, syncs: bool) -> None:
    """A replica that does not sync was none, even where the voters' record names it."""
    node = replica((2, 3), syncs=syncs)
    voters = VoterSet.of(map(dynamic_voter, (1, 2, 3)))
    node.history.observe(
        [
            (7, KRaftVersion(kraft_version=1)),
            (8, record_of(voters)),
            (9, record_of(voters.without(1))),
        ]
    )
    node.voters_changed()
    assert not node.is_voter
    for committed_offset, may_campaign in ((9, syncs), (10, False)):
        node.log.advance_high_watermark(committed_offset)
        assert node.may_campaign is may_campaign


def test_key_with_a_directory_names_that_disk_and_one_without_any() -> None:
    disk, other = ReplicaKey(1, UUID(int=1)), ReplicaKey(1, UUID(int=2))
    assert ReplicaKey(1).matches(disk)
    assert disk.matches(disk)
    assert not disk.matches(other)
    assert not disk.matches(ReplicaKey(1)), "who does not say may have another"
    assert not ReplicaKey(2).matches(disk)
