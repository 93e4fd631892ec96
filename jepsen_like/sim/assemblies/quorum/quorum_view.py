"""The true state of a quorum, whatever its nodes believe: disks, voters and committed history."""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet

from jepsen_like.sim.assemblies.quorum.committed_history import History
from jepsen_like.sim.logs.content import Content
from jepsen_like.sim.logs.logtree import Entry, Voters
from jepsen_like.sim.world.host import Host
from quorum.core.storage import METADATA_LOG
from quorum.core.types import ReplicaKey
from quorum.raft.voters import majority_count
from wire.primitives import ZERO_UUID

__all__ = ["QuorumView", "names", "written"]


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
    return names(voter, ReplicaKey(host.node_id, host.directory_id))


def names(voter: ReplicaKey, replica: ReplicaKey) -> bool:
    """Is it this replica? Without a directory id, any with its node id is."""
    return voter.id == replica.id and voter.directory_id in (ZERO_UUID, replica.directory_id)


def written(host: Host) -> Content:
    return host.disk.log(METADATA_LOG).written
