"""One sentence says why Metadata and DescribeQuorum differ, or that there is no quorum."""

from collections.abc import Sequence

import pytest

from controller.metadata.apply import apply
from controller.metadata.image import MetadataImage
from quorum.core.types import OffsetAndEpoch
from quorumlab.inspection.states import Replay
from quorumlab.top.two_views import two_views
from tests.quorumlab.inspection.logs import broker
from wire.messages.metadata import MetadataResponse, MetadataResponseBroker
from wire.messages.voters import QuorumPartitionResult, QuorumReplica
from wire.zk.designs import ZK_V1, ZK_V3

METADATA = MetadataResponse(
    brokers=(MetadataResponseBroker(node_id=2, host="b", port=2),), controller_id=2
)


def metadata(*brokers: int, controller: int) -> MetadataResponse:
    known = tuple(MetadataResponseBroker(node_id=each, host="h", port=1) for each in brokers)
    return MetadataResponse(brokers=known, controller_id=controller)


def quorum(
    leader: int, voters: Sequence[int], observers: Sequence[int], silent_ms: int = -1
) -> QuorumPartitionResult:
    """`silent_ms`: since observers have fetched, if it is known."""
    now = -1 if silent_ms < 0 else 90_000

    def replicas(ids: Sequence[int]) -> tuple[QuorumReplica, ...]:
        fetched = {each: now if each in voters else now - max(0, silent_ms) for each in ids}
        return tuple(
            QuorumReplica(replica_id=each, last_fetch_timestamp=fetched[each]) for each in ids
        )

    return QuorumPartitionResult(
        partition_index=0,
        leader_id=leader,
        leader_epoch=3,
        current_voters=replicas(voters),
        observers=replicas(observers),
    )


def fenced(*brokers: int) -> Replay:
    registered = [broker(each, fenced=True) for each in brokers]
    return Replay(image=apply(MetadataImage(), registered, OffsetAndEpoch(9, 1)))


@pytest.mark.parametrize(
    ("told", "described", "state", "words"),
    [
        (None, None, None, "Neither was answered"),
        (None, quorum(101, [101], [1]), None, "no broker was reached"),
        (metadata(1, controller=1), None, None, "DescribeQuorum was not answered"),
        (metadata(1, 2, controller=1), quorum(101, [101], [1, 2]), None, "names broker 1 as the"),
        (metadata(1, 2, controller=1), quorum(1, [1, 2], []), fenced(), "Both say the same."),
        (metadata(1, controller=1), quorum(1, [1], [2]), fenced(2), "leaves out fenced broker 2"),
        (metadata(1, controller=1), quorum(1, [1], [2]), fenced(2), "broker 2 is still in touch"),
        (metadata(1, controller=1), quorum(1, [1], [2], 500), fenced(2), "2 is still in touch"),
        (metadata(1, controller=1), quorum(1, [1], [2], 9000), fenced(2), "lists broker 2 for min"),
        (metadata(1, controller=1), quorum(1, [1], []), fenced(2, 3), "fenced brokers 2, 3."),
        (metadata(1, 2, controller=1), quorum(1, [1], [2], 9000), None, "does not see broker 2 f"),
        (metadata(1, 2, controller=1), quorum(1, [1], []), None, "does not see broker 2"),
    ],
)
def test_sentence(
    told: MetadataResponse | None,
    described: QuorumPartitionResult | None,
    state: Replay | None,
    words: str,
) -> None:
    found = two_views(told, described, state)
    assert words in found.why
    assert found.why[0].isupper()
    assert found.why.count(".") == 1


def test_controller_of_a_zookeeper_design_is_a_broker() -> None:
    views = two_views(METADATA, None, None, design=ZK_V3, active=1)
    assert (views.metadata_brokers, views.metadata_controller) == ([2], 2)
    assert (views.quorum_leader, views.voters, views.observers) == (None, None, None)
    assert "its controller is broker 1, and Metadata may name any broker" in views.why


def test_design_without_a_controller_says_who_elects() -> None:
    assert "and no controller" in two_views(METADATA, None, None, design=ZK_V1).why


def test_controller_that_nobody_claims_to_be_is_not_guessed() -> None:
    assert "none says now that it is" in two_views(METADATA, None, None, design=ZK_V3).why
