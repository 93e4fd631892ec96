"""Eligible leader replicas (KIP-966): who is eligible, and for how long."""

from dataclasses import replace
from typing import Any

import pytest

from controller.decisions.brokers import Heard, decide_heartbeat, decide_registration, fence
from controller.decisions.config_changes import decide_incremental_alter_configs
from controller.decisions.elections import elect_overdue
from controller.decisions.eligible_leaders import settle_min_isr
from controller.decisions.failover import elect_with, leave_isrs
from controller.decisions.partition_changes import largest_min_isr
from controller.decisions.reassignments import decide_alter_reassignments
from controller.decisions.replica_reports import decide_alter_partition
from controller.metadata.image import MetadataImage
from controller.metadata.metadata_version import ELR_VERSION
from controller.metadata.partitions import NO_LEADER, PartitionState
from tests.controller.clusters import (
    CONFIG,
    OTHER_TOPIC,
    TOPIC,
    cluster,
    config,
    fenced,
    heartbeat,
    leaving,
    partition,
    registration,
    step,
    with_topic,
)
from wire.errors import ErrorCode
from wire.message import replace as replace_message
from wire.messages.configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from wire.messages.partitions import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionRequest,
    BrokerState,
    IsrPartition,
    IsrTopic,
    ReassignablePartition,
    ReassignableTopic,
)
from wire.messages.registration import Feature
from wire.metadata_records import (
    ClearElrRecord,
    ConfigRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
)
from wire.partition_columns import PartitionChanges

ELR_FEATURE = Feature(name=ELR_VERSION, min_supported_version=0, max_supported_version=1)
ELR = FeatureLevelRecord(name=ELR_VERSION, feature_level=1)
WITHOUT_ELR = FeatureLevelRecord(name=ELR_VERSION, feature_level=0)


def one(*replicas: int, min_isr: int = 2, version: int = 25, **others: Any) -> MetadataImage:
    """Four brokers that are up, and one partition."""
    image = step(cluster(1, 2, 3, 4, version=version), ELR)
    image = with_topic(image, partition(0, replicas, **others))
    return step(image, config("min.insync.replicas", str(min_isr)))


def state(image: MetadataImage) -> PartitionState:
    found = image.partition(TOPIC, 0)
    assert found is not None
    return found


def roles(image: MetadataImage) -> tuple[tuple[int, ...], tuple[int, ...], int, tuple[int, ...]]:
    """ISR, eligible replicas, leader, last known leader."""
    now = state(image)
    return now.isr, now.eligible_leader_replicas, now.leader, now.last_known_elr


def down(image: MetadataImage, *brokers: int) -> MetadataImage:
    for broker in brokers:
        image = step(image, *fence(image, broker, CONFIG))
    return image


def up(image: MetadataImage, broker_id: int, *, clean: bool) -> MetadataImage:
    """A broker registers again, and is unfenced."""
    before = image.brokers[broker_id]
    asked = registration(
        broker_id, previous_broker_epoch=before.epoch if clean else -1, log_dirs=before.log_dirs
    )
    asked = replace_message(asked, features=(*asked.features, ELR_FEATURE))
    decided = decide_registration(
        image,
        asked,
        CONFIG,
        next_offset=image.at.offset,
        has_live_session=False,
        kraft_version=0,
    )
    assert decided.response.error_code is ErrorCode.NONE
    image = step(image, *decided.changes)
    beat = heartbeat(broker_id, decided.response.broker_epoch, image.at.offset)
    heard = Heard(shutdown_offset=0, lowest_active_offset=0)
    return step(image, *decide_heartbeat(image, beat, CONFIG, heard).changes)


def with_isr(image: MetadataImage, *isr: int) -> MetadataImage:
    now = state(image)
    asked = IsrPartition(
        partition_index=0,
        leader_epoch=now.leader_epoch,
        partition_epoch=now.partition_epoch,
        new_isr_with_epochs=tuple(BrokerState(broker_id=member) for member in isr),
    )
    wanted = AlterPartitionRequest(
        broker_id=now.leader,
        broker_epoch=image.brokers[now.leader].epoch,
        topics=(IsrTopic(topic_id=TOPIC, partitions=(asked,)),),
    )
    decision = decide_alter_partition(image, wanted, CONFIG)
    assert decision.response.topics[0].partitions[0].error_code is ErrorCode.NONE
    return step(image, *decision.changes)


# --- who is eligible ------------------------------------------------------------------------


