"""The controller's writes of leader and ISR: conditional, guarded or not, together or alone."""

from dataclasses import replace

from controller.metadata.partitions import PartitionState
from controller.zk.controller_election import Controllership
from controller.zk.partition_states import StateStore
from controller.zk.procedure_milestones import ProcedureMilestones
from quorum.core.outbox import Outbox
from quorum.zookeeper.zk_procedures import Procedure
from wire.zk import paths, znodes
from wire.zk.control_rpc import TopicPartition
from wire.zk.designs import ZK_KIP497, ZK_REDESIGN, ZK_V3, Design
from wire.zk.session import (
    Checked,
    Committed,
    Create,
    Data,
    Error,
    Failed,
    GetData,
    Multi,
    Operation,
    Result,
    SetData,
    Stat,
    Written,
)

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)
ASSIGNED = {"t": {0: (1, 2), 1: (2, 1)}}


def stat(version: int) -> Stat:
    return Stat(
        czxid=1,
        mzxid=1,
        pzxid=1,
        version=version,
        children_version=0,
        children_count=0,
        ephemeral_owner=0,
    )


def found(isr: tuple[int, ...], version: int) -> Data:
    state = znodes.PartitionState(leader=isr[0], leader_epoch=0, isr=isr, controller_epoch=1)
    return Data(data=state.encode(), stat=stat(version))


def led_by_two(_of: TopicPartition, state: PartitionState | None) -> PartitionState | None:
    """The decision: broker 2 leads whom the leader has in sync."""
    return None if state is None else replace(state, leader=2, leader_epoch=1)


def store(
    design: Design, controllership: Controllership
) -> Procedure[dict[TopicPartition, PartitionState]]:
    return StateStore(design, controllership, milestones()).change([P0, P1], ASSIGNED, led_by_two)


def milestones() -> ProcedureMilestones:
    return ProcedureMilestones(Outbox("controller"))


def controllership() -> Controllership:
    return Controllership(epoch=3, epoch_zk_version=7)


def rounds(
    steps: Procedure[dict[TopicPartition, PartitionState]], answers: list[list[Result]]
) -> tuple[list[tuple[Operation, ...]], dict[TopicPartition, PartitionState]]:
    asked = [next(steps)]
    for results in answers:
        try:
            asked.append(steps.send(tuple(results)))
        except StopIteration as end:
            return asked, end.value
    raise AssertionError(f"it wants more: {asked[-1]}")


def test_write_that_comes_too_late_is_decided_again_on_what_the_leader_wrote() -> None:
    late = Failed(error=Error.BAD_VERSION)
    asked, written = rounds(
        StateStore(ZK_V3, controllership(), milestones()).change([P0], ASSIGNED, led_by_two),
        [[found((1, 2), 4)], [late], [found((1,), 5)], [Written(stat=stat(6))]],
    )
    first, second = asked[1][0], asked[3][0]
    assert isinstance(first, SetData)
    assert isinstance(second, SetData)
    assert (first.version, second.version) == (4, 5)
    assert (written[P0].isr, written[P0].partition_epoch) == ((1,), 6)


def test_write_whose_answer_was_lost_counts_as_written_when_it_is_asked_for_again() -> None:
    """Nothing is left to decide then; but the brokers have not been told."""

    def decide(_of: TopicPartition, state: PartitionState | None) -> PartitionState | None:
        assert state is not None
        return None if state.leader == 2 else led_by_two(_of, state)

    kept = StateStore(ZK_REDESIGN, controllership(), milestones())
    cut_off = kept.change([P0], ASSIGNED, decide)
    next(cut_off)
    cut_off.send((found((1, 2), 4),))
    cut_off.close()
    done = znodes.PartitionState(leader=2, leader_epoch=1, isr=(1, 2), controller_epoch=3)
    stands = Data(data=done.encode(), stat=stat(5))
    _, written = rounds(kept.change([P0], ASSIGNED, decide), [[stands]])
    assert written[P0].partition_epoch == 5
    _, written = rounds(kept.change([P0], ASSIGNED, decide), [[stands]])
    assert written == {}, "once"


def test_only_writer_reads_what_it_has_tried_and_does_not_know_to_be_written() -> None:
    known = all_led_by_one([P0])
    kept = StateStore(ZK_KIP497, controllership(), milestones())
    cut_off = kept.change([P0], ASSIGNED, led_by_two, known=known)
    assert isinstance(next(cut_off)[0], Multi)
    cut_off.close()
    again = kept.change([P0], ASSIGNED, led_by_two, known=known)
    assert isinstance(next(again)[0], GetData)


def test_one_by_one_each_partition_is_read_and_written_before_the_next() -> None:
    done: list[list[Result]] = [[found((1, 2), 0)], [Written(stat=stat(1))]]
    asked, written = rounds(store(ZK_V3, controllership()), [*done, *done])
    assert [len(each) for each in asked] == [1, 1, 1, 1]
    assert set(written) == {P0, P1}


