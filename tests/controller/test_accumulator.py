"""Decisions of one turn: one batch in the log, each with offsets of its own."""

import pytest

from controller.accumulator import (
    BATCH_BYTES_MAX,
    BATCH_RECORDS_MAX,
    Accumulator,
    spread_records_max,
)
from controller.controller import Controller
from controller.metadata.changes import Change, decode_changes, record_count
from controller.metadata.describe import describe
from controller.metadata.metadata_version import KRAFT_VERSION
from quorum.core.effects import Reply, Request
from tests.controller.clusters import TOPIC, heartbeat, partition, registration
from tests.controller.fake_log import NOW_MS, Quorum
from tests.controller.test_controller import CONTROLLERS, create, quorum, start_broker
from tests.controller.test_features import UPGRADE, active_controllers
from tests.controller.test_features import request as update_features
from tests.controller.test_images import newcomer
from wire.batch import read_header
from wire.messages.configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from wire.metadata_records import ConfigRecord, NoOpRecord, PartitionChangeRecord, TopicRecord
from wire.partition_columns import PartitionChanges


def block(rows: int) -> PartitionChanges:
    return PartitionChanges.from_records(
        [PartitionChangeRecord(partition_id=row, topic_id=TOPIC, leader=2) for row in range(rows)]
    )


def configured(client_id: str) -> IncrementalAlterConfigsRequest:
    """A change of one record."""
    interval = AlterableConfig(name="interval.ms", config_operation=0, value="5000")
    resource = AlterConfigsResource(resource_type=16, resource_name=client_id, configs=(interval,))
    return IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)


def leading() -> tuple[Quorum, Accumulator]:
    """A log whose next record has offset `made.last_offset` + 1."""
    made = quorum()
    return made, Accumulator(made.seats[CONTROLLERS[0]])


def ask_together(made: Quorum, bodies: list[object]) -> dict[int, object]:
    """All in one turn; the answers that leave with it, by the place in `bodies`."""
    for token, body in enumerate(bodies):
        made.active.receive(Request(token=token, body=body), made.now_ms)
    return replies(made.active)


def replies(controller: Controller) -> dict[int, object]:
    effects = controller.take_effects()
    return {each.token: each.body for each in effects if isinstance(each, Reply)}


def test_decisions_of_a_turn_are_one_batch_and_answered_when_it_is_committed() -> None:
    made = quorum()
    start_broker(made, 1)
    before = len(made.batches)
    names = ("a", "b", "c")
    assert ask_together(made, [create(name) for name in names]) == {}
    (batch,) = made.batches[before:]
    topics = [
        change.name
        for committed in decode_changes(batch)
        for change in committed.changes
        if isinstance(change, TopicRecord)
    ]
    assert tuple(topics) == names
    made.commit()
    assert set(made.replies) >= {0, 1, 2}
    standby = made.controllers[CONTROLLERS[1]]
    assert describe(standby.image) == describe(made.active.image)
    assert standby.image.at == made.active.image.at


def test_a_decision_rests_on_those_before_it_in_the_turn() -> None:
    made = quorum()
    start_broker(made, 1)
    ask_together(made, [create("a"), create("a")])
    made.commit()
    codes = [made.replies[token].topics[0].error_code.name for token in (0, 1)]  # type: ignore[attr-defined]
    assert codes == ["NONE", "TOPIC_ALREADY_EXISTS"]


def test_a_refusal_waits_for_the_decision_of_its_turn_that_it_rests_on() -> None:
    """And not only for what the log held before the turn."""
    made = quorum()
    start_broker(made, 1)
    made.ask(create("x"))
    ask_together(made, [create("a"), create("a")])
    made.replies.clear()
    made.commit(1)
    assert not set(made.replies) & {0, 1}, "only x is committed"
    made.commit()
    assert set(made.replies) >= {0, 1}


def test_brokers_that_register_in_one_turn_have_the_offsets_of_their_records_as_epochs() -> None:
    made = quorum()
    start = made.last_offset + 1
    tokens = [1001, 1002]
    for token, broker_id in zip(tokens, (1, 2), strict=True):
        request = Request(token=token, body=registration(broker_id))
        made.active.receive(request, made.now_ms)
    made.collect()
    made.commit()
    epochs = [made.replies[token].broker_epoch for token in tokens]  # type: ignore[attr-defined]
    assert epochs == [start, start + 1]


def test_what_was_decided_before_a_kraft_version_is_raised_comes_before_it() -> None:
    """The engine appends that by itself, at the end of the log."""
    made = active_controllers()
    before = len(made.batches)
    raised = update_features((KRAFT_VERSION, 1, UPGRADE))
    assert ask_together(made, [configured("a"), raised, configured("b")]) == {}
    written = [read_header(batch) for batch in made.batches[before:]]
    assert [header.is_control for header in written] == [False, True, False]
    made.commit(1)
    assert set(made.replies) & {0, 1, 2} == {0}
    made.commit(1)
    assert set(made.replies) & {0, 1, 2} == {0, 1}


def test_a_batch_bears_the_time_of_its_last_decision() -> None:
    made, accumulator = leading()
    before = len(made.batches)
    for times_ms in ((NOW_MS, NOW_MS + 1), (NOW_MS + 7,)):
        for now_ms in times_ms:
            accumulator.add([NoOpRecord()], metadata_version=25, now_ms=now_ms)
        accumulator.write()
    times = [read_header(batch).max_timestamp_ms for batch in made.batches[before:]]
    assert times == [NOW_MS + 1, NOW_MS + 7]