def test_isr_shrinks_and_grows_around_the_minimum() -> None:
    image = one(1, 2, 3)
    image = with_isr(image, 1, 2)
    assert roles(image) == ((1, 2), (), 1, ()), "two are enough"
    image = with_isr(image, 1)
    assert roles(image) == ((1,), (2,), 1, ()), "3 left before the high watermark stood still"
    image = with_isr(image, 1, 3)
    assert roles(image) == ((1, 3), (), 1, ())


def test_partition_is_not_held_to_more_replicas_than_it_has() -> None:
    image = with_isr(one(1, 2, min_isr=3), 1)
    assert roles(image) == ((1,), (2,), 1, ())
    assert roles(with_isr(image, 1, 2)) == ((1, 2), (), 1, ())


def test_level_of_the_feature_and_of_the_records_must_allow_it() -> None:
    image = with_isr(one(1, 2, version=22), 1)
    assert roles(image) == ((1,), (), 1, ())
    plain = with_topic(cluster(1, 2), partition(0, (1, 2)))
    image = with_isr(step(plain, config("min.insync.replicas", "2")), 1)
    assert roles(image) == ((1,), (), 1, ())


def test_all_fail_cleanly_and_the_first_to_return_leads() -> None:
    image = down(one(1, 2, 3), 3, 2, 1)
    assert roles(image) == ((), (1, 2), NO_LEADER, (1,))
    image = up(image, 3, clean=True)
    assert roles(image)[2] == NO_LEADER, "3 lacks what 1 and 2 have"
    image = up(image, 2, clean=True)
    assert roles(image) == ((2,), (1,), 2, ())
    assert state(image).leader_recovery_state == 0


def test_last_replica_standing_loses_its_disk_and_does_not_lead() -> None:
    """KIP-966's story: 1 leads alone, loses its log with the power, and must not rule again."""
    image = down(one(1, 2, 3), 3, 2, 1)
    image = up(image, 1, clean=False)
    assert roles(image) == ((), (2,), NO_LEADER, (1,))
    image = up(image, 2, clean=True)
    assert roles(image)[:3] == ((2,), (), 2)


def test_without_anybody_eligible_the_last_known_leader_recovers() -> None:
    image = down(one(1, 2, 3), 3, 2, 1)
    image = up(up(image, 2, clean=False), 3, clean=False)
    assert roles(image) == ((), (1,), NO_LEADER, (1,))
    image = up(image, 1, clean=False)
    assert roles(image) == ((1,), (), 1, ())
    assert state(image).leader_recovery_state == 1, "this may have lost records"


@pytest.mark.parametrize(
    ("isr", "eligible", "last_known", "leader"),
    [
        ((), (), (1,), 1),  # the last known leader may have lost records, and nobody has more
        ((), (2,), (1,), 2),
        ((3,), (), (), 3),
        ((), (), (), NO_LEADER),
        ((), (9,), (1,), NO_LEADER),  # 9 holds every committed record, and is not there
    ],
)
def test_election_that_no_event_has_brought_is_made_up_for(
    isr: tuple[int, ...], eligible: tuple[int, ...], last_known: tuple[int, ...], leader: int
) -> None:
    """A controller died after a broker came up, and before it had elected everywhere."""
    image = one(1, 2, 3, 9, isr=isr, leader=NO_LEADER)
    image = step(
        image,
        PartitionChangeRecord(
            topic_id=TOPIC,
            partition_id=0,
            eligible_leader_replicas=eligible,
            last_known_elr=last_known,
        ),
    )
    assert roles(step(image, *elect_overdue(image, CONFIG)))[2] == leader


def test_unclean_return_of_a_member_takes_it_out_of_isr_and_eligible_replicas() -> None:
    image = with_isr(one(1, 2, 3), 1)
    image = with_isr(image, 1, 2)
    image = with_isr(image, 1)
    image = up(down(image, 2), 2, clean=False)
    assert roles(image) == ((1,), (), 1, ())
    image = up(down(image, 1), 1, clean=True)
    assert roles(image) == ((1,), (), 1, ())


def test_broker_that_is_forgotten_is_not_eligible() -> None:
    image = with_isr(one(1, 2), 1)
    image = step(image, *leave_isrs(image, 2, CONFIG, lost=True))
    assert roles(image) == ((1,), (), 1, ())


