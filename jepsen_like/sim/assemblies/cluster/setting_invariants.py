"""Invariants of brokers that follow the settings of topics, by the metadata that they show.

D-RET   what retention lets go of was exposed, and goes by the limits of the topic: by those alone
D-MSG   a leader appends no batch that is larger than max.message.bytes

That a node shows committed metadata is M-UNC. Any setting counts that has held since the turn
began (images_of_turn.py).
"""

from collections.abc import Callable
from uuid import UUID

from broker.broker import Broker
from broker.partition.partition import LeaderOf, Partition
from controller.metadata.configs import topic_value
from jepsen_like.sim.assemblies.cluster.images_of_turn import ImagesOfTurn
from jepsen_like.sim.assemblies.cluster.nodes import ClusterNode
from jepsen_like.sim.assemblies.cluster.partition_invariants import PartitionInvariants
from jepsen_like.sim.violation import Violation
from jepsen_like.sim.world.host import Host
from jepsen_like.sim.world.observer import Observer
from quorum.core.effects import Append, Effect, Retain
from quorum.core.storage import METADATA_LOG
from wire.batch import read_header

__all__ = ["SettingInvariants"]

_SIZE = "max.message.bytes"


class SettingInvariants(Observer):
    """Raises `Violation`."""

    performing_kinds = (Append, Retain)

    def __init__(
        self,
        *,
        node_of: Callable[[Host], ClusterNode],
        partitions: PartitionInvariants,
        images: ImagesOfTurn,
        fired: Callable[[str], None],
    ) -> None:
        self._node_of = node_of
        self._partitions = partitions
        self._images = images
        self._fired = fired

    def _settings(self, host: Host, broker: Broker, topic: str, *keys: str) -> set[tuple[int, ...]]:
        """What they have been in this turn."""
        images = {id(image): image for image in self._images.of(host, broker)}
        return {
            tuple(int(topic_value(image, topic, key)) for key in keys) for image in images.values()
        }

    def performing(self, host: Host, effect: Effect) -> None:
        broker = self._node_of(host).broker
        if broker is None or not isinstance(effect, Append | Retain) or effect.log == METADATA_LOG:
            return
        partition = _hosted(broker, effect.log)
        if partition is None:
            return
        if isinstance(effect, Retain):
            self._goes_by_its_limits(host, broker, partition, effect)
            self._lets_go(host, partition, effect)
        elif isinstance(partition.role, LeaderOf):
            self._is_not_too_large(host, broker, partition, effect)

    def _goes_by_its_limits(
        self, host: Host, broker: Broker, partition: Partition, effect: Retain
    ) -> None:
        asked = (
            -1 if effect.since_ms is None else host.now_ms - effect.since_ms,
            -1 if effect.bytes_max is None else effect.bytes_max,
        )
        topic = partition.topic
        limits = self._settings(host, broker, topic, "retention.ms", "retention.bytes")
        if asked not in limits:
            raise Violation(
                "D-RET",
                f"{partition.name} of {host.node_id}: (ms, bytes) are {limits}, and it goes by"
                f" {asked}",
            )

    def _lets_go(self, host: Host, partition: Partition, effect: Retain) -> None:
        high_watermark = partition.open_log.high_watermark
        if effect.end_offset > high_watermark:
            raise Violation(
                "D-RET",
                f"{partition.name} of {host.node_id}: records up to {effect.end_offset} may go,"
                f" exposed are those up to {high_watermark}",
            )
        stored = host.disk.log(effect.log)
        start_offset = stored.retained_from(effect)
        if start_offset > stored.written.start_offset:
            self._fired("retained")
            self._partitions.watched[_key(partition)].deletable.retained(start_offset)

    def _is_not_too_large(
        self, host: Host, broker: Broker, partition: Partition, effect: Append
    ) -> None:
        size = read_header(effect.records).size_bytes
        if size <= int(topic_value(broker.cluster.image, partition.topic, _SIZE)):
            return
        sizes = self._settings(host, broker, partition.topic, _SIZE)
        if size > max(sizes)[0]:
            raise Violation("D-MSG", f"{partition.name}: a batch of {size} bytes, not {sizes}")


def _hosted(broker: Broker, log: str) -> Partition | None:
    found = (each for each in broker.replicas if each.name == log and each.log is not None)
    return next(found, None)


def _key(partition: Partition) -> tuple[UUID, int]:
    return partition.topic_id, partition.index
