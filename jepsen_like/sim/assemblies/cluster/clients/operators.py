"""Operators of a simulated cluster: each does one operation after the other, as a core.

    WideTopics       topics of so many partitions that a controller decides over columns
    RecordDeletion   old records of the client's topic (KIP-107)
    SettingChanges   settings of the client's topic: those that change something
    GroupCommits     offsets, each for a group of its own, while coordinators come and go
    GroupReads       what is committed, asked by software of an older release

Whether what they are told comes true is judged elsewhere: in `liveness`, `broker_invariants`,
`partition_invariants` and `group_invariants`. One more operator is the `cluster_administrator`.
"""

from abc import ABC, abstractmethod
from collections.abc import Generator
from functools import partial
from typing import ClassVar, TypeVar

from broker.groups.offsets_topic import OFFSETS_TOPIC
from controller.decisions.failover import COLUMNS_FROM
from jepsen_like.clients.admin_client import creation, deletion, reassignment, setting
from jepsen_like.clients.steps import Ask
from jepsen_like.sim.assemblies.cluster.clients.client import Client
from jepsen_like.sim.assemblies.cluster.cluster_options import ClusterOptions
from jepsen_like.sim.assemblies.cluster.invariants.group_invariants import (
    PLACE,
    Commit,
    GroupInvariants,
)
from jepsen_like.sim.assemblies.cluster.invariants.partition_invariants import PartitionInvariants
from jepsen_like.sim.assemblies.cluster.invariants.watched import ALL, TOPIC, WIDE
from jepsen_like.sim.assemblies.quorum.clients.asking import AskingCore
from jepsen_like.sim.world.client_releases import NEWEST, ClientRelease
from jepsen_like.sim.world.world import World
from jepsen_like.workloads.workload import NewTopic
from wire.errors import ErrorCode
from wire.messages.configs import IncrementalAlterConfigsResponse
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
from wire.messages.partitions import ElectLeadersRequest
from wire.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
    DeleteTopicsResponse,
)

__all__ = [
    "UNCLEAR",
    "GroupCommits",
    "GroupReads",
    "Operation",
    "Operator",
    "RecordDeletion",
    "SettingChanges",
    "WideTopics",
    "commit_of",
    "error_in",
]

# Asked directly, a controller that answers one of these may have done it all the same: those that
# wait when it loses its leadership are told so, and a later controller may commit them.
UNCLEAR = (
    ErrorCode.NOT_CONTROLLER,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.UNKNOWN_SERVER_ERROR,
)
_CREATED = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
_PAIR_SHARE = 0.7  # of wide topics; else the second replicas are spread
_DELETED_SHARE = 0.1  # of moments; else a wide topic stays, until the next time at least
_PARTITIONS_MAX = COLUMNS_FROM * 3 // 2
_BEYOND_MAX = 10  # offsets behind the end of what may be deleted
_REFUSED = (ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
_SMALL_BATCH = 80  # bytes: one record of the client fits, three do not
_LARGE_BATCH = 1_048_588
_MOVE_SHARE = 0.2
_RECENT = 5  # commits

Result = TypeVar("Result")
Operation = Generator[Ask, object, Result]  # it is given each answer; None: there was none


def error_in(answer: object) -> ErrorCode:
    """The error of an operation on one thing; a time-out if there was no answer."""
    match answer:
        case CreateTopicsResponse(topics=(created, *_)):
            return created.error_code
        case DeleteTopicsResponse(responses=(deleted, *_)):
            return deleted.error_code
        case CreatePartitionsResponse(results=(extended, *_)):
            return extended.error_code
        case IncrementalAlterConfigsResponse(responses=(altered, *_)):
            return altered.error_code
        case OffsetCommitResponse(topics=(committed, *_)):
            return committed.partitions[0].error_code
        case _:
            return ErrorCode.REQUEST_TIMED_OUT


def commit_of(
    group: str, offset: int, generation: int = -1, member_id: str = ""
) -> OffsetCommitRequest:
    """The request of a group, or of one of its members, to commit an offset of `PLACE`."""
    topic, partition = PLACE
    place = OffsetCommitRequestPartition(partition_index=partition, committed_offset=offset)
    return OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        topics=(OffsetCommitRequestTopic(name=topic, partitions=(place,)),),
    )