def test_broker_in_controlled_shutdown_is_not_elected() -> None:
    image = step(down(one(1, 2), 2, 1), leaving(2))
    assert roles(image) == ((), (1, 2), NO_LEADER, (1,))
    assert elect_with(image, 2, CONFIG) == ()
    assert roles(up(image, 1, clean=True)) == ((1,), (2,), 1, ())


def test_reassignment_forgets_eligible_replicas_that_go() -> None:
    image = with_isr(one(1, 2, 3), 1, 3)
    image = with_isr(image, 1)
    assert roles(image) == ((1,), (3,), 1, ())
    topic = ReassignableTopic(
        name="t", partitions=(ReassignablePartition(partition_index=0, replicas=(1,)),)
    )
    asked = AlterPartitionReassignmentsRequest(topics=(topic,))
    image = step(image, *decide_alter_reassignments(image, asked, CONFIG).changes)
    assert state(image).replicas == (1,)
    assert roles(image) == ((1,), (), 1, ())


def test_cancellation_elects_an_eligible_original() -> None:
    image = one(
        4,
        1,
        2,
        isr=(4,),
        leader=4,
        adding_replicas=(4,),
        removing_replicas=(1,),
        eligible_leader_replicas=(2,),
    )
    topic = ReassignableTopic(name="t", partitions=(ReassignablePartition(partition_index=0),))
    asked = AlterPartitionReassignmentsRequest(topics=(topic,))
    image = step(image, *decide_alter_reassignments(image, asked, CONFIG).changes)
    assert state(image).replicas == (1, 2)
    assert roles(image) == ((2,), (), 2, ())
    assert state(image).leader_recovery_state == 0


def test_leftover_eligible_replica_does_not_bear_a_cancellation() -> None:
    """The feature is off, and others have committed without it since."""
    image = one(4, 1, 2, isr=(4,), leader=4, adding_replicas=(4,), eligible_leader_replicas=(2,))
    image = step(image, WITHOUT_ELR)
    topic = ReassignableTopic(name="t", partitions=(ReassignablePartition(partition_index=0),))
    asked = AlterPartitionReassignmentsRequest(topics=(topic,))
    decision = decide_alter_reassignments(image, asked, CONFIG)
    (result,) = decision.response.responses[0].partitions
    assert result.error_code is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert decision.changes == ()


def test_last_member_of_the_time_before_the_feature_is_the_last_known_one() -> None:
    image = step(one(1, 2, isr=(1,), leader=NO_LEADER), fenced(1), fenced(2))
    image = up(image, 2, clean=False)
    assert roles(image) == ((1,), (), NO_LEADER, ())
    image = up(image, 1, clean=False)
    assert roles(image) == ((1,), (), 1, ())
    assert state(image).leader_recovery_state == 1


# --- the feature goes away --------------------------------------------------------------------


def test_feature_that_is_switched_off_leaves_what_an_empty_isr_needs() -> None:
    image = step(down(one(1, 2), 2, 1), WITHOUT_ELR)
    image = up(image, 2, clean=True)
    assert roles(image) == ((2,), (), 2, ())


def test_without_the_feature_eligible_replicas_are_forgotten_at_the_next_change() -> None:
    image = step(with_isr(one(1, 2, 3), 1), WITHOUT_ELR)
    image = with_isr(image, 1, 3)
    assert roles(image) == ((1, 3), (), 1, ())


# --- min.insync.replicas ------------------------------------------------------------------------


def configured(
    image: MetadataImage, value: str | None, *, resource_type: int = 2, resource: str = "t"
) -> tuple[ErrorCode, tuple[object, ...]]:
    change = AlterableConfig(
        name="min.insync.replicas", config_operation=0 if value else 1, value=value
    )
    item = AlterConfigsResource(
        resource_type=resource_type, resource_name=resource, configs=(change,)
    )
    asked = IncrementalAlterConfigsRequest(resources=(item,), validate_only=False)
    decision = decide_incremental_alter_configs(image, asked, CONFIG)
    return decision.response.responses[0].error_code, decision.changes


def test_another_minimum_makes_a_topic_forget() -> None:
    image = with_isr(one(1, 2, 3), 1)
    assert roles(image)[1] == (2, 3)
    _, changes = configured(image, "1")
    assert [type(change) for change in changes] == [ClearElrRecord, ConfigRecord]
    image = step(image, *changes)  # type: ignore[arg-type]  # they are changes
    assert roles(image) == ((1,), (), 1, ())


