"""A replica of a partition is told what has happened, and returns what follows.

A replica is told that the metadata has changed, that a batch was appended, that a follower has
fetched, that its ISR was decided, and that time has passed. It changes its own state at once, the
high watermark included. Two things follow for others, and each method returns them as a `Progress`:
another role, and a change of the ISR that somebody has to make true. A replica that has moved notes
itself in `Moves`; the broker answers those who wait for it when it settles.

Its leader, epochs and replicas are what the controller last decided and committed. Older decisions
that arrive late are ignored, by partition epoch. Who is in sync, and how far the high watermark may
go, is said by the `IsrRules` that the replica is made with (isr_rules.py).

A leader that wants another ISR counts on the change from then on, in the way of isr.py, until the
change is made or refused (`IsrChange`). An answer to what is no longer asked for says nothing.

Source: KIP-497 (seed 003); Kafka's Partition and ReplicaManager.applyDelta.
"""

from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol
from uuid import UUID

from broker.partition import isr
from broker.partition.isr import Committed, FollowerProgress, IsrState, Pending, PendingExpand
from broker.partition.local_log import LocalLog, Moves
from broker.partition.topic_settings import TopicSettings
from broker.partition.transactional import Guards
from controller.metadata.partitions import NO_LEADER, PartitionState
from quorum.core.types import NO_EPOCH
from quorum.log.fetch import check_leader_epoch
from wire.batch import BatchHeader, assign
from wire.errors import ErrorCode
from wire.message import Value
from wire.messages.fetching import ReplicaState
from wire.messages.partitions import IsrPartitionResult
from wire.primitives import ZERO_UUID

__all__ = [
    "NOTHING",
    "Change",
    "FollowerFetch",
    "FollowerOf",
    "IsrChange",
    "IsrRules",
    "LeaderOf",
    "Offline",
    "Opening",
    "Partition",
    "PartitionRole",
    "Progress",
]


@dataclass(slots=True, kw_only=True)
class Opening:
    """The log is being recovered, or rewritten before we lead; `wanted` is what to become then."""

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
    guards: Guards = field(default_factory=Guards)


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


class FollowerFetch(Value):
    """A follower asks for what lies behind `fetch_offset`, so it has the rest."""

    broker_id: int
    broker_epoch: int
    fetch_offset: int
    log_start_offset: int


# --- what follows ---------------------------------------------------------------------------


class Change(Enum):
    """An event has one of these outcomes for the role of this replica."""

    NONE = "none"
    UPDATED = "updated"  # still in the same role and leader epoch
    ELECTED = "elected"  # leads a new epoch
    FOLLOWS = "follows"  # follows in a new epoch
    GONE = "gone"  # deleted, moved away, or failed: it is not used any more


@dataclass(slots=True, eq=False)
class IsrChange:
    """A leader wants this change of the ISR in one leader epoch."""

    partition: "Partition"
    role: LeaderOf
    asked: Pending
    is_in_doubt: bool = False  # a request for it has no answer: it may still be made

    @property
    def is_wanted(self) -> bool:
        return self.partition.role is self.role and self.role.isr is self.asked

    def end(self, members: tuple[int, ...]) -> bool:
        """The ISR has these members, unless the change is no longer wanted: False."""
        if not self.is_wanted:
            return False
        self.role.isr = Committed(members=members)
        return True

    def revert(self) -> bool:
        """The controller has not made the change, for certain."""
        return self.end(self.asked.members)

    def stay(self) -> "IsrChange | None":
        """What to ask for, lest a change that is refused is made yet; None: it cannot be."""
        asked = self.asked
        if self.is_in_doubt and self.is_wanted and isinstance(asked, PendingExpand):
            self.role.isr = isr.PendingStay(members=asked.members, joining=asked.joining)
            return self.partition.isr_wanted
        return None

    def accept(self, result: IsrPartitionResult) -> bool:
        """The controller has made the change; False if the answer is out of date by now.

        What the metadata log said meanwhile wins unless the answer has the higher partition epoch.
        What adds nobody holds from its place in that log only: a larger min.insync.replicas before
        it may have made eligible leaders of those who leave, and an answer does not tell.
        """
        role, asked = self.role, self.asked
        if not self.is_wanted or result.leader_epoch != role.leader_epoch:
            return False
        if result.partition_epoch < role.partition_epoch:
            return False
        if result.partition_epoch > role.partition_epoch and not isinstance(asked, PendingExpand):
            return False
        role.isr = Committed(members=result.isr)
        role.partition_epoch = result.partition_epoch
        role.leader_recovery_state = result.leader_recovery_state
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """This follows for others from what a replica was told."""

    change: Change = Change.NONE
    isr_wanted: IsrChange | None = None  # have it made


NOTHING = Progress()


