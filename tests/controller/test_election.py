"""Leader election and ISR changes: Kafka's outcomes, one by one and over columns."""

from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.decisions import columns as columns_module
from controller.decisions import elections
from controller.decisions import failover as decisions
from controller.decisions.partition_changes import changes_of_rows, without_broker
from controller.metadata.changes import Change
from controller.metadata.election import (
    Desired,
    Election,
    ElectionPolicy,
    decide_change,
)
from controller.metadata.image import MetadataImage
from controller.metadata.metadata_version import ELR_VERSION
from controller.metadata.partitions import NO_LEADER, PartitionState, Rows
from controller.metadata.reassignment import assignment_of, completed
from tests.controller.clusters import (
    CONFIG,
    OTHER_TOPIC,
    TOPIC,
    cluster,
    config,
    directory,
    fenced,
    partition,
    registered,
    step,
    with_topic,
)
from tests.controller.plain_image import plain_partitions
from wire.message import replace as replace_message
from wire.metadata_records import FeatureLevelRecord, PartitionChangeRecord
from wire.partition_columns import PartitionChanges
from wire.primitives import DIRECTORY_LOST


def policy(*up: int, **others: object) -> ElectionPolicy:
    def acceptable(broker_id: int, directory: UUID) -> bool:
        return broker_id in up and directory != DIRECTORY_LOST

    made = ElectionPolicy(acceptable=acceptable, metadata_version=25)
    return replace(made, **others)  # type: ignore[arg-type]  # fields by name


def state(isr: tuple[int, ...] = (1, 2, 3), leader: int = 1, **others: object) -> PartitionState:
    made = PartitionState(
        replicas=(1, 2, 3), isr=isr, leader=leader, leader_epoch=5, partition_epoch=10
    )
    return replace(made, **others)  # type: ignore[arg-type]  # fields by name


def decide(
    now: PartitionState, desired: Desired, rules: ElectionPolicy
) -> PartitionChangeRecord | None:
    return decide_change(TOPIC, 0, now, desired=desired, policy=rules)


def change(**fields: object) -> PartitionChangeRecord:
    made = PartitionChangeRecord(partition_id=0, topic_id=TOPIC)
    return replace_message(made, **fields)


ONLINE, PREFERRED, UNCLEAN = Election.ONLINE, Election.PREFERRED, Election.UNCLEAN


@pytest.mark.parametrize(
    ("now", "desired", "up", "expected"),
    [
        pytest.param(state(), Desired(), (1, 2, 3), None, id="nothing to do"),
        pytest.param(
            state(), Desired(isr=(2, 3)), (2, 3), change(isr=(2, 3), leader=2), id="leader fails"
        ),
        pytest.param(
            state(leader=2, isr=(2, 3)),
            Desired(isr=(2,)),
            (1, 2),
            change(isr=(2,)),
            id="a shrink raises no leader epoch",
        ),
        pytest.param(
            state(isr=(1,)),
            Desired(isr=()),
            (2, 3),
            change(leader=NO_LEADER),
            id="the last member stays listed",
        ),
        pytest.param(
            state(isr=(1,), leader=NO_LEADER), Desired(), (2, 3), None, id="still nobody to lead"
        ),
        pytest.param(
            state(isr=(1,), leader=NO_LEADER),
            Desired(),
            (1, 2),
            change(leader=1),
            id="the last member is back",
        ),
        pytest.param(
            state(isr=(1,)),
            Desired(isr=(), election=UNCLEAN),
            (3,),
            change(leader=3, isr=(3,), leader_recovery_state=1),
            id="unclean election of the first replica that is up",
        ),
        pytest.param(
            state(isr=(1, 2)),
            Desired(isr=(2,), election=UNCLEAN),
            (2, 3),
            change(leader=2, isr=(2,)),
            id="unclean is not used where clean is possible",
        ),
        pytest.param(
            state(leader=2),
            Desired(election=PREFERRED),
            (1, 2, 3),
            change(leader=1),
            id="preferred leader takes over",
        ),
        pytest.param(
            state(leader=2),
            Desired(election=PREFERRED),
            (2, 3),
            None,
            id="preferred leader is down",
        ),
        pytest.param(
            state(isr=(2, 3), leader=2),
            Desired(election=PREFERRED),
            (1, 2, 3),
            None,
            id="preferred leader is not in sync",
        ),
        pytest.param(
            state(isr=(1, 2, 3), directories=(DIRECTORY_LOST, directory(2), directory(3))),
            Desired(isr=(2, 3)),
            (1, 2, 3),
            change(isr=(2, 3), leader=2),
            id="a lost directory",
        ),
        pytest.param(
            state(isr=(1,), leader_recovery_state=1),
            Desired(isr=(1,), recovery_state=0),
            (1,),
            change(leader_recovery_state=0),
            id="recovered",
        ),
    ],
)
def test_change_is_what_kafka_records(
    now: PartitionState,
    desired: Desired,
    up: tuple[int, ...],
    expected: PartitionChangeRecord | None,
) -> None:
    assert decide(now, desired, policy(*up)) == expected


