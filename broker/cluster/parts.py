"""The parts of a broker share these objects: they are made first, and passed to each part."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from broker.cluster.cluster import Cluster
from broker.cluster.config import OWNER, BrokerConfig
from broker.cluster.log_dirs import LogDirs
from broker.partition.local_log import Moves
from quorum.core.effects import FoundLog
from quorum.core.outbox import Outbox

__all__ = ["BrokerParts", "Incarnation"]


@dataclass(frozen=True, slots=True)
class BrokerParts:
    config: BrokerConfig
    cluster: Cluster
    log_dirs: LogDirs
    outbox: Outbox = field(default_factory=lambda: Outbox(OWNER))
    moves: Moves = field(default_factory=Moves)

    @classmethod
    def of(cls, config: BrokerConfig, found: Sequence[FoundLog] = ()) -> "BrokerParts":
        """`found` are the logs that lie in the data directories already."""
        return cls(config, Cluster(config), LogDirs(config, found))


class Incarnation:
    """One life of the broker's process, as the cluster knows it."""

    __slots__ = ("_cluster", "id", "node_id", "registered_epoch")

    def __init__(self, cluster: Cluster, id_: UUID) -> None:
        self._cluster = cluster
        self.id = id_
        self.node_id = cluster.config.node_id
        self.registered_epoch = -1  # as the last registration was answered

    @property
    def published_epoch(self) -> int | None:
        """The broker epoch under which the metadata has this incarnation."""
        return self._cluster.epoch_of(self.id)

    @property
    def broker_epoch(self) -> int:
        """The broker epoch of all requests but heartbeats, and of .kafka_cleanshutdown once the
        broker has stopped in order."""
        published = self.published_epoch
        return self.registered_epoch if published is None else published
