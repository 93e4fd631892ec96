"""Broker registration, heartbeats and unregistration."""

from dataclasses import replace
from uuid import UUID

import pytest

from controller.config import ControllerConfig
from controller.decisions.brokers import (
    BrokerState,
    Heard,
    decide_heartbeat,
    decide_registration,
    decide_unregister,
    next_state,
)
from controller.decisions.decision import Decision
from controller.metadata.changes import Change
from controller.metadata.image import BrokerImage, MetadataImage
from controller.metadata.partitions import NO_LEADER
from tests.controller.clusters import (
    CONFIG,
    FEATURES,
    TOPIC,
    cluster,
    directory,
    fenced,
    heartbeat,
    leaving,
    partition,
    registered,
    registration,
    step,
    with_topic,
)
from wire.errors import ErrorCode
from wire.messages.registration import (
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    Feature,
    UnregisterBrokerRequest,
)
from wire.metadata_records import (
    BrokerRegistrationChangeRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)
from wire.primitives import DIRECTORY_LOST, DIRECTORY_UNASSIGNED, INT64_MAX

SAME_PROCESS = UUID(int=1 * 1000 + 101)  # as `registered(1)` has it


def register(
    image: MetadataImage,
    request: BrokerRegistrationRequest,
    *,
    live: bool = False,
    kraft_version: int = 0,
) -> Decision[BrokerRegistrationResponse]:
    return decide_registration(
        image,
        request,
        CONFIG,
        next_offset=500,
        has_live_session=live,
        kraft_version=kraft_version,
    )


# --- registration: the checks, in order -----------------------------------------------------------


def level(name: str, to: int) -> FeatureLevelRecord:
    return FeatureLevelRecord(name=name, feature_level=to)


BASE = cluster(1, 2)
NO_SUCH_LEVEL = (
    Feature(name="metadata.version", min_supported_version=7, max_supported_version=24),
)
IN_ORDER = [
    (
        "cluster",
        registration(1, cluster_id="other", log_dirs=(), features=()),
        "INCONSISTENT_CLUSTER_ID",
    ),
    ("duplicate", registration(1, log_dirs=(), features=()), "DUPLICATE_BROKER_REGISTRATION"),
    ("no directory", registration(3, log_dirs=(), features=()), "INVALID_REGISTRATION"),
    (
        "directory twice",
        registration(3, log_dirs=(directory(3),) * 2, features=()),
        "INVALID_REGISTRATION",
    ),
    (
        "reserved directory",
        registration(3, log_dirs=(DIRECTORY_UNASSIGNED,), features=()),
        "INVALID_REGISTRATION",
    ),
    (
        "directory of another",
        registration(3, log_dirs=(directory(2),), features=()),
        "INVALID_REGISTRATION",
    ),
    ("no metadata.version", registration(3, features=()), "UNSUPPORTED_VERSION"),
    ("older metadata.version", registration(3, features=NO_SUCH_LEVEL), "UNSUPPORTED_VERSION"),
    ("fine", registration(3), "NONE"),
]


@pytest.mark.parametrize(
    ("request_", "expected"), [row[1:] for row in IN_ORDER], ids=[row[0] for row in IN_ORDER]
)
def test_first_check_that_fails_names_the_error(
    request_: BrokerRegistrationRequest, expected: str
) -> None:
    decision = register(BASE, request_, live=True)
    assert decision.response.error_code is ErrorCode[expected]
    assert bool(decision.changes) == (expected == "NONE")


def test_every_finalized_feature_must_be_supported() -> None:
    image = step(cluster(), level("group.version", 1))
    assert register(image, registration(1)).response.error_code is ErrorCode.UNSUPPORTED_VERSION
    group = Feature(name="group.version", min_supported_version=0, max_supported_version=1)
    supporting = registration(1, features=(*FEATURES, group))
    assert register(image, supporting).response.error_code is ErrorCode.NONE


@pytest.mark.parametrize(
    ("supported", "finalized", "expected"),
    [
        (None, 0, ErrorCode.NONE),
        (None, 1, ErrorCode.UNSUPPORTED_VERSION),
        ((0, 0), 1, ErrorCode.UNSUPPORTED_VERSION),
        ((0, 1), 0, ErrorCode.NONE),
        ((0, 1), 1, ErrorCode.NONE),
        ((1, 1), 0, ErrorCode.UNSUPPORTED_VERSION),
    ],
)
def test_broker_must_know_the_kraft_version_that_no_image_holds(
    supported: tuple[int, int] | None, finalized: int, expected: ErrorCode
) -> None:
    features: tuple[Feature, ...] = FEATURES
    if supported is not None:
        low, high = supported
        asked = Feature(name="kraft.version", min_supported_version=low, max_supported_version=high)
        features = (*FEATURES, asked)
    request = registration(1, features=features)
    assert register(cluster(), request, kraft_version=finalized).response.error_code is expected