def test_shrink_raises_leader_epoch_before_it_was_safe_not_to() -> None:
    desired = Desired(isr=(1, 2))
    assert decide(state(), desired, policy(1, 2, metadata_version=11)) == change(
        isr=(1, 2), leader=1
    )


def test_unclean_leader_is_not_marked_where_the_record_cannot_say_it() -> None:
    desired = Desired(isr=(), election=UNCLEAN)
    old = policy(3, metadata_version=2)
    assert decide(state(isr=(1,)), desired, old) == change(leader=3, isr=(3,))


# --- reassignment -------------------------------------------------------------------------------


MOVING = PartitionState(
    replicas=(4, 1, 2),
    isr=(1, 2),
    leader=1,
    adding_replicas=(4,),
    removing_replicas=(1,),
)


@pytest.mark.parametrize("isr", [(1, 2), (1, 4), (1,), ()])
def test_reassignment_goes_on_until_all_that_stay_are_in_sync(isr: tuple[int, ...]) -> None:
    assert completed(assignment_of(MOVING), isr) is None


def test_reassignment_completes_when_all_that_stay_are_in_sync() -> None:
    done = completed(assignment_of(MOVING), (1, 2, 4))
    assert done is not None
    assert (done.replicas, done.adding, done.removing) == ((4, 2), (), ())


def test_completed_reassignment_moves_leader_and_raises_its_epoch() -> None:
    record = decide(MOVING, Desired(isr=(1, 2, 4)), policy(1, 2, 4))
    assert record is not None
    assert (record.replicas, record.isr, record.leader) == ((4, 2), (4, 2), 4)
    assert (record.adding_replicas, record.removing_replicas) == ((), ())


def test_completed_reassignment_raises_epoch_of_a_leader_that_stays() -> None:
    moving = replace(MOVING, leader=2)
    record = decide(moving, Desired(isr=(1, 2, 4)), policy(1, 2, 4))
    assert record is not None
    assert record.leader == 2, "a replica that is gone must not fetch as before"


# --- eligible leader replicas -------------------------------------------------------------------


def elr(*up: int, min_isr: int = 2) -> ElectionPolicy:
    return policy(*up, elr_enabled=True, min_insync_replicas=min_isr)


def test_member_that_leaves_a_small_isr_stays_eligible() -> None:
    record = decide(state(isr=(1, 2)), Desired(isr=(2,)), elr(2, 3))
    assert record == change(isr=(2,), leader=2, eligible_leader_replicas=(1,))


def test_isr_that_is_large_enough_clears_eligible_replicas() -> None:
    now = state(isr=(2,), leader=2, eligible_leader_replicas=(1,))
    record = decide(now, Desired(isr=(2, 3)), elr(2, 3))
    assert record == change(isr=(2, 3), eligible_leader_replicas=())


def test_isr_may_be_empty_with_eligible_replicas() -> None:
    now = state(isr=(2,), leader=2, eligible_leader_replicas=(1,))
    record = decide(now, Desired(isr=()), elr(3))
    assert record == change(
        isr=(), leader=NO_LEADER, eligible_leader_replicas=(2, 1), last_known_elr=(2,)
    )


