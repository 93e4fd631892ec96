"""What the verbs that are clients share: librdkafka, quiet, and errors in one line.

They work with any Kafka. A topic is looked for before anything is sent or read, without the
automatic creation that a client's own request for it may cause.
"""

import argparse
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from confluent_kafka import KafkaException

from quorumlab.arguments import Failed, UsageError, did_you_mean
from quorumlab.verbs.common import bootstrap_servers

__all__ = ["TIMEOUT_SECONDS", "failing_in_words", "partition_in", "settings", "topic_in"]

TIMEOUT_SECONDS = 10.0  # of a question to the cluster


def settings(args: argparse.Namespace) -> dict[str, Any]:
    """Of every client: where the cluster is; what it would log is told as an error."""
    servers = ",".join(f"{host}:{port}" for host, port in bootstrap_servers(args))
    return {
        "bootstrap.servers": servers,
        "client.id": "quorumlab",
        "log_level": 0,
        "error_cb": lambda _: None,  # a broker that is gone; what matters fails by itself
    }


def topic_in(client: Any, name: str) -> Mapping[int, int]:
    """The leader of each partition, -1 where there is none. Raises Failed: no such topic."""
    topics = client.list_topics(timeout=TIMEOUT_SECONDS).topics
    if name not in topics:
        near = did_you_mean(name, topics)
        raise Failed(f"no topic {name!r}: {near}`quorumlab topics create {name}` makes it")
    return {index: each.leader for index, each in sorted(topics[name].partitions.items())}


def partition_in(leaders: Mapping[int, int], topic: str, partition: int) -> int:
    """The same. Raises UsageError: the topic has no such partition."""
    if partition not in leaders:
        raise UsageError(f"--partition {partition}: {topic} has 0 to {len(leaders) - 1}")
    return partition


@contextmanager
def failing_in_words() -> Iterator[None]:
    """Raises Failed for what librdkafka raises."""
    try:
        yield
    except KafkaException as error:
        told = error.args[0]
        raise Failed(f"{told.name().removeprefix('_')}: {told.str()}") from error
    except TimeoutError as error:
        raise Failed(f"no answer for {TIMEOUT_SECONDS:g} s: is the coordinator up?") from error
