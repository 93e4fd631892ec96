"""Requests that every engine answers alike: reads of its log, and of its voters and their changes.

Those of elections (Vote, BeginQuorumEpoch, EndQuorumEpoch) are each engine's own.
"""

from collections.abc import Callable

from quorum.core.effects import Request
from quorum.raft import membership, serving
from quorum.raft.describing import describe_quorum
from quorum.raft.replica import Replica
from quorum.raft.responses import KnownLeader
from quorum.raft.roles import Leader, Role
from quorum.raft.snapshot_serving import fetch_snapshot, snapshot_refusal
from wire.messages.fetching import FetchRequest, FetchSnapshotRequest
from wire.messages.voters import DescribeQuorumRequest

__all__ = ["answer"]


def answer(
    replica: Replica, role: Role, request: Request, known: Callable[[], KnownLeader], now_ms: int
) -> object | None:
    """None: the answer comes later."""
    refusal: object | None
    match request.body:
        case FetchRequest() as body:
            refusal = serving.refusal(replica, role, body, known)
            if refusal is None and isinstance(role, Leader):
                serving.fetch(
                    replica, role, request.token, body, host=request.client_host, now_ms=now_ms
                )
            return refusal
        case FetchSnapshotRequest() as body:
            refusal = snapshot_refusal(replica, role, body, known())
            if refusal is None and isinstance(role, Leader):
                fetch_snapshot(replica, role, request.token, body, now_ms=now_ms)
            return refusal
        case DescribeQuorumRequest() as body:
            return describe_quorum(replica, role, body, now_ms)
        case body if isinstance(body, membership.Ask):
            return membership.answer(replica, role, request, known(), now_ms)
        case body:
            raise AssertionError(f"not a request of the quorum: {type(body).__name__}")