def test_eligible_replica_is_elected_cleanly() -> None:
    now = state(isr=(), leader=NO_LEADER, eligible_leader_replicas=(2, 1), last_known_elr=(2,))
    record = decide(now, Desired(), elr(1, 3))
    assert record == change(isr=(1,), leader=1, eligible_leader_replicas=(2,), last_known_elr=())


def test_broker_that_stopped_uncleanly_is_not_eligible() -> None:
    now = state(isr=(2,), leader=2, eligible_leader_replicas=(1,))
    record = decide(now, Desired(isr=(2,), lost=(1,)), elr(2))
    assert record == change(eligible_leader_replicas=())


def test_last_known_leader_must_be_alive() -> None:
    now = state(isr=(), leader=NO_LEADER, last_known_elr=(2,))
    assert decide(now, Desired(), elr(1, 3)) is None
    record = decide(now, Desired(), elr(2))
    assert record is not None
    assert (record.leader, record.isr, record.leader_recovery_state) == (2, (2,), 1)


# --- columns --------------------------------------------------------------------------------------


BROKERS = range(6)


@st.composite
def images(draw: st.DrawFn) -> MetadataImage:
    image = cluster(
        *(
            registered(
                broker,
                fenced=draw(st.booleans()),
                log_dirs=draw(st.sampled_from([(), (directory(broker),), (directory(99),)])),
            )
            for broker in BROKERS
        )
    )
    for topic_id, name in ((TOPIC, "t"), (OTHER_TOPIC, "u")):
        made = []
        for index in range(draw(st.integers(1, 8))):
            replicas = draw(st.lists(st.sampled_from(BROKERS), min_size=1, unique=True))
            isr = draw(st.lists(st.sampled_from(replicas), min_size=1, unique=True))
            if draw(st.integers(0, 3)):
                isr = [replica for replica in replicas if replica in isr]
            leader = draw(st.sampled_from([*isr, NO_LEADER]))
            made.append(partition(index, replicas, isr=isr, leader=leader))
        image = with_topic(image, *made, name=name, topic_id=topic_id)
    if draw(st.booleans()):
        unclean = config("unclean.leader.election.enable", "true", resource="u")
        image = step(image, unclean)
    return image


def by_columns(monkeypatch: pytest.MonkeyPatch, rows_from: int) -> None:
    """Columns come in more than one part."""
    monkeypatch.setattr(decisions, "COLUMNS_FROM", rows_from)
    monkeypatch.setattr(columns_module, "TOGETHER", 3)


def same_outcome(
    image: MetadataImage, first: tuple[Change, ...], second: tuple[Change, ...]
) -> None:
    def outcome(changes: tuple[Change, ...]) -> object:
        return plain_partitions(step(image, *changes)) if changes else plain_partitions(image)

    assert outcome(first) == outcome(second)


