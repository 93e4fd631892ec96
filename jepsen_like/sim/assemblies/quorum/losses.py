"""Takes disks away from nodes: wiped, or with a batch that a bit has flipped in.

Only as many are taken as a quorum can bear: committed records stay on a majority of every set of
voters that is in force or under way. A node that finds its log damaged does not start on it, since
its records may have been acknowledged; it comes back once it has been given an empty disk.

An empty disk has another directory id. Where the log names voters by that, its node is an observer
until it is added again. Where it does not (kraft.version 0), a voter may not come back on an empty
disk at all: it could vote a second time in an epoch.
"""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

from jepsen_like.sim.assemblies.quorum.drawn_faults import DrawnFaults
from jepsen_like.sim.assemblies.quorum.quorum_view import QuorumView
from jepsen_like.sim.world.host import Host
from quorum.core.types import ReplicaKey

__all__ = ["Losses"]


class Losses:
    def __init__(
        self,
        *,
        view: QuorumView,
        hosts: Sequence[Host],
        voters_are_in_the_log: bool,
        faults: DrawnFaults,
        adding: Iterable[ReplicaKey],
        removing: AbstractSet[ReplicaKey],
    ) -> None:
        """`adding`, `removing`: those of whom that has been asked for."""
        self._view = view
        self._hosts = hosts
        self._voters_are_in_the_log = voters_are_in_the_log
        self._faults = faults
        self._adding = adding
        self._removing = removing

    def wipe(self) -> None:
        """A node dies and comes back with an empty disk. Who is down with a damaged one first."""
        damaged = [host for host in self._hosts if host.disk.is_damaged]
        found = [host for host in damaged or self._hosts if self._may_wipe(host)]
        if not found:
            return
        host = self._faults.choose(found)
        if host.is_up:
            self._faults.crash(host)
        else:
            self._faults.restart_later(host)
        was_voter = self._view.is_voter(host)
        self._faults.inject("wipe", [host.node_id])
        if was_voter:
            self._faults.isolate_leader()

    def damage(self) -> None:
        """A node dies, and finds at its next start that its log is not what it wrote."""
        found = [host for host in self._hosts if host.is_up and self._may_damage(host)]
        if found:
            host = self._faults.choose(found)
            self._faults.crash(host)
            self._faults.inject("bit-flip", [host.node_id])

    def _may_wipe(self, host: Host) -> bool:
        if self._view.is_voter(host) and not self._voters_are_in_the_log:
            return False
        return host.disk.is_damaged or self._may_lose(host)

    def _may_damage(self, host: Host) -> bool:
        """Who cannot be replaced stays away for ever: another may then fail all the same."""
        if self._view.is_voter(host) and not self._voters_are_in_the_log:
            return self._view.spare(self._view.committed_voters) > 1
        return self._may_lose(host)

    def _may_lose(self, host: Host) -> bool:
        """Of every set of voters that a node may come to go by, one more can be lost."""
        known = {self._view.committed_voters, *map(self._view.voters_of, self._hosts)}
        own = ReplicaKey(host.node_id, host.directory_id)
        removing = self._removing - {own}
        left = {self._view.without(voters, removing) for voters in known}
        if own in self._adding:  # the request may still be on its way
            known |= {(*voters, own) for voters in known | left if own not in voters}
        return all(
            self._view.spare(voters) > 0
            for voters in known | left
            if any(present is host for present in self._view.present(voters))
        )
