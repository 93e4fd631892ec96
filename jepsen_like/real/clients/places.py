"""Keys of histories and places in a cluster: "orders-east-3" is partition 3 of orders-east."""

__all__ = ["key_of", "known_offset", "place_of"]


def place_of(key: str) -> tuple[str, int]:
    topic, _, partition = key.rpartition("-")
    return topic, int(partition)


def key_of(topic: str, partition: int) -> str:
    return f"{topic}-{partition}"


def known_offset(told: int | None) -> int | None:
    """Of a record that was acknowledged. A repeated one may be acknowledged without its offset:
    clients then tell a number below zero."""
    return told if told is not None and told >= 0 else None
