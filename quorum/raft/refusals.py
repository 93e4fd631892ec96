"""Who refuses to speak with this replica, and whether so many do that asking on is of no use.

A refusal is ordinary where its sender only knows no better. Any other is worth one line, not one
for each time that we ask. A node of another cluster stays one: when too few voters are left that
may be of ours, this replica can never join, and whoever runs it must hear that.

Pure. Who is asked again, and when, is in `quorum.raft.peers`.

Source: KIP-595 on INCONSISTENT_CLUSTER_ID.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from quorum.raft.voters import majority_count
from wire.errors import ErrorCode

__all__ = ["Refusals"]

_ORDINARY = (
    ErrorCode.NONE,
    ErrorCode.BROKER_NOT_AVAILABLE,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.SNAPSHOT_NOT_FOUND,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
)


@dataclass(slots=True)
class Refusals:
    _last: dict[int, ErrorCode] = field(default_factory=dict)  # by node, none of them ordinary

    def heard(self, node_id: int, error: ErrorCode) -> bool:
        """Take note of an answer. True if it is a refusal that was not there before."""
        if error in _ORDINARY:
            self._last.pop(node_id, None)
            return False
        is_new = self._last.get(node_id) is not error
        self._last[node_id] = error
        return is_new

    def leave_no_majority(self, voter_ids: Sequence[int]) -> bool:
        """Are so many of them of another cluster that the rest is no majority?

        One of several proves nothing: it may be that one which is wrong.
        """
        foreign = sum(
            self._last.get(voter_id) is ErrorCode.INCONSISTENT_CLUSTER_ID for voter_id in voter_ids
        )
        return foreign > len(voter_ids) - majority_count(len(voter_ids))