@pytest.mark.parametrize("resource", ["t", ""])
def test_another_minimum_leaves_what_an_empty_isr_needs(resource: str) -> None:
    image = down(one(1, 2), 2, 1)
    assert roles(image) == ((), (1, 2), NO_LEADER, (1,))
    kind = 2 if resource else 4
    _, changes = configured(image, "1", resource_type=kind, resource=resource)
    image = step(image, *changes)  # type: ignore[arg-type]  # they are changes
    image = up(image, 2, clean=True)
    minimum = 1 if resource else 2
    assert roles(image) == ((2,), (1,) if minimum == 2 else (), 2, ())
    assert state(image).leader_recovery_state == 0


def test_topics_forget_one_by_one_beside_an_empty_isr() -> None:
    image = with_topic(one(1, 2), partition(0, (2, 3)), name="u", topic_id=OTHER_TOPIC)
    image = step(image, config("min.insync.replicas", "2", resource="u"))
    image = down(image, 2, 1)
    other = image.partition(OTHER_TOPIC, 0)
    assert other is not None
    assert (other.isr, other.eligible_leader_replicas) == ((3,), (2,))
    _, changes = configured(image, "3", resource_type=4, resource="")
    image = step(image, *changes)  # type: ignore[arg-type]  # they are changes
    other = image.partition(OTHER_TOPIC, 0)
    assert other is not None
    assert (other.isr, other.eligible_leader_replicas) == ((3,), ())
    assert roles(image) == ((), (1, 2), NO_LEADER, (1,))


def test_another_default_makes_every_topic_forget() -> None:
    image = with_isr(one(1, 2, 3), 1)
    _, changes = configured(image, "3", resource_type=4, resource="")
    assert changes[0] == ClearElrRecord(topic_name="")


def test_same_minimum_makes_nobody_forget() -> None:
    assert configured(one(1, 2, 3), "2") == (ErrorCode.NONE, ())


def test_nothing_is_forgotten_without_the_feature() -> None:
    image = step(one(1, 2, 3), WITHOUT_ELR)
    _, changes = configured(image, "1")
    assert [type(change) for change in changes] == [ConfigRecord]


def test_minimum_of_one_broker_is_refused_and_that_of_all_stays() -> None:
    image = step(one(1, 2), config("min.insync.replicas", "2", resource_type=4, resource=""))
    for resource, value in (("1", "2"), ("", None)):
        error, changes = configured(image, value, resource_type=4, resource=resource)
        assert (error, changes) == (ErrorCode.INVALID_CONFIG, ())
    assert configured(image, "1", resource_type=4, resource="")[0] is ErrorCode.NONE


def test_broker_may_have_a_minimum_of_its_own_without_the_feature() -> None:
    image = step(one(1, 2), WITHOUT_ELR)
    error, changes = configured(image, "1", resource_type=4, resource="1")
    assert error is ErrorCode.NONE
    assert len(changes) == 1


def test_largest_minimum_is_that_of_a_topic_or_the_default() -> None:
    image = with_topic(one(1, 2), partition(0, (1,)), name="u", topic_id=OTHER_TOPIC)
    image = step(image, config("retention.ms", "7000", resource="u"))
    assert largest_min_isr(image, CONFIG) == 2
    image = step(image, config("min.insync.replicas", "3", resource_type=4, resource=""))
    assert largest_min_isr(image, CONFIG) == 3


def test_feature_comes_with_one_minimum_for_all() -> None:
    image = step(cluster(1, 2), config("min.insync.replicas", "3", resource_type=4, resource="2"))
    static = replace(CONFIG, static_configs={"min.insync.replicas": "2"})
    records = list(settle_min_isr(image, static))
    assert [(record.resource_name, record.value) for record in records] == [("", "2"), ("2", None)]
    assert list(settle_min_isr(step(image, *records), static)) == []


# --- columns ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("min_isr", "blocks"), [(None, 1), ("2", 1), ("3", 0)])
def test_many_partitions_are_decided_at_once_while_enough_replicas_stay(
    min_isr: str | None, blocks: int
) -> None:
    image = step(cluster(1, 2, 3), ELR)
    image = with_topic(image, *(partition(index) for index in range(120)))
    if min_isr is not None:
        image = step(image, config("min.insync.replicas", min_isr))
    changes = leave_isrs(image, 1, CONFIG)
    assert sum(isinstance(change, PartitionChanges) for change in changes) == blocks
    after = step(image, *changes)
    eligible = {s.eligible_leader_replicas for _, s in after.partitions_of(TOPIC)}
    assert eligible == ({()} if blocks else {(1,)})
