"""Members of groups in which the coordinator assigns (KIP-848) join, give back, commit, and die.

A consumer says in each heartbeat in which epoch it is, and mostly what it owns. What it is told to
give back it sometimes gives back late. Whoever is fenced drops everything and joins again; whoever
dies says nothing, and a new one takes its place. Each commits offsets of what it owns.

What coordinators answer is judged in `consumer_invariants`, and the end of a run in `liveness`.

Source: KIP-848; Kafka's ConsumerMembershipManager.
"""

from broker.groups.consumer.consumer_values import JOINS, LEAVES
from jepsen_like.sim.assemblies.cluster.clients.operators import Operation, Operator, error_in
from jepsen_like.sim.assemblies.cluster.cluster_options import ClusterOptions
from jepsen_like.sim.assemblies.cluster.invariants.consumer_invariants import ConsumerInvariants
from jepsen_like.sim.assemblies.cluster.invariants.watched import TOPIC
from jepsen_like.sim.world.world import World
from wire.errors import ErrorCode
from wire.messages.consumer_groups import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    MemberAssignment,
)
from wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)

__all__ = ["GroupConsumer"]

_GROUP_SIZE = 3
# What a member does next: the first line whose bound is above a draw from [0, 1).
_LEAVES = 0.03
_DIES = 0.06
_SLEEPS = 0.12
_COMMITS_LATE = 0.2  # as what it was before it was fenced, or died
_COMMITS = 0.5
_GIVES_BACK_LATE = 0.3
_SAYS_WHAT_IT_OWNS = 0.5  # also if that has not changed
_ELSEWHERE = (
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
)
_FENCED = (
    ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.GROUP_ID_NOT_FOUND,
)


class GroupConsumer(Operator):
    stream = "group consumers"

    def __init__(
        self, world: World, options: ClusterOptions, judge: ConsumerInvariants, number: int
    ) -> None:
        super().__init__(world, options, options.operations.consumer_interval_ms)
        self._random = world.fork(f"{self.stream}/{number}")
        self.group = f"consumers-{number // _GROUP_SIZE}"
        self.all_pieces = frozenset(range(options.partitions))
        self.is_restless = True  # it leaves and dies now and then, and gives back late
        self._judge = judge
        self._number = number
        self._node = number % len(options.brokers)
        self._former: tuple[str, int, frozenset[int]] | None = None  # id, epoch, what it owned
        self._id, self._epoch, self._owned = "", JOINS, frozenset[int]()
        self._become_new()

    @property
    def generation(self) -> int:
        return self._epoch

    @property
    def pieces(self) -> frozenset[int] | None:
        """The partitions that it owns; None while it has to join."""
        return None if self._epoch == JOINS else self._owned

    def _operate(self) -> Operation[None]:
        self._reconcile()
        draw = self._random.random()
        if self._epoch == JOINS:
            yield from self._beat(JOINS)
        elif not self.is_restless or draw >= _COMMITS:
            yield from self._beat(self._epoch)
        elif draw < _LEAVES:
            yield from self._beat(LEAVES)
            self._become_new()
        elif draw < _DIES:
            self._become_new()
        elif _SLEEPS <= draw < _COMMITS_LATE and self._former is not None:
            yield from self._commit(*self._former)
        elif draw >= _SLEEPS and self._owned:
            yield from self._commit(self._id, self._epoch, self._owned)

    def _reconcile(self) -> None:
        """What it has to give back goes first; until then it begins with nothing new."""
        if not self._owned <= self._assigned:
            if self.is_restless and self._random.random() < _GIVES_BACK_LATE:
                return
            self._owned &= self._assigned
        self._owned |= self._assigned

    def _become_new(self) -> None:
        """Another process, which needs another id."""
        if self._owned:
            self._former = self._id, self._epoch, self._owned
        self._id = f"consumer-{self._number}-{self._next_serial()}"
        self._join_again()

    def _join_again(self) -> None:
        self._epoch = JOINS
        self._owned = frozenset()
        self._assigned: frozenset[int] = frozenset()
        # What the coordinator has heard that it owns. None: it is told everything, as an answer
        # may be lost, and is told everything.
        self._said: frozenset[int] | None = None

    # --- what it asks -----------------------------------------------------------------------

    def _ask_coordinator(self, body: object) -> Operation[object]:
        brokers = self._options.brokers
        return self._ask(brokers[self._node % len(brokers)], body)

    def _beat(self, epoch: int) -> Operation[None]:
        owned = self._owned if epoch != JOINS else frozenset()
        is_whole = self._said is None
        says = owned != self._said or self._random.random() < _SAYS_WHAT_IT_OWNS
        body = ConsumerGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self._id,
            member_epoch=epoch,
            rebalance_timeout_ms=self.timeout_ms if is_whole else -1,
            subscribed_topic_names=(TOPIC,) if is_whole else None,
            topic_partitions=self._judge.named(owned) if says and epoch >= JOINS else None,
        )
        answer = yield from self._ask_coordinator(body)
        if (
            not isinstance(answer, ConsumerGroupHeartbeatResponse)
            or answer.error_code in _ELSEWHERE
        ):
            self._look_elsewhere()
        elif answer.error_code in _FENCED:
            self._join_again()
        elif answer.error_code is ErrorCode.NONE and epoch >= JOINS:
            self._epoch = answer.member_epoch
            self._said = owned if says else self._said
            if answer.assignment is not None:
                self._assigned = indexes_of(answer.assignment)

    def _look_elsewhere(self) -> None:
        self._node += 1
        self._said = None

    def _commit(self, member_id: str, epoch: int, owned: frozenset[int]) -> Operation[None]:
        index, offset = self._random.choice(sorted(owned)), self._next_serial()
        place = OffsetCommitRequestPartition(partition_index=index, committed_offset=offset)
        body = OffsetCommitRequest(
            group_id=self.group,
            generation_id_or_member_epoch=epoch,
            member_id=member_id,
            topics=(OffsetCommitRequestTopic(name=TOPIC, partitions=(place,)),),
        )
        sent = self._judge.sends(self.group, (TOPIC, index), offset)
        answer = yield from self._ask_coordinator(body)
        if isinstance(answer, OffsetCommitResponse):
            self._judge.is_answered(sent, error_in(answer))
            if error_in(answer) in _ELSEWHERE:
                self._node += 1
        else:
            self._node += 1


def indexes_of(assignment: MemberAssignment) -> frozenset[int]:
    """There is one topic."""
    return frozenset(index for each in assignment.topic_partitions for index in each.partitions)
