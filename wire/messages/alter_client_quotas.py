"""AlterClientQuotas (API key 49), as Kafka's message of version 1 has it."""

from dataclasses import dataclass

from wire.errors import ErrorCode

__all__ = [
    "AlterClientQuotasRequest",
    "AlterClientQuotasResponse",
    "AlterEntryData",
    "AlteredEntryData",
    "EntityData",
    "OpData",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityData:
    entity_type: str  # user, client-id or ip
    entity_name: str | None = None  # None: the default entity


@dataclass(frozen=True, slots=True, kw_only=True)
class OpData:
    key: str
    value: float = 0.0
    remove: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterEntryData:
    entity: tuple[EntityData, ...]
    ops: tuple[OpData, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterClientQuotasRequest:
    entries: tuple[AlterEntryData, ...]
    validate_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AlteredEntryData:
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    entity: tuple[EntityData, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterClientQuotasResponse:
    throttle_time_ms: int = 0
    entries: tuple[AlteredEntryData, ...]
