"""Client quotas: set and remove the values of an entity. `controller.quotas` enforces them.

An entity is a user, a client id, both, or an address; its name may be the default one (None).

Source: KIP-546, KIP-599; Kafka's ClientQuotaControlManager. The checks stand in Kafka's order.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from ipaddress import ip_address
from math import isfinite
from types import MappingProxyType

from controller.decisions.decision import Decision, limited
from controller.metadata.changes import Change
from controller.metadata.client_quotas import CLIENT_ID, IP, USER
from controller.metadata.config_keys import ConfigType
from controller.metadata.configs import NO_ERROR, Refusal
from controller.metadata.image import MetadataImage, QuotaEntities, quota_entity
from wire.errors import ErrorCode
from wire.messages import client_quotas as messages
from wire.metadata_records import ClientQuotaRecord, QuotaEntity
from wire.primitives import INT32_MAX, INT64_MAX

__all__ = ["decide_alter_client_quotas"]

_CLIENT_KEYS = MappingProxyType(
    {
        "producer_byte_rate": ConfigType.LONG,
        "consumer_byte_rate": ConfigType.LONG,
        "request_percentage": ConfigType.DOUBLE,
        "controller_mutation_rate": ConfigType.DOUBLE,
    }
)
_IP_KEYS = MappingProxyType({"connection_creation_rate": ConfigType.INT})
_LARGEST = {ConfigType.LONG: INT64_MAX, ConfigType.INT: INT32_MAX}
_FRACTION_MAX = 1e-6  # as Kafka: what a number of 64 bits cannot tell from a whole one


def decide_alter_client_quotas(
    image: MetadataImage, request: messages.AlterClientQuotasRequest
) -> Decision[messages.AlterClientQuotasResponse]:
    """Entities fail or succeed by themselves; what succeeds is one batch."""
    changes: list[Change] = []
    found: list[Refusal] = []
    named = Counter(_key(entry) for entry in request.entries)
    for entry in request.entries:
        altered = _altered(image, entry, is_repeated=named[_key(entry)] > 1)
        found.append(altered if isinstance(altered, Refusal) else NO_ERROR)
        changes += [] if isinstance(altered, Refusal) else altered
    found, changes = limited(found, changes)
    results = tuple(
        each.told(messages.AlteredEntryData, entity=entry.entity)
        for entry, each in zip(request.entries, found, strict=True)
    )
    response = messages.AlterClientQuotasResponse(entries=results)
    return Decision(response=response, changes=() if request.validate_only else tuple(changes))


def _key(entry: messages.AlterEntryData) -> QuotaEntities:
    return quota_entity(
        QuotaEntity(entity_type=item.entity_type, entity_name=item.entity_name)
        for item in entry.entity
    )


def _altered(
    image: MetadataImage, entry: messages.AlterEntryData, *, is_repeated: bool
) -> Sequence[Change] | Refusal:
    if is_repeated:
        return _refused("Each entity must appear at most once.")
    keys = [operation.key for operation in entry.ops]
    repeated = next((key for key in keys if keys.count(key) > 1), None)
    if repeated is not None:
        return _refused(f"Duplicate quota key {repeated} in one entity.")
    wrong = _entity_problem(entry.entity)
    if wrong is not None:
        return _refused(wrong)
    known = _IP_KEYS if entry.entity[0].entity_type == IP else _CLIENT_KEYS
    entity = _key(entry)
    now = image.client_quotas.get(entity, {})
    changes: list[Change] = []
    for operation in entry.ops:
        if not operation.remove:
            wrong = _value_problem(known, operation.key, operation.value)
            if wrong is not None:
                return _refused(wrong)
        if (None if operation.remove else operation.value) != now.get(operation.key):
            value = 0.0 if operation.remove else operation.value
            changes.append(
                ClientQuotaRecord(
                    entity=entity, key=operation.key, value=value, remove=operation.remove
                )
            )
    return changes


def _refused(message: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, message)


def _entity_problem(entity: Sequence[messages.EntityData]) -> str | None:
    types = [item.entity_type for item in entity]
    for item in entity:
        if types.count(item.entity_type) > 1:
            return f"Invalid client quota entity, duplicate entity entry {item.entity_type}"
        if item.entity_type not in (USER, CLIENT_ID, IP):
            return f"Unhandled client quota entity type: {item.entity_type}"
        if item.entity_name == "":
            return f"Empty {item.entity_type} not supported"
    if not entity:
        return "Invalid empty client quota entity"
    if IP in types and len(types) > 1:
        return "Invalid quota entity combination: an IP stands alone."
    if types == [IP] and not _is_address(entity[0].entity_name):
        return f"{entity[0].entity_name} is not a valid IP: names of hosts are not looked up."
    return None


def _is_address(name: str | None) -> bool:
    if name is None:
        return True
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _value_problem(known: Mapping[str, ConfigType], key: str, value: float) -> str | None:
    kind = known.get(key)
    if kind is None:
        return f"Invalid configuration key {key}"
    if not isfinite(value):
        return f"{key} must be a number, not {value}."
    if value <= 0:
        return f"Quota {key} must be greater than 0"
    if kind not in _LARGEST:
        return None
    if value > _LARGEST[kind]:
        return f"Proposed value for {key} is too large for a number of type {kind.name}."
    if abs(value) % 1.0 > _FRACTION_MAX:
        return f"{key} cannot be a fractional value."
    return None
