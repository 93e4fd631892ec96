"""Eligible leader replicas (KIP-966) and min.insync.replicas, which says when there are any.

A replica outside the ISR is eligible for as long as the high watermark stands still, which is while
the ISR is smaller than min.insync.replicas. A new value of min.insync.replicas breaks that promise,
so the eligible replicas are forgotten with it. The value has to be the same for every broker.

Source: Kafka's ConfigurationControlManager. Error messages are Kafka's.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from controller.config import ControllerConfig
from controller.metadata import configs
from controller.metadata.changes import Change
from controller.metadata.configs import MIN_ISR, Refusal
from controller.metadata.image import CLUSTER_DEFAULT, MetadataImage, ResourceType
from wire.errors import ErrorCode
from wire.metadata_records import ClearElrRecord, ConfigRecord, PartitionChangeRecord

__all__ = ["check_min_isr", "forgotten", "settle_min_isr"]

_EVERY_TOPIC = ""


def check_min_isr(image: MetadataImage, name: str, values: Mapping[str, str]) -> Refusal | None:
    """Why the broker `name`, or all of them (CLUSTER_DEFAULT), may not have these values while
    eligible leader replicas are in use."""
    if not image.has_eligible_leaders:
        return None
    before, after = image.config(ResourceType.BROKER, name).get(MIN_ISR), values.get(MIN_ISR)
    if before == after:
        return None
    if name != CLUSTER_DEFAULT:
        message = "Broker-level min.insync.replicas cannot be altered while ELR is enabled."
    elif after is None:
        message = "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."
    else:
        return None
    return Refusal(ErrorCode.INVALID_CONFIG, message)


def forgotten(image: MetadataImage, changes: Iterable[Change]) -> tuple[Change, ...]:
    """The eligible replicas that changes of configs make void; to be recorded first."""
    if not image.has_eligible_leaders:
        return ()
    topics = dict.fromkeys(
        change.resource_name if change.resource_type == ResourceType.TOPIC else _EVERY_TOPIC
        for change in changes
        if isinstance(change, ConfigRecord) and change.name == MIN_ISR
    )
    return tuple(chain.from_iterable(_forgotten_by(image, topic) for topic in topics))


def _forgotten_by(image: MetadataImage, name: str) -> Iterator[Change]:
    """One record, unless a partition of the topic has no ISR: nothing is committed there, whatever
    the minimum, and its eligible replicas are all that it has. Kafka forgets these, too."""
    table = image.partitions
    found = [
        each
        for each in table.partitions(table.rows_with_eligible_leaders())
        if name in (_EVERY_TOPIC, image.topics.by_id[each[0]].name)
    ]
    if all(state.isr for _, _, state in found):
        yield ClearElrRecord(topic_name=name)
        return
    for topic_id, index, state in found:
        if state.isr:
            yield PartitionChangeRecord(
                topic_id=topic_id,
                partition_id=index,
                eligible_leader_replicas=(),
                last_known_elr=(),
            )


def settle_min_isr(image: MetadataImage, config: ControllerConfig) -> Iterator[ConfigRecord]:
    """What is recorded with the feature that begins to use them: one value for every broker.

    From then on the files of brokers, which may differ, do not count.
    """
    default = image.config(ResourceType.BROKER, CLUSTER_DEFAULT)
    if MIN_ISR not in default:
        value = configs.min_insync_replicas(image, configs.NO_TOPIC, config.static_configs)
        yield _min_isr(CLUSTER_DEFAULT, str(value))
    for (resource_type, name), values in sorted(image.configs.items()):
        own = resource_type == ResourceType.BROKER and name != CLUSTER_DEFAULT
        if own and MIN_ISR in values:
            yield _min_isr(name, None)


def _min_isr(broker: str, value: str | None) -> ConfigRecord:
    return ConfigRecord(
        resource_type=ResourceType.BROKER, resource_name=broker, name=MIN_ISR, value=value
    )
