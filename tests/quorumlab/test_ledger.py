"""The ledger's names and sums."""

from quorum.core.inbox import Inbox
from quorum.core.storage import SyncCounts
from quorum.node.driver_counts import DriverCounts
from quorumlab.pages import rpc_counts
from wire.api_table import api_of
from wire.framing import LENGTH_BYTES
from wire.messages.fetching import FetchRequest
from wire.messages.quorum_epochs import VoteRequest

FETCH, VOTE = api_of(FetchRequest), api_of(VoteRequest)


def test_requests_and_bytes_are_told_by_api() -> None:
    counts = DriverCounts(SyncCounts(), Inbox())
    for _ in range(3):
        counts.asked(FETCH.name)
    counts.of(VOTE.name).received += 1
    counts.traffic.sent_bytes[FETCH.key] += LENGTH_BYTES + len(b"12345")
    counts.traffic.sent_bytes[VOTE.key] += LENGTH_BYTES
    counts.traffic.received_bytes[VOTE.key] += LENGTH_BYTES + len(b"1234567890")
    assert rpc_counts(counts) == {
        "rpc.sent.Fetch": 3,
        "rpc.received.Vote": 1,
        "rpc.bytes_sent": 13,
        "rpc.bytes_sent.Fetch": 9,
        "rpc.bytes_sent.Vote": 4,
        "rpc.bytes_received": 14,
        "rpc.bytes_received.Vote": 14,
    }


def test_nothing_has_happened_yet() -> None:
    assert rpc_counts(DriverCounts(SyncCounts(), Inbox())) == {
        "rpc.bytes_sent": 0,
        "rpc.bytes_received": 0,
    }
