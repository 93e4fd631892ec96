"""The true state of a quorum, whatever its nodes believe: disks, voters and committed history.

An application is given the one committed history batch by batch, or begins with a snapshot of it.
Either way its state after an offset is one value, which is known here: a digest of all batches.
"""

from bisect import bisect_right
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from hashlib import blake2b

from jepsen_like.sim.logs.content import Content
from jepsen_like.sim.logs.logtree import Entry, Voters
from jepsen_like.sim.violation import Violation
from jepsen_like.sim.world.host import Host
from quorum.core.storage import METADATA_LOG
from quorum.core.types import OffsetAndEpoch, ReplicaKey
from quorum.raft.voters import majority_count
from wire.primitives import ZERO_UUID

__all__ = [
    "EMPTY",
    "Follower",
    "History",
    "QuorumView",
    "digest_after",
    "key_of",
    "names",
    "written",
]


class QuorumView:
    """`configured` vote until the log names others."""

    def __init__(self, configured: Voters) -> None:
        self.history = History()
        self.hosts: dict[int, Host] = {}
        self._configured = configured

    def voters_at(self, entry: Entry | None) -> Voters:
        """Who votes where this is the last entry. A record of voters counts as soon as written."""
        if entry is None or entry.voters is None:
            return self._configured
        return entry.voters

    def voters_of(self, host: Host) -> Voters:
        """Who votes as far as this node has written."""
        return self.voters_at(written(host).last)

    @property
    def committed_voters(self) -> Voters:
        entries = self.history.entries
        return self.voters_at(entries[-1] if entries else None)

    def is_voter(self, host: Host) -> bool:
        return any(_is(host, voter) for voter in self.voters_of(host))

    def present(self, voters: Voters) -> Iterable[Host]:
        """The hosts of these voters, but for those that have lost the disk that they vote with."""
        for voter in voters:
            host = self.hosts.get(voter.id)
            if host is not None and _is(host, voter) and not host.disk.is_damaged:
                yield host

    def holders(self, entry: Entry, voters: Voters) -> list[int]:
        """The voters on whose disks `entry` is durable."""
        return [
            host.node_id
            for host in self.present(voters)
            if host.disk.log(METADATA_LOG).durable.holds(entry)
        ]

    def lost_disks(self, voters: Voters) -> int:
        """How many of these voters have lost the disk that they voted with."""
        return len(voters) - len(list(self.present(voters)))

    def without(self, voters: Voters, removing: AbstractSet[ReplicaKey]) -> Voters:
        """The worst that removals may come to: who has its disk goes, who has lost it stays."""
        present = {host.node_id for host in self.present(voters)}
        return tuple(v for v in voters if v not in removing or v.id not in present)

    def spare(self, voters: Voters) -> int:
        """How many more of them may lose their disks before what is committed may be lost."""
        return len(voters) - majority_count(len(voters)) - self.lost_disks(voters)


def _is(host: Host, voter: ReplicaKey) -> bool:
    return names(voter, key_of(host))


def key_of(host: Host) -> ReplicaKey:
    """The replica that a node is with the disk that it has now."""
    return ReplicaKey(host.node_id, host.directory_id)


def names(voter: ReplicaKey, replica: ReplicaKey) -> bool:
    """Is it this replica? Without a directory id, any with its node id is."""
    return voter.id == replica.id and voter.directory_id in (ZERO_UUID, replica.directory_id)


def written(host: Host) -> Content:
    return host.disk.log(METADATA_LOG).written


EMPTY = bytes(8)  # the digest of no batches


def digest_after(digest: bytes, records: bytes) -> bytes:
    return blake2b(digest + records, digest_size=8).digest()


class History:
    __slots__ = ("_digests", "entries", "epochs")

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.epochs: set[int] = set()  # in which something was committed
        self._digests = [EMPTY]  # before each entry, and after the last

    @property
    def end_offset(self) -> int:
        return self.entries[-1].next_offset if self.entries else 0

    def extend(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            self.entries.append(entry)
            self.epochs.add(entry.epoch)
            self._digests.append(digest_after(self._digests[-1], entry.records))

    def holds(self, entry: Entry) -> bool:
        return entry.index < len(self.entries) and self.entries[entry.index] is entry

    def count_before(self, offset: int) -> int:
        """How many entries end at or before `offset`."""
        return bisect_right(self.entries, offset, key=lambda entry: entry.next_offset)

    def count_at(self, end: OffsetAndEpoch) -> int | None:
        """How many entries there are before `end`; None if it is no place in the history."""
        count = self.count_before(end.offset)
        if count == 0:
            return 0 if end.offset == 0 else None
        return count if self.entries[count - 1].end == end else None

    def digest(self, count: int) -> bytes:
        """The digest of the first `count` entries."""
        return self._digests[count]


class Follower:
    """How far one process has been told the history. R-SM: as it is, each batch once, in order.

    An application is told within the event that commits a record; what that event has committed is
    known once all of it has been looked at, which is when `check` is called.
    """

    __slots__ = ("_history", "_node", "_told", "count")

    def __init__(self, history: History, node: int) -> None:
        self.count = 0  # entries that it has been told of
        self._told: list[tuple[bytes, int]] = []  # since the last check
        self._history = history
        self._node = node

    def applies(self, batches: bytes, next_offset: int) -> None:
        self._told.append((batches, next_offset))

    def check(self) -> None:
        told, self._told = self._told, []
        for batches, next_offset in told:
            self._follows(batches, next_offset)

    def _follows(self, batches: bytes, next_offset: int) -> None:
        history = self._history
        position = 0
        while position < len(batches):
            if self.count >= len(history.entries):
                raise Violation("R-SM", f"node {self._node} applies beyond {history.end_offset}")
            entry = history.entries[self.count]
            if batches[position : position + len(entry.records)] != entry.records:
                raise Violation("R-SM", f"node {self._node} applies something else than {entry}")
            position += len(entry.records)
            self.count += 1
        applied = history.entries[self.count - 1].next_offset if self.count else 0
        if applied != next_offset:
            raise Violation("R-SM", f"node {self._node} is told {next_offset}, not {applied}")

    def loads(self, end: OffsetAndEpoch, digest: bytes) -> None:
        """A snapshot says the same as the history up to there."""
        self.check()
        count = self._history.count_at(end)
        if count is None:
            raise Violation("R-SS", f"node {self._node} loads {end}: no such place in the history")
        if count < self.count:
            raise Violation("R-SM", f"node {self._node} loads {end}, but knew more")
        if digest != self._history.digest(count):
            raise Violation("R-SM", f"node {self._node} loads another state at {end}")
        self.count = count