@given(images(), st.sampled_from(BROKERS), st.booleans())
def test_broker_failure_over_columns_is_that_of_single_partitions(
    image: MetadataImage, broker_id: int, lost: bool
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        by_columns(patch, rows_from=0)
        columns = decisions.leave_isrs(image, broker_id, CONFIG, lost=lost)
        by_columns(patch, rows_from=10**9)
        singles = decisions.leave_isrs(image, broker_id, CONFIG, lost=lost)
    assert not any(isinstance(change, PartitionChanges) for change in singles)
    same_outcome(image, columns, singles)


@given(images(), st.sampled_from(BROKERS))
def test_election_over_columns_is_that_of_single_partitions(
    image: MetadataImage, broker_id: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        by_columns(patch, rows_from=0)
        patch.setattr(columns_module, "_NEAR", 0)  # ids that no table of places is made for
        columns = decisions.elect_with(image, broker_id, CONFIG)
        by_columns(patch, rows_from=10**9)
        singles = decisions.elect_with(image, broker_id, CONFIG)
    same_outcome(image, columns, singles)


@given(images(), st.sampled_from(BROKERS), st.booleans(), st.integers(1, 3))
def test_partitions_are_decided_together_as_each_is_alone(
    image: MetadataImage, broker_id: int, lost: bool, min_isr: int
) -> None:
    """Those that are alike are decided once, and a topic's settings are looked up once."""
    elr = FeatureLevelRecord(name=ELR_VERSION, feature_level=1)
    image = step(image, elr, config("min.insync.replicas", str(min_isr), resource="u"))
    rows = image.partitions.rows_with_replica(broker_id)
    together = leaving(image, rows, broker_id, lost)
    assert together == [c for row in rows for c in leaving(image, row[None], broker_id, lost)]
    assert len(together) == len({(change.topic_id, change.partition_id) for change in together})


def leaving(
    image: MetadataImage, rows: Rows, broker_id: int, lost: bool
) -> list[PartitionChangeRecord]:
    def desire(election: Election, state: PartitionState) -> Desired:
        isr = tuple(member for member in state.isr if member != broker_id)
        return Desired(election=election, isr=isr, lost=(broker_id,) if lost else ())

    return list(changes_of_rows(image, CONFIG, rows, desire, without_broker(image, broker_id)))


def test_large_failure_is_decided_as_one_block() -> None:
    image = with_topic(cluster(1, 2, 3), *(partition(index, (1, 2, 3)) for index in range(1500)))
    changes = decisions.leave_isrs(image, 1, CONFIG)
    assert [type(change) for change in changes] == [PartitionChanges]
    after = step(image, *changes, fenced(1))
    assert {(s.leader, s.isr) for _, s in after.partitions_of(TOPIC)} == {(2, (2, 3))}
    assert {(s.leader_epoch, s.partition_epoch) for _, s in after.partitions_of(TOPIC)} == {(6, 11)}


# --- unclean elections by themselves --------------------------------------------------------------


def test_leaderless_partition_is_elected_uncleanly_only_where_allowed() -> None:
    image = cluster(registered(1, fenced=True), 2)
    for topic_id, name in ((TOPIC, "t"), (OTHER_TOPIC, "u")):
        lost = partition(0, (1, 2), isr=(1,), leader=NO_LEADER)
        image = with_topic(image, lost, name=name, topic_id=topic_id)
    assert elections.elect_unclean(image, CONFIG) == ()
    image = step(image, config("unclean.leader.election.enable", "true", resource="u"))
    (record,) = elections.elect_unclean(image, CONFIG)
    assert isinstance(record, PartitionChangeRecord)
    assert (record.topic_id, record.leader, record.isr) == (OTHER_TOPIC, 2, (2,))


def test_unclean_elections_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elections, "ELECTIONS_MAX", 3)
    lost = [partition(index, (1, 2), isr=(1,), leader=NO_LEADER) for index in range(5)]
    image = with_topic(cluster(registered(1, fenced=True), 2), *lost)
    image = step(
        image,
        config("unclean.leader.election.enable", "true", resource_type=4, resource=""),
    )
    assert len(elections.elect_unclean(image, CONFIG)) == 3


@given(images(), st.sampled_from(BROKERS))
def test_failed_directory_over_columns_is_that_of_single_partitions(
    image: MetadataImage, broker_id: int
) -> None:
    lost = [directory(broker_id)]
    with pytest.MonkeyPatch.context() as patch:
        by_columns(patch, rows_from=0)
        columns = decisions.leave_directories(image, broker_id, lost, CONFIG)
        by_columns(patch, rows_from=10**9)
        singles = decisions.leave_directories(image, broker_id, lost, CONFIG)
    same_outcome(image, columns, singles)
    after = step(image, *columns) if columns else image
    for state in plain_partitions(after).values():
        assert broker_id not in state.isr or len(state.isr) == 1, "it is gone, or the last member"


# --- directories ----------------------------------------------------------------------------------


def test_replica_in_a_failed_directory_leaves_the_isr() -> None:
    two = registered(1, log_dirs=(directory(1), directory(9)))
    image = with_topic(
        cluster(two, 2),
        partition(0, (1, 2)),
        partition(1, (1, 2), directories=(directory(9), directory(2))),
    )
    (record,) = decisions.leave_directories(image, 1, [directory(9)], CONFIG)
    assert isinstance(record, PartitionChangeRecord)
    assert (record.partition_id, record.isr, record.leader) == (1, (2,), 2)
