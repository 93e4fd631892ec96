"""How much one request of a client may change.

The number of records is Kafka's limit. Their size is limited too, because a batch travels whole:
one that does not fit into a frame could never be replicated, and the log would end there.

Source: Kafka's QuorumController (MAX_RECORDS_PER_USER_OP) and KafkaRaftClient's batch size.
"""

from collections.abc import Sequence

from controller.metadata.changes import Change, record_count
from controller.metadata.configs import Refusal
from wire.errors import ErrorCode
from wire.metadata_records import ConfigRecord

__all__ = ["CHANGES_MAX", "CONFIG_CHARACTERS_MAX", "excess"]

CHANGES_MAX = 10_000
CONFIG_CHARACTERS_MAX = 4 << 20  # of names and values; everything else is small by its nature


def excess(changes: Sequence[Change]) -> Refusal | None:
    """Why one request may not cause all of this; None if it may."""
    count = record_count(changes)
    if count > CHANGES_MAX:
        message = (
            f"The request would write {count} records, and may write {CHANGES_MAX}."
            " Ask for less at a time."
        )
        return Refusal(ErrorCode.POLICY_VIOLATION, message)
    characters = 0
    for change in changes:
        if isinstance(change, ConfigRecord):
            characters += len(change.resource_name) + len(change.name) + len(change.value or "")
    if characters > CONFIG_CHARACTERS_MAX:
        message = (
            f"The request would write configs of {characters} characters, and may write"
            f" {CONFIG_CHARACTERS_MAX}. Ask for less at a time."
        )
        return Refusal(ErrorCode.POLICY_VIOLATION, message)
    return None
