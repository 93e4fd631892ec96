"""A leader that writes its ISR itself: which of its wishes is written in the end."""

from dataclasses import replace

import pytest

from broker.partition.isr import Committed, PendingExpand, PendingShrink, maximal_isr
from broker.partition.partition import FollowerOf, LeaderOf
from broker.zk.isr_notifications import IsrNotifications
from broker.zk.isr_writes import IsrWrites
from jepsen_like.scenarios.stage.story import Production
from jepsen_like.scenarios.zookeeper.directed_zookeeper import DirectedZooKeeper
from quorum.core.outbox import Outbox
from quorum.zookeeper.zk_effects import ZkRequest, ZkResult
from quorum.zookeeper.zk_procedures import Procedures
from wire.zk.designs import ZK_REDESIGN, ZK_V3, Design
from wire.zk.session import (
    Data,
    Error,
    Failed,
    Result,
    Session,
    SessionChanged,
    SessionState,
    SetData,
    Stat,
    Written,
)
from wire.zk.znodes import PartitionState


class Leader:
    """Broker 1, which leads a partition, with its own way to ZooKeeper."""

    def __init__(self, design: Design) -> None:
        stage = DirectedZooKeeper(Production(), design=design.name)
        a, self.follower, _ = stage.create(*stage.brokers)
        partition = stage.partition(a)
        assert partition is not None
        self.partition = partition
        self.outbox, self.session = Outbox("broker"), Session()
        self.procedures = Procedures(
            self.outbox, self.session, resumes=not design.hears_session_at_once
        )
        self.writes = IsrWrites(
            design=design,
            node_id=a,
            outbox=self.outbox,
            procedures=self.procedures,
            controller_epoch=lambda: 1,
            now_ms=lambda: 0,
            notifications=IsrNotifications(self.procedures),
        )

    @property
    def has_news(self) -> bool:
        """For the controller, of an ISR that has changed."""
        return self.writes.deadline_ms() is not None

    @property
    def role(self) -> LeaderOf:
        assert isinstance(self.partition.role, LeaderOf)
        return self.partition.role

    def wants_to_shrink(self, *, leader_epoch: int) -> None:
        members = (self.partition.node_id, self.follower)
        self._wants(PendingShrink(members=members, leaving=(self.follower,)), leader_epoch)

    def wants_to_expand(self, *, leader_epoch: int) -> None:
        members = (self.partition.node_id,)
        self._wants(PendingExpand(members=members, joining=self.follower), leader_epoch)

    def _wants(self, change: PendingExpand | PendingShrink, leader_epoch: int) -> None:
        self.partition.role = replace(self.role, leader_epoch=leader_epoch, isr=change)
        assert self.partition.isr_wanted is not None
        self.writes.want(self.partition.isr_wanted, 0)

    def is_answered(self, result: Result) -> None:
        """What was asked last."""
        (request,) = [each for each in self.outbox.take() if isinstance(each, ZkRequest)]
        self.outbox.deliver(request.token, ZkResult(token=request.token, result=result), 0)

    def become(self, state: SessionState, session_id: int = 0) -> None:
        changed = SessionChanged(state=state, session_id=session_id, timeout_ms=1)
        self.session.become(changed, 0)
        self.procedures.session_changed()

    def connect(self, session_id: int) -> None:
        self.become(SessionState.CONNECTING)
        self.become(SessionState.CONNECTED, session_id)

    def written(self) -> list[SetData]:
        asked = [each.operation for each in self.outbox.take() if isinstance(each, ZkRequest)]
        return [each for each in asked if isinstance(each, SetData)]


def test_change_that_waits_for_zookeeper_is_that_of_the_epoch_of_the_day() -> None:
    """What is wanted in a new epoch is not queued again: the procedure that waits is its own."""
    leader = Leader(ZK_V3)
    for leader_epoch in (5, 6):
        leader.wants_to_shrink(leader_epoch=leader_epoch)
    leader.connect(1)
    (written,) = leader.written()
    state = PartitionState.decode(written.data)
    assert (state.leader_epoch, state.isr) == (6, (leader.partition.node_id,))


@pytest.mark.parametrize("design", [ZK_V3, ZK_REDESIGN], ids=lambda each: each.name)
def test_change_is_written_at_the_version_that_the_command_told(design: Design) -> None:
    leader = Leader(design)
    leader.partition.role = replace(leader.role, partition_epoch=7)
    leader.wants_to_shrink(leader_epoch=5)
    leader.connect(1)
    assert [each.version for each in leader.written()] == [7]


def test_change_that_ended_with_the_session_is_written_in_the_next() -> None:
    """It would be wanted for ever, and nobody would ask for it again."""
    leader = Leader(ZK_REDESIGN)
    leader.connect(1)
    leader.wants_to_shrink(leader_epoch=5)
    assert len(leader.written()) == 1
    leader.become(SessionState.CLOSED)
    leader.connect(2)
    assert leader.written() == []
    leader.writes.session_began([leader.partition])
    assert len(leader.written()) == 1


