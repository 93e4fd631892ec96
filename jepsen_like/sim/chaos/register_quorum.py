"""A simulated quorum whose only application is the plain register (`quorum.node.register`).

Nothing is judged here but by the history of its clients.
"""

from collections.abc import Collection, Mapping, Sequence

from broker.broker import Broker
from controller.metadata.image import MetadataImage
from jepsen_like.faults.fault import Injector, cannot
from jepsen_like.sim.assemblies.quorum.replicas import start_raft
from jepsen_like.sim.chaos.workload_stages import Timing, quorum_options
from jepsen_like.sim.faults.site import Site
from jepsen_like.sim.world.host import Host
from jepsen_like.sim.world.world import Digest, World
from quorum.core.effects import Core
from quorum.node.confirmed_leadership import ConfirmingMember, ConfirmingRaftNode
from quorum.node.member import Member
from quorum.node.register import Register
from quorum.raft.raft_node import RaftNode
from quorum.raft.roles import Leader

__all__ = ["RegisterQuorum"]


class RegisterQuorum:
    """Voters that keep plain registers: a `Stage`, and its `Site`."""

    brokers: Sequence[int] = ()
    zookeepers: Sequence[int] = ()
    keeps_power: Collection[int] = ()
    injectors: Mapping[str, Injector] = {
        "wipe": cannot("voters are known by their id alone: without its disk, one could vote twice")
    }

    def __init__(self, seed: int, *, controllers: int, timing: Timing) -> None:
        self._options = quorum_options(controllers, 0, timing)
        links, disks = self._options.links, self._options.disks
        self.world = World(seed, links=links, disks=disks, is_judged=False)
        self.controllers: Sequence[int] = range(1, controllers + 1)
        self._rafts: dict[int, RaftNode] = {}
        self._members: dict[int, Member] = {}
        self._digest = Digest(self.world, lambda host: (self._rafts[host.node_id].end_offset,))
        self.world.observe(self._digest)
        for node_id in self.controllers:
            self.world.add(node_id, self._start_core)

    def _start_core(self, host: Host) -> Core:
        raft = start_raft(host, self._options, self.world, ConfirmingRaftNode)
        applications = {"register": Register(raft)}
        member = ConfirmingMember(raft, applications, snapshots=self._options.snapshots)
        self._rafts[host.node_id], self._members[host.node_id] = raft, member
        return member

    @property
    def site(self) -> Site:
        return self

    @property
    def _running(self) -> list[RaftNode]:
        return [raft for node, raft in self._rafts.items() if self.world.nodes[node].is_up]

    def missing(self) -> str:
        down = [node for node, host in self.world.nodes.items() if not host.is_up]
        if down:
            return f"down: {down}"
        told = {raft.leader for raft in self._running}
        is_agreed = len(told) == 1 and told.pop().leader_id is not None
        return "" if is_agreed else "nobody leads that all know"

    def active_controller(self) -> int | None:
        """The newest leader."""
        leading = [raft for raft in self._running if isinstance(raft.role, Leader)]
        newest = max(leading, key=lambda raft: raft.role.epoch, default=None)
        return None if newest is None else newest.replica.node_id

    @property
    def epoch(self) -> int:
        return max((raft.leader.epoch for raft in self._running), default=0)

    def partition_leaders(self) -> set[int]:
        return set()

    def image(self, node: int) -> MetadataImage | None:
        return None

    def broker(self, node: int) -> Broker | None:
        return None

    def shut_down(self, node: int) -> None:
        self.world.nodes[node].command(self._members[node].shut_down)

    def resign(self, node: int) -> None:
        self.world.nodes[node].command(self._rafts[node].resign)

    def wipe(self, node: int) -> None:
        raise AssertionError(self.injectors["wipe"].why_not)

    @property
    def digest(self) -> str:
        return str(self._digest)
