"""The active controller's milestones: what, how many partitions, and not before it is so."""

from collections.abc import Mapping

from controller.decision_milestones import partition_count
from controller.metadata.changes import Change
from controller.milestones import MILESTONE
from quorum.core.effects import Trace
from tests.controller.clusters import heartbeat, partition, registration
from tests.controller.fake_log import Quorum
from tests.controller.test_controller import config, create, quorum, start_broker
from wire.messages.partitions import AlterPartitionRequest, BrokerState, IsrPartition, IsrTopic
from wire.metadata_records import NoOpRecord


def reached(made: Quorum) -> list[tuple[str, int, Mapping[str, object]]]:
    """Every milestone since the last look: its step, its count, and what it is about."""
    found: list[tuple[str, int, Mapping[str, object]]] = []
    for effect in made.effects:
        if isinstance(effect, Trace) and effect.event == MILESTONE:
            fields = dict(effect.fields)
            step, count, _ = (fields.pop(name) for name in ("step", "count", "since"))
            found.append((str(step), int(str(count)), fields))
    made.effects.clear()
    return found


def steps(made: Quorum) -> list[tuple[str, int, object, object]]:
    return [
        (step, count, about.get("what"), about.get("id")) for step, count, about in reached(made)
    ]


def test_broker_that_is_silent_is_detected_decided_persisted_and_told() -> None:
    made = quorum(session_timeout_ms=1000)
    epochs = {broker_id: start_broker(made, broker_id) for broker_id in (1, 2)}
    made.answer(create("t", partitions=10, factor=2))
    reached(made)
    made.pass_time(500)
    made.answer(heartbeat(2, epochs[2], made.last_offset))
    made.pass_time(600, commit=False)
    assert steps(made) == [
        ("detected", 0, "broker-failed", 1),
        ("decided", 10, "broker-failed", 1),
    ], "it leads half of them, and is in the ISR of all"
    made.commit()
    assert steps(made) == [
        ("persisted", 10, "broker-failed", 1),
        ("told", 10, "broker-failed", 1),
    ]


def test_fencing_costs_a_record_for_each_partition_and_one_for_the_broker() -> None:
    made = quorum(session_timeout_ms=1000)
    epochs = {broker_id: start_broker(made, broker_id) for broker_id in (1, 2)}
    made.answer(create("t", partitions=10, factor=2))
    made.pass_time(500)
    made.answer(heartbeat(2, epochs[2], made.last_offset))
    before = made.last_offset
    made.pass_time(600)
    assert made.last_offset - before == 10 + 1


def test_what_is_told_names_the_offset_that_brokers_have_to_apply() -> None:
    made = quorum()
    start_broker(made, 1)
    reached(made)
    made.answer(create("t", partitions=3))
    (told,) = (about for step, _, about in reached(made) if step == "told")
    assert told["offset"] == made.last_offset


def test_topic_is_detected_by_its_request() -> None:
    made = quorum()
    start_broker(made, 1)
    reached(made)
    made.answer(create("orders", partitions=3))
    assert steps(made) == [
        ("detected", 0, "topic", "orders"),
        ("decided", 3, "topic", "orders"),
        ("persisted", 3, "topic", "orders"),
        ("told", 3, "topic", "orders"),
    ]


def test_isr_that_changes_names_the_leader_that_asked() -> None:
    made = quorum()
    epochs = {broker_id: start_broker(made, broker_id) for broker_id in (1, 2)}
    made.answer(create("t", factor=2))
    ((topic_id, index, state),) = made.active.image.partitions_with(1)
    reached(made)
    shrunk = IsrPartition(
        partition_index=index,
        leader_epoch=state.leader_epoch,
        new_isr_with_epochs=(
            BrokerState(broker_id=state.leader, broker_epoch=epochs[state.leader]),
        ),
        partition_epoch=state.partition_epoch,
    )
    made.answer(
        AlterPartitionRequest(
            broker_id=state.leader,
            broker_epoch=epochs[state.leader],
            topics=(IsrTopic(topic_id=topic_id, partitions=(shrunk,)),),
        )
    )
    assert [each[:3] for each in steps(made)] == [
        ("detected", 0, "isr"),
        ("decided", 1, "isr"),
        ("persisted", 1, "isr"),
        ("told", 1, "isr"),
    ]


def test_what_concerns_no_partition_is_no_milestone() -> None:
    made = quorum()
    reached(made)
    start_broker(made, 1)
    assert reached(made) == []


def test_new_controller_is_ready_at_once_if_nothing_is_overdue() -> None:
    made = quorum()
    made.elect(3001)
    assert reached(made)[-1] == ("ready", 0, {"epoch": made.epoch})


def test_new_controller_is_ready_when_what_was_overdue_is_committed() -> None:
    made = Quorum()
    made.add(config(3000))
    made.elect(3000)
    assert [step for step, _, _ in reached(made)] == [], "the first records are not committed"
    made.commit()
    assert [step for step, _, _ in reached(made)] == ["ready"]


def test_deposed_controller_does_not_say_what_becomes_of_its_decisions() -> None:
    made = quorum()
    start_broker(made, 1)
    made.ask(create("t", partitions=3))
    reached(made)
    made.elect(3001)
    made.commit()
    assert {step for step, _, _ in reached(made)} == {"ready"}


def test_controller_that_leads_again_does_not_say_what_became_of_its_former_decisions() -> None:
    made = quorum()
    start_broker(made, 1)
    made.ask(create("t", partitions=3))
    reached(made)
    lost_offset = made.last_offset
    made.elect(3000)
    while made.last_offset <= lost_offset:
        made.answer(registration(2))
    assert {step for step, _, _ in reached(made)} == {"ready"}


def test_partitions_are_counted_in_records_and_in_blocks() -> None:
    changes: tuple[Change, ...] = (partition(0), NoOpRecord(), partition(1))
    assert partition_count(changes) == 2
