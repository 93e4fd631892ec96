"""What the verbs that are clients share: settings of librdkafka, topics, and errors in words.

They work with any Kafka. A topic is looked for before anything is sent or read, without the
automatic creation that a client's own request for it may cause.
"""

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from quorumlab.arguments import Failed, UsageError, did_you_mean
from quorumlab.verbs.common import bootstrap_servers

__all__ = ["TIMEOUT_SECONDS", "Partitions", "in_words", "kafka_errors_as_failed", "settings"]

TIMEOUT_SECONDS = 10.0  # of a question to the cluster
_NEW_SECONDS = 1.0  # so long a known leader is believed
_NO_LEADER = -1


def settings(args: argparse.Namespace) -> dict[str, Any]:
    """Where the cluster is. librdkafka logs nothing: what matters fails a call, and is raised."""
    servers = ",".join(f"{host}:{port}" for host, port in bootstrap_servers(args))
    return {
        "bootstrap.servers": servers,
        "client.id": "quorumlab",
        "log_level": 0,
        "error_cb": lambda _: None,
    }


def in_words(error: KafkaError) -> str:
    return f"{error.name().removeprefix('_')}: {error.str()}"


@contextmanager
def kafka_errors_as_failed() -> Iterator[None]:
    """Raises Failed for what librdkafka raises."""
    try:
        yield
    except KafkaException as error:
        raise Failed(in_words(error.args[0])) from error
    except TimeoutError as error:
        raise Failed(f"no answer for {TIMEOUT_SECONDS:g} s: is the coordinator up?") from error


class Partitions:
    """The partitions of a topic, and who leads them. Raises Failed if there is no such topic."""

    def __init__(self, client: Any, topic: str) -> None:
        """`client` is a producer or a consumer of confluent-kafka."""
        self._client = client
        self._topic = topic
        topics = client.list_topics(timeout=TIMEOUT_SECONDS).topics
        if topic not in topics:
            near = did_you_mean(topic, topics)
            told = f"no topic {topic!r}: {near}`quorumlab topics create {topic}` makes it"
            raise Failed(told)
        self._take(topics)

    def _take(self, topics: Any) -> None:
        self._leaders = {
            index: each.leader for index, each in topics[self._topic].partitions.items()
        }
        self._asked_at = time.monotonic()

    @property
    def numbers(self) -> list[int]:
        return sorted(self._leaders)

    def check(self, partition: int) -> int:
        """The same number. Raises UsageError if the topic has no such partition."""
        if partition not in self._leaders:
            last = len(self._leaders) - 1
            raise UsageError(f"--partition {partition}: {self._topic} has 0 to {last}")
        return partition

    def leader(self, partition: int | None) -> int:
        """As it was known within the last second; -1: it has none, or nobody tells."""
        if time.monotonic() - self._asked_at > _NEW_SECONDS:
            try:
                self._take(self._client.list_topics(self._topic, timeout=_NEW_SECONDS).topics)
            except KafkaException:
                self._asked_at = time.monotonic()  # nobody answers: ask again later
        return _NO_LEADER if partition is None else self._leaders.get(partition, _NO_LEADER)
