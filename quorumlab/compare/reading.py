"""Reading back: is each acknowledged record where the cluster said that it would be?

Fetches go straight to the leaders that the measuring client last believed in. A partition that
cannot be read counts neither as kept nor as lost.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from jepsen_like.real.client_settings import ClientSettings
from jepsen_like.real.kafka_client import Client
from jepsen_like.real.layout import ClusterError, NodeLayout
from quorumlab.compare.attempts import Acknowledged
from quorumlab.compare.experiments import Topic, named, place_of
from wire.batch import headers, records_of
from wire.errors import ErrorCode
from wire.messages.fetching import FetchPartition, FetchRequest, FetchResponse, FetchTopic

__all__ = ["lost", "read_back"]

_FETCHED_MAX = 200  # of a fetch
_BYTES_MAX = 1 << 20
_PATIENCE_SECONDS = 5.0
_PAUSE_SECONDS = 0.1
_READ_SECONDS = 10.0

Found = dict[int, dict[int, int]]  # by partition and offset: the value


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadBack:
    acknowledged: int
    lost: Sequence[Acknowledged]
    unread: int  # partitions


def lost(
    acknowledged: Iterable[Acknowledged], found: Mapping[int, Mapping[int, int]]
) -> list[Acknowledged]:
    """Returns records that are not where they were acknowledged, in partitions that were read."""
    return [
        each
        for each in acknowledged
        if each.partition in found and found[each.partition].get(each.offset) != each.value
    ]


def read_back(
    brokers: Sequence[NodeLayout],
    topics: Sequence[Topic],
    acknowledged: Sequence[Acknowledged],
    leader: Callable[[int], int],
    check: Callable[[str], None],
    *,
    settings: ClientSettings,
) -> ReadBack:
    """`check` is told how far, and may raise."""
    ends: dict[int, int] = {}
    for each in acknowledged:
        ends[each.partition] = max(ends.get(each.partition, 0), each.offset + 1)
    reader = _Reader(brokers, topics, ends, leader, settings)
    # Longer than a high watermark lags behind: a log that ends before that has lost the rest.
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while reader.left and time.monotonic() < deadline:
        if reader.round():
            deadline = time.monotonic() + _PATIENCE_SECONDS
        check(f"reading back: {len(ends) - len(reader.left)} of {len(ends)} partitions")
    unread = reader.left.keys() - reader.answering
    read = {each: reader.found[each] for each in ends if each not in unread}
    return ReadBack(
        acknowledged=len(acknowledged), lost=lost(acknowledged, read), unread=len(unread)
    )


class _Reader:
    def __init__(
        self,
        brokers: Sequence[NodeLayout],
        topics: Sequence[Topic],
        ends: Mapping[int, int],
        leader: Callable[[int], int],
        settings: ClientSettings,
    ) -> None:
        self._settings = settings
        self._addresses = {each.id: (each.host, each.port) for each in brokers}
        self._topics = topics
        self._ends = ends
        self.found: Found = {partition: {} for partition in ends}
        self.left = {partition: leader(partition) for partition in ends}  # and whom to ask
        self.answering: set[int] = set()  # whose leader has told what there is
        self._next = dict.fromkeys(ends, 0)

    def round(self) -> bool:
        """A fetch or more of every broker that somebody is left for. Has anything been read?"""
        by_broker: dict[int, list[int]] = {}
        for partition, broker in self.left.items():
            by_broker.setdefault(broker, []).append(partition)
        before = sum(self._next.values())
        for broker, partitions in by_broker.items():
            try:
                with self._client(broker) as client:
                    for first in range(0, len(partitions), _FETCHED_MAX):
                        self._fetch(client, partitions[first : first + _FETCHED_MAX])
            except ClusterError:
                for partition in partitions:
                    self._ask_another(partition)
        has_read = sum(self._next.values()) > before
        if self.left and not has_read:
            time.sleep(_PAUSE_SECONDS)
        return has_read

    def _client(self, broker: int) -> Client:
        return Client([self._addresses[broker]], _READ_SECONDS, settings=self._settings)

    def _fetch(self, client: Client, partitions: Sequence[int]) -> None:
        answer = client.ask(self._request(partitions), FetchResponse)
        for told in answer.responses:
            topic = named(self._topics, told.topic, told.topic_id)
            for data in told.partitions:
                partition = topic.first + data.partition_index
                if data.error_code is ErrorCode.NONE:
                    self._take(partition, data.records or b"")
                else:
                    self._ask_another(partition)

    def _take(self, partition: int, batches: bytes) -> None:
        for position, header in headers(batches):
            for record in records_of(batches[position : position + header.size_bytes]):
                self.found[partition][record.offset] = int(record.value or b"-1")
            self._next[partition] = header.next_offset
        self.answering.add(partition)
        if self._next[partition] >= self._ends[partition]:
            self.left.pop(partition, None)

    def _request(self, partitions: Sequence[int]) -> FetchRequest:
        by_topic: dict[int, list[FetchPartition]] = {}
        for partition in partitions:
            topic, index = place_of(self._topics, partition)
            by_topic.setdefault(topic, []).append(
                FetchPartition(
                    partition=index,
                    fetch_offset=self._next[partition],
                    partition_max_bytes=_BYTES_MAX,
                )
            )
        return FetchRequest(
            max_wait_ms=0,
            topics=tuple(
                FetchTopic(
                    topic=self._topics[number].name,
                    topic_id=self._topics[number].id,
                    partitions=tuple(asked),
                )
                for number, asked in by_topic.items()
            ),
        )

    def _ask_another(self, partition: int) -> None:
        """Asks the next broker: replicas may have moved since they were placed."""
        self.answering.discard(partition)
        known = self.left.get(partition)
        if known is not None:
            brokers = [*self._addresses]
            at = brokers.index(known) if known in brokers else -1
            self.left[partition] = brokers[(at + 1) % len(brokers)]
