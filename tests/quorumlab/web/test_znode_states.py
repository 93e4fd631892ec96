"""What the znode changes of one node say of the cluster at each of them, and as stories."""

from collections.abc import Sequence

import pytest

from controller.metadata.image import MetadataImage
from controller.metadata.partitions import NO_LEADER, PartitionState
from quorum.core.types import OffsetAndEpoch
from quorum.zookeeper.znode_changes import ZnodeChange
from quorumlab.top.cluster_view import of_image
from quorumlab.web.rows import Lists, changed_rows, every_row, gone_topics
from quorumlab.web.znode_states import (
    Sight,
    broker_story,
    entry,
    epoch_after,
    image_of,
    partition_story,
    sight_after,
    sight_now,
)
from wire.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from wire.zk import paths
from wire.zk.designs import Layout
from wire.zk.znodes import (
    BrokerRegistration,
    PartitionIsr,
    PartitionLeader,
    TopicAssignment,
    Znode,
    encode_epoch,
)
from wire.zk.znodes import PartitionState as StateNode

Told = tuple[str, int | None, Znode | bytes | None]

STATE = paths.partition_state("t", 0)
REPLICAS = (1, 2, 3)
NOW = Sight(
    {1: ("a", 1), 2: ("b", 2)},
    {"t": {0: PartitionState(replicas=REPLICAS, isr=(1, 2), leader=1, leader_epoch=4)}},
)


def seen(*told: Told) -> Sequence[ZnodeChange]:
    return [
        ZnodeChange(
            number=number,
            at_ms=number * 1000,
            path=path,
            version=version,
            value=None
            if value is None
            else (value if isinstance(value, bytes) else value.encode()).decode(),
        )
        for number, (path, version, value) in enumerate(told, start=1)
    ]


def state(leader: int, *isr: int, epoch: int = 0) -> StateNode:
    return StateNode(controller_epoch=1, leader=leader, leader_epoch=epoch, isr=isr)


def topic(*replicas: int) -> TopicAssignment:
    return TopicAssignment(partitions={0: replicas})


WHOLE = seen(
    (paths.CONTROLLER_EPOCH, 0, encode_epoch(7)),
    (paths.topic("t"), 0, topic(*REPLICAS)),
    (STATE, 0, state(3, 1, 2, 3)),
    (STATE, 1, state(1, 1, 2, epoch=1)),
    (STATE, None, None),
    (paths.topic("t"), None, None),
)


def after(
    changes: Sequence[ZnodeChange], number: int, layout: Layout = Layout.KAFKA, now: Sight = NOW
) -> tuple[PartitionState | None, int]:
    found = sight_after(changes, number, layout, now)
    return found.sight.topics.get("t", {}).get(0), found.left_out


def of(leader: int, *isr: int, epoch: int = 0) -> PartitionState:
    return PartitionState(replicas=REPLICAS, isr=isr, leader=leader, leader_epoch=epoch)


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (1, None),
        (2, of(NO_LEADER)),
        (3, of(3, 1, 2, 3)),
        (4, of(1, 1, 2, epoch=1)),
        (5, of(NO_LEADER)),
        (6, None),
    ],
)
def test_partition_is_what_its_znodes_were(number: int, expected: PartitionState | None) -> None:
    assert after(WHOLE, number, now=Sight({}, {})) == (expected, 0)


def test_partition_that_never_changed_is_as_it_is_now() -> None:
    found = sight_after(seen((paths.topic("other"), 0, topic(1))), 0, Layout.KAFKA, NOW)
    assert found.sight.topics == NOW.topics
    assert (found.left_out, found.as_now) == (0, 1)


def test_partition_that_was_known_to_change_only_later_is_left_out_and_counted() -> None:
    changes = seen((STATE, 3, state(1, 1, 2, epoch=4)))
    assert after(changes, 0) == (None, 1)
    assert after(changes, 1) == (of(1, 1, 2, epoch=4), 0)


def test_partition_that_was_made_later_was_not_there() -> None:
    assert after(seen((STATE, 0, state(1, 1, 2, epoch=4))), 0) == (None, 0)


def test_value_that_was_cut_off_or_not_read_yet_changes_nothing() -> None:
    changes = seen((STATE, 0, state(3, 1, 2, 3)), (STATE, 1, None), (STATE, 2, b'{"version":1,"le'))
    assert after(changes, 2) == (of(3, 1, 2, 3, epoch=0), 0)
    assert after(changes, 3)[1] == 0


def test_three_znodes_make_a_partition_where_replicas_elect() -> None:
    leader, isr = paths.partition_leader("t", 0), paths.partition_isr("t", 0)
    changes = seen(
        (paths.topic("t"), 0, topic(*REPLICAS)),
        (leader, 0, PartitionLeader(leader=2)),
        (isr, 0, PartitionIsr(isr=(1, 2))),
        (leader, None, None),
    )
    nothing = Sight({}, {})
    found = [after(changes, number, Layout.V2, nothing)[0] for number in range(1, 5)]
    assert found == [of(NO_LEADER), of(2), of(2, 1, 2), of(NO_LEADER, 1, 2)]
    assert [each.text for each in partition_story(changes, Layout.V2, "t", 0)] == [
        "replicas [1,2,3]",
        "leader 2",
        "ISR [1,2]",
        f"{leader} was deleted; leader 2 → none",
    ]


