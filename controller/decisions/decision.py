"""What a rule of the controller returns, and how much one request of a client may change.

The limit on the number of records is Kafka's. Their size is limited too, because a batch travels
whole: a batch that fits into no frame could never be replicated, and the log would end there.

Source: Kafka's QuorumController (MAX_RECORDS_PER_USER_OP) and KafkaRaftClient's batch size.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from controller.metadata.changes import Change, record_count
from controller.metadata.configs import NO_ERROR, Refusal
from controller.refusals import refuse
from wire.errors import ErrorCode
from wire.metadata_records import AccessControlEntryRecord, ClientQuotaRecord, ConfigRecord

__all__ = ["CHANGES_MAX", "CHARACTERS_MAX", "Decision", "excess", "limited", "refused"]

CHANGES_MAX = 10_000  # of one request: Kafka's MAX_RECORDS_PER_USER_OP
CHARACTERS_MAX = 4 << 20  # of names and values; everything else is small by its nature

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision(Generic[Answer]):
    """Changes to append, and the answer once they are committed.

    Changes that belong together (`is_atomic`) become one batch: all of them take effect, or none.
    `kraft_version` is to be finalised by the engine, before the changes: if it refuses, none of
    them is made.
    """

    response: Answer
    changes: tuple[Change, ...] = ()
    is_atomic: bool = True
    kraft_version: int | None = None


def refused(request: object, refusal: Refusal) -> Decision[Any]:
    return Decision(response=refuse(request, refusal.error_code, refusal.message))


def excess(changes: Sequence[Change]) -> Refusal | None:
    """Why one request may not make all of these changes; None if it may."""
    count, characters = record_count(changes), sum(map(_characters, changes))
    if count > CHANGES_MAX:
        wrong = f"write {count} records, and may write {CHANGES_MAX}"
    elif characters > CHARACTERS_MAX:
        much = f"{characters} characters, and may write {CHARACTERS_MAX}"
        wrong = f"write names and values of {much}"
    else:
        return None
    message = f"The request would {wrong}. Ask for less at a time."
    return Refusal(ErrorCode.POLICY_VIOLATION, message)


def limited(found: list[Refusal], changes: list[Change]) -> tuple[list[Refusal], list[Change]]:
    """`found` for each item of a request, and its changes; if these are too many, all fail."""
    too_much = excess(changes)
    if too_much is None:
        return found, changes
    return [too_much if each is NO_ERROR else each for each in found], []


def _characters(change: Change) -> int:
    """The length of the names and values that clients choose as they like."""
    if type(change) is ConfigRecord:  # of these a request has thousands
        return len(change.resource_name) + len(change.name) + len(change.value or "")
    match change:
        case AccessControlEntryRecord(resource_name=resource, principal=principal, host=host):
            return len(resource) + len(principal) + len(host)
        case ClientQuotaRecord(entity=entity):
            return sum(len(part.entity_name or "") for part in entity)
        case _:
            return 0
