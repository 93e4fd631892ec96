"""Ids and limits that every layer names: uuids in Kafka's text form, and the reserved ones.

Source: facts of KIP-500's log format; Kafka's `Uuid` and `DirectoryId`.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from random import Random
from uuid import UUID

__all__ = [
    "DIRECTORY_LOST",
    "DIRECTORY_MIGRATING",
    "DIRECTORY_UNASSIGNED",
    "INT16_MAX",
    "INT32_MAX",
    "INT64_MAX",
    "METADATA_TOPIC",
    "METADATA_TOPIC_ID",
    "OPERATIONS_OMITTED",
    "ZERO_UUID",
    "parse_uuid",
    "random_uuid",
    "uuid_text",
]

INT16_MAX = 2**15 - 1
INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1
OPERATIONS_OMITTED = -(2**31)  # in place of authorized operations: nobody asked for them

ZERO_UUID = UUID(int=0)
METADATA_TOPIC = "__cluster_metadata"
METADATA_TOPIC_ID = UUID(int=1)
DIRECTORY_MIGRATING = ZERO_UUID
DIRECTORY_UNASSIGNED = UUID(int=1)
DIRECTORY_LOST = UUID(int=2)
_RESERVED_BELOW = 100  # Kafka reserves the uuids (0, 0) to (0, 99)


def uuid_text(value: UUID) -> str:
    """The URL-safe base64 form without padding, 22 characters, that Kafka prints and stores."""
    return urlsafe_b64encode(value.bytes).rstrip(b"=").decode()


def parse_uuid(text: str) -> UUID:
    """The uuid that `uuid_text` wrote. Raises ValueError on anything else."""
    if len(text) != 22:
        raise ValueError(f"a uuid has 22 characters of URL-safe base64, not {len(text)}: {text!r}")
    try:
        return UUID(bytes=urlsafe_b64decode(text + "=="))
    except ValueError as error:
        raise ValueError(f"not a base64 uuid: {text!r}") from error


def random_uuid(random: Random) -> UUID:
    """A version 4 uuid that is not reserved and whose text does not begin with `-`.

    Kafka redraws those that do, because command lines would take them for an option.
    """
    while True:
        value = UUID(int=random.getrandbits(128), version=4)
        if value.int >= _RESERVED_BELOW and not uuid_text(value).startswith("-"):
            return value