def test_brokers_come_and_go_with_their_znodes() -> None:
    registration = BrokerRegistration(host="c", port=3)
    changes = seen((paths.broker(3), 0, registration), (paths.broker(3), None, None))
    found = [sight_after(changes, number, Layout.V3, NOW).sight.brokers for number in range(3)]
    assert found == [NOW.brokers, {**NOW.brokers, 3: ("c", 3)}, NOW.brokers]


def test_epoch_is_that_of_the_controller() -> None:
    assert [epoch_after(WHOLE, number) for number in (0, 1, 6)] == [-1, 7, 7]


# --- images -----------------------------------------------------------------------------------


def told(leader: int, *isr: int) -> MetadataResponse:
    partition = MetadataResponsePartition(
        partition_index=0, leader_id=leader, replica_nodes=REPLICAS, isr_nodes=isr
    )
    return MetadataResponse(
        brokers=(MetadataResponseBroker(node_id=1, host="a", port=1),),
        topics=(
            MetadataResponseTopic(name="same", partitions=(partition,)),
            MetadataResponseTopic(name="t", partitions=(partition,) * (leader >= 0)),
        ),
    )


def built(before: tuple[Sight, MetadataImage] | None, sight: Sight, end: int) -> MetadataImage:
    return image_of(sight, OffsetAndEpoch(end, 1), before)


def test_image_has_what_metadata_says_and_knows_who_is_away() -> None:
    sight = sight_now(told(1, 1, 2))
    image = built(None, sight, 1)
    assert every_row(image, Lists())["t"] == {0: [1, 0, 0, 1]}
    counts = of_image(image)
    assert (counts.count, counts.under_replicated) == (2, 2)
    assert counts.out_of_isr == {1: 0, 2: 0, 3: 2}
    assert {each.id for each in image.brokers.values() if each.fenced} == {2, 3}


def test_image_shares_what_did_not_change_and_forgets_what_is_gone() -> None:
    before = sight_now(told(1, 1, 2))
    first = built(None, before, 1)
    same = built((before, first), before, 2)
    assert same.partitions is first.partitions
    assert same.at.offset == 2
    gone = sight_now(told(-1, 1, 2))
    third = built((before, same), gone, 3)
    assert "t" not in every_row(third, Lists())
    assert gone_topics(same, third) == ["t"]


def test_topic_that_came_back_with_fewer_partitions_is_another_one() -> None:
    fewer = sight_now(told(1, 1, 2))
    state = fewer.topics["t"][0]
    before = fewer._replace(topics={**fewer.topics, "t": {0: state, 1: state}})
    first = built(None, before, 1)
    second = built((before, first), fewer, 2)
    assert gone_topics(first, second) == ["t"]
    assert {*changed_rows(first, second, Lists())["t"]} == {0}
    assert {*every_row(second, Lists())["t"]} == {0}


# --- stories ----------------------------------------------------------------------------------


def test_partition_story_tells_what_changed() -> None:
    found = [*partition_story(WHOLE, Layout.KAFKA, "t", 0)]
    assert [(each.offset, each.epoch, each.text) for each in found] == [
        (2, 0, "replicas [1,2,3]"),
        (3, 0, "leader 3; ISR [1,2,3]; leader epoch 0"),
        (4, 1, "leader 3 → 1; ISR [1,2,3] → [1,2]; leader epoch 0 → 1"),
        (5, 1, f"{STATE} was deleted; leader 1 → none; ISR [1,2] → []"),
        (6, 0, "the topic was deleted"),
    ]
    assert [each.timestamp_ms for each in found] == [2000, 3000, 4000, 5000, 6000]


def test_partition_story_says_where_changes_were_not_seen() -> None:
    changes = seen((STATE, 2, state(1, 1)), (STATE, 4, state(1, 1)), (STATE, 5, state(1, 1)))
    assert [each.text for each in partition_story(changes, Layout.KAFKA, "t", 0)] == [
        "leader 1; ISR [1]; leader epoch 0; 2 changes before this one were not seen",
        "1 change before this one was not seen",
        f"{STATE} written, with nothing new",
    ]


def test_broker_story_tells_registrations() -> None:
    registration = BrokerRegistration(host="c", port=3)
    changes = seen((paths.broker(3), 0, registration), (paths.broker(3), None, None))
    assert [each.text for each in broker_story(changes, 3)] == [
        "registered, at c:3",
        "its registration is gone: it stopped, or lost its session",
    ]


def test_entries_name_whose_story_they_belong_to() -> None:
    lines = [entry(each) for each in WHOLE]
    assert lines[1].text.startswith("2 00:00:02 /brokers/topics/t v0 {")
    assert lines[4].text == f"5 00:00:05 {STATE} deleted"
    assert [each.subject for each in lines] == ["", "", "t-0", "t-0", "t-0", ""]
    assert entry(seen((paths.broker(3), None, None))[0]).subject == "broker 3"
