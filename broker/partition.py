"""One replica of a partition: what role it has, and which requests that role may serve.

A replica follows the metadata log: its leader, epochs and replicas are what the controller last
decided and committed; older decisions that arrive late are ignored (by partition epoch). What a
leader does beyond that is in leading.py, what a follower does in replication.py.

Source: Kafka's Partition (makeLeader, makeFollower) and ReplicaManager.applyDelta.
"""

from dataclasses import dataclass, field
from enum import Enum
from uuid import UUID

from broker import isr
from broker.isr import Committed, FollowerProgress, IsrState
from broker.local_log import LocalLog
from broker.topic_settings import TopicSettings
from controller.metadata.partitions import NO_LEADER, PartitionState
from quorum.core.types import NO_EPOCH
from quorum.log.fetch import check_leader_epoch
from wire.errors import ErrorCode
from wire.primitives import ZERO_UUID

__all__ = ["Change", "FollowerOf", "LeaderOf", "Offline", "Opening", "Partition", "PartitionRole"]


@dataclass(slots=True, kw_only=True)
class Opening:
    """The log is being recovered; `wanted` is what to become then."""

    wanted: PartitionState


@dataclass(slots=True, kw_only=True)
class LeaderOf:
    leader_epoch: int
    epoch_start_offset: int  # where our log ended when the epoch began
    partition_epoch: int
    replicas: tuple[int, ...]
    isr: IsrState
    leader_recovery_state: int
    followers: dict[int, FollowerProgress] = field(default_factory=dict)  # every other replica


@dataclass(slots=True, kw_only=True)
class FollowerOf:
    leader_id: int  # NO_LEADER: nobody leads
    leader_epoch: int
    partition_epoch: int
    is_in_sync: bool  # as the controller has it


@dataclass(slots=True, kw_only=True)
class Offline:
    """The log cannot be used, or is not ours any more: every request gets `error`."""

    error: ErrorCode
    leader_epoch: int = NO_EPOCH
    partition_epoch: int = -1


PartitionRole = Opening | LeaderOf | FollowerOf | Offline


class Change(Enum):
    """What a metadata change meant for this replica."""

    NONE = "none"
    UPDATED = "updated"  # still in the same role and leader epoch
    ELECTED = "elected"  # leads a new epoch
    FOLLOWS = "follows"  # follows in a new epoch


class Partition:
    __slots__ = (
        "directory_id",
        "index",
        "log",
        "name",
        "node_id",
        "role",
        "settings",
        "topic",
        "topic_id",
    )

    def __init__(
        self, *, topic: str, topic_id: UUID, index: int, node_id: int, wanted: PartitionState
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.index = index
        self.name = f"{topic}-{index}"  # also of its log
        self.node_id = node_id
        self.settings = TopicSettings()
        self.directory_id = ZERO_UUID  # where its log lies; ZERO_UUID before that is settled
        self.log: LocalLog | None = None  # None until it is open
        self.role: PartitionRole = Opening(wanted=wanted)

    @property
    def leader_epoch(self) -> int:
        role = self.role
        return role.wanted.leader_epoch if isinstance(role, Opening) else role.leader_epoch

    @property
    def leader_id(self) -> int:
        match self.role:
            case LeaderOf():
                return self.node_id
            case FollowerOf(leader_id=leader_id):
                return leader_id
            case Opening(wanted=wanted):
                return wanted.leader
            case Offline():
                return NO_LEADER

    @property
    def open_log(self) -> LocalLog:
        """The log of a replica that leads or follows."""
        assert self.log is not None, f"{self.name} is {type(self.role).__name__}"
        return self.log

    def check_epoch(self, requested: int) -> ErrorCode:
        """May the leader of this partition serve a request meant for leader epoch `requested`?"""
        if isinstance(self.role, Offline):
            return self.role.error
        return check_leader_epoch(
            requested, self.leader_epoch, is_leader=isinstance(self.role, LeaderOf)
        )

    # --- transitions ------------------------------------------------------------------------

    def opened(self, log: LocalLog, now_ms: int) -> Change:
        """Recovery is done: take the role that the metadata asks for by now."""
        assert isinstance(self.role, Opening), self.role
        assert self.log is None, self.name
        self.log = log
        return self._become(self.role.wanted, now_ms)

    def apply(self, state: PartitionState, now_ms: int) -> Change:
        """The metadata log says `state`."""
        match self.role:
            case Opening():
                self.role.wanted = state
                return Change.NONE
            case Offline():
                return Change.NONE
            case LeaderOf() | FollowerOf():
                if is_outdated(state, self.role):
                    return Change.NONE
                return self._become(state, now_ms)

    def close(self, error: ErrorCode) -> None:
        self.role = Offline(error=error, leader_epoch=self.leader_epoch)
        self.log = None

    def _become(self, state: PartitionState, now_ms: int) -> Change:
        if state.leader == self.node_id:
            return self._become_leader(state, now_ms)
        return self._become_follower(state)

    def _become_leader(self, state: PartitionState, now_ms: int) -> Change:
        log, before = self.open_log, self.role
        others = tuple(replica for replica in state.replicas if replica != self.node_id)
        role = LeaderOf(
            leader_epoch=state.leader_epoch,
            epoch_start_offset=log.end_offset,
            partition_epoch=state.partition_epoch,
            replicas=state.replicas,
            isr=Committed(members=state.isr),
            leader_recovery_state=state.leader_recovery_state,
        )
        same_epoch = isinstance(before, LeaderOf) and before.leader_epoch == state.leader_epoch
        known = before.followers if isinstance(before, LeaderOf) else {}
        if same_epoch:
            assert isinstance(before, LeaderOf)
            role.epoch_start_offset = before.epoch_start_offset
        else:
            log.epochs.assign(state.leader_epoch, log.end_offset)
        for replica in others:
            follower = known.get(replica, FollowerProgress(broker_id=replica))
            if not same_epoch or replica not in known:
                isr.start_epoch(
                    follower,
                    in_isr=replica in state.isr,
                    leader_end_offset=log.end_offset,
                    now_ms=now_ms,
                )
            role.followers[replica] = follower
        self.role = role
        return Change.UPDATED if same_epoch else Change.ELECTED

    def _become_follower(self, state: PartitionState) -> Change:
        self.open_log.forget_empty_epochs()
        before = self.role
        self.role = FollowerOf(
            leader_id=state.leader,
            leader_epoch=state.leader_epoch,
            partition_epoch=state.partition_epoch,
            is_in_sync=self.node_id in state.isr,
        )
        if (
            isinstance(before, FollowerOf)
            and before.leader_epoch == state.leader_epoch
            and before.leader_id == state.leader  # where there are no epochs, this alone changes
        ):
            return Change.UPDATED
        return Change.FOLLOWS


def is_outdated(state: PartitionState, role: LeaderOf | FollowerOf) -> bool:
    """Have we this state, or a later one, already?

    The answer to an AlterPartition may tell a leader of a change before the metadata log does.
    To apply it a second time could undo a change that is pending by then.
    """
    return state.partition_epoch <= role.partition_epoch