def test_directories_are_not_asked_for_before_they_existed() -> None:
    old = (Feature(name="metadata.version", min_supported_version=7, max_supported_version=25),)
    image = cluster(version=16)
    request = registration(1, log_dirs=(), features=old)
    assert register(image, request).response.error_code is ErrorCode.NONE


@pytest.mark.parametrize(
    ("is_fenced", "live", "expected"),
    [
        (False, True, ErrorCode.DUPLICATE_BROKER_REGISTRATION),
        (False, False, ErrorCode.NONE),
        (True, True, ErrorCode.NONE),
    ],
)
def test_other_process_waits_for_the_end_of_the_session(
    is_fenced: bool, live: bool, expected: ErrorCode
) -> None:
    image = cluster(registered(1, fenced=is_fenced))
    assert register(image, registration(1), live=live).response.error_code is expected


# --- registration: effects --------------------------------------------------------------------


def test_new_broker_gets_the_next_offset_as_its_epoch_and_begins_fenced() -> None:
    decision = register(cluster(), registration(1, rack="r"))
    assert decision.response.broker_epoch == 500
    (record,) = decision.changes
    assert isinstance(record, RegisterBrokerRecord)
    assert (record.broker_epoch, record.fenced, record.rack) == (500, True, "r")
    assert record.log_dirs == (directory(1),)


def test_same_process_keeps_its_epoch_and_standing() -> None:
    request = registration(1, incarnation_id=SAME_PROCESS, rack="new")
    decision = register(cluster(1), request, live=True)
    (record,) = decision.changes
    assert isinstance(record, RegisterBrokerRecord)
    assert (record.broker_epoch, record.fenced, record.rack) == (101, False, "new")
    assert decision.response.broker_epoch == 101


def test_new_process_leaves_the_isrs_of_the_former_one_first() -> None:
    image = with_topic(cluster(1, 2), partition(0, (1, 2)))
    decision = register(image, registration(1), live=False)
    leave, record = decision.changes
    assert isinstance(leave, PartitionChangeRecord)
    assert (leave.isr, leave.leader) == ((2,), 2)
    assert isinstance(record, RegisterBrokerRecord)
    assert decision.is_atomic
    after = step(image, *decision.changes)
    # The epoch is where the batch begins, not where the record lies.
    assert after.brokers[1].registered_at_offset == after.at.offset - 1


# --- heartbeats: states -----------------------------------------------------------------------


def broker(is_fenced: bool = False, leaving: bool = False) -> BrokerImage:
    return BrokerImage(
        id=1,
        incarnation_id=SAME_PROCESS,
        epoch=101,
        end_points=(),
        features={},
        rack=None,
        fenced=is_fenced,
        in_controlled_shutdown=leaving,
        log_dirs=(directory(1),),
        registered_at_offset=50,
    )


F, U, C, S = (
    BrokerState.FENCED,
    BrokerState.UNFENCED,
    BrokerState.CONTROLLED_SHUTDOWN,
    BrokerState.SHUTDOWN_NOW,
)


@pytest.mark.parametrize(
    ("now", "want_fence", "want_shut_down", "offset", "leads", "expected"),
    [
        (F, False, True, 50, False, S),
        (F, True, True, 50, False, S),
        (F, False, False, 50, False, U),
        (F, False, False, 49, False, F),
        (F, True, False, 50, False, F),
        (U, True, True, 50, True, S),
        (U, True, False, 50, True, F),
        (U, False, True, 50, True, C),
        (U, False, True, 50, False, S),
        (U, False, False, 0, True, U),
        (C, False, True, 50, True, C),
        (C, False, True, 50, False, S),
    ],
)
def test_next_state(
    now: BrokerState,
    want_fence: bool,
    want_shut_down: bool,
    offset: int,
    leads: bool,
    expected: BrokerState,
) -> None:
    present = broker(is_fenced=now is F, leaving=now is C)
    request = heartbeat(1, 101, offset, want_fence=want_fence, want_shut_down=want_shut_down)
    heard = Heard(shutdown_offset=60, lowest_active_offset=60)
    assert next_state(present, request, heard, leads_something=leads) is expected


def test_controlled_shutdown_lasts_until_active_brokers_have_applied_it() -> None:
    request = heartbeat(1, 101, 99, want_shut_down=True)
    late = Heard(shutdown_offset=60, lowest_active_offset=59)
    assert next_state(broker(leaving=True), request, late, leads_something=False) is C


