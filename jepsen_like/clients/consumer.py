"""A consumer of one process: partitions are assigned by hand, a poll asks their leaders in turn.

It checks leader epochs: it tells each leader the epoch that it believes in, and that of the last
record that it has read, and hears where the log has parted from what it read (KIP-320). That is an
error of the poll: what a consumer has read is never taken back.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from jepsen_like.clients.readable import READ_COMMITTED, readable
from jepsen_like.clients.steps import Ask, Leaders, Place, Steps
from jepsen_like.histories.history import Kind, Value
from jepsen_like.workloads.workload import Done
from wire.errors import ErrorCode
from wire.messages.fetching import (
    FetchedPartition,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

__all__ = ["Consumer"]

_LATEST = -1
_BYTES_MAX = 1 << 20
_NO_EPOCH = -1


@dataclass(slots=True)
class _Poll:
    """The findings of one poll so far."""

    found: dict[str, list[list[int]]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    ends: dict[str, int] = field(default_factory=dict)  # high watermarks, as the leaders told


@dataclass(slots=True, kw_only=True)
class Consumer:
    leaders: Leaders
    request_timeout_ms: int
    wait_ms: int  # of a fetch, for records to come
    is_read_committed: bool = False
    _next: dict[str, int | None] = field(default_factory=dict)  # by key: None, where the log ends
    _epochs: dict[str, int] = field(default_factory=dict)  # of the last record read

    def assign(self, keys: Sequence[str], at: Mapping[str, int | None] | None = None) -> Done:
        """Each begins where it is told; else, a key that is kept goes on where it was, and a new
        one begins where the log ends."""
        kept = {} if at is not None else self._epochs
        self._next = {key: (self._next if at is None else at).get(key) for key in keys}
        self._epochs = {
            key: epoch for key, epoch in kept.items() if self._next.get(key) is not None
        }
        return Done(kind=Kind.OK, value=list(keys))

    def poll(self, *, until_caught_up: bool) -> Steps[Done]:
        poll = _Poll()
        if any(self.leaders.known(key) is None for key in self._next):
            yield from self.leaders.refresh()
        for leader, places in self._by_leader().items():
            yield from self._seek(leader, places, poll)
            yield from self._fetch(leader, places, poll)
            if poll.found:
                break
        if poll.errors and not poll.found:
            return Done(kind=Kind.FAIL, error=", ".join(poll.errors))
        extra: dict[str, Value] = {"errors": poll.errors} if poll.errors else {}
        if until_caught_up and not poll.found:
            extra["caught_up"] = not poll.errors and self._has_caught_up(poll.ends)
        return Done(kind=Kind.OK, value=[["poll", poll.found]], extra=extra)

    def _by_leader(self) -> Mapping[int, Sequence[Place]]:
        places: dict[int, list[Place]] = {}
        for key in self._next:
            place = self.leaders.known(key)
            if place is not None:
                places.setdefault(place.leader, []).append(place)
        return places

    def _has_caught_up(self, ends: Mapping[str, int]) -> bool:
        """Every leader has told where its log ends, and all before that is read."""
        return all(
            offset is not None and key in ends and offset >= ends[key]
            for key, offset in self._next.items()
        )

    # --- where to begin ---------------------------------------------------------------------

    def _seek(self, leader: int, places: Sequence[Place], poll: _Poll) -> Steps[None]:
        for place in places:
            if self._next[place.key] is not None:
                continue
            asked = ListOffsetsPartition(
                partition_index=place.partition,
                current_leader_epoch=place.leader_epoch,
                timestamp=_LATEST,
            )
            topic = ListOffsetsTopic(name=place.topic, partitions=(asked,))
            body = ListOffsetsRequest(topics=(topic,))
            told = yield Ask(node=leader, body=body, timeout_ms=self.request_timeout_ms)
            if not isinstance(told, ListOffsetsResponse):
                self._failed(place, "no answer", poll)
                continue
            end = told.topics[0].partitions[0]
            if end.error_code is ErrorCode.NONE:
                self._next[place.key] = end.offset
            else:
                self._failed(place, ErrorCode(end.error_code).name, poll)

    # --- records ----------------------------------------------------------------------------

    def _fetch(self, leader: int, places: Sequence[Place], poll: _Poll) -> Steps[None]:
        ready = [place for place in places if self._next[place.key] is not None]
        if not ready:
            return
        body = FetchRequest(
            max_wait_ms=self.wait_ms,
            min_bytes=1,
            isolation_level=READ_COMMITTED if self.is_read_committed else 0,
            topics=tuple(map(self._asked, ready)),
        )
        told = yield Ask(node=leader, body=body, timeout_ms=self.request_timeout_ms + self.wait_ms)
        if not isinstance(told, FetchResponse) or told.error_code is not ErrorCode.NONE:
            for place in ready:
                self._failed(place, "no answer", poll)
            return
        answered = {
            (topic.topic or topic.topic_id, partition.partition_index): partition
            for topic in told.responses
            for partition in topic.partitions
        }
        for place in ready:
            by_name, by_id = (place.topic, place.partition), (place.topic_id, place.partition)
            data = answered.get(by_name) or answered.get(by_id)  # as the version of Fetch has it
            if data is not None:
                self._take(place, data, poll)

    def _asked(self, place: Place) -> FetchTopic:
        offset = self._next[place.key]
        assert offset is not None, place
        partition = FetchPartition(
            partition=place.partition,
            current_leader_epoch=place.leader_epoch,
            fetch_offset=offset,
            last_fetched_epoch=self._epochs.get(place.key, _NO_EPOCH),
            partition_max_bytes=_BYTES_MAX,
        )
        return FetchTopic(topic=place.topic, topic_id=place.topic_id, partitions=(partition,))

    def _take(self, place: Place, data: FetchedPartition, poll: _Poll) -> None:
        if data.error_code is not ErrorCode.NONE:
            self._failed(place, ErrorCode(data.error_code).name, poll)
            return
        if data.diverging_epoch.end_offset >= 0:
            self._failed(place, f"the log parted at {data.diverging_epoch.end_offset}", poll)
            return
        poll.ends[place.key] = data.high_watermark
        position = self._next[place.key]
        assert position is not None, place.key
        for header, records in readable(data):
            for record in records:  # batches come whole: what lies before has been read
                if record.offset >= position:
                    found = poll.found.setdefault(place.key, [])
                    found.append([record.offset, int(record.value or b"-1")])
            position = max(position, header.next_offset)
            self._epochs[place.key] = header.leader_epoch
        self._next[place.key] = position

    def _failed(self, place: Place, error: str, poll: _Poll) -> None:
        poll.errors.append(f"{place.key}: {error}")
        self.leaders.lose(place.key)
