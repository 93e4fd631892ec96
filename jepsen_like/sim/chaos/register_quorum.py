"""A simulated quorum whose only application is the plain register (`quorum.node.register`).

Nothing is judged here but by the history of its clients.
"""

from collections.abc import Callable, Sequence
from hashlib import blake2b
from struct import Struct

from jepsen_like.sim.counts import Counts
from jepsen_like.sim.disk import Disk
from jepsen_like.sim.host import Host
from jepsen_like.sim.logtree import LogTree
from jepsen_like.sim.network import Network
from jepsen_like.sim.node_clock import Clock
from jepsen_like.sim.quorum.options import Options
from jepsen_like.sim.quorum.replicas import start_raft
from jepsen_like.sim.unjudged import Tolerance, TolerantTree
from jepsen_like.sim.world import World
from quorum.core.effects import Core, Effect, Event
from quorum.node.member import Member
from quorum.node.register import Register
from quorum.raft.confirmed_leadership import ConfirmingRaftNode
from quorum.raft.raft_node import RaftNode
from quorum.raft.roles import Leader

__all__ = ["RegisterQuorum"]

_DIGEST = Struct(">qqqq")


class RegisterQuorum:
    def __init__(self, world: World, options: Options) -> None:
        self.world = world
        self.counts = Counts()
        self.rafts: dict[int, RaftNode] = {}
        self.members: dict[int, Member] = {}
        self.hosts: dict[int, Host] = {}
        self.listeners: list[Callable[[Host, Sequence[Effect]], None]] = []
        self._options = options
        self._digest = blake2b(digest_size=8)
        self._tree: LogTree = TolerantTree(Tolerance())
        self.network = Network(
            world=world,
            random=world.fork("network"),
            counts=self.counts,
            faults=options.links,
            deliver=lambda message: self.hosts[message.target].deliver(message),
        )
        for node_id in range(1, options.voters + 1):
            self.hosts[node_id] = self._host(node_id, self._start)

    def add_client(self, core: Core) -> Host:
        node_id = max(self.hosts) + 1
        host = self.hosts[node_id] = self._host(node_id, lambda _host: core)
        return host

    def _host(self, node_id: int, start_core: Callable[[Host], Core]) -> Host:
        disk = Disk(
            world=self.world,
            random=self.world.fork(f"disk/{node_id}"),
            counts=self.counts,
            faults=self._options.disks,
            tree_of=lambda _log, _topic_id: self._tree,
        )
        return Host(
            node_id=node_id,
            world=self.world,
            network=self.network,
            disk=disk,
            clock=Clock(),
            codec=None,
            counts=self.counts,
            watch=self,
            start_core=start_core,
        )

    def _start(self, host: Host) -> Core:
        raft = start_raft(host, self._options, self.world, ConfirmingRaftNode)
        member = Member(raft, {"register": Register(raft)}, snapshots=self._options.snapshots)
        self.rafts[host.node_id], self.members[host.node_id] = raft, member
        return member

    # --- who leads ----------------------------------------------------------------------

    def newest_leader(self) -> int | None:
        leading = [
            (raft.role.epoch, node)
            for node, raft in self.rafts.items()
            if self.hosts[node].is_up and isinstance(raft.role, Leader)
        ]
        return max(leading)[1] if leading else None

    def agreed_leader(self) -> int | None:
        told = {raft.leader for node, raft in self.rafts.items() if self.hosts[node].is_up}
        return told.pop().leader_id if len(told) == 1 else None

    # --- Watch --------------------------------------------------------------------------

    def received(self, host: Host, event: Event) -> None:
        pass

    def performing(self, host: Host, effect: Effect) -> None:
        pass

    def replying(self, host: Host, token: int, request: object, response: object) -> None:
        pass

    def counted(self, host: Host) -> None:
        pass

    def settled(self, host: Host, effects: list[Effect]) -> None:
        raft = self.rafts.get(host.node_id)
        end_offset = 0 if raft is None else raft.end_offset
        self._digest.update(_DIGEST.pack(self.world.now_us, host.node_id, len(effects), end_offset))
        if raft is not None:
            for listener in (*self.listeners,):
                listener(host, effects)

    @property
    def digest(self) -> str:
        """Of all that has happened."""
        return self._digest.hexdigest()