def test_offsets_are_those_that_the_log_gives() -> None:
    made, accumulator = leading()
    start = made.last_offset + 1
    version = 25
    ends = [
        accumulator.add(changes, metadata_version=version, now_ms=NOW_MS)
        for changes in ([partition(0)], [block(40)], [NoOpRecord(), NoOpRecord()])
    ]
    assert ends == [start, start + 40, start + 42]
    assert (accumulator.end_offset, made.last_offset) == (start + 43, start - 1)
    accumulator.write()
    assert made.last_offset == start + 42 == accumulator.end_offset - 1
    accumulator.write()
    assert made.last_offset == start + 42, "what was written is written once"


@pytest.mark.parametrize("beyond", [0, 1])
def test_a_batch_has_no_more_records_than_the_limit(beyond: int) -> None:
    made, accumulator = leading()
    before = len(made.batches)
    parts: list[list[Change]] = [[NoOpRecord()], [block(BATCH_RECORDS_MAX - 1 + beyond)]]
    for changes in parts:
        accumulator.add(changes, metadata_version=25, now_ms=NOW_MS)
    accumulator.write()
    counts = [read_header(batch).record_count for batch in made.batches[before:]]
    assert counts == ([1, BATCH_RECORDS_MAX] if beyond else [BATCH_RECORDS_MAX])


@pytest.mark.parametrize(
    ("brokers", "records"), [(0, 500), (3, 500), (30, 5_000), (60, 10_000), (999, 10_000)]
)
def test_where_brokers_are_many_a_failure_has_larger_batches(brokers: int, records: int) -> None:
    assert spread_records_max(brokers) == records


def test_only_a_failure_has_larger_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """All other changes may be about one broker, which is alive and has heartbeats to send."""
    monkeypatch.setattr("controller.controller.BATCH_RECORDS_MAX", 2)
    monkeypatch.setattr(
        "controller.controller.spread_records_max", lambda active: max(2, 2 * active)
    )
    made = quorum(session_timeout_ms=1000)
    epochs = {broker_id: start_broker(made, broker_id) for broker_id in (1, 2, 3)}
    made.answer(registration(4))  # never active
    made.answer(create("t", partitions=9, factor=3))
    before = len(made.batches)
    made.pass_time(800)
    for broker_id in (2, 3):
        made.answer(heartbeat(broker_id, epochs[broker_id], 10**6))
    made.pass_time(300)
    assert largest(made, before) == 6, "three are active when the decision is made"
    before = len(made.batches)
    made.answer(heartbeat(2, epochs[2], 10**6, want_shut_down=True))
    assert largest(made, before) == 2


def largest(made: Quorum, before: int) -> int:
    """Records of the largest batch behind the first `before` ones."""
    return max(read_header(batch).record_count for batch in made.batches[before:])


def test_an_atomic_decision_may_be_larger() -> None:
    made, accumulator = leading()
    before = len(made.batches)
    accumulator.add([block(BATCH_RECORDS_MAX + 5)], metadata_version=25, now_ms=NOW_MS)
    accumulator.write()
    counts = [record_count(decoded(batch)) for batch in made.batches[before:]]
    assert counts == [BATCH_RECORDS_MAX + 5]


def test_decisions_with_too_many_bytes_are_a_batch_each() -> None:
    """A batch has to fit into a frame, and 64 requests may write 4 MiB of configs each."""
    made, accumulator = leading()
    before = len(made.batches)
    large = ConfigRecord(resource_type=4, resource_name="1", name="x", value="v" * 30_000)
    count = BATCH_BYTES_MAX // 2 // 30_000 + 1
    start = made.last_offset + 1
    ends = [
        accumulator.add(changes, metadata_version=25, now_ms=NOW_MS)
        for changes in ([large] * count, [NoOpRecord()], [large] * count, [NoOpRecord()])
    ]
    accumulator.write()
    written = [read_header(batch) for batch in made.batches[before:]]
    assert [header.record_count for header in written] == [count, 1, count, 1]
    assert [header.last_offset for header in written] == ends
    assert written[0].base_offset == start


def test_a_single_decision_may_have_more_bytes() -> None:
    made, accumulator = leading()
    before = len(made.batches)
    large = ConfigRecord(resource_type=4, resource_name="1", name="x", value="v" * 30_000)
    count = BATCH_BYTES_MAX // 30_000 + 1
    accumulator.add([large] * count, metadata_version=25, now_ms=NOW_MS)
    accumulator.write()
    assert [read_header(batch).record_count for batch in made.batches[before:]] == [count]


def decoded(batch: bytes) -> list[Change]:
    return [change for each in decode_changes(batch) for change in each.changes]


def test_records_of_two_metadata_versions_are_two_batches() -> None:
    """Each is written as the level in force when it was decided has it."""
    made, accumulator = leading()
    before = len(made.batches)
    topic = TopicRecord(name="t", topic_id=TOPIC)
    for version in (7, 7, 25):
        accumulator.add([topic], metadata_version=version, now_ms=NOW_MS)
    accumulator.write()
    assert [len(decoded(batch)) for batch in made.batches[before:]] == [2, 1]


def test_what_was_not_written_is_lost_with_leadership() -> None:
    made = quorum()
    start_broker(made, 1)
    known = len(made.batches)
    made.active.receive(Request(token=7, body=create("a")), made.now_ms)
    former = made.active
    former.resign(made.now_ms)
    assert [type(body).__name__ for body in replies(former).values()] == ["CreateTopicsResponse"]
    assert len(made.batches) == known
    made.leader_id = None
    made.elect(CONTROLLERS[0])
    assert made.active.head.topic("a") is None
    assert made.last_offset + 1 == newcomer_end(made)


def newcomer_end(made: Quorum) -> int:
    """Where the whole log ends for one who reads it from its start."""
    made.commit()
    standby = newcomer(made)
    standby.committed(b"".join(made.batches), made.last_offset + 1, made.now_ms)
    return standby.applied_offset
