"""Invariants of the replicated log: R-HW, R-LC, R-NT, R-MC, R-SS.

They use ground truth: what lies durably on the disks of the voters. R-UE and R-LM are seen where
batches are written (`jepsen_like.sim.logs.logtree`).
"""

from collections.abc import Callable, Sequence

from jepsen_like.sim.assemblies.quorum.counting import states_in
from jepsen_like.sim.assemblies.quorum.quorum_view import History, QuorumView, names, written
from jepsen_like.sim.logs.logtree import Entry, Voters, voters_named_in
from jepsen_like.sim.violation import Violation
from jepsen_like.sim.world.host import Host
from quorum.core.storage import METADATA_LOG
from quorum.core.types import OffsetAndEpoch
from quorum.raft.voters import majority_count

__all__ = ["LogInvariants", "SaysState", "says_digest"]


# Does the content of a snapshot say the state at its end? The history is known up to there.
SaysState = Callable[[bytes, OffsetAndEpoch, History], bool]


def says_digest(content: bytes, end: OffsetAndEpoch, history: History) -> bool:
    """For the counting application: its state is a digest of the history."""
    count = history.count_at(end)
    return count is not None and {digest for digest, _ in states_in(content)} <= {
        history.digest(count)
    }


class LogInvariants:
    def __init__(self, view: QuorumView, says_state: SaysState = says_digest) -> None:
        self._view = view
        self._says_state = says_state
        self._high_watermarks: dict[int, int] = {}  # by epoch: its leader's highest

    # --- committing ---------------------------------------------------------------------

    def commits(
        self, host: Host, epoch: int, high_watermark: int, in_force: Sequence[Voters]
    ) -> bool:
        """The leader of `epoch` says that everything below is committed. Says if that is new.

        `in_force`: the voters that it went by in this turn, one set after the other.
        """
        history = self._view.history
        self._is_monotone(epoch, high_watermark)
        if high_watermark == 0:
            return False
        last = _last_below(host, high_watermark)
        log = written(host)
        if last is None or last is log.origin:
            return False  # a snapshot holds it, which must be of what is committed
        if last.epoch != epoch:
            raise Violation("R-HW", f"epoch {epoch} commits {last} by counting (thesis 3.6.2)")
        self._is_on_majority(epoch, last, (self._view.voters_of(host), *in_force))
        if last.index < len(history.entries):
            return False
        self.holds_committed(host, epoch)
        first = log.entries[0].index
        history.extend(log.entries[len(history.entries) - first : last.index + 1 - first])
        return True

    def _is_on_majority(self, epoch: int, last: Entry, in_force: Sequence[Voters]) -> None:
        for voters in in_force:
            holders = self._view.holders(last, voters)
            if len(holders) >= self._needed(voters):
                return
        raise Violation("R-HW", f"epoch {epoch} commits {last}, durable only on {holders}")

    def _needed(self, voters: Voters) -> int:
        """A majority, but for those who had what they acknowledged and have lost it since."""
        return majority_count(len(voters)) - self._view.lost_disks(voters)

    def _is_monotone(self, epoch: int, high_watermark: int) -> None:
        for other, offset in self._high_watermarks.items():
            if (other < epoch and offset > high_watermark) or (
                other > epoch and offset < high_watermark
            ):
                raise Violation(
                    "R-HW", f"epoch {epoch} commits to {high_watermark}, epoch {other} to {offset}"
                )
        self._high_watermarks[epoch] = high_watermark

    def is_committed_prefix(self, host: Host, high_watermark: int) -> None:
        """What a node says is committed, it holds, as it was committed."""
        last = _last_below(host, high_watermark)
        if last is not None and not self._view.history.holds(last):
            raise Violation(
                "R-HW", f"node {host.node_id} has {last} below {high_watermark}: not committed"
            )

    def holds_committed(self, host: Host, epoch: int) -> None:
        """R-LC: whoever leads holds everything that earlier epochs committed."""
        earlier = [offset for other, offset in self._high_watermarks.items() if other < epoch]
        if not earlier:
            return
        history = self._view.history
        count = history.count_before(max(earlier))
        if count and not written(host).holds(last := history.entries[count - 1]):
            raise Violation("R-LC", f"node {host.node_id} leads epoch {epoch} without {last}")

    # --- taking back --------------------------------------------------------------------

    def truncates(self, host: Host, end_offset: int, known: int | None) -> None:
        """R-NT: not below the own high watermark, and a majority goes on to hold what is committed.

        Who still follows the leader of an earlier epoch may truncate what a later one has
        committed meanwhile: it was not counted for that, and will be given it again.
        """
        node = host.node_id
        if known is not None and end_offset < known:
            raise Violation("R-NT", f"node {node} truncates to {end_offset} below {known}")
        log = written(host)
        if end_offset < log.start_offset:
            raise Violation("R-NT", f"node {node} truncates to {end_offset} < {log.start_offset}")
        first = log.index_of(end_offset)
        if first < len(log.entries) and self._view.is_voter(host):
            self._stays_on_majority(host, log.entries[first])

    def _stays_on_majority(self, host: Host, entry: Entry) -> None:
        if not self._view.history.holds(entry):
            return
        voters = self._view.committed_voters
        others = [node for node in self._view.holders(entry, voters) if node != host.node_id]
        if len(others) < self._needed(voters):
            raise Violation("R-NT", f"node {host.node_id} truncates {entry}, which leaves {others}")

    def begins_anew(self, host: Host, start: OffsetAndEpoch, known: int | None) -> None:
        """A snapshot replaces a log: it must hold all that the log had committed."""
        if known is not None and start.offset < known:
            raise Violation("R-NT", f"node {host.node_id} begins anew at {start} below {known}")

    # --- voters -------------------------------------------------------------------------

    def appends(self, host: Host, epoch: int, before: Entry | None) -> None:
        """R-MC: a leader changes one voter at a time, the next only once that is committed.

        And none before it has committed something in its own epoch: else the majorities of two
        leaders' changes need not meet (the bug of single-server changes, 2015). `before` was the
        last entry of its log when it was looked at last.
        """
        entry = written(host).last
        while entry is not None and entry is not before and entry.epoch == epoch:
            if entry.is_control and not self._view.history.holds(entry):
                self._changes_voters(entry)
            entry = entry.parent

    def _changes_voters(self, entry: Entry) -> None:
        before, voters = self._view.voters_at(entry.parent), self._view.voters_at(entry)
        if _is_same(before, voters):
            return
        changed = {voter.id for voter in set(voters) ^ set(before)}
        if len(changed) != 1 or len(voters) == len(before):
            raise Violation("R-MC", f"{entry} changes voters {sorted(changed)} at once")
        if entry.epoch not in self._view.history.epochs:
            raise Violation("R-MC", f"{entry} changes voters before a commit in its epoch")
        earlier = entry.parent
        while earlier is not None and not self._view.history.holds(earlier):
            if not _is_same(self._view.voters_at(earlier.parent), self._view.voters_at(earlier)):
                raise Violation("R-MC", f"{entry} changes voters, and {earlier} is not committed")
            earlier = earlier.parent

    def knows_voters(self, host: Host, known: Voters) -> None:
        """R-MC: everybody goes by the voters that its own log names, written or loaded."""
        last = written(host).last
        if last is not None and last.voters is not None and set(known) != set(last.voters):
            raise Violation(
                "R-MC", f"node {host.node_id} goes by {known}, but its log names {last.voters}"
            )

    # --- snapshots ----------------------------------------------------------------------

    def saves_snapshot(self, host: Host, end: OffsetAndEpoch) -> None:
        """R-SS: a snapshot is of what is committed, and of nothing else."""
        if end.offset == 0:
            return
        history = self._view.history
        if end.offset > history.end_offset:
            raise Violation(
                "R-SS", f"node {host.node_id} saves a snapshot at {end} > {history.end_offset}"
            )
        if history.count_at(end) is None:
            raise Violation("R-SS", f"node {host.node_id} saves a snapshot at {end}: no such place")

    def saved_snapshot(self, host: Host, end: OffsetAndEpoch) -> None:
        """Its content is the state there, whoever wrote it."""
        history = self._view.history
        count = history.count_at(end)
        content = host.disk.log(METADATA_LOG).snapshots.whole.get(end)
        if content is None:
            return  # removed again, before the core has heard of it
        if not self._says_state(content, end, history):
            raise Violation("R-SS", f"node {host.node_id} has a snapshot of another state at {end}")
        voters = voters_named_in(content)
        if count and voters is not None and voters != history.entries[count - 1].voters:
            raise Violation("R-SS", f"node {host.node_id} has {voters} in its snapshot at {end}")

    def trims(self, host: Host, start_offset: int) -> None:
        """A log is cleaned only of what a snapshot of its own holds."""
        newest = host.disk.log(METADATA_LOG).snapshots.newest
        if newest is None or start_offset > newest.offset:
            raise Violation(
                "R-SS", f"node {host.node_id} cleans its log up to {start_offset}, beyond {newest}"
            )


def _last_below(host: Host, high_watermark: int) -> Entry | None:
    """The last entry below it in what the node has written. None: it begins there, by a snapshot
    that came from another."""
    log = written(host)
    if high_watermark > log.end_offset:
        raise Violation(
            "R-HW", f"node {host.node_id}: {high_watermark} above its end {log.end_offset}"
        )
    at = log.index_of(high_watermark - 1)
    return log.entries[at] if log.start_offset < high_watermark else log.origin


def _is_same(before: Voters, voters: Voters) -> bool:
    """Voters whose disks were not known may be named with them."""
    ids = [voter.id for voter in before] == [voter.id for voter in voters]
    return ids and all(names(a, b) for a, b in zip(before, voters, strict=True))