# --- heartbeats: decisions --------------------------------------------------------------------


ALONE = Heard(shutdown_offset=INT64_MAX, lowest_active_offset=INT64_MAX)


@pytest.mark.parametrize(("broker_id", "epoch"), [(9, 101), (1, 100), (1, 102)])
def test_heartbeat_of_another_life_is_refused(broker_id: int, epoch: int) -> None:
    decision = decide_heartbeat(cluster(1), heartbeat(broker_id, epoch, 9), CONFIG, ALONE)
    assert decision.response.error_code is ErrorCode.STALE_BROKER_EPOCH
    assert decision.response.is_fenced
    assert not decision.changes


def test_usual_heartbeat_changes_nothing() -> None:
    decision = decide_heartbeat(cluster(1), heartbeat(1, 101, 1), CONFIG, ALONE)
    assert decision.changes == ()
    answer = decision.response
    assert (answer.is_caught_up, answer.is_fenced, answer.should_shut_down) == (True, False, False)


def test_caught_up_means_the_own_registration() -> None:
    image = cluster(2, registered(1, fenced=True))  # registered at offset 2, with epoch 101
    behind = decide_heartbeat(image, heartbeat(1, 101, 1), CONFIG, ALONE)
    assert (behind.response.is_caught_up, behind.changes) == (False, ())
    level_ = decide_heartbeat(image, heartbeat(1, 101, 2), CONFIG, ALONE)
    assert level_.response.is_caught_up


def test_unfenced_broker_leads_what_waited_for_it() -> None:
    image = with_topic(
        cluster(registered(1, fenced=True), 2), partition(0, (1, 2), isr=(1,), leader=-1)
    )
    decision = decide_heartbeat(image, heartbeat(1, 101, 9), CONFIG, ALONE)
    unfence, elect = decision.changes
    assert unfence == BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=101, fenced=-1)
    assert isinstance(elect, PartitionChangeRecord)
    assert (elect.leader, elect.isr) == (1, None)
    assert not decision.response.is_fenced


def test_fenced_broker_leaves_first_and_is_fenced_last() -> None:
    image = with_topic(cluster(1, 2), partition(0, (1, 2)))
    decision = decide_heartbeat(image, heartbeat(1, 101, 9, want_fence=True), CONFIG, ALONE)
    leave, fence = decision.changes
    assert isinstance(leave, PartitionChangeRecord)
    assert fence == BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=101, fenced=1)
    assert decision.response.is_fenced


def test_broker_that_wants_to_stop_hands_over_what_it_leads() -> None:
    image = with_topic(cluster(1, 2), partition(0, (1, 2)), partition(1, (2, 1)))
    request = heartbeat(1, 101, 9, want_shut_down=True)
    decision = decide_heartbeat(image, request, CONFIG, ALONE)
    assert not decision.response.should_shut_down
    after = step(image, *decision.changes)
    assert after.brokers[1].in_controlled_shutdown
    assert {s.leader for _, s in after.partitions_of(TOPIC)} == {2}
    assert {s.isr for _, s in after.partitions_of(TOPIC)} == {(2,)}


@pytest.mark.parametrize(
    ("state", "request_"),
    [
        pytest.param(
            partition(0, (1, 2, 3), isr=(2,), leader=-1), heartbeat(3, 103, 9), id="3 comes up"
        ),
        pytest.param(
            partition(0, (1, 2), isr=(1, 2)), heartbeat(1, 101, 9, want_fence=True), id="1 fails"
        ),
        pytest.param(
            partition(0, (1, 2), isr=(1, 2)), heartbeat(1, 101, 9, want_shut_down=True), id="1 goes"
        ),
        pytest.param(
            partition(0, (1, 2), isr=(1,), eligible_leader_replicas=(2,)),
            heartbeat(1, 101, 9, want_fence=True),
            id="1 fails, and 2 is eligible",
        ),
    ],
)
def test_broker_in_a_controlled_shutdown_is_not_elected(
    state: PartitionRecord, request_: BrokerHeartbeatRequest
) -> None:
    """It is the last that could lead; then nobody leads."""
    elr = FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1)
    image = step(cluster(1, 2, registered(3, fenced=True)), elr)
    image = step(with_topic(image, state), leaving(2))
    decision = decide_heartbeat(image, request_, CONFIG, ALONE)
    after = step(image, *decision.changes).partition(TOPIC, 0)
    assert after is not None
    assert after.leader == NO_LEADER


def test_leader_is_not_let_go_by_a_heartbeat_from_before_its_shutdown() -> None:
    image = with_topic(cluster(1, 2), partition(0, (1, 2), isr=(1,)))
    image = step(image, leaving(1))
    late = decide_heartbeat(image, heartbeat(1, 101, 9), CONFIG, ALONE)
    assert not late.response.should_shut_down