def test_pipelined_all_are_read_then_all_are_written() -> None:
    reads: list[Result] = [found((1, 2), 0), found((2, 1), 0)]
    asked, written = rounds(
        store(ZK_REDESIGN, controllership()),
        [reads, [Written(stat=stat(1)), Written(stat=stat(1))]],
    )
    assert [len(each) for each in asked] == [2, 2]
    assert set(written) == {P0, P1}


def test_write_holds_the_epoch_of_the_controller_in_a_guard_where_the_design_wants_it() -> None:
    reads: list[Result] = [found((1, 2), 0), found((2, 1), 0)]
    ok = Committed(results=(Checked(), Written(stat=stat(1)), Written(stat=stat(1))))
    asked, written = rounds(store(ZK_KIP497, controllership()), [reads, [ok]])
    guarded = asked[1][0]
    assert isinstance(guarded, Multi)
    check = guarded.writes[0]
    assert (check.path, getattr(check, "version", None)) == (paths.CONTROLLER_EPOCH, 7)
    assert written[P0].partition_epoch == 1


def test_guarded_write_of_a_controller_that_was_followed_by_another_is_not_done() -> None:
    reads: list[Result] = [found((1, 2), 0), found((2, 1), 0)]
    refused = Failed(error=Error.BAD_VERSION, index=0)
    held = controllership()
    _, written = rounds(store(ZK_KIP497, held), [reads, [refused]])
    assert written == {}
    assert held.is_lost


def test_partitions_of_one_transaction_do_not_fail_together() -> None:
    """One leader has changed its ISR: its partition is decided again, the other is written."""
    batched = replace(ZK_REDESIGN, writes_in_batches=True)
    done, late = Written(stat=stat(1)), Failed(error=Error.BAD_VERSION)
    asked, written = rounds(
        store(batched, controllership()),
        [
            [found((1, 2), 0), found((2, 1), 0)],
            [Failed(error=Error.BAD_VERSION, index=1)],
            [done, late],
            [found((2,), 3)],
            [Written(stat=stat(4))],
        ],
    )
    assert [[type(each) for each in some] for some in asked] == [
        [GetData, GetData],
        [Multi],
        [SetData, SetData],
        [GetData],
        [SetData],
    ]
    assert (written[P0].partition_epoch, written[P1].partition_epoch) == (1, 4)
    assert written[P1].isr == (2,)


def test_transactions_are_of_a_limited_size() -> None:
    many = [TopicPartition("t", number) for number in range(250)]
    steps = StateStore(ZK_KIP497, controllership(), milestones()).change(
        many, {"t": {of.partition: (1, 2) for of in many}}, led_by_two, known=all_led_by_one(many)
    )
    asked = next(steps)
    assert [len(each.writes) for each in asked if isinstance(each, Multi)] == [101, 101, 51]


def all_led_by_one(partitions: list[TopicPartition]) -> dict[TopicPartition, PartitionState]:
    state = PartitionState(replicas=(1, 2), isr=(1, 2), leader=1)
    return dict.fromkeys(partitions, state)


def test_only_writer_reads_nothing_before_it_writes_and_again_if_it_was_wrong() -> None:
    known = all_led_by_one([P0])
    steps = StateStore(ZK_KIP497, controllership(), milestones()).change(
        [P0], ASSIGNED, led_by_two, known=known
    )
    late = Failed(error=Error.BAD_VERSION, index=1)
    done = Committed(results=(Checked(), Written(stat=stat(3))))
    asked, written = rounds(steps, [[late], [found((2,), 2)], [done]])
    assert [type(each[0]) for each in asked] == [Multi, GetData, Multi]
    assert written[P0].partition_epoch == 3


def test_who_is_not_the_only_writer_reads_first() -> None:
    steps = StateStore(ZK_REDESIGN, controllership(), milestones()).change(
        [P0], ASSIGNED, led_by_two, known=all_led_by_one([P0])
    )
    assert isinstance(next(steps)[0], GetData)


def test_new_state_is_created_below_nodes_that_may_have_to_be_created_first() -> None:
    new = PartitionState(replicas=(1, 2), isr=(1, 2), leader=1)
    gone = Failed(error=Error.NO_NODE)
    asked, written = rounds(
        StateStore(ZK_V3, controllership(), milestones()).change(
            [P0], ASSIGNED, lambda _of, _state: new
        ),
        [[gone], [gone], [Failed(error=Error.NO_NODE)]],
    )
    created = [each[0] for each in asked[1:]]
    assert [each.path for each in created if isinstance(each, Create)] == [
        "/brokers/topics/t/0",
        "/brokers/topics/t/0/leaderAndISR",
    ]
    assert written == {}, "the topic is gone"
