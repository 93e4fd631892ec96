"""Client quotas: describe, alter."""

from wire.errors import ErrorCode
from wire.message import Message


class ComponentData(Message):
    entity_type: str  # user, client-id or ip
    match_type: int  # 0 exact name, 1 the default entity, 2 any
    match: str | None = None


class DescribeClientQuotasRequest(Message):
    components: tuple[ComponentData, ...]
    strict: bool = False


class EntityData(Message):
    entity_type: str
    entity_name: str | None = None  # None: the default entity


class ValueData(Message):
    key: str
    value: float


class EntryData(Message):
    entity: tuple[EntityData, ...]
    values: tuple[ValueData, ...]


class DescribeClientQuotasResponse(Message):
    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    entries: tuple[EntryData, ...] | None = ()


class OpData(Message):
    key: str
    value: float = 0.0
    remove: bool = False


class AlterEntryData(Message):
    entity: tuple[EntityData, ...]
    ops: tuple[OpData, ...]


class AlterClientQuotasRequest(Message):
    entries: tuple[AlterEntryData, ...]
    validate_only: bool = False


class AlteredEntryData(Message):
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    entity: tuple[EntityData, ...]


class AlterClientQuotasResponse(Message):
    throttle_time_ms: int = 0
    entries: tuple[AlteredEntryData, ...]
