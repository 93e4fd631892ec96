"""A topic and its partitions as Kafka's tools print them: a line each, with tabs."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

__all__ = ["topic_lines"]

_NOT_ASKED = "N/A"  # what Kafka prints where eligible leader replicas are not known


def topic_lines(topic: Mapping[str, Any]) -> Iterator[str]:
    """Of `topic`, `topic_id`, `replication_factor`, `configs`, and `partitions` with `leader` None
    or -1 where there is none; `elr` and `last_known_elr` may be missing."""
    configs = ",".join(f"{key}={value}" for key, value in sorted(topic["configs"].items()))
    yield (
        f"Topic: {topic['topic']}\tTopicId: {topic['topic_id']}\t"
        f"PartitionCount: {topic['partition_count']}\t"
        f"ReplicationFactor: {topic['replication_factor']}\tConfigs: {configs}"
    )
    for row in topic["partitions"]:
        leader = "none" if row["leader"] in (None, -1) else row["leader"]
        yield (
            f"\tTopic: {topic['topic']}\tPartition: {row['partition']}\tLeader: {leader}\t"
            f"Replicas: {_ids(row['replicas'])}\tIsr: {_ids(row['isr'])}\t"
            f"Elr: {_ids(row.get('elr'))}\tLastKnownElr: {_ids(row.get('last_known_elr'))}"
        )


def _ids(brokers: Sequence[int] | None) -> str:
    return _NOT_ASKED if brokers is None else ",".join(map(str, brokers))