LATE = Failed(error=Error.BAD_VERSION)


STAT = Stat(
    czxid=1,
    mzxid=9,
    pzxid=1,
    version=8,
    children_version=0,
    children_count=0,
    ephemeral_owner=0,
)


def found(*, leader: int, leader_epoch: int, isr: tuple[int, ...]) -> Data:
    state = PartitionState(leader=leader, leader_epoch=leader_epoch, isr=isr, controller_epoch=9)
    return Data(data=state.encode(), stat=STAT)


def test_change_that_was_made_and_not_answered_is_found_whoever_is_the_controller_by_now() -> None:
    leader = Leader(ZK_REDESIGN)
    a, b = leader.partition.node_id, leader.follower
    leader.connect(1)
    leader.wants_to_expand(leader_epoch=5)
    leader.is_answered(LATE)
    leader.is_answered(found(leader=a, leader_epoch=5, isr=(a, b)))
    assert leader.role.isr == Committed(members=(a, b))
    assert leader.role.partition_epoch == 8


@pytest.mark.parametrize("leads_on", [True, False])
def test_who_may_have_joined_counts_until_a_command_comes(leads_on: bool) -> None:
    """The answer to the expansion was lost, and the controller has elected from what was written:
    what is acknowledged without the one that joined would be lost with the next election."""
    leader = Leader(ZK_V3)
    a, b = leader.partition.node_id, leader.follower
    leader.connect(1)
    leader.wants_to_expand(leader_epoch=5)
    leader.is_answered(LATE)
    isr = (a, b) if leads_on else (b,)
    leader.is_answered(found(leader=isr[0], leader_epoch=6, isr=isr))
    assert maximal_isr(leader.role.isr) == (a, b)


def test_who_has_not_joined_does_not_count_and_is_asked_for_again() -> None:
    leader = Leader(ZK_V3)
    a = leader.partition.node_id
    leader.connect(1)
    leader.wants_to_expand(leader_epoch=5)
    leader.is_answered(LATE)
    leader.is_answered(found(leader=a, leader_epoch=6, isr=(a,)))
    assert leader.role.isr == Committed(members=(a,))


def test_who_may_have_joined_counts_when_another_was_elected_who_leaves_it_out() -> None:
    """It may have been in the ISR in between, and the one that is elected may come from there."""
    leader = Leader(ZK_V3)
    a, b = leader.partition.node_id, leader.follower
    leader.connect(1)
    leader.wants_to_expand(leader_epoch=5)
    leader.is_answered(LATE)
    leader.is_answered(found(leader=9, leader_epoch=6, isr=(9,)))
    assert maximal_isr(leader.role.isr) == (a, b)


def test_shrink_that_was_not_written_is_settled_with_the_isr_of_before() -> None:
    leader = Leader(ZK_V3)
    a, b = leader.partition.node_id, leader.follower
    leader.connect(1)
    leader.wants_to_shrink(leader_epoch=5)
    leader.is_answered(LATE)
    leader.is_answered(found(leader=a, leader_epoch=6, isr=(a, b)))
    assert leader.role.isr == Committed(members=(a, b))
    assert not leader.has_news
    assert list(leader.writes.decided) == [leader.partition]


def test_change_that_is_written_is_told_and_settled() -> None:
    leader = Leader(ZK_V3)
    leader.connect(1)
    leader.wants_to_shrink(leader_epoch=5)
    leader.is_answered(Written(stat=STAT))
    assert leader.role.isr == Committed(members=(leader.partition.node_id,))
    assert leader.role.partition_epoch == STAT.version
    assert leader.has_news
    assert list(leader.writes.decided) == [leader.partition]


@pytest.mark.parametrize("is_other_role", [True, False])
def test_change_that_was_overtaken_by_a_command_leaves_what_that_says(is_other_role: bool) -> None:
    leader = Leader(ZK_V3)
    leader.connect(1)
    leader.wants_to_shrink(leader_epoch=5)
    commanded = Committed(members=(leader.partition.node_id, leader.follower, 9))
    if is_other_role:
        leader.partition.role = replace(leader.role, leader_epoch=6)
    leader.role.isr = commanded
    leader.is_answered(Written(stat=STAT))
    assert leader.role.isr == commanded
    assert not leader.has_news
    assert not leader.writes.decided


@pytest.mark.parametrize("leads_on", [True, False])
def test_what_is_wanted_no_more_when_zookeeper_is_there_is_not_written(leads_on: bool) -> None:
    leader = Leader(ZK_V3)
    leader.wants_to_shrink(leader_epoch=5)
    leader.role.isr = Committed(members=(leader.partition.node_id,))
    if not leads_on:
        leader.partition.role = FollowerOf(
            leader_id=9, leader_epoch=6, partition_epoch=1, is_in_sync=True
        )
    leader.connect(1)
    assert leader.written() == []
