"""In an incremental fetch session, a follower's request holds only what has changed.

The leader's side is in sessions.py.

Source: KIP-227; Kafka's FetchSessionHandler.
"""

from collections.abc import Iterable, Mapping
from uuid import UUID

from broker.fetch_protocol import FINAL_EPOCH, INITIAL_EPOCH, NO_SESSION, PartitionKey, next_epoch
from wire.errors import ErrorCode
from wire.message import Value
from wire.messages.fetching import FetchPartition, FetchResponse, FetchTopic, ForgottenTopic

__all__ = ["NEW_PARTITIONS_MAX", "Asked", "ReplicaSession"]

# A leader looks at the partitions that a request names in one turn, 50 us each, and sends no
# heartbeat meanwhile. Kafka names all of them at once.
NEW_PARTITIONS_MAX = 1000  # of one request


class Asked(Value):
    """The session decides this part of a Fetch."""

    session_id: int
    session_epoch: int
    topics: tuple[FetchTopic, ...]
    forgotten: tuple[ForgottenTopic, ...]


class ReplicaSession:
    """A request costs what has changed since the one before, not what the session holds.

    Many new partitions are told in several requests, so a large session grows by and by. Where the
    leader has no room for a session, each request names all partitions.
    """

    __slots__ = ("_changed", "_epoch", "_id", "_is_granted", "_new_max", "_sent", "_wanted")

    def __init__(self, new_max: int = NEW_PARTITIONS_MAX) -> None:
        """`new_max`: partitions that one request tells the leader of for the first time."""
        self._new_max = new_max
        self._id = NO_SESSION
        self._epoch = INITIAL_EPOCH
        self._is_granted = True  # a session, as far as is known
        self._wanted: dict[PartitionKey, FetchPartition] = {}
        self._changed: dict[PartitionKey, None] = {}  # wanted otherwise than when last asked
        self._sent: dict[PartitionKey, FetchPartition] = {}

    @property
    def wanted(self) -> Mapping[PartitionKey, FetchPartition]:
        """What the next request has to ask for."""
        return self._wanted

    @property
    def sent(self) -> Mapping[PartitionKey, FetchPartition]:
        """What the leader takes us to ask for, as of the last request."""
        return self._sent

    @property
    def has_unsent(self) -> bool:
        """Some changes wait for a later request."""
        return bool(self._changed)

    def want(self, key: PartitionKey, partition: FetchPartition) -> None:
        """Ask for it from the next request on, until it is dropped."""
        if self._wanted.get(key) != partition:
            self._wanted[key] = partition
            self._changed[key] = None

    def drop(self, key: PartitionKey) -> None:
        if self._wanted.pop(key, None) is not None:
            self._changed[key] = None

    def ask(self) -> Asked:
        """The next request, which asks for nothing but what is wanted; see `has_unsent`.

        Only partitions that are new to the leader wait for a later request. It would go on
        answering for those that it has.
        """
        if self._epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self._sent = {}
            self._changed = dict.fromkeys(self._wanted)
        new_left = self._new_max if self._is_granted else len(self._wanted)
        changed, self._changed = self._changed, {}
        asked, gone = [], []
        for key in changed:
            before, wanted = self._sent.get(key), self._wanted.get(key)
            if wanted is None:
                if self._sent.pop(key, None) is not None:
                    gone.append(key)
            elif before is None and new_left <= 0:
                self._changed[key] = None
            elif wanted != before:
                new_left -= before is None
                self._sent[key] = wanted
                asked.append((key, wanted))
        return Asked(
            session_id=self._id,
            session_epoch=self._epoch,
            topics=fetch_topics(asked),
            forgotten=forgotten_topics(gone),
        )

    def answered(self, response: FetchResponse) -> None:
        if response.error_code is not ErrorCode.NONE:
            if response.error_code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
                self._id = NO_SESSION
            self._epoch = INITIAL_EPOCH
            return
        self._is_granted = response.session_id != NO_SESSION
        if not self._is_granted:
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
