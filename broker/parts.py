"""All parts of a broker share these objects, which are made before the parts."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from broker.cluster import Cluster
from broker.config import OWNER, BrokerConfig
from broker.log_dirs import LogDirs
from broker.partition.local_log import Moves
from quorum.core.effects import FoundLog
from quorum.core.outbox import Outbox

__all__ = ["BrokerParts"]


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
