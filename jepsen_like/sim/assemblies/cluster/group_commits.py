"""A client that commits offsets, each for a group of its own, while coordinators come and go.

The topic of the offsets has one partition, created here, so that every commit of a run is with the
same coordinator. Each group commits once: what a coordinator must know of it never changes,
whatever arrives late or twice. Now and then another replica is preferred, and elected as soon as a
commit is acknowledged: it does not know yet that it is committed. In some runs a client of older
software asks what is committed.

D-GRP: what a coordinator serves from its beginning on holds every commit that was acknowledged in
an earlier leader epoch. Those of its own epoch are in it anyway, and of a later one it may be
deposed without knowing. And whoever asks the broker that acknowledged a commit is shown the commit
or told an error, in words that its software knows.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from broker.groups.coordinator import Coordinator
from broker.groups.offsets_topic import OFFSETS_TOPIC
from jepsen_like.sim.assemblies.cluster.client import TOPIC
from jepsen_like.sim.assemblies.cluster.nodes import ClusterNode
from jepsen_like.sim.assemblies.cluster.one_at_a_time import Operator
from jepsen_like.sim.assemblies.cluster.partition_invariants import Watched
from jepsen_like.sim.violation import Violation
from jepsen_like.sim.world.host import Host
from jepsen_like.sim.world.observer import Observer
from wire.errors import ErrorCode
from wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from wire.messages.partitions import (
    AlterPartitionReassignmentsRequest,
    ElectLeadersRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from wire.messages.topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse

__all__ = ["GroupCommits", "GroupInvariants", "GroupReads"]

_PLACE = (TOPIC, 0)
_MOVE_SHARE = 0.2
_RECENT = 5  # commits
_CREATED = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)


class Commit(NamedTuple):
    """A broker has acknowledged this offset to a group."""

    group: str
    offset: int
    broker: int


@dataclass(slots=True, kw_only=True)
class GroupCommits(Operator):
    controllers: tuple[int, ...]
    brokers: tuple[int, ...]
    replication_factor: int
    acknowledged: Callable[[Commit], None]
    _coordinator: int | None = None  # that answered last
    _is_created: bool = False
    _number: int = 0  # of the last group, and what it commits
    _moves: bool = False  # another replica is preferred, and is to be elected
    _elects: bool = False  # now

    def _operate(self) -> None:
        if not self._is_created:
            self._create()
        elif self._elects:
            self._elect()
        elif not self._moves and self.random.random() < _MOVE_SHARE:
            self._prefer_another()
        else:
            self._commit()

    def _prefer_another(self) -> None:
        self._moves = True
        replicas = tuple(self.random.sample(self.brokers, self.replication_factor))
        partition = ReassignablePartition(partition_index=0, replicas=replicas)
        body = AlterPartitionReassignmentsRequest(
            timeout_ms=self.timeout_ms,
            topics=(ReassignableTopic(name=OFFSETS_TOPIC, partitions=(partition,)),),
        )
        self._ask(self.random.choice(self.controllers), body, lambda _answer: None)

    def _elect(self) -> None:
        self._moves = self._elects = False
        body = ElectLeadersRequest(timeout_ms=self.timeout_ms)
        self._ask(self.random.choice(self.controllers), body, lambda _answer: None)

    def _create(self) -> None:
        topic = CreatableTopic(
            name=OFFSETS_TOPIC, num_partitions=1, replication_factor=self.replication_factor
        )
        body = CreateTopicsRequest(topics=(topic,), timeout_ms=self.timeout_ms)

        def created(answer: object) -> None:
            if isinstance(answer, CreateTopicsResponse):
                self._is_created = answer.topics[0].error_code in _CREATED

        self._ask(self.random.choice(self.controllers), body, created)

    def _commit(self) -> None:
        self._number += 1
        group, offset = f"group-{self._number}", self._number
        place = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        topic = OffsetCommitRequestTopic(name=TOPIC, partitions=(place,))
        body = OffsetCommitRequest(group_id=group, topics=(topic,))
        broker = self._coordinator or self.random.choice(self.brokers)

        def committed(answer: object) -> None:
            is_done = (
                isinstance(answer, OffsetCommitResponse)
                and answer.topics[0].partitions[0].error_code is ErrorCode.NONE
            )
            self._coordinator = broker if is_done else None
            if is_done:
                self.acknowledged(Commit(group, offset, broker))
                self._elects = self._moves
                if self._elects:
                    self._due_ms = 0

        self._ask(broker, body, committed)


@dataclass(slots=True, kw_only=True)
class GroupReads(Operator):
    """Asks for a recent commit where it was acknowledged; that broker may lead no longer."""

    commits: Sequence[Commit]
    told: Callable[[Commit, OffsetFetchResponse], None]

    def _operate(self) -> None:
        if not self.commits:
            return
        commit = self.random.choice(self.commits[-_RECENT:])
        topic = OffsetFetchRequestTopics(name=TOPIC, partition_indexes=(0,))
        group = OffsetFetchRequestGroup(group_id=commit.group, topics=(topic,))

        def answered(answer: object) -> None:
            if isinstance(answer, OffsetFetchResponse):
                self.told(commit, answer)

        self._ask(commit.broker, OffsetFetchRequest(groups=(group,)), answered)


@dataclass(slots=True, kw_only=True)
class GroupInvariants(Observer):
    """Raises `Violation`."""

    node_of: Callable[[Host], ClusterNode]
    watched: Callable[[], Watched | None]  # the partition of the offsets
    fired: Callable[[str], None]
    commits: list[Commit] = field(default_factory=list)  # all that were acknowledged
    _acknowledged: dict[int, dict[str, int]] = field(default_factory=dict)  # by leader epoch
    _served: dict[int, Coordinator] = field(default_factory=dict)  # by node: the last one seen

    def acknowledged(self, commit: Commit) -> None:
        """The commit was made in the leader epoch of now, or in an earlier one."""
        watched = self.watched()
        if watched is not None and watched.state is not None:
            commits = self._acknowledged.setdefault(watched.state.leader_epoch, {})
            commits[commit.group] = commit.offset
            self.commits.append(commit)
            self.fired("offset_committed")

    def told(self, commit: Commit, answer: OffsetFetchResponse) -> None:
        """The broker that acknowledged the commit must show it, or refuse."""
        watched, group = self.watched(), answer.groups[0]
        places = [place for topic in group.topics for place in topic.partitions]
        is_refused = any(each.error_code is not ErrorCode.NONE for each in (group, *places))
        if watched is None or watched.excused or is_refused:
            return
        offsets = [place.committed_offset for place in places]
        if offsets != [commit.offset]:
            raise Violation(
                "D-GRP",
                f"{commit.group} committed {commit.offset}, acknowledged by {commit.broker}, which"
                f" then showed {offsets}, and no error",
            )
        self.fired("commit_shown")

    def settled(self, host: Host, effects: object) -> None:
        broker = self.node_of(host).broker
        for coordinator in () if broker is None else broker.coordinators:
            is_new = self._served.get(host.node_id) is not coordinator
            if coordinator.error is ErrorCode.NONE and is_new:
                self._served[host.node_id] = coordinator
                self._has_loaded(host, coordinator)

    def _has_loaded(self, host: Host, coordinator: Coordinator) -> None:
        watched = self.watched()
        if watched is None or watched.excused:
            return
        earlier = {
            group: offset
            for epoch, commits in self._acknowledged.items()
            if epoch < coordinator.leader_epoch
            for group, offset in commits.items()
        }
        for group, offset in earlier.items():
            known = coordinator.offsets.get(group, {}).get(_PLACE)
            if known is None or known.offset != offset:
                raise Violation(
                    "D-GRP",
                    f"{group} committed {offset} before epoch {coordinator.leader_epoch}, whose"
                    f" coordinator on {host.node_id} knows {known}",
                )
        if earlier:
            self.fired("commits_loaded")
