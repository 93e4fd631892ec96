"""DescribeClientQuotas (API key 48), as Kafka's message of version 1 has it."""

from wire.errors import ErrorCode
from wire.message import Message

__all__ = [
    "ComponentData",
    "DescribeClientQuotasRequest",
    "DescribeClientQuotasResponse",
    "EntityData",
    "EntryData",
    "ValueData",
]


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
