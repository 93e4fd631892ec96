"""The common parts of verbs that are clients: settings of librdkafka, topics, errors in words.

They work with any Kafka. A topic is looked for before anything is sent or read, without the
automatic creation that a client's own request for it may cause.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from quorumlab.arguments import Failed, UsageError, did_you_mean
from quorumlab.client_properties import librdkafka_settings
from quorumlab.output import complain
from quorumlab.verbs.connecting import bootstrap_servers, client_settings

__all__ = ["TIMEOUT_SECONDS", "Partitions", "in_words", "kafka_errors_as_failed", "settings"]

TIMEOUT_SECONDS = 10.0  # of a question to the cluster
_NEW_SECONDS = 1.0  # so long a known leader is believed
_NO_LEADER = -1


def settings(args: SimpleNamespace) -> dict[str, Any]:
    """Where the cluster is. librdkafka logs nothing: what matters fails a call, and is raised.

    That nobody answers by now is told, as a client then waits.
    """
    servers = ",".join(f"{host}:{port}" for host, port in bootstrap_servers(args))
    return {
        "bootstrap.servers": servers,
        "client.id": "quorumlab",
        "log_level": 0,
        "error_cb": _told_once(),
        **librdkafka_settings(client_settings(args)),
    }


def _told_once() -> Callable[[KafkaError], None]:
    said: list[str] = []

    def tell(error: KafkaError) -> None:
        if error.code() == KafkaError._ALL_BROKERS_DOWN and not said:
            said.append(error.str())
            complain("no broker answers; waiting for one")

    return tell


def in_words(error: KafkaError) -> str:
    return f"{error.name().removeprefix('_')}: {error.str()}"


@contextmanager
def kafka_errors_as_failed() -> Iterator[None]:
    """Raises Failed for what librdkafka raises."""
    try:
        yield
    except KafkaException as error:
        told = error.args[0]
        if told.code() == KafkaError._TRANSPORT:
            raise Failed("no broker answers: `quorumlab status` tells what is down") from error
        raise Failed(in_words(told)) from error
    except TimeoutError as error:
        raise Failed(f"no answer for {TIMEOUT_SECONDS:g} s: is the cluster up?") from error
    except SystemError as error:  # Ctrl-C, while librdkafka called us back
        raise KeyboardInterrupt from error


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

    def without_leader(self, partitions: Iterable[int]) -> str:
        """Those of these that nobody leads, for people; empty if each has a leader."""
        found = [each for each in sorted(partitions) if self._leaders[each] == _NO_LEADER]
        if not found:
            return ""
        names = ", ".join(f"{self._topic}-{each}" for each in found)
        return f"no leader: {names} (`quorumlab topics describe {self._topic}`)"

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
