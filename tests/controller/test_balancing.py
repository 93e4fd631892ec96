"""Elections that nobody asks for: preferred leaders are led back, a number at a time."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.config import ControllerConfig
from controller.decisions import elections
from controller.decisions.elections import decide_elect_leaders, elect_preferred
from controller.metadata.image import MetadataImage
from controller.metadata.partitions import NO_LEADER, PartitionState
from tests.controller.clusters import (
    CLUSTER_ID,
    CONFIG,
    TOPIC,
    cluster,
    directory,
    heartbeat,
    partition,
    registered,
    registration,
    step,
    with_topic,
)
from tests.controller.fake_log import Quorum
from tests.controller.plain_image import plain_partitions
from wire.messages.partitions import (
    AlterPartitionRequest,
    BrokerState,
    ElectLeadersRequest,
    IsrPartition,
    IsrTopic,
)
from wire.messages.topics import CreatableTopic, CreateTopicsRequest
from wire.partition_columns import PartitionChanges

BROKERS = range(5)


def led(image: MetadataImage) -> list[int]:
    return [state.leader for _, state in image.partitions_of(TOPIC)]


def balanced(image: MetadataImage) -> MetadataImage:
    return step(image, *elect_preferred(image, CONFIG))


def test_first_replicas_that_are_in_sync_lead_again() -> None:
    image = with_topic(
        cluster(1, 2, registered(3, fenced=True)),
        partition(0, (1, 2), leader=2),
        partition(1, (1, 2), isr=(2,), leader=2),
        partition(2, (3, 2), isr=(2,), leader=2),
        partition(3, (2, 1), leader=2),
        partition(4, (3, 2), isr=(3,), leader=NO_LEADER),
    )
    assert led(balanced(image)) == [1, 2, 2, 2, NO_LEADER]
    assert elect_preferred(balanced(image), CONFIG) == ()


def test_partition_of_an_odd_shape_is_led_back_too() -> None:
    image = with_topic(
        cluster(1, 2, 3),
        partition(0, (1, 2), isr=(2, 1), leader=2),
        partition(1, (1, 2, 3), isr=(1, 2), leader=2, adding_replicas=(3,)),
        partition(2, (1, 2, 3), isr=(2, 3), leader=2, adding_replicas=(3,)),
    )
    assert led(balanced(image)) == [1, 1, 2]


def test_round_is_bounded_over_columns_and_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elections, "ELECTIONS_MAX", 3)
    image = with_topic(
        cluster(1, 2),
        *(partition(index, (1, 2), leader=2) for index in range(2)),
        *(partition(index, (1, 2), isr=(2, 1), leader=2) for index in range(2, 6)),
    )
    assert led(balanced(image)) == [1, 1, 1, 2, 2, 2]
    assert led(balanced(balanced(image))) == [1] * 6


def test_many_are_led_back_as_one_block() -> None:
    image = with_topic(
        cluster(1, 2), *(partition(index, (1, 2), leader=2) for index in range(1500))
    )
    (block,) = elect_preferred(image, CONFIG)
    assert isinstance(block, PartitionChanges)
    assert len(block) == elections.ELECTIONS_MAX


@st.composite
def images(draw: st.DrawFn) -> MetadataImage:
    image = cluster(
        *(
            registered(
                broker,
                fenced=draw(st.booleans()),
                log_dirs=draw(st.sampled_from([(directory(broker),), (directory(99),)])),
            )
            for broker in BROKERS
        )
    )
    made = []
    for index in range(draw(st.integers(1, 8))):
        replicas = draw(st.lists(st.sampled_from(BROKERS), min_size=1, unique=True))
        isr = draw(st.lists(st.sampled_from(replicas), min_size=1, unique=True))
        # No leader that could not lead: such a one is replaced when its broker fails.
        fit = [b for b in isr if image.is_acceptable(b, directory(b))]
        leader = draw(st.sampled_from([*fit, NO_LEADER]))
        made.append(partition(index, replicas, isr=isr, leader=leader))
    return with_topic(image, *made)


@given(images())
def test_it_is_what_an_administrator_would_get(image: MetadataImage) -> None:
    """Of partitions with a leader: one without it is elected for when a broker comes up."""
    asked = decide_elect_leaders(image, ElectLeadersRequest(election_type=0), CONFIG)
    wanted = plain_partitions(step(image, *asked.changes) if asked.changes else image)
    found = plain_partitions(balanced(image) if elect_preferred(image, CONFIG) else image)
    for key, before in plain_partitions(image).items():
        assert found[key] == (wanted[key] if before.leader != NO_LEADER else before)


# --- when -----------------------------------------------------------------------------------------


def drifted(**others: Any) -> Quorum:
    """A controller that has led for no time, and a partition that its second replica leads."""
    made = Quorum()
    config = ControllerConfig(
        node_id=3000,
        cluster_id=CLUSTER_ID,
        session_timeout_ms=100_000,
        leader_imbalance_check_interval_ms=5000,
        **others,
    )
    made.add(config)
    made.elect(3000)
    made.commit()
    epochs = {}
    for broker in (1, 2):
        answer: Any = made.answer(registration(broker))
        epochs[broker] = answer.broker_epoch
        made.answer(heartbeat(broker, epochs[broker], made.last_offset))
    topic = CreatableTopic(name="t", num_partitions=1, replication_factor=2)
    made.answer(CreateTopicsRequest(topics=(topic,)))
    preferred, other = now(made).replicas
    made.answer(heartbeat(preferred, epochs[preferred], made.last_offset, want_fence=True))
    made.answer(heartbeat(preferred, epochs[preferred], made.last_offset))
    asked = IsrPartition(
        partition_index=0,
        leader_epoch=now(made).leader_epoch,
        partition_epoch=now(made).partition_epoch,
        new_isr_with_epochs=(BrokerState(broker_id=1), BrokerState(broker_id=2)),
    )
    topic_id = made.active.head.topics.by_name["t"].id
    made.answer(
        AlterPartitionRequest(
            broker_id=other,
            broker_epoch=epochs[other],
            topics=(IsrTopic(topic_id=topic_id, partitions=(asked,)),),
        )
    )
    assert now(made).leader == other
    assert len(now(made).isr) == 2
    return made


def now(made: Quorum) -> PartitionState:
    image = made.active.head
    state = image.partition(image.topics.by_name["t"].id, 0)
    assert state is not None
    return state


def is_balanced(made: Quorum) -> bool:
    return now(made).leader == now(made).replicas[0]


def test_active_controller_looks_once_an_interval() -> None:
    made = drifted()
    made.pass_time(4999)
    assert not is_balanced(made)
    made.pass_time(1)
    assert is_balanced(made)


def test_full_round_is_followed_by_another_in_the_next_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(elections, "ELECTIONS_MAX", 1)
    made = drifted()
    made.pass_time(5000)
    assert made.active.deadline_ms() == made.now_ms + 1


def test_balancing_can_be_switched_off() -> None:
    made = drifted(auto_leader_rebalance_enable=False)
    made.pass_time(50_000)
    assert not is_balanced(made)
