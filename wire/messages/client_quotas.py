"""Client quotas: describe, alter."""

from wire.message import Message
from wire.messages.endpoints import ExplainedOutcome, Throttled, ThrottledExplanation


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


class DescribeClientQuotasResponse(ThrottledExplanation):
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


class AlteredEntryData(ExplainedOutcome):
    entity: tuple[EntityData, ...]


class AlterClientQuotasResponse(Throttled):
    entries: tuple[AlteredEntryData, ...]
