"""Invariants of the designs of ZooKeeper mode, checked after every event.

M-1L    one broker at most has led in a leader epoch
M-PE    the leader epoch of a partition never goes back
M-LI    the leader of a partition is in its ISR
Z-CE    /controller_epoch never goes back; an election names the controller epoch of its time
D-THW   a replica in sync and up holds everything that a leader has ever exposed, record for record

That a place in a log has one batch (D-ONE) is seen where batches are written. Each design is asked
for what its document promises, and no more:

zk-v1               no epochs, and two leaders at a time: nothing of this
zk-v2, zk-v3        no D-THW, since followers cut back to a high watermark that lags (KAFKA-1211)
zk-v3, zk-redesign  no Z-CE of elections, since a controller that was deposed still writes (B2, B8)

Source: the reliability facts, sections 3.2 and 3.3.
"""

from dataclasses import dataclass, field

from broker.partition.partition import LeaderOf, Partition
from jepsen_like.sim.assemblies.designs.zk_cluster import ZkCluster
from jepsen_like.sim.ensemble.zk_state import partition_state, topics_in
from jepsen_like.sim.logs.content import Content
from jepsen_like.sim.logs.logtree import Entry
from jepsen_like.sim.violation import Violation
from jepsen_like.sim.world.host import Host
from jepsen_like.sim.world.observer import Observer
from quorum.core.effects import Effect
from wire.zk import paths
from wire.zk.control_rpc import TopicPartition
from wire.zk.designs import Truncation
from wire.zk.znodes import PartitionState, TopicAssignment, decode_epoch

__all__ = ["ZkInvariants"]


# Of a replica: the epoch that it leads (-1 for none), its high watermark, its end, its last entry.
_Shown = tuple[int, int, int, Entry | None]


@dataclass(slots=True)
class _Watched:
    """A partition, since its topic was created."""

    log: str  # its name
    state: PartitionState | None = None
    leaders: dict[int, int] = field(default_factory=dict)  # by epoch: who led
    exposed: Entry | None = None  # the last that was below the high watermark of a leader


