"""Who votes, and by which rules, at every offset of the log (KIP-853).

With kraft.version 0 the voters are those of the configuration. From version 1 on they are in the
log: a `Voters` record holds in full from the moment at which it is written, committed or not, and
the one before it holds again if it is truncated. A snapshot says in its head what held where it
ends; that of offset 0, which `format` writes, what held before the first record.

Decides nothing about who may change the voters: that is in `quorum.raft.membership`.

Source: KIP-853; Kafka's KRaftControlRecordStateMachine and VoterSetHistory.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from quorum.core.effects import LogState, SnapshotFile
from quorum.core.types import Endpoint, ReplicaKey
from quorum.raft.voters import Voter, VoterSet
from wire import control_records as cr
from wire.batch import headers, records_of
from wire.control_records import ControlRecord, KRaftVersion, Voters, decode_control

__all__ = [
    "NOT_IN_THE_LOG",
    "Membership",
    "VoterHistory",
    "control_records",
    "record_of",
    "voters_of",
]

NOT_IN_THE_LOG = -1  # an offset: what the configuration or `format` says


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """What holds after some record of the log."""

    voters: VoterSet
    kraft_version: int = 0
    voters_offset: int = NOT_IN_THE_LOG  # of the record that `voters` are from

    def head_records(self) -> tuple[ControlRecord, ...]:
        """What a snapshot says of it, behind its header. Static voters are not recorded."""
        if self.kraft_version == 0:
            return ()
        return KRaftVersion(kraft_version=self.kraft_version), record_of(self.voters)


class VoterHistory:
    """The memberships by offset, the latest in force.

    `listener_name` says which of a voter's listeners is the one to use.
    """

    __slots__ = ("_configured", "_listener_name", "_memberships", "_offsets", "latest")

    def __init__(self, configured: VoterSet, listener_name: str = "CONTROLLER") -> None:
        self._configured = Membership(voters=configured)
        self._listener_name = listener_name
        self._begin()

    def _begin(self) -> None:
        self.latest = self._configured
        self._offsets = [NOT_IN_THE_LOG]  # ascending: of the record after which it holds
        self._memberships = [self.latest]

    @classmethod
    def recovered(cls, configured: VoterSet, listener_name: str, state: LogState) -> "VoterHistory":
        """What the log and its snapshots say, over what is configured."""
        history = cls(configured, listener_name)
        waiting = list(state.snapshots)
        for batch in state.control_batches:
            start_offset = next(header.base_offset for _, header in headers(batch))
            while waiting and waiting[0].id.offset <= start_offset:
                history.confirm(waiting.pop(0))
            history.observe(control_records(batch))
        for snapshot in waiting:
            history.confirm(snapshot)
        return history

    def at(self, end_offset: int) -> Membership:
        """What held after everything before `end_offset`."""
        found = bisect_left(self._offsets, end_offset) - 1
        return self._memberships[max(found, 0)]

    # --- changes ------------------------------------------------------------------------------

    def observe(self, records: Sequence[tuple[int, ControlRecord]]) -> bool:
        """Records were written at the end of the log. Did that change the membership?"""
        before = self.latest
        for offset, record in records:
            after = self._after(self.latest, record, offset)
            if after is not self.latest:
                self._add(offset, after)
        return self.latest != before

    def truncate(self, end_offset: int) -> bool:
        """Records at or after `end_offset` are gone, and what they said with them."""
        kept = max(1, bisect_left(self._offsets, end_offset))
        if kept == len(self._offsets):
            return False
        del self._offsets[kept:], self._memberships[kept:]
        self.latest = self._memberships[-1]
        return True

    def prune(self, start_offset: int) -> None:
        """The log begins at `start_offset` now: what held there is all that is known of before."""
        first = max(0, bisect_left(self._offsets, start_offset) - 1)
        del self._offsets[:first], self._memberships[:first]

    def confirm(self, snapshot: SnapshotFile) -> None:
        """A snapshot of this log says what held where it ends.

        It mostly repeats what is known: then the offset of the voters' record stays known, too.
        """
        offset = snapshot.id.offset - 1
        said = self._configured
        for _, record in control_records(snapshot.head):
            said = self._after(said, record, offset)
        known = self.at(snapshot.id.offset)
        if (known.voters, known.kraft_version) == (said.voters, said.kraft_version):
            return
        self.truncate(snapshot.id.offset)
        self._add(offset, said)

    def restart(self, snapshot: SnapshotFile) -> bool:
        """The log was replaced by `snapshot`. Did that change the membership?"""
        before = self.latest
        self._begin()
        self.confirm(snapshot)
        return self.latest != before

    def _after(self, before: Membership, record: ControlRecord, offset: int) -> Membership:
        """What holds after this record: `before` itself if it says nothing of voters."""
        match record:
            case KRaftVersion(kraft_version=version):
                return replace(before, kraft_version=version)
            case Voters():
                voters = voters_of(record, self._listener_name)
                return replace(before, voters=voters, voters_offset=offset)
            case _:
                return before

    def _add(self, offset: int, membership: Membership) -> None:
        if offset == self._offsets[-1]:  # the snapshot of offset 0, in place of the configuration
            self._memberships[-1] = membership
        else:
            assert offset > self._offsets[-1], (offset, self._offsets[-1])
            self._offsets.append(offset)
            self._memberships.append(membership)
        self.latest = membership


# --- records ---------------------------------------------------------------------------------


def control_records(batches: bytes) -> tuple[tuple[int, ControlRecord], ...]:
    """The control records of whole batches, with their offsets; unknown types are left out.

    Raises Malformed.
    """
    return tuple(_control_records(batches))


def _control_records(batches: bytes) -> Iterator[tuple[int, ControlRecord]]:
    for position, header in headers(batches):
        if not header.is_control:
            continue
        for record in records_of(batches[position : position + header.size_bytes]):
            decoded = decode_control(record)
            if decoded is not None:
                yield record.offset, decoded


def voters_of(record: Voters, listener_name: str) -> VoterSet:
    return VoterSet.of(_voter_of(voter, listener_name) for voter in record.voters)


def _voter_of(voter: cr.Voter, listener_name: str) -> Voter:
    """Where a voter lacks our listener, its first one must do; Kafka gives up on it."""
    at = min(voter.endpoints, key=lambda known: known.name != listener_name, default=None)
    host, port = ("", 0) if at is None else (at.host, at.port)
    return Voter(
        key=ReplicaKey(voter.voter_id, voter.voter_directory_id),
        endpoint=Endpoint(voter.voter_id, host, port),
        listeners=voter.endpoints,
        kraft_versions=voter.kraft_version_feature,
    )


def record_of(voters: VoterSet) -> Voters:
    return Voters(
        voters=tuple(
            cr.Voter(
                voter_id=voter.key.id,
                voter_directory_id=voter.key.directory_id,
                endpoints=voter.listeners,
                kraft_version_feature=voter.kraft_versions,
            )
            for voter in voters
        )
    )
