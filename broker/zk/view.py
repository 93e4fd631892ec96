"""How a broker of the ZooKeeper designs learns what the cluster looks like beside its replicas.

`zk-v3` reads it from ZooKeeper when a client asks, or when it misses a broker: "the published
decisions are used by clients for request routing". The image is then as old as the last such
request. No more is read than the answer is about: otherwise a client of one topic would have the
broker read the partitions of all topics, and all others would wait for that.

Later designs get UpdateMetadata from the controller; an ISR in their image may be a minute old
(`broker.zk.isr_writes`). Both become an image, from which everything is answered as in quorum mode.

`quorumlab status` asks how the cluster is now: ZooKeeper is read apart for it, and the image stays.

Source: seed 000, overview and discussion 6; seed 001, "cluster metadata updates".
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar
from uuid import UUID

from broker.cluster import Cluster
from broker.groups.offsets_topic import OFFSETS_TOPIC
from broker.membership.membership import Handler
from broker.transactions.transactions_topic import TRANSACTIONS_TOPIC
from controller.metadata.delta import MetadataDelta
from controller.metadata.image import MetadataImage, ResourceType
from controller.metadata.partitions import PartitionState
from controller.zk.zk_metadata import (
    Assignments,
    ClusterUpdate,
    assigned,
    children,
    read_assignments,
    read_brokers,
    read_configs,
    read_states,
    updated,
    with_states,
)
from quorum.core.effects import Reply, Request
from quorum.core.outbox import Outbox
from quorum.zookeeper.zk_procedures import Procedure, Procedures
from wire.messages.groups import FindCoordinatorRequest
from wire.messages.metadata import (
    DescribeClusterRequest,
    DescribeTopicPartitionsRequest,
    MetadataRequest,
)
from wire.zk import paths
from wire.zk.control_rpc import TopicPartition
from wire.zk.designs import Design, Routing
from wire.zk.session import Session

__all__ = [
    "ReadClusterRequest",
    "ReadClusterResponse",
    "Reading",
    "View",
    "reading_apart",
    "reading_first",
]

_PIECE = 100  # of what is read apart, in flight together
_T = TypeVar("_T")
_Partitions = dict[TopicPartition, PartitionState]


@dataclass(frozen=True, slots=True)
class Reading:
    """It holds the topics that exist in ZooKeeper, and an image of those that were read."""

    topics: tuple[str, ...]
    image: MetadataImage


class View:
    def __init__(
        self,
        *,
        design: Design,
        cluster: Cluster,
        procedures: Procedures,
        apart: Procedures,
    ) -> None:
        """`apart` runs what is read for people: no client, and no ISR, waits for it."""
        self._design = design
        self._cluster = cluster
        self._procedures = procedures
        self._apart = apart
        self.news: deque[MetadataDelta] = deque()  # what was shown; the broker takes it
        self._waiting: list[tuple[Callable[[], None], Collection[str] | None]] = []
        self._readers: list[tuple[Callable[[Reading | None], None], Collection[str] | None]] = []
        self.published_offset = -1
        self._settings_of: set[str] = set()  # the topics whose settings were read

    def show(self, told: ClusterUpdate) -> None:
        image, delta = updated(self._cluster.image, told)
        self.published_offset += 1
        self._cluster.publish(image)
        self.news.append(delta)
        is_told = self._design.routing is Routing.UPDATE_METADATA
        if is_told and not image.topics.by_name.keys() <= self._settings_of:
            self.read_settings_soon()

    def refresh(self, then: Callable[[], None], topics: Collection[str] | None = None) -> None:
        """Read what is asked for, then go on. None: all.

        Whoever asks while it is being read waits for the next.
        """
        self._waiting.append((then, topics))
        self._procedures.submit("read the cluster", self._refresh)

    def read_apart(
        self, then: Callable[[Reading | None], None], topics: Collection[str] | None = None
    ) -> None:
        """As `refresh`; what is read goes to `then` alone, and changes nothing here.

        None if the session ends before it is read.
        """
        self._readers.append((then, topics))
        self._apart.submit("read the cluster apart", self._read_apart)

    def session_changed(self, *, is_over: bool) -> None:
        self._apart.session_changed()
        if is_over:
            readers, self._readers = self._readers, []
            for then, _ in readers:
                then(None)

    def _read_apart(self) -> Procedure[None]:
        """Nobody is forgotten when a connection is lost on the way, and this begins anew.

        Pipelined in every design, since thousands of partitions one after the other take longer
        than people wait; and in pieces, since what others ask waits for all that is in flight.
        """
        known, wanted = len(self._readers), _union(topics for _, topics in self._readers)
        design = replace(self._design, pipelines_writes=True)
        brokers = yield from read_brokers(design)
        names = yield from children(paths.TOPICS)
        asked = [name for name in names if wanted is None or name in wanted]
        assignments: Assignments = {}
        for piece in _pieces(asked):
            assignments = {**assignments, **(yield from read_assignments(design, piece))}
        states: _Partitions = {}
        for some in _pieces(assigned(assignments)):
            states |= yield from read_states(design, assignments, some)
        told = ClusterUpdate(brokers=brokers, partitions=with_states(assignments, states))
        image, _ = updated(MetadataImage(), told)
        readers, self._readers = self._readers[:known], self._readers[known:]
        for then, _ in readers:
            then(Reading(names, image))

    def name_of(self, topic_id: UUID) -> str:
        """Empty for an unknown topic: new topics are read in any case."""
        return self._cluster.topic_name(topic_id) or ""

    def miss(self, topic: str, leader: int) -> None:
        """A command names a topic or a leader that the image may lack."""
        if leader >= 0 and self._cluster.topic_id(topic) is None:
            self.read_soon()
        else:
            self.miss_broker(leader)

    def miss_broker(self, broker_id: int) -> None:
        """Reads the registrations again: the node that named this broker knows more than we do."""
        if broker_id >= 0 and broker_id not in self._cluster.image.brokers:
            self.read_soon()

    def read_soon(self) -> None:
        """Read everything, unless a controller tells us."""
        if self._design.routing is Routing.ZOOKEEPER:
            self.refresh(lambda: None)

    def read_settings_soon(self) -> None:
        """Reads the settings of topics and of this broker, which no controller tells."""
        self._procedures.submit("read settings", self._read_settings)

    def _read_settings(self) -> Procedure[None]:
        yield from children(paths.CONFIG_CHANGES, watch=True)
        names = sorted(self._cluster.image.topics.by_name)
        self._settings_of = set(names)
        resources = yield from self._settings(names)
        self.show(ClusterUpdate(configs=resources))

    def _settings(self, topics: list[str]) -> Procedure[dict[tuple[int, str], Mapping[str, str]]]:
        configs = yield from read_configs(self._design, ResourceType.TOPIC, topics)
        own = ["", str(self._cluster.config.node_id)]
        return configs | (yield from read_configs(self._design, ResourceType.BROKER, own))

    def _refresh(self) -> Procedure[None]:
        waiting, self._waiting = self._waiting, []
        yield from self.read(_union(topics for _, topics in waiting))
        for then, _ in waiting:
            then()

    def read(
        self, only: Collection[str] | None = None
    ) -> Procedure[dict[TopicPartition, PartitionState]]:
        """Read how the cluster is now. Returns the states of the partitions.

        Of topics: those in `only`, if that is given, and those that are new.
        """
        design, known_topics = self._design, self._cluster.image.topics.by_name
        brokers = yield from read_brokers(design)
        names = yield from children(paths.TOPICS)
        asked = [name for name in names if only is None or name in only or name not in known_topics]
        assignments = yield from read_assignments(design, asked)
        states = yield from read_states(design, assignments)
        resources = yield from self._settings(sorted(assignments))
        known = with_states(assignments, states)
        there = {*names} - {*asked} | assignments.keys()
        self.show(ClusterUpdate(brokers=brokers, partitions=known, topics=there, configs=resources))
        return states


def _pieces(asked: Sequence[_T]) -> Iterator[Sequence[_T]]:
    return (asked[first : first + _PIECE] for first in range(0, len(asked), _PIECE))


def _union(asked: Iterable[Collection[str] | None]) -> set[str] | None:
    wanted: set[str] = set()
    for topics in asked:
        if topics is None:
            return None
        wanted.update(topics)
    return wanted


_ROUTING = (
    MetadataRequest,
    DescribeClusterRequest,
    DescribeTopicPartitionsRequest,
    FindCoordinatorRequest,
)


@dataclass(frozen=True, slots=True)
class ReadClusterRequest:
    """The node itself asks this; it has no form on the wire. None stands for all topics."""

    topics: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class ReadClusterResponse:
    read: Reading | None  # None while there is no session


def reading_apart(session: Session, view: View, outbox: Outbox) -> dict[type, Handler]:
    """Routes that read the cluster as it is now, and leave the image of the broker alone."""

    def read_apart(request: Request, _now_ms: int) -> None:
        def answer(read: Reading | None) -> None:
            outbox.emit(Reply(token=request.token, body=ReadClusterResponse(read)))

        assert isinstance(request.body, ReadClusterRequest), request.body
        if session.is_connected:
            view.read_apart(answer, request.body.topics)
        else:
            answer(None)

    return {ReadClusterRequest: read_apart}


def reading_first(
    routes: Mapping[type, Handler], session: Session, view: View, now_ms: Callable[[], int]
) -> Mapping[type, Handler]:
    """`routes`, with the cluster read before any of these is answered; `now_ms`: by then."""

    def after_reading(handle: Handler) -> Handler:
        def read_first(request: Request, asked_ms: int) -> None:
            if session.is_connected:
                view.refresh(
                    lambda: handle(request, max(asked_ms, now_ms())), _named(request.body, view)
                )
            else:  # nobody knows better
                handle(request, asked_ms)

        return read_first

    return {**routes, **{kind: after_reading(routes[kind]) for kind in _ROUTING}}


def _named(body: object, view: View) -> Collection[str] | None:
    """The topics that the answer is about; None: all."""
    match body:
        case DescribeClusterRequest():
            return ()
        case FindCoordinatorRequest():
            return (OFFSETS_TOPIC, TRANSACTIONS_TOPIC)
        case MetadataRequest(topics=tuple(topics)):
            return [each.name or view.name_of(each.topic_id) for each in topics]
        case DescribeTopicPartitionsRequest(topics=topics) if topics:
            return [each.name for each in topics]
        case _:
            return None
