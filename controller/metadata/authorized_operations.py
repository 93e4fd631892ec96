"""Which operations a client may do, as the bit field that describing APIs can be asked for.

Nothing is allowed or denied by access control entries yet, so that everybody may do whatever the
kind of resource has. Bit n stands for the operation of code n.

Source: KIP-430; Kafka's AclEntry.supportedOperations.
"""

from enum import IntEnum

__all__ = [
    "ON_CLUSTER",
    "ON_GROUP",
    "ON_TOPIC",
]


class _Operation(IntEnum):
    """Codes of Kafka's AclOperation."""

    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12


def _bits(*operations: _Operation) -> int:
    return sum(1 << operation for operation in operations)


_CONFIGS = (_Operation.DESCRIBE_CONFIGS, _Operation.ALTER_CONFIGS)
ON_TOPIC = _bits(
    _Operation.READ,
    _Operation.WRITE,
    _Operation.CREATE,
    _Operation.DELETE,
    _Operation.ALTER,
    _Operation.DESCRIBE,
    *_CONFIGS,
)
ON_CLUSTER = _bits(
    _Operation.CREATE,
    _Operation.ALTER,
    _Operation.DESCRIBE,
    _Operation.CLUSTER_ACTION,
    _Operation.IDEMPOTENT_WRITE,
    *_CONFIGS,
)
ON_GROUP = _bits(_Operation.READ, _Operation.DELETE, _Operation.DESCRIBE, *_CONFIGS)
