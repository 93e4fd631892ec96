"""The follower's side of an incremental fetch session: what must be said again, and what not.

Pure. The leader's side is in sessions.py.

Source: KIP-227; Kafka's FetchSessionHandler.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

from broker.sessions import FINAL_EPOCH, INITIAL_EPOCH, NO_SESSION, PartitionKey, next_epoch
from wire.errors import ErrorCode
from wire.messages.fetching import FetchPartition, FetchResponse, FetchTopic, ForgottenTopic

__all__ = ["Asked", "ReplicaSession"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The part of a Fetch that the session decides."""

    session_id: int
    session_epoch: int
    topics: tuple[FetchTopic, ...]
    forgotten: tuple[ForgottenTopic, ...]


class ReplicaSession:
    __slots__ = ("_epoch", "_id", "_sent")

    def __init__(self) -> None:
        self._id = NO_SESSION
        self._epoch = INITIAL_EPOCH
        self._sent: dict[PartitionKey, FetchPartition] = {}

    @property
    def sent(self) -> Mapping[PartitionKey, FetchPartition]:
        """What the leader takes us to ask for, as of the last request."""
        return self._sent

    def ask(self, wanted: Mapping[PartitionKey, FetchPartition]) -> Asked:
        """The next request, which asks for `wanted` and nothing else."""
        before = {} if self._epoch in (INITIAL_EPOCH, FINAL_EPOCH) else self._sent
        changed = (item for item in wanted.items() if before.get(item[0]) != item[1])
        gone = [key for key in before if key not in wanted]
        self._sent = dict(wanted)
        return Asked(
            session_id=self._id,
            session_epoch=self._epoch,
            topics=fetch_topics(changed),
            forgotten=forgotten_topics(gone),
        )

    def answered(self, response: FetchResponse) -> None:
        if response.error_code is not ErrorCode.NONE:
            if response.error_code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
                self._id = NO_SESSION
            self._epoch = INITIAL_EPOCH
        elif response.session_id == NO_SESSION:  # the leader has no room for a session
            self._id, self._epoch = NO_SESSION, INITIAL_EPOCH
        elif self._epoch == INITIAL_EPOCH:
            self._id, self._epoch = response.session_id, 1
        else:
            self._epoch = next_epoch(self._epoch)

    def failed(self) -> None:
        """No answer: whether the leader has seen the request is not known. Start over."""
        self._epoch = INITIAL_EPOCH


def fetch_topics(
    items: Iterable[tuple[PartitionKey, FetchPartition]],
) -> tuple[FetchTopic, ...]:
    topics: dict[tuple[str, UUID], list[FetchPartition]] = {}
    for key, partition in items:
        topics.setdefault((key.topic, key.topic_id), []).append(partition)
    return tuple(
        FetchTopic(topic=topic, topic_id=topic_id, partitions=tuple(partitions))
        for (topic, topic_id), partitions in topics.items()
    )


def forgotten_topics(keys: Iterable[PartitionKey]) -> tuple[ForgottenTopic, ...]:
    topics: dict[tuple[str, UUID], list[int]] = {}
    for key in keys:
        topics.setdefault((key.topic, key.topic_id), []).append(key.partition)
    return tuple(
        ForgottenTopic(topic=topic, topic_id=topic_id, partitions=tuple(partitions))
        for (topic, topic_id), partitions in topics.items()
    )
