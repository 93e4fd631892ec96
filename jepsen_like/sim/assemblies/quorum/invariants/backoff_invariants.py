"""L-BO: who has lost an election stands again in time.

The pause after the first loss in a row is up to 200 ms, after each more up to twice as long, and
never longer than the maximum. What counts are the losses that were seen, not those that a candidate
remembers. A shorter pause breaks nothing, since each is drawn from zero on.

Where a voter is silent, a candidate waits for its election timer instead, which L-EL bounds. If it
stands again then, that is one more loss.

Source: KIP-595.
"""

from jepsen_like.sim.violation import Violation
from jepsen_like.sim.world.host import Host
from quorum.raft.roles import Candidate, Prospective, Role

__all__ = ["BackoffInvariants"]

_FIRST_MS = 200


class BackoffInvariants:
    def __init__(self, longest_ms: int) -> None:
        self._longest_ms = longest_ms
        self._losses: dict[int, int] = {}  # by node: in a row, of its present process

    def started(self, host: Host) -> None:
        self._losses.pop(host.node_id, None)

    def changes(self, host: Host, before: Role | None, role: Role) -> None:
        """A candidate that asks anew has lost. Whoever leads, follows or waits has a new start."""
        if not isinstance(role, Prospective | Candidate):
            self._losses.pop(host.node_id, None)
        elif isinstance(before, Candidate):
            self._losses[host.node_id] = self._losses.get(host.node_id, 0) + 1

    def waits(self, host: Host, role: Candidate) -> None:
        if role.backoff_until_ms is None:
            return
        before = self._losses.get(host.node_id, 0)
        pause_ms = role.backoff_until_ms - host.now_ms
        longest_ms = min(_FIRST_MS << before, self._longest_ms)
        if pause_ms > longest_ms:
            raise Violation(
                "L-BO",
                f"node {host.node_id} lost {before + 1} elections in a row, and waits for another"
                f" {pause_ms} ms: {longest_ms} ms would be the longest",
            )
