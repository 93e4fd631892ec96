"""Groups of the consumer protocol without a broker: topics, heartbeats, and members that obey."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from broker.config import GroupConfig
from broker.groups.consumer import beating
from broker.groups.consumer.beating import Beat, Beaten, Given
from broker.groups.consumer.consumer_group import ConsumerGroup
from broker.groups.consumer.consumer_records import by_topic
from broker.groups.consumer.consumer_values import TopicPartition
from broker.groups.consumer.heartbeat_checks import Refusal
from broker.groups.consumer.topic_patterns import TopicPatterns
from broker.groups.consumer.topics import TopicMetadata
from wire.errors import ErrorCode
from wire.messages.consumer_groups import ConsumerGroupHeartbeatRequest, OwnedPartitions

NOW = 1_700_000_000_000
CONFIG = GroupConfig()


class Topics:
    """By name, the number of partitions of each; the id of a topic is its name, in bytes."""

    version = 1

    def __init__(self, **counts: int) -> None:
        self.counts = counts
        self._patterns = TopicPatterns()

    @property
    def snapshot(self) -> object:
        return tuple(self.counts.items())

    def metadata(self, name: str) -> TopicMetadata | None:
        count = self.counts.get(name)
        return None if count is None else TopicMetadata(topic_id(name), count)

    def name_of(self, topic_id: UUID) -> str | None:
        return topic_id.bytes.rstrip(b"\0").decode()

    def matching(self, pattern: str, now_ms: int) -> tuple[str, ...] | None:
        self._patterns.follow(self.counts, hash(self.snapshot))
        return self._patterns.matching(pattern, now_ms)


def topic_id(name: str) -> UUID:
    return UUID(bytes=name.encode().ljust(16, b"\0"))


def places(name: str, *indexes: int) -> frozenset[TopicPartition]:
    return frozenset((topic_id(name), index) for index in indexes)


def request(
    member_id: str, epoch: int, owned: Iterable[TopicPartition] | None, **said: Any
) -> ConsumerGroupHeartbeatRequest:
    if epoch == 0:
        said = {"rebalance_timeout_ms": 5000, "subscribed_topic_names": ("t",)} | said
    topics = None
    if owned is not None:
        topics = tuple(
            OwnedPartitions(topic_id=id_, partitions=indexes)
            for id_, indexes in by_topic(owned).items()
        )
    return ConsumerGroupHeartbeatRequest(
        group_id="g", member_id=member_id, member_epoch=epoch, topic_partitions=topics, **said
    )


@dataclass
class Scene:
    """A group and its members, as each of them sees itself."""

    topics: Topics = field(default_factory=lambda: Topics(t=4))
    group: ConsumerGroup = field(default_factory=lambda: ConsumerGroup(id="g"))
    config: GroupConfig = CONFIG
    assignment_interval_ms: int = 0
    now_ms: int = NOW
    epochs: dict[str, int] = field(default_factory=dict)
    owned: dict[str, frozenset[TopicPartition]] = field(default_factory=dict)
    _seen: object = None
    _unsure: set[str] = field(default_factory=set)
    _wanted: dict[str, tuple[str, ...] | None] = field(default_factory=dict)

    def beat(self, member_id: str, *, is_lost: bool = False, **said: Any) -> Beaten | Refusal:
        """The answer may be lost: the member goes on with what it knew, and says all of it."""
        if "subscribed_topic_names" in said:
            self._wanted[member_id] = said["subscribed_topic_names"]
        if member_id in self._unsure:
            wanted = self._wanted.get(member_id, ("t",))
            said = {"rebalance_timeout_ms": 5000, "subscribed_topic_names": wanted} | said
        self._unsure.discard(member_id)
        if is_lost:
            self._unsure.add(member_id)
        epoch = self.epochs.get(member_id, 0)
        owned = self.owned.get(member_id, frozenset())
        return self.send(member_id, epoch, owned, is_lost=is_lost, **said)

    def send(
        self,
        member_id: str,
        epoch: int,
        owned: Iterable[TopicPartition] | None,
        *,
        is_lost: bool = False,
        **said: Any,
    ) -> Beaten | Refusal:
        beat = Beat(
            request=request(member_id, epoch, owned, **said),
            member_id=member_id,
            client_id="client",
            client_host="/127.0.0.1",
        )
        snapshot = self.topics.snapshot
        out = beating.heartbeat(self.group, beat, self.given)
        if isinstance(out, Beaten):
            self._seen = snapshot
            self.group = out.draft.group
            if not is_lost:
                self._told(out)
        elif out.error in (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID):
            self.abandon(member_id)
        return out

    @property
    def given(self) -> Given:
        is_stale = self.topics.snapshot != self._seen
        return Given(
            topics=self.topics,
            config=self.config,
            assignment_interval_ms=self.assignment_interval_ms,
            is_stale=is_stale,
            now_ms=self.now_ms,
        )

    def _told(self, out: Beaten) -> None:
        current = out.draft.group.members[out.member_id].current
        self.epochs[out.member_id] = current.epoch
        if out.tells_assignment:
            self.owned[out.member_id] = frozenset(current.assigned)

    def abandon(self, member_id: str) -> None:
        self.epochs.pop(member_id, None)
        self.owned.pop(member_id, None)

    def leave(self, member_id: str, epoch: int = -1, instance_id: str | None = None) -> None:
        out = beating.leave(
            self.group, request(member_id, epoch, None, instance_id=instance_id), self.given
        )
        assert isinstance(out, Beaten), out
        self.group = out.draft.group
        self.abandon(member_id)

    def expire(self, member_id: str) -> None:
        self.group = beating.fence(self.group, (member_id,), self.given).group
        self.abandon(member_id)

    def settle(self) -> None:
        for _ in range(6):
            for member_id in self.group.members:
                if self.group.members[member_id].epoch >= 0:
                    self.beat(member_id)

    def shares(self) -> dict[str, int]:
        return {member_id: len(owned) for member_id, owned in self.owned.items()}
