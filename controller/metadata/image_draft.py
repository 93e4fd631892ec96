"""An image in the making: what each record does to it.

An `ImageDraft` copies what it touches of an image and shares the rest. Records say what is, not
what should be: nothing is decided here, and a record that cannot follow from the image (a change
of an unknown partition) is a broken log, not a request to refuse.

Credentials, ACLs, quotas and delegation tokens are kept and shown; nothing enforces them.

Source: KIP-631 and its successors; what Kafka's image does with each record.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from controller.metadata.changes import Change
from controller.metadata.delta import MetadataDelta
from controller.metadata.image import (
    BrokerImage,
    ControllerImage,
    MetadataImage,
    ResourceType,
    quota_entity,
)
from controller.metadata.mapping_draft import MappingDraft
from controller.metadata.topics_draft import TopicsDraft, UnreplayableRecord
from quorum.core.types import OffsetAndEpoch
from wire import metadata_records as records
from wire.partition_columns import NewPartitions, PartitionChanges

__all__ = ["ImageDraft"]


class ImageDraft:
    """A successor of an image in the making."""

    def __init__(self, image: MetadataImage) -> None:
        self._transaction = image.transaction
        self.topics = TopicsDraft(image.topics, image.partitions)
        self.features = MappingDraft(image.features)
        self.brokers = MappingDraft(image.brokers)
        self.controllers = MappingDraft(image.controllers)
        self.configs = MappingDraft(image.configs)
        self.client_quotas = MappingDraft(image.client_quotas)
        self.acls = MappingDraft(image.acls)
        self.scram_credentials = MappingDraft(image.scram_credentials)
        self.delegation_tokens = MappingDraft(image.delegation_tokens)
        self.next_producer_id = image.next_producer_id

    def finish(self, at: OffsetAndEpoch) -> tuple[MetadataImage, MetadataDelta]:
        """The successor and what changed; the draft is then spent."""
        topics, partitions = self.topics.finish()
        image = MetadataImage(
            at=at,
            features=self.features.now,
            brokers=self.brokers.now,
            controllers=self.controllers.now,
            topics=topics,
            partitions=partitions,
            configs=self.configs.now,
            next_producer_id=self.next_producer_id,
            client_quotas=self.client_quotas.now,
            acls=self.acls.now,
            scram_credentials=self.scram_credentials.now,
            delegation_tokens=self.delegation_tokens.now,
            transaction=self._transaction,
        )
        return image, self._delta()

    def _delta(self) -> MetadataDelta:
        return MetadataDelta(
            topics_created=self.topics.created,
            topics_deleted=self.topics.deleted,
            rows_changed=self.topics.rows_changed,
            brokers_changed=tuple(self.brokers.changed),
            controllers_changed=tuple(self.controllers.changed),
            configs_changed=tuple(self.configs.changed),
            features_changed=tuple(self.features.changed),
        )

    def settle_registrations(self, offset: int) -> None:
        """Records of a snapshot have no offset: its brokers count as registered at its end."""
        for broker in self.brokers.now.values():
            self.brokers.put(broker.id, replace(broker, registered_at_offset=offset))

    def replay(self, change: Change, offset: int) -> None:
        """Apply one change, the (first) record of which lies at `offset`."""
        match change:
            case PartitionChanges():
                self.topics.change_block(change)
                return
            case NewPartitions():
                self.topics.put_block(change)
                return
            case _:
                pass
        replay = _REPLAY.get(type(change))
        if replay is not None:
            replay(self, change, offset)


# --- topics -----------------------------------------------------------------------------------


def _remove_topic(draft: ImageDraft, record: records.RemoveTopicRecord, _: int) -> None:
    topic = draft.topics.remove(record)
    resource = (ResourceType.TOPIC, topic.name)
    if resource in draft.configs.now:
        draft.configs.remove(resource)


# --- brokers and controllers ------------------------------------------------------------------


def _register_broker(draft: ImageDraft, record: records.RegisterBrokerRecord, offset: int) -> None:
    draft.brokers.put(
        record.broker_id,
        BrokerImage(
            id=record.broker_id,
            incarnation_id=record.incarnation_id,
            epoch=record.broker_epoch,
            end_points=record.end_points,
            features={feature.name: feature for feature in record.features},
            rack=record.rack,
            fenced=record.fenced,
            in_controlled_shutdown=record.in_controlled_shutdown,
            log_dirs=record.log_dirs,
            cordoned_log_dirs=record.cordoned_log_dirs,
            registered_at_offset=offset,
        ),
    )


def _unregister_broker(draft: ImageDraft, record: records.UnregisterBrokerRecord, _: int) -> None:
    _broker(draft, record.broker_id, record.broker_epoch, record)
    draft.brokers.remove(record.broker_id)


def _change_broker(
    draft: ImageDraft, record: records.BrokerRegistrationChangeRecord, _: int
) -> None:
    broker = _broker(draft, record.broker_id, record.broker_epoch, record)
    cordoned = record.cordoned_log_dirs
    changed = replace(
        broker,
        fenced=broker.fenced if record.fenced == 0 else record.fenced > 0,
        in_controlled_shutdown=broker.in_controlled_shutdown or record.in_controlled_shutdown > 0,
        log_dirs=record.log_dirs or broker.log_dirs,
        cordoned_log_dirs=broker.cordoned_log_dirs if cordoned is None else cordoned,
    )
    draft.brokers.put(broker.id, changed)


def _fence_broker(draft: ImageDraft, record: records.FenceBrokerRecord, _: int) -> None:
    broker = _broker(draft, record.id, record.epoch, record)
    draft.brokers.put(broker.id, replace(broker, fenced=True))


def _unfence_broker(draft: ImageDraft, record: records.UnfenceBrokerRecord, _: int) -> None:
    broker = _broker(draft, record.id, record.epoch, record)
    draft.brokers.put(broker.id, replace(broker, fenced=False))


def _broker(draft: ImageDraft, broker_id: int, epoch: int, record: object) -> BrokerImage:
    broker = draft.brokers.now.get(broker_id)
    if broker is None or broker.epoch != epoch:
        raise UnreplayableRecord(f"no such broker of that epoch: {record}")
    return broker


def _register_controller(
    draft: ImageDraft, record: records.RegisterControllerRecord, _: int
) -> None:
    draft.controllers.put(
        record.controller_id,
        ControllerImage(
            id=record.controller_id,
            incarnation_id=record.incarnation_id,
            zk_migration_ready=record.zk_migration_ready,
            end_points=record.end_points,
            features={feature.name: feature for feature in record.features},
        ),
    )


# --- configs, features, quotas ------------------------------------------------------------------


def _set_config(draft: ImageDraft, record: records.ConfigRecord, _: int) -> None:
    resource = (record.resource_type, record.resource_name)
    values = dict(draft.configs.now.get(resource, {}))
    if record.value is None:
        values.pop(record.name, None)
    else:
        values[record.name] = record.value
    _put_or_remove(draft.configs, resource, values)


def _set_quota(draft: ImageDraft, record: records.ClientQuotaRecord, _: int) -> None:
    entity = quota_entity(record.entity)
    values = dict(draft.client_quotas.now.get(entity, {}))
    if record.remove:
        values.pop(record.key, None)
    else:
        values[record.key] = record.value
    _put_or_remove(draft.client_quotas, entity, values)


def _put_or_remove(mapping: MappingDraft[Any, Any], key: object, values: Mapping[str, Any]) -> None:
    """What has no values is not listed."""
    if values:
        mapping.put(key, values)
    else:
        mapping.remove(key)


def _set_feature(draft: ImageDraft, record: records.FeatureLevelRecord, _: int) -> None:
    if record.feature_level:
        draft.features.put(record.name, record.feature_level)
    else:
        draft.features.remove(record.name)


def _set_producer_ids(draft: ImageDraft, record: records.ProducerIdsRecord, _: int) -> None:
    if record.next_producer_id <= draft.next_producer_id:
        raise UnreplayableRecord(f"producer ids must grow: {record}")
    draft.next_producer_id = record.next_producer_id


_REPLAY: Mapping[type, Callable[[ImageDraft, Any, int], None]] = {
    records.TopicRecord: lambda draft, record, _: draft.topics.create(record),
    records.RemoveTopicRecord: _remove_topic,
    records.PartitionRecord: lambda draft, record, _: draft.topics.put_partition(record),
    records.PartitionChangeRecord: lambda draft, record, _: draft.topics.change_partition(record),
    records.ClearElrRecord: lambda draft, record, _: draft.topics.clear_elr(record),
    records.RegisterBrokerRecord: _register_broker,
    records.UnregisterBrokerRecord: _unregister_broker,
    records.BrokerRegistrationChangeRecord: _change_broker,
    records.FenceBrokerRecord: _fence_broker,
    records.UnfenceBrokerRecord: _unfence_broker,
    records.RegisterControllerRecord: _register_controller,
    records.ConfigRecord: _set_config,
    records.FeatureLevelRecord: _set_feature,
    records.ProducerIdsRecord: _set_producer_ids,
    records.ClientQuotaRecord: _set_quota,
    records.AccessControlEntryRecord: lambda draft, record, _: draft.acls.put(record.id, record),
    records.RemoveAccessControlEntryRecord: lambda draft, record, _: draft.acls.remove(record.id),
    records.UserScramCredentialRecord: lambda draft, record, _: draft.scram_credentials.put(
        (record.name, record.mechanism), record
    ),
    records.RemoveUserScramCredentialRecord: lambda draft, record, _: (
        draft.scram_credentials.remove((record.name, record.mechanism))
    ),
    records.DelegationTokenRecord: lambda draft, record, _: draft.delegation_tokens.put(
        record.token_id, record
    ),
    records.RemoveDelegationTokenRecord: lambda draft, record, _: draft.delegation_tokens.remove(
        record.token_id
    ),
}