class ZkInvariants(Observer):
    def __init__(self, cluster: ZkCluster) -> None:
        self._cluster = cluster
        self._design = cluster.options.design
        self._applied = -1  # transactions in the tree that was looked at last
        self._controller_epoch = 0
        self._topics: dict[str, int] = {}  # by name: which creation of it
        self._watched: dict[TopicPartition, _Watched] = {}
        self._shown: dict[int, dict[str, _Shown]] = {}  # by node and log, when looked at last

    def started(self, host: Host) -> None:
        self._shown.pop(host.node_id, None)

    def settled(self, host: Host, effects: list[Effect]) -> None:
        """Nobody but this host has changed, unless something was committed in ZooKeeper."""
        if not self._design.has_leader_epochs:
            return
        has_news = self._cluster.ensemble.applied != self._applied and self._has_news()
        shows, before = self._shows(host), self._shown.get(host.node_id, {})
        if not has_news and shows == before:
            return
        self._shown[host.node_id] = shows
        for of, watched in self._watched.items():
            if has_news or shows.get(watched.log) != before.get(watched.log):
                self._look_at_replicas(of, watched)

    def _shows(self, host: Host) -> dict[str, _Shown]:
        node = self._cluster.nodes.get(host.node_id)
        if node is None or not host.is_up:
            return {}
        shows: dict[str, _Shown] = {}
        logs = host.disk.logs
        for replica in node.broker.replicas:
            name, log, role = replica.name, replica.log, replica.role
            epoch, stored = role.leader_epoch if type(role) is LeaderOf else -1, logs.get(name)
            if log is None or stored is None:
                shows[name] = epoch, -1, -1, None
            else:
                shows[name] = epoch, log.high_watermark, log.end_offset, stored.written.last
        return shows

    def look(self) -> None:
        """At everything."""
        if not self._design.has_leader_epochs:
            return
        self._has_news()
        for of, watched in self._watched.items():
            self._look_at_replicas(of, watched)

    def _has_news(self) -> bool:
        """Was anything committed since the last look? Then all that is there has been looked at."""
        applied = self._cluster.ensemble.applied
        if applied == self._applied:
            return False
        self._applied = applied
        self._look_at_nodes()
        return True

    # --- what is in ZooKeeper ---------------------------------------------------------------

    def _look_at_nodes(self) -> None:
        epoch = self._cluster.ensemble.data(paths.CONTROLLER_EPOCH)
        now = 0 if epoch is None else decode_epoch(epoch)
        begun, self._controller_epoch = self._controller_epoch, now
        if now < begun:
            raise Violation("Z-CE", f"/controller_epoch is {now} after {begun}")
        self._look_at_topics()
        for of, watched in self._watched.items():
            state = partition_state(self._design, of, self._cluster.ensemble.data)
            if state is not None:
                self._check_state(of, watched.state, state, begun)
                watched.state = state

    def _check_state(
        self, of: TopicPartition, was: PartitionState | None, now: PartitionState, begun: int
    ) -> None:
        if now.leader >= 0 and now.leader not in now.isr:
            raise Violation("M-LI", f"{of}: {now.leader} leads, and in sync are {now.isr}")
        if was is None or was.leader_epoch == now.leader_epoch:
            return
        if now.leader >= 0 and now.leader_epoch < was.leader_epoch:
            raise Violation("M-PE", f"{of}: epoch {now.leader_epoch} after {was.leader_epoch}")
        if self._design.guards_writes and now.controller_epoch < begun:
            raise Violation(
                "Z-CE",
                f"{of}: the controller of epoch {now.controller_epoch} elected {now.leader} when "
                f"epoch {begun} had begun",
            )

    def _look_at_topics(self) -> None:
        found = topics_in(self._cluster.ensemble.tree)
        topics = {name: each.stat.czxid for name, each in found.items()}
        for of in list(self._watched):
            if topics.get(of.topic) != self._topics.get(of.topic):
                del self._watched[of]
        self._topics = topics
        for name, each in found.items():
            for partition in TopicAssignment.decode(each.data).partitions:
                of = TopicPartition(name, partition)
                if of not in self._watched:
                    self._watched[of] = _Watched(log=f"{name}-{partition}")

    # --- what is on brokers -----------------------------------------------------------------

    def _look_at_replicas(self, of: TopicPartition, watched: _Watched) -> None:
        replicas = {
            node.broker.config.node_id: node.broker.replicas.of_log(watched.log)
            for node in self._cluster.up
        }
        for node_id, replica in replicas.items():
            if replica is None or not isinstance(replica.role, LeaderOf):
                continue
            led = watched.leaders.setdefault(replica.role.leader_epoch, node_id)
            if led != node_id:
                told = f"{led} and {node_id} lead in epoch {replica.role.leader_epoch}"
                raise Violation("M-1L", f"{of}: {told}")
        if self._design.truncation is Truncation.LEADER_EPOCH and watched.state is not None:
            self._expose(of, watched, replicas)
            self._check_exposed(of, watched, watched.state, replicas)

    def _expose(
        self, of: TopicPartition, watched: _Watched, replicas: dict[int, Partition | None]
    ) -> None:
        for node_id, replica in replicas.items():
            written = self._written(replica)
            if replica is None or written is None or not isinstance(replica.role, LeaderOf):
                continue
            before, high_watermark = watched.exposed, replica.open_log.high_watermark
            if high_watermark <= (0 if before is None else before.next_offset):
                continue
            if before is not None and not written.holds_or_starts_behind(before):
                raise _lacks(of, f"{node_id} exposes up to {high_watermark}", written, before)
            watched.exposed = written.last_below(high_watermark) or before

    def _check_exposed(
        self,
        of: TopicPartition,
        watched: _Watched,
        state: PartitionState,
        replicas: dict[int, Partition | None],
    ) -> None:
        if watched.exposed is None:
            return
        for node_id in state.isr:
            written = self._written(replicas.get(node_id))  # None: down, or not begun yet
            if written is not None and not written.holds_or_starts_behind(watched.exposed):
                raise _lacks(of, f"{node_id} is in sync", written, watched.exposed)

    def _written(self, replica: Partition | None) -> Content | None:
        """None of a replica that is not there, or has not opened its log yet."""
        if replica is None or replica.log is None:
            return None
        stored = self._cluster.hosts[replica.node_id].disk.logs.get(replica.name)
        return None if stored is None else stored.written


def _lacks(of: TopicPartition, who: str, written: Content, exposed: Entry) -> Violation:
    told = f"{who}, and ends at {written.end_offset} in {written.last}"
    return Violation("D-THW", f"{of}: {told}, {exposed} was exposed")
