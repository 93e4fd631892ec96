"""M-ANS: what a Metadata answer says is compared with the image of the broker that gives it."""

import re
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from controller.metadata.image import MetadataImage
from jepsen_like.sim.assemblies.cluster.invariants.metadata_answers import (
    ImagesOfTurn,
    MetadataAnswers,
    untrue_in,
)
from jepsen_like.sim.violation import Violation
from tests.broker.brokers import Brokers
from wire.errors import ErrorCode
from wire.message import replace
from wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

ALL = MetadataRequest()


@pytest.fixture
def brokers() -> Brokers:
    brokers = Brokers(3).start()
    brokers.create_topic("a", (1, 2), (2, 3))
    brokers.create_topic("b", (3, 1))
    brokers.fence(3)
    brokers.settle()
    return brokers


def told(
    brokers: Brokers, request: MetadataRequest = ALL
) -> tuple[MetadataResponse, MetadataImage]:
    answer: MetadataResponse = brokers.call(1, request)
    return answer, brokers.brokers[1].cluster.image


def test_what_a_broker_answers_is_true(brokers: Brokers) -> None:
    assert untrue_in(ALL, *told(brokers)) is None
    names = tuple(MetadataRequestTopic(name=name) for name in ("b", "absent"))
    some = MetadataRequest(topics=names, allow_auto_topic_creation=False)
    answer, image = told(brokers, some)
    assert answer.topics[1].error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert untrue_in(some, answer, image) is None


def in_partition(**changes: Any) -> Callable[[MetadataResponse], MetadataResponse]:
    """Another state of a-1."""

    def spoil(answer: MetadataResponse) -> MetadataResponse:
        topic = answer.topics[0]
        partitions = (topic.partitions[0], replace(topic.partitions[1], **changes))
        return replace(answer, topics=(replace(topic, partitions=partitions), answer.topics[1]))

    return spoil


def more_partitions(answer: MetadataResponse) -> MetadataResponse:
    topic = answer.topics[1]
    more = (*topic.partitions, replace(topic.partitions[0], partition_index=1))
    return replace(answer, topics=(answer.topics[0], replace(topic, partitions=more)))


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (in_partition(leader_id=3), "another state of a-1"),
        (in_partition(leader_epoch=7), "another state of a-1"),
        (in_partition(isr_nodes=(2,)), "another state of a-1"),
        (in_partition(replica_nodes=(2, 1)), "another state of a-1"),
        (in_partition(offline_replicas=()), "another state of a-1"),
        (in_partition(error_code=ErrorCode.LEADER_NOT_AVAILABLE), "another state of a-1"),
        (more_partitions, r"b with \[1\] more partitions"),
        (lambda answer: replace(answer, brokers=answer.brokers[1:]), "for the brokers"),
        (lambda answer: replace(answer, topics=answer.topics[1:]), "for the topics"),
    ],
)
def test_what_is_not_so_is_found(brokers: Brokers, spoil: Any, why: str) -> None:
    answer, image = told(brokers)
    untrue = untrue_in(ALL, spoil(answer), image)
    assert untrue is not None
    assert re.search(why, untrue)


def test_topic_under_the_name_of_another_is_found(brokers: Brokers) -> None:
    request = MetadataRequest(topics=(MetadataRequestTopic(name="a"),))
    answer, image = told(brokers, request)
    renamed = replace(answer, topics=(replace(answer.topics[0], name="b"),))
    untrue = untrue_in(request, renamed, image)
    assert untrue is not None
    assert untrue.startswith("b for the topic with id")


def test_what_held_when_the_turn_began_may_be_told_in_it(brokers: Brokers) -> None:
    before, image_before = told(brokers)
    brokers.change("a", 0, isr=(1,))
    broker = brokers.brokers[1]
    images = {broker.metadata.published_offset: image_before}

    def images_between(first: int, last: int) -> Iterator[MetadataImage]:
        return (image for offset, image in images.items() if first <= offset <= last)

    shown = ImagesOfTurn(images_between)
    judge = MetadataAnswers(lambda _host: broker, shown)
    host = cast(Any, SimpleNamespace(node_id=1))
    judge.replying(host, 7, ALL, before)
    shown.settled_broker(host, broker)
    judge.replying(host, 8, ALL, told(brokers)[0])
    with pytest.raises(Violation, match="M-ANS: broker 1 answers another state of a-0"):
        judge.replying(host, 9, ALL, before)
