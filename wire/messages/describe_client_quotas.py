"""DescribeClientQuotas (API key 48), as Kafka's message of version 1 has it."""

from dataclasses import dataclass

from wire.errors import ErrorCode

__all__ = [
    "ComponentData",
    "DescribeClientQuotasRequest",
    "DescribeClientQuotasResponse",
    "EntityData",
    "EntryData",
    "ValueData",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentData:
    entity_type: str  # user, client-id or ip
    match_type: int  # 0 exact name, 1 the default entity, 2 any
    match: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeClientQuotasRequest:
    components: tuple[ComponentData, ...]
    strict: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityData:
    entity_type: str
    entity_name: str | None = None  # None: the default entity


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueData:
    key: str
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryData:
    entity: tuple[EntityData, ...]
    values: tuple[ValueData, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeClientQuotasResponse:
    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    entries: tuple[EntryData, ...] | None = ()