def test_shutdown_that_was_begun_by_half_is_finished() -> None:
    """The controller died when it had recorded the shutdown, and not yet every new leader."""
    image = step(with_topic(cluster(1, 2), partition(0, (1, 2))), leaving(1))
    request = heartbeat(1, 101, 9, want_shut_down=True)
    decision = decide_heartbeat(image, request, CONFIG, ALONE)
    assert not decision.response.should_shut_down, "the others have yet to hear of it"
    state = step(image, *decision.changes).partition(TOPIC, 0)
    assert state is not None
    assert (state.leader, state.isr) == (2, (2,))


def test_broker_that_leads_nothing_may_stop_at_once() -> None:
    image = with_topic(cluster(1, 2), partition(0, (2, 1)))
    request = heartbeat(1, 101, 9, want_shut_down=True)
    decision = decide_heartbeat(image, request, CONFIG, ALONE)
    assert decision.response.should_shut_down
    after = step(image, *decision.changes)
    assert after.brokers[1].fenced
    state = after.partition(TOPIC, 0)
    assert state is not None
    assert state.isr == (2,)


def test_failed_directory_takes_its_replicas_out_of_the_isrs() -> None:
    two = registered(1, log_dirs=(directory(1), directory(8)))
    image = with_topic(cluster(two, 2), partition(0, (1, 2)))
    request = heartbeat(1, 101, 9, offline_log_dirs=(directory(1), directory(77)))
    decision = decide_heartbeat(image, request, CONFIG, ALONE)
    after = step(image, *decision.changes)
    assert after.brokers[1].log_dirs == (directory(8),)
    state = after.partition(TOPIC, 0)
    assert state is not None
    assert (state.leader, state.isr) == (2, (2,))
    again = decide_heartbeat(after, request, CONFIG, ALONE)
    assert again.changes == ()


def test_last_directory_can_fail_too() -> None:
    image = with_topic(cluster(1, 2), partition(0, (1, 2)))
    request = heartbeat(1, 101, 9, offline_log_dirs=(directory(1),))
    after = step(image, *decide_heartbeat(image, request, CONFIG, ALONE).changes)
    assert after.brokers[1].log_dirs == (DIRECTORY_LOST,)
    assert not after.is_acceptable(1, directory(1))


# --- unregistration ---------------------------------------------------------------------------


def cordoned(image: MetadataImage, directories: tuple[UUID, ...] | None) -> tuple[Change, ...]:
    request = heartbeat(1, 101, 9, cordoned_log_dirs=directories)
    return decide_heartbeat(image, request, CONFIG, ALONE).changes


def test_cordoned_directories_are_recorded_when_they_change() -> None:
    image = step(cluster(1, 2), level("metadata.version", 30))
    (told,) = changes = cordoned(image, (directory(1),))
    assert told == BrokerRegistrationChangeRecord(
        broker_id=1, broker_epoch=101, cordoned_log_dirs=(directory(1),)
    )
    after = step(image, *changes)
    assert cordoned(after, (directory(1),)) == cordoned(after, None) == ()
    assert cordoned(after, ()) != ()
    assert cordoned(step(cluster(1), level("metadata.version", 29)), (directory(1),)) == ()


def test_unknown_broker_cannot_be_unregistered() -> None:
    decision = decide_unregister(cluster(1), UnregisterBrokerRequest(broker_id=7), CONFIG)
    assert decision.response.error_code is ErrorCode.BROKER_ID_NOT_REGISTERED
    assert decision.response.error_message == "Broker ID 7 is not currently registered"


def test_unregistered_broker_stays_a_replica_but_leads_nothing() -> None:
    image = with_topic(cluster(1, 2), partition(0, (1, 2)))
    decision = decide_unregister(image, UnregisterBrokerRequest(broker_id=1), CONFIG)
    assert decision.changes[-1] == UnregisterBrokerRecord(broker_id=1, broker_epoch=101)
    after = step(image, *decision.changes)
    assert sorted(after.brokers) == [2]
    state = after.partition(TOPIC, 0)
    assert state is not None
    assert (state.replicas, state.isr, state.leader) == ((1, 2), (2,), 2)


def test_registration_follows_the_config_it_is_given() -> None:
    other = replace(CONFIG, cluster_id="another")
    assert isinstance(other, ControllerConfig)
    decision = decide_registration(
        step(cluster(1), fenced(1)),
        registration(1),
        other,
        next_offset=5,
        has_live_session=False,
        kraft_version=0,
    )
    assert decision.response.error_code is ErrorCode.INCONSISTENT_CLUSTER_ID