class IsrRules(Protocol):
    """These rules say who may join and stay in the ISR, and how far the high watermark may go.

    The rules look at a partition and decide; the partition changes itself.
    """

    @property
    def looks_at_each_fetch(self) -> bool:
        """Must each fetch of a follower be noted, also one that stands at the leader's end?"""

    def check_follower(
        self, partition: "Partition", role: LeaderOf, replica: ReplicaState, now_ms: int
    ) -> ErrorCode:
        """May this broker fetch as a follower of ours?"""

    def after_fetch(
        self, partition: "Partition", role: LeaderOf, follower: FollowerProgress, now_ms: int
    ) -> Pending | None:
        """The ISR as it has to be now that `follower` has fetched: with it, if it may join."""

    def shrunk(self, partition: "Partition", role: LeaderOf, now_ms: int) -> Pending | None:
        """The ISR without the members that lag, if any does."""

    def high_watermark(self, partition: "Partition", role: LeaderOf, now_ms: int) -> int:
        """Return how far the high watermark may go by now: it never goes back."""


class Partition:
    __slots__ = (
        "directory_id",
        "index",
        "log",
        "moves",
        "name",
        "node_id",
        "role",
        "rules",
        "settings",
        "topic",
        "topic_id",
    )

    def __init__(
        self,
        *,
        topic: str,
        topic_id: UUID,
        index: int,
        node_id: int,
        wanted: PartitionState,
        rules: IsrRules,
        moves: Moves,
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.index = index
        self.name = f"{topic}-{index}"  # also of its log
        self.node_id = node_id
        self.rules = rules
        self.moves = moves
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

    @property
    def led(self) -> LeaderOf:
        """The role of a replica that leads."""
        assert isinstance(self.role, LeaderOf), f"{self.name} is {type(self.role).__name__}"
        return self.role

    @property
    def min_isr(self) -> int:
        """The number of replicas that have to be in sync for acks=all."""
        count = len(self.led.replicas)
        return isr.effective_min_isr(self.settings.min_insync_replicas, count)

    # --- the metadata has changed -----------------------------------------------------------

    def opened(self, log: LocalLog, now_ms: int) -> Progress:
        """Recovery is done: take the role that the metadata asks for by now."""
        assert isinstance(self.role, Opening), self.role
        assert self.log is None, self.name
        self.log = log
        return self._become(self.role.wanted, now_ms)

    def rewritten(self, now_ms: int) -> Progress:
        """The end of the log may be told again: take the role that had to wait for that."""
        if isinstance(self.role, Opening) and self.log is not None and not self.log.is_rewriting:
            return self._become(self.role.wanted, now_ms)
        return NOTHING

    def apply(self, state: PartitionState, now_ms: int) -> Progress:
        """The metadata log says `state`."""
        match self.role:
            case Opening():
                self.role.wanted = state
                return NOTHING
            case Offline():
                return NOTHING
            case LeaderOf() | FollowerOf():
                if is_outdated(state, self.role):
                    return NOTHING
                return self._become(state, now_ms)

    def reconfigure(self, settings: TopicSettings, now_ms: int) -> Progress:
        before, self.settings = self.settings, settings
        if self.log is not None and settings.log != before.log:
            self.log.configure(settings.log)
        if isinstance(self.role, LeaderOf):  # min.insync.replicas may have changed
            return self.became(Change.UPDATED, now_ms)
        return NOTHING

    def close(self, error: ErrorCode) -> Progress:
        self.role = Offline(error=error, leader_epoch=self.leader_epoch)
        self.log = None
        self.moves.note(self.name)
        return Progress(change=Change.GONE)

    def became(self, change: Change, now_ms: int) -> Progress:
        """The role is another one, or an ISR is: a smaller one may commit more."""
        if change is Change.UPDATED:
            self.moves.note_update(self.name)
        else:
            self.moves.note(self.name)
        if isinstance(self.role, LeaderOf):
            self.advance(now_ms)
        return Progress(change=change)

    def _become(self, state: PartitionState, now_ms: int) -> Progress:
        leads = state.leader == self.node_id
        if leads and self.open_log.is_rewriting:
            self.role = Opening(wanted=state)
            return NOTHING
        change = self._become_leader(state, now_ms) if leads else self._become_follower(state)
        return self.became(change, now_ms)

    def _become_leader(self, state: PartitionState, now_ms: int) -> Change:
        log, before = self.open_log, self.role
        if isinstance(before, LeaderOf) and before.leader_epoch == state.leader_epoch:
            self._lead_on(before, state, now_ms)
            return Change.UPDATED
        log.epochs.assign(state.leader_epoch, log.end_offset)
        known = before.followers if isinstance(before, LeaderOf) else {}
        followers = {
            replica: known.get(replica) or FollowerProgress(broker_id=replica)
            for replica in state.replicas
            if replica != self.node_id
        }
        for follower in followers.values():
            self._start_epoch(follower, state, now_ms)
        self.role = LeaderOf(
            leader_epoch=state.leader_epoch,
            epoch_start_offset=log.end_offset,
            partition_epoch=state.partition_epoch,
            replicas=state.replicas,
            isr=Committed(members=state.isr),
            leader_recovery_state=state.leader_recovery_state,
            followers=followers,
        )
        return Change.ELECTED

    def _lead_on(self, role: LeaderOf, state: PartitionState, now_ms: int) -> None:
        """In the same epoch, with another ISR or other replicas."""
        role.partition_epoch = state.partition_epoch
        role.isr = Committed(members=state.isr)
        role.leader_recovery_state = state.leader_recovery_state
        others = [replica for replica in state.replicas if replica != self.node_id]
        if role.replicas == state.replicas and len(role.followers) == len(others):
            return  # the rules of ZooKeeper designs may have added followers
        known, role.replicas, role.followers = role.followers, state.replicas, {}
        for replica in others:
            follower = known.get(replica) or FollowerProgress(broker_id=replica)
            if replica not in known:
                self._start_epoch(follower, state, now_ms)
            role.followers[replica] = follower
        self.moves.note(self.name)  # who follows no longer is told so

    def _start_epoch(self, follower: FollowerProgress, state: PartitionState, now_ms: int) -> None:
        isr.start_epoch(
            follower,
            in_isr=follower.broker_id in state.isr,
            leader_end_offset=self.open_log.end_offset,
            now_ms=now_ms,
        )

    def _become_follower(self, state: PartitionState) -> Change:
        before, is_in_sync = self.role, self.node_id in state.isr
        if (
            isinstance(before, FollowerOf)
            and before.leader_epoch == state.leader_epoch
            and before.leader_id == state.leader  # where there are no epochs, this alone changes
        ):
            before.partition_epoch, before.is_in_sync = state.partition_epoch, is_in_sync
            return Change.UPDATED
        self.open_log.forget_empty_epochs()
        self.role = FollowerOf(
            leader_id=state.leader,
            leader_epoch=state.leader_epoch,
            partition_epoch=state.partition_epoch,
            is_in_sync=is_in_sync,
        )
        return Change.FOLLOWS

    # --- the leader -------------------------------------------------------------------------

    def append(self, batch: bytes, header: BatchHeader) -> int:
        """Append one validated batch; returns its base offset. The high watermark stays."""
        role, log = self.led, self.open_log
        base_offset = log.end_offset
        records = assign(batch, base_offset=base_offset, leader_epoch=role.leader_epoch)
        final = header._replace(base_offset=base_offset, leader_epoch=role.leader_epoch)
        log.append(records, (final,))
        if final.producer_id >= 0:
            role.guards.appended(final)
        return base_offset

    def advance(self, now_ms: int) -> None:
        """The ISR, the replicas, the end or another broker may have changed: what is committed?"""
        self.open_log.high_watermark = self.rules.high_watermark(self, self.led, now_ms)

    def peers_changed(self, now_ms: int) -> None:
        """Another broker came, went or was fenced."""
        if self.open_log.high_watermark < self.open_log.end_offset:
            self.advance(now_ms)

    def check_follower(self, replica: ReplicaState, now_ms: int) -> ErrorCode:
        """May this replica fetch as a follower?"""
        return self.rules.check_follower(self, self.led, replica, now_ms)

    def fetched(self, fetch: FollowerFetch, now_ms: int) -> Progress:
        role = self.led
        follower = role.followers[fetch.broker_id]
        end_before, start_before = follower.log_end_offset, follower.log_start_offset
        isr.leave_session(follower)
        follower.note_fetch(
            fetch_offset=fetch.fetch_offset,
            leader_end_offset=self.open_log.end_offset,
            now_ms=now_ms,
        )
        follower.log_start_offset = fetch.log_start_offset
        follower.broker_epoch = fetch.broker_epoch
        progress = self._want(self.rules.after_fetch(self, role, follower, now_ms))
        if follower.log_end_offset != end_before:
            self.advance(now_ms)
        if follower.log_start_offset != start_before:
            self.moves.note_update(self.name)
        return progress

    def resting(self, broker_id: int) -> FollowerProgress | None:
        """The follower, if fetches of its session need not note that it stands at our end."""
        role = self.led
        follower = role.followers.get(broker_id)
        if (
            follower is None
            or self.rules.looks_at_each_fetch
            or broker_id not in role.isr.members
            or follower.log_end_offset != self.open_log.end_offset
        ):
            return None
        return follower

    def decided(self, now_ms: int) -> None:
        """A change of the ISR that was asked for has been made, or is not going to be."""
        self.advance(now_ms)
        self.moves.note(self.name)

    @property
    def isr_wanted(self) -> IsrChange | None:
        """The change of the ISR that is pending."""
        role = self.role
        pending = role.isr if isinstance(role, LeaderOf) else None
        if isinstance(role, LeaderOf) and isinstance(pending, Pending):
            return IsrChange(self, role, pending)
        return None

    def time_passed(self, now_ms: int) -> Progress:
        """Has a member of the ISR fallen behind?"""
        return self._want(self.rules.shrunk(self, self.led, now_ms))

    def _want(self, pending: Pending | None) -> Progress:
        if pending is None:
            return NOTHING
        self.led.isr = pending
        return Progress(isr_wanted=self.isr_wanted)


def is_outdated(state: PartitionState, role: LeaderOf | FollowerOf) -> bool:
    """Have we this state, or a later one? The answer to an AlterPartition may tell a leader of a
    change before the metadata log does. Applied again, it could undo one that is pending."""
    return state.partition_epoch <= role.partition_epoch
