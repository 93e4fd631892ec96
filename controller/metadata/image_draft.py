"""An image in the making: what each record does to it.

An `ImageDraft` drafts the sections of an image that records touch, and shares the rest. Records
say what is, not what should be: nothing is decided here, and a record that cannot follow from the
image (a change of an unknown partition) is a broken log, not a request to refuse.

Credentials, ACLs and delegation tokens are kept and shown; nothing enforces them.

Source: KIP-631 and its successors; what Kafka's image does with each record.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Generic, TypeVar
from uuid import UUID

from controller.metadata.changes import Change
from controller.metadata.delta import SECTIONS, ConfigResource, MetadataDelta
from controller.metadata.draft import MappingDraft
from controller.metadata.image import (
    BrokerImage,
    ControllerImage,
    MetadataImage,
    QuotaEntities,
    ResourceType,
    quota_entity,
)
from controller.metadata.topics_draft import TopicsDraft, UnreplayableRecord
from quorum.core.types import OffsetAndEpoch
from wire import metadata_records as records
from wire.foreign_records import ForeignRecord
from wire.partition_columns import NewPartitions, PartitionBlock, PartitionChanges

__all__ = ["ImageDraft"]

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class _Section(Generic[_Key, _Value]):
    """A mapping of the image, drafted when a record first needs it."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, draft: "ImageDraft", owner: type) -> MappingDraft[_Key, _Value]:
        mapping = draft.mappings.get(self._name)
        if mapping is None:
            mapping = draft.mappings[self._name] = MappingDraft(getattr(draft.before, self._name))
        return mapping


class ImageDraft:
    """A successor of the image `before` in the making."""

    features = _Section[str, int]()
    brokers = _Section[int, BrokerImage]()
    controllers = _Section[int, ControllerImage]()
    configs = _Section[ConfigResource, Mapping[str, str]]()
    client_quotas = _Section[QuotaEntities, Mapping[str, float]]()
    acls = _Section[UUID, records.AccessControlEntryRecord]()
    scram_credentials = _Section[tuple[str, int], records.UserScramCredentialRecord]()
    delegation_tokens = _Section[str, records.DelegationTokenRecord]()

    def __init__(self, before: MetadataImage) -> None:
        self.before = before
        self.mappings: dict[str, MappingDraft[Any, Any]] = {}  # by the name of the section
        self.next_producer_id = before.next_producer_id
        self.lacks = before.lacks
        self.lacks_acls = before.lacks_acls
        self._topics: TopicsDraft | None = None

    @property
    def topics(self) -> TopicsDraft:
        if self._topics is None:
            self._topics = TopicsDraft(self.before.topics, self.before.partitions)
        return self._topics

    def finish(self, at: OffsetAndEpoch) -> MetadataImage:
        """The successor; nothing may be replayed into the draft any more."""
        after: dict[str, Any] = {name: draft.now for name, draft in self.mappings.items()}
        if self._topics is not None:
            after["topics"], after["partitions"] = self._topics.finish()
        return self.before._replace(
            at=at,
            next_producer_id=self.next_producer_id,
            lacks=self.lacks,
            lacks_acls=self.lacks_acls,
            **after,
        )

    def delta(self) -> MetadataDelta:
        changed: dict[str, Any] = {} if self._topics is None else self._topics.changed()
        for section in SECTIONS:
            if section in self.mappings:
                changed[f"{section}_changed"] = tuple(self.mappings[section].changed)
        return MetadataDelta(**changed)

    def settle_registrations(self, offset: int) -> None:
        """Records of a snapshot have no offset: its brokers count as registered at its end."""
        for broker in self.brokers.now.values():
            self.brokers.put(broker.id, replace(broker, registered_at_offset=offset))

    def replay(self, change: Change, offset: int) -> None:
        """Apply one change, the (first) record of which lies at `offset`.

        Where something is lacking, so is what rests on it.
        """
        replay = _REPLAY.get(type(change))
        if replay is None:
            return
        if not self.lacks:
            replay(self, change, offset)
            return
        for record in change.records() if isinstance(change, PartitionBlock) else (change,):
            with suppress(UnreplayableRecord):
                _REPLAY[type(record)](self, record, offset)


_MAY_BE_ACLS = (None, records.AccessControlEntryRecord, records.RemoveAccessControlEntryRecord)


def _lack(draft: ImageDraft, record: ForeignRecord, offset: int) -> None:
    if record.known is not None:
        draft.replay(record.known, offset)
    draft.lacks = draft.lacks or f"at offset {offset}, {record.reason}"
    draft.lacks_acls = draft.lacks_acls or record.kind in _MAY_BE_ACLS


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


def _fence(
    draft: ImageDraft, record: records.FenceBrokerRecord | records.UnfenceBrokerRecord, _: int
) -> None:
    broker = _broker(draft, record.id, record.epoch, record)
    is_fenced = isinstance(record, records.FenceBrokerRecord)
    draft.brokers.put(broker.id, replace(broker, fenced=is_fenced))


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


def _unregister_controller(
    draft: ImageDraft, record: records.UnregisterControllerRecord, _: int
) -> None:
    if record.controller_id not in draft.controllers.now:
        raise UnreplayableRecord(f"no such controller: {record}")
    draft.controllers.remove(record.controller_id)


# --- configs, features, quotas ------------------------------------------------------------------


def _set_config(draft: ImageDraft, record: records.ConfigRecord, _: int) -> None:
    resource = (record.resource_type, record.resource_name)
    _set_value(draft.configs, resource, record.name, record.value)


def _set_quota(draft: ImageDraft, record: records.ClientQuotaRecord, _: int) -> None:
    value = None if record.remove else record.value
    _set_value(draft.client_quotas, quota_entity(record.entity), record.key, value)


def _set_value(
    mapping: MappingDraft[_Key, Mapping[str, _Value]], key: _Key, name: str, value: _Value | None
) -> None:
    """Set or remove (None) one value of `key`; a key without values is dropped."""
    values = dict(mapping.now.get(key, {}))
    if value is None:
        values.pop(name, None)
    else:
        values[name] = value
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
    ForeignRecord: _lack,
    records.TopicRecord: lambda draft, record, _: draft.topics.create(record),
    records.RemoveTopicRecord: _remove_topic,
    records.PartitionRecord: lambda draft, record, _: draft.topics.put_partition(record),
    records.PartitionChangeRecord: lambda draft, record, _: draft.topics.change_partition(record),
    PartitionChanges: lambda draft, block, _: draft.topics.change_block(block),
    NewPartitions: lambda draft, block, _: draft.topics.put_block(block),
    records.ClearElrRecord: lambda draft, record, _: draft.topics.clear_elr(record),
    records.RegisterBrokerRecord: _register_broker,
    records.UnregisterBrokerRecord: _unregister_broker,
    records.BrokerRegistrationChangeRecord: _change_broker,
    records.FenceBrokerRecord: _fence,
    records.UnfenceBrokerRecord: _fence,
    records.RegisterControllerRecord: _register_controller,
    records.UnregisterControllerRecord: _unregister_controller,
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
