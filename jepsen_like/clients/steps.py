"""A client's work as a sequence of steps, and the leaders of partitions that it knows.

    def ping(self) -> Steps[bool]:
        answer = yield Ask(node=1, body=ApiVersionsRequest(), timeout_ms=500)
        return answer is not None

A driver carries out one step after the other and sends back what came of it: the answer's body, or
None where there was none. The simulator does that on virtual time
(`jepsen_like.sim.chaos.workload_core`), real runs with sockets (`jepsen_like.real.clients`). The
time is read where it is needed, from a clock that the driver gives. A step that gets no answer may
have been carried out all the same.

A client learns from Metadata who leads which partition. A leader epoch never goes back: an answer
of a broker that lags behind is old news (KIP-320). A leader that has turned out to be wrong is
lost, and asked for again.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeVar
from uuid import UUID

from jepsen_like.histories.history import key_of
from wire.errors import ErrorCode
from wire.messages.metadata import MetadataRequest, MetadataResponse

__all__ = ["Ask", "Clock", "Leaders", "Pause", "Place", "Step", "Steps"]

Result = TypeVar("Result")
Clock = Callable[[], int]  # the time in ms


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    node: int
    body: object
    timeout_ms: int


@dataclass(frozen=True, slots=True)
class Pause:
    ms: int


Step = Ask | Pause
Steps = Generator[Step, object, Result]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a partition is to be had."""

    topic: str
    topic_id: UUID
    partition: int
    leader: int  # negative: nobody, as far as is known
    leader_epoch: int

    @property
    def key(self) -> str:
        return key_of(self.topic, self.partition)


class Leaders:
    """Shared by the producer and the consumer of one process."""

    def __init__(
        self, brokers: Sequence[int], random: Random, *, timeout_ms: int, backoff_ms: int
    ) -> None:
        self._brokers = tuple(brokers)
        self._random = random
        self._timeout_ms = timeout_ms
        self._backoff_ms = backoff_ms
        self._places: dict[str, Place] = {}
        self._lost: set[str] = set()  # keys whose leader is known to be another by now

    def known(self, key: str) -> Place | None:
        place = self._places.get(key)
        return None if place is None or place.leader < 0 or key in self._lost else place

    def lose(self, key: str) -> None:
        """Forgets the leader that is known: it leads no longer, or does not answer."""
        self._lost.add(key)

    def any_broker(self) -> int:
        return self._random.choice(self._brokers)

    def refresh(self) -> Steps[None]:
        """Ask any broker, and wait a little if that has not helped."""
        body = MetadataRequest(topics=None, allow_auto_topic_creation=False)
        told = yield Ask(node=self.any_broker(), body=body, timeout_ms=self._timeout_ms)
        if isinstance(told, MetadataResponse):
            self._learn(told)
        if self._lost or not self._places or not isinstance(told, MetadataResponse):
            yield self.pause()

    def pause(self) -> Pause:
        return Pause(self._random.randint(1, 2 * self._backoff_ms))

    def _learn(self, told: MetadataResponse) -> None:
        for topic in told.topics:
            if topic.error_code is not ErrorCode.NONE or topic.name is None:
                continue
            for partition in topic.partitions:
                place = Place(
                    topic=topic.name,
                    topic_id=topic.topic_id,
                    partition=partition.partition_index,
                    leader=partition.leader_id,
                    leader_epoch=partition.leader_epoch,
                )
                self._take(place)

    def _take(self, place: Place) -> None:
        before = self._places.get(place.key)
        is_same_topic = before is not None and before.topic_id == place.topic_id
        if before is not None and is_same_topic and place.leader_epoch < before.leader_epoch:
            return
        self._places[place.key] = place
        # The same leader in the same epoch may have been cut off only: it is tried again.
        self._lost.discard(place.key)
