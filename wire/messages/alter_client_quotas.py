"""AlterClientQuotas (API key 49), as Kafka's message of version 1 has it."""

from wire.errors import ErrorCode
from wire.message import Message

__all__ = [
    "AlterClientQuotasRequest",
    "AlterClientQuotasResponse",
    "AlterEntryData",
    "AlteredEntryData",
    "EntityData",
    "OpData",
]


class EntityData(Message):
    entity_type: str  # user, client-id or ip
    entity_name: str | None = None  # None: the default entity


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
