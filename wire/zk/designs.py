"""The five ZooKeeper designs as values.

Where two designs differ, a field of `Design` says so, and the code that differs asks that field.
Fields marked "seed 001" are the improvements that its document argues for: each can be
switched by itself (`dataclasses.replace`), so that its effect can be measured.

Source: seeds 000 to 004; the table of the documents is in docs/zookeeper-mode.md.
"""

from dataclasses import dataclass, replace
from enum import Enum

__all__ = [
    "DESIGNS",
    "ZK_KIP497",
    "ZK_REDESIGN",
    "ZK_V1",
    "ZK_V2",
    "ZK_V3",
    "Design",
    "IsrWriter",
    "Layout",
    "Routing",
    "Truncation",
    "at_version",
]


class Elector(Enum):
    """The elector of a partition's leader."""

    REPLICAS = "the replicas themselves"
    CONTROLLER = "one broker, the owner of /controller"


class Layout(Enum):
    """The paths in ZooKeeper: see `wire.zk.paths`."""

    V2 = "seed 002"
    V3 = "seed 000"
    KAFKA = "Apache Kafka"


class IsrWriter(Enum):
    LEADER = "the leader: conditionally, straight to ZooKeeper"
    LEADER_NOTIFYING = "the leader, which tells the controller through /isr_change_notification"
    CONTROLLER = "the controller, asked by AlterIsr"


class Routing(Enum):
    """The source of the metadata with which a broker answers clients."""

    ZOOKEEPER = "read when a client asks"
    UPDATE_METADATA = "told by the controller"


class Truncation(Enum):
    """The point to which a replica truncates its log before it follows."""

    HIGH_WATERMARK = "all above its high watermark"
    LEADER_EPOCH = "what its leader has not, by leader epochs (KIP-101)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    name: str
    elector: Elector = Elector.CONTROLLER
    has_leader_epochs: bool = True
    has_state_queues: bool = False  # a leader tells a broker to start or close a replica
    layout: Layout = Layout.KAFKA
    isr_writer: IsrWriter = IsrWriter.LEADER_NOTIFYING
    routing: Routing = Routing.UPDATE_METADATA
    truncation: Truncation = Truncation.LEADER_EPOCH
    limits_lag_in_records: bool = False  # seeds 000 and 004: also replica.lag.max.messages
    lag_time_ms: int = 30_000  # the default of replica.lag.time.max.ms; seed 004: 10,000
    is_unclean_by_default: bool = False  # seed 000, A.3.2
    checks_controller_epoch: bool = True  # brokers refuse commands of an earlier controller
    retries_commands: bool = True  # until the broker is gone; else a command may be lost (B4)
    guards_writes: bool = False  # the controller's writes hold only in its epoch (B2, B8)
    writes_in_batches: bool = False  # as multis; each partition still fails by itself
    has_kip_455: bool = False  # moves are redirected and cancelled, and wait for who is new

    # Seed 001.
    pipelines_writes: bool = True  # else one round trip after the other
    batches_commands: bool = True  # else a request a partition, a stop twice, and metadata to all
    prioritises_commands: bool = True  # before what clients ask of the broker
    checks_generation: bool = True  # commands name the life of the broker that they are for
    hears_session_at_once: bool = True  # else behind the notifications that are queued

    @property
    def has_controller(self) -> bool:
        return self.elector is Elector.CONTROLLER

    @property
    def has_preferred_leaders(self) -> bool:
        """Does leadership go back to a partition's first replica, asked for or not?"""
        return self.layout is Layout.KAFKA or self.has_state_queues


# What all designs before seed 001 have in common.
_EARLY = Design(
    name="",
    isr_writer=IsrWriter.LEADER,
    routing=Routing.ZOOKEEPER,
    truncation=Truncation.HIGH_WATERMARK,
    lag_time_ms=10_000,
    is_unclean_by_default=True,
    checks_controller_epoch=False,
    retries_commands=False,
    pipelines_writes=False,
    prioritises_commands=False,
    checks_generation=False,
    hears_session_at_once=False,
)

# It batches commands: "we can put multiple commands in one RPC request".
ZK_V3 = replace(_EARLY, name="zk-v3", layout=Layout.V3, limits_lag_in_records=True)

ZK_V2 = replace(
    _EARLY,
    name="zk-v2",
    elector=Elector.REPLICAS,
    has_state_queues=True,
    layout=Layout.V2,
    batches_commands=False,
)

ZK_V1 = replace(
    ZK_V2,
    name="zk-v1",
    has_leader_epochs=False,
    has_state_queues=False,
    limits_lag_in_records=True,
)

ZK_REDESIGN = Design(name="zk-redesign")

ZK_KIP497 = Design(
    name="zk-kip497",
    isr_writer=IsrWriter.CONTROLLER,
    guards_writes=True,
    writes_in_batches=True,
    has_kip_455=True,
)

_ALTER_ISR_SINCE = (2, 7, 2)  # 2.7-IV2
_LAST_LEVEL = 99


def at_version(design: Design, inter_broker_protocol: str) -> Design:
    """Returns what `design` is until `inter.broker.protocol.version` is raised on all brokers.

    Before KIP-497's version, leaders write ISRs themselves and the controller watches for their
    notes. Raises ValueError for what is no version.
    """
    version = _version(inter_broker_protocol)
    if version >= _ALTER_ISR_SINCE or design.isr_writer is not IsrWriter.CONTROLLER:
        return design
    return replace(design, isr_writer=IsrWriter.LEADER_NOTIFYING)


def _version(text: str) -> tuple[int, int, int]:
    """`2.6`, `2.6.1` or `2.6-IV0`; without an IV the last one of that release is meant."""
    release, _, level = text.partition("-IV")
    major, minor, *_ = (int(each) for each in release.split("."))
    return major, minor, int(level) if level else _LAST_LEVEL


DESIGNS = {design.name: design for design in (ZK_V1, ZK_V2, ZK_V3, ZK_REDESIGN, ZK_KIP497)}