class Operator(AskingCore, ABC):
    """One operation is under way at a time; subclasses say which in `_operate`."""

    stream: ClassVar[str]  # of what is random in it
    share: ClassVar[int] = 1  # its time-out is this part of the client's

    def __init__(
        self,
        world: World,
        options: ClusterOptions,
        interval_ms: int,
        release: ClientRelease = NEWEST,
    ) -> None:
        """`interval_ms`: between two operations, on average; 0: there are none."""
        super().__init__(timeout_ms=options.client_timeout_ms // self.share, release=release)
        self.interval_ms = interval_ms
        self.works = True
        self._options = options
        self._random = world.fork(self.stream)
        self._next_serial = world.sequence
        self._fired = world.counts.fired
        self._due_ms: int | None = None

    def settle(self, now_ms: int) -> None:
        if self._due_ms is None:
            self._pause(now_ms)
        elif now_ms >= self._due_ms and self.is_quiet:
            self._due_ms = now_ms + self.timeout_ms
            if self.works:
                self._go_on(self._operate(), None)

    def deadline_ms(self) -> int | None:
        return 0 if self._due_ms is None else self._due_ms if self.is_quiet else None

    @abstractmethod
    def _operate(self) -> Operation[None]:
        """One operation."""

    def _pause(self, now_ms: int) -> None:
        self._due_ms = now_ms + self._random.randint(1, 2 * self.interval_ms)

    def _go_on(self, operation: Operation[None], told: object) -> None:
        try:
            asked = operation.send(told)
        except StopIteration:
            return
        answered = partial(self._has_answer, operation)
        self.ask(asked.node, asked.body, answered, asked.timeout_ms)

    def _has_answer(self, operation: Operation[None], answer: object, now_ms: int) -> None:
        self._pause(now_ms)
        self._go_on(operation, answer)

    def _ask(self, node: int, body: object, timeout_ms: int | None = None) -> Operation[object]:
        """The usual time-out holds where none is given."""
        answer = yield Ask(node=node, body=body, timeout_ms=timeout_ms or self.timeout_ms)
        return answer

    def _ask_controller(self, body: object) -> Operation[ErrorCode]:
        return error_in(
            (yield from self._ask(self._random.choice(self._options.controllers), body))
        )

    def _creates(self, name: str) -> Operation[bool]:
        """Is the topic there? It has one partition, so that all of a run have one coordinator."""
        factor = self._options.replication_factor
        topic = NewTopic(name=name, partitions=1, replication_factor=factor)
        return (yield from self._ask_controller(creation(topic, self.timeout_ms))) in _CREATED


class WideTopics(Operator):
    """One topic at a time, while brokers fail.

    It is created with one broker or two among the replicas of all its partitions, so that the
    failure of one concerns them all, and deleted later. Nobody writes to it. Controllers alone are
    asked, and a name is used once.
    """

    stream = "wide topics"

    def __init__(self, world: World, options: ClusterOptions) -> None:
        super().__init__(world, options, options.operations.wide_interval_ms)
        self.expected: dict[str, int] = {}  # partitions by name: see `check_end`
        self._present = ""

    def _operate(self) -> Operation[None]:
        if not self._present:
            yield from self._create(f"{WIDE}-{self._next_serial()}")
        elif self._random.random() < _DELETED_SHARE:
            yield from self._delete(self._present)

    def _create(self, name: str) -> Operation[None]:
        count = self._random.randint(COLUMNS_FROM, _PARTITIONS_MAX)
        topic = CreatableTopic(name=name, assignments=self._assignments(count))
        body = CreateTopicsRequest(topics=(topic,), timeout_ms=self.timeout_ms)
        error = yield from self._ask_controller(body)
        if error is ErrorCode.NONE:
            self._fired("wide_created")
            self.expected[name] = count
        elif error not in UNCLEAR:
            self.expected[name] = 0
        self._present = name if self.expected.get(name, count) else ""

    def _assignments(self, count: int) -> tuple[CreatableReplicaAssignment, ...]:
        brokers = self._options.brokers
        everywhere = self._random.choice(brokers)
        others = [broker for broker in brokers if broker != everywhere]
        if self._random.random() < _PAIR_SHARE:
            others = [self._random.choice(others)]
        assigned: list[CreatableReplicaAssignment] = []
        for index in range(count):
            pair = [everywhere, self._random.choice(others)]
            self._random.shuffle(pair)
            each = CreatableReplicaAssignment(partition_index=index, broker_ids=tuple(pair))
            assigned.append(each)
        return tuple(assigned)

    def _delete(self, name: str) -> Operation[None]:
        before = self.expected.pop(name, None)
        error = yield from self._ask_controller(deletion(name, self.timeout_ms))
        if error is ErrorCode.NONE:
            self._fired("wide_deleted")
            self.expected[name] = 0
        if error in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
            self._present = ""
        elif error not in UNCLEAR and before is not None:
            self.expected[name] = before


class RecordDeletion(Operator):
    """It has leaders delete records, up to where their log lets go, or up to an offset: of what was
    read, or a little beyond. The judge is told before, and what came of it: see `Deletable`."""

    stream = "record deletion"

    def __init__(
        self, world: World, options: ClusterOptions, client: Client, judge: PartitionInvariants
    ) -> None:
        super().__init__(world, options, options.operations.deletion_interval_ms)
        self._client = client
        self._judge = judge

    def _operate(self) -> Operation[None]:
        led = self._client.led()
        if not led:
            return
        key = self._random.choice(list(led))
        leader, position = led[key]
        offset = self._offset(position)
        deletable = self._judge.watched[key].deletable
        deletable.asked(offset)
        each = DeleteRecordsPartition(partition_index=key[1], offset=offset)
        topic = DeleteRecordsTopic(name=TOPIC, partitions=(each,))
        body = DeleteRecordsRequest(topics=(topic,), timeout_ms=self.timeout_ms // 2)
        answer = yield from self._ask(leader, body)
        if not isinstance(answer, DeleteRecordsResponse):
            return  # it may yet happen
        told = answer.topics[0].partitions[0]
        if told.error_code is ErrorCode.NONE:
            self._fired("records_deleted")
            deletable.acknowledged(offset, told.low_watermark)
        elif told.error_code in _REFUSED:
            deletable.refused(offset)

    def _offset(self, position: int) -> int:
        draw = self._random.randint
        read = (draw(0, position), draw(0, position))
        return self._random.choice((ALL, position, *read, position + draw(1, _BEYOND_MAX)))


class SettingChanges(Operator):
    """How long records are kept and how many, how many replicas must be in sync, how large a batch
    may be, and whether a partition may be led from outside the ISR."""

    stream, share = "setting changes", 2

    def __init__(self, world: World, options: ClusterOptions, judge: PartitionInvariants) -> None:
        super().__init__(world, options, options.operations.setting_interval_ms)
        self._judge = judge  # is told which min.insync.replicas may come to hold

    def _operate(self) -> Operation[None]:
        error = yield from self._ask_controller(setting(TOPIC, *self._drawn()))
        if error is ErrorCode.NONE:
            self._fired("setting_changed")

    def _drawn(self) -> tuple[str, str]:
        draw, unit_ms = self._random.choice, self._options.quorum.election_timeout_ms
        name = draw(("bytes", "bytes", "age", "age", "min-isr", "size", "size", "unclean"))
        match name:
            case "bytes":
                return "retention.bytes", str(draw((4_000, 10_000, -1)))
            case "age":
                return "retention.ms", str(draw((10 * unit_ms, 40 * unit_ms, -1)))
            case "min-isr":
                value = draw((1, 2))
                self._judge.asks_min_isr(value)
                return "min.insync.replicas", str(value)
            case "size":
                return "max.message.bytes", str(draw((_SMALL_BATCH, _LARGE_BATCH)))
            case _:
                is_allowed = self._random.random() < 0.2
                return "unclean.leader.election.enable", "true" if is_allowed else "false"


class GroupCommits(Operator):
    """Each group commits once: what a coordinator must know of it never changes, whatever arrives
    late or twice.

    The topic of the offsets has one partition, created here, so that every commit of a run is with
    the same coordinator. Now and then another replica is preferred, and elected as soon as a commit
    is acknowledged: it does not know yet that it is committed.
    """

    stream, share = "group commits", 4

    def __init__(self, world: World, options: ClusterOptions, judge: GroupInvariants) -> None:
        super().__init__(world, options, options.operations.commit_interval_ms)
        self._judge = judge
        self._coordinator: int | None = None  # that answered last
        self._is_created = False
        self._number = 0  # of the last group, and what it commits
        self._moves = False  # another replica is preferred, and is to be elected
        self._elects = False  # now

    def _operate(self) -> Operation[None]:
        if not self._is_created:
            self._is_created = yield from self._creates(OFFSETS_TOPIC)
        elif self._elects:
            self._moves = self._elects = False
            yield from self._ask_controller(ElectLeadersRequest(timeout_ms=self.timeout_ms))
        elif not self._moves and self._random.random() < _MOVE_SHARE:
            self._moves = True
            options = self._options
            replicas = tuple(self._random.sample(options.brokers, options.replication_factor))
            move = reassignment(f"{OFFSETS_TOPIC}-0", replicas, self.timeout_ms)
            yield from self._ask_controller(move)
        else:
            yield from self._commit()

    def _commit(self) -> Operation[None]:
        self._number += 1
        body = commit_of(f"group-{self._number}", self._number)
        broker = self._coordinator or self._random.choice(self._options.brokers)
        commit = Commit(body.group_id, self._number, broker)
        answer = yield from self._ask(broker, body)
        is_done = error_in(answer) is ErrorCode.NONE
        self._coordinator = broker if is_done else None
        if is_done:
            self._judge.acknowledged(commit)
            self._elects = self._moves
            if self._elects:
                self._due_ms = 0


class GroupReads(Operator):
    """Asks for a recent commit where it was acknowledged; that broker may lead no longer."""

    stream, share = "group reads", 4

    def __init__(self, world: World, options: ClusterOptions, judge: GroupInvariants) -> None:
        operations = options.operations
        is_older = operations.reader_release is not NEWEST and operations.commit_interval_ms > 0
        interval_ms = operations.commit_interval_ms if is_older else 0
        release = operations.reader_release if is_older else NEWEST
        super().__init__(world, options, interval_ms, release)
        self._judge = judge

    def _operate(self) -> Operation[None]:
        if not self._judge.commits:
            return
        commit = self._random.choice(self._judge.commits[-_RECENT:])
        topic = OffsetFetchRequestTopics(name=TOPIC, partition_indexes=(0,))
        group = OffsetFetchRequestGroup(group_id=commit.group, topics=(topic,))
        answer = yield from self._ask(commit.broker, OffsetFetchRequest(groups=(group,)))
        if isinstance(answer, OffsetFetchResponse):
            self._judge.told(commit, answer)
