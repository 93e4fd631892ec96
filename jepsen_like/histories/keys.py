"""Keys of histories and places in a cluster: "orders-east-3" is partition 3 of orders-east."""

__all__ = ["key_of", "place_of"]


def place_of(key: str) -> tuple[str, int]:
    topic, _, partition = key.rpartition("-")
    return topic, int(partition)


def key_of(topic: str, partition: int) -> str:
    return f"{topic}-{partition}"
