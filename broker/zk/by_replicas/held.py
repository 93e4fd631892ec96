"""A broker keeps what it knows of the partitions that it has, and the settings of its design.

Nothing is decided here. AR, RAR and ISR are the document's words for the assigned replicas, the
replicas after a reassignment, and the in-sync replicas.

Source: seed 002.
"""

from dataclasses import dataclass, field

from broker.zk.view import View
from controller.metadata.partitions import NO_LEADER
from quorum.core.outbox import Outbox
from quorum.zookeeper.zk_procedures import Procedures
from wire.zk.control_rpc import TopicPartition
from wire.zk.designs import Design
from wire.zk.session import Session
from wire.zk.znodes import NO_EPOCH

__all__ = ["NO_NODE", "Held", "ReplicaContext", "ReplicaSettings"]

NO_NODE = -1  # the version of a node that is not there


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaSettings:
    election_wait_ms: int = 1000  # LeaderElectionWaitTime
    keep_in_sync_ms: int = 10_000  # KeepInSyncTime
    max_lag_records: int = 4000  # replica.lag.max.messages, where the design limits that
    head_start_ms: int = 100  # of each replica that comes before us in AR; 0: all rush
    check_interval_ms: int = 1000  # checkReassignedReplicas, checkLoadBalancing
    close_wait_ms: int = 30_000  # for replicas that were told to close; then it is an error
    queue_max: int = 1000  # requests in the queue of a broker
    is_unclean_allowed: bool = True  # others than in-sync replicas may lead in the end


@dataclass(slots=True, kw_only=True, eq=False)
class Held:
    of: TopicPartition
    replicas: tuple[int, ...] = ()  # AR; the first is preferred
    target: tuple[int, ...] | None = None  # RAR; None: it is not being reassigned
    isr: tuple[int, ...] = ()
    isr_version: int = NO_NODE
    leader: int = NO_LEADER
    leader_epoch: int = NO_EPOCH
    leader_zxid: int = 0  # of the creation of the leader's node: which of two is the later
    leaderless_since_ms: int | None = None
    changes: int = 0  # how often the replica was told what to be

    # Of its leader.
    target_version: int | None = None  # of the node that lists RAR; None: there is none
    dropped: tuple[int, ...] = ()  # they were to have a replica, before RAR was another
    close_sent_ms: int | None = None  # when the replicas that shall go were told to close

    def move_to(self, target: tuple[int, ...]) -> None:
        """Replicas that were started for an earlier target are dropped, as the old ones are."""
        started = dict.fromkeys((*self.dropped, *(self.target or ())))
        self.dropped = tuple(
            each for each in started if each not in target and each not in self.replicas
        )
        self.target, self.close_sent_ms = target, None

    def stay(self) -> None:
        """The reassignment has ended."""
        self.target, self.dropped, self.close_sent_ms = None, (), None
        self.target_version = None

    @property
    def old(self) -> tuple[int, ...]:
        """AR - RAR, and the replicas that were added for an earlier target."""
        if self.target is None:
            return ()
        return tuple(each for each in (*self.replicas, *self.dropped) if each not in self.target)

    @property
    def leaving(self) -> tuple[int, ...]:
        """The replicas that were told to close."""
        return () if self.close_sent_ms is None else self.old

    @property
    def members(self) -> tuple[int, ...]:
        """The brokers that may have a replica: AR, RAR and ISR."""
        return tuple(dict.fromkeys((*self.replicas, *(self.target or ()), *self.isr)))


@dataclass(slots=True, kw_only=True)
class ReplicaContext:
    design: Design
    settings: ReplicaSettings
    node_id: int
    session: Session
    outbox: Outbox
    procedures: Procedures
    view: View
    held: dict[TopicPartition, Held] = field(default_factory=dict)
