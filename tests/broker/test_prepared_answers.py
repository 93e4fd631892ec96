"""A broker prepares Metadata answers for many clients: none is stale, and little is made anew."""

from collections.abc import Callable
from random import Random
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from broker.broker import Broker
from broker.requests.views import Views
from jepsen_like.sim.assemblies.cluster.invariants.metadata_answers import untrue_in
from quorum.core.effects import Request
from tests.broker.brokers import LISTENER, Brokers
from tests.examples import dear
from wire.api_table import api_of
from wire.apis import encode_response
from wire.message import replace
from wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from wire.metadata_records import (
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    PartitionChangeRecord,
)

METADATA = api_of(MetadataRequest)
NAMES = ("a", "b", "c", "d")
ASKED = 1


def of_names(*names: str, operations: bool = False) -> MetadataRequest:
    return MetadataRequest(
        topics=tuple(MetadataRequestTopic(name=name) for name in names),
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=operations,
    )


REQUESTS = (
    MetadataRequest(),
    MetadataRequest(include_topic_authorized_operations=True),
    of_names("b", "a"),
    of_names("d", operations=True),
)


def create(brokers: Brokers, random: Random) -> None:
    missing = [name for name in NAMES if name not in brokers.topics]
    if missing:
        replicas = (random.sample((1, 2, 3), 2) for _ in range(random.randint(1, 3)))
        number = random.randrange(1, 1 << 30)
        brokers.create_topic(random.choice(missing), *map(tuple, replicas), number=number)


def delete(brokers: Brokers, random: Random) -> None:
    if brokers.topics:
        brokers.delete_topic(random.choice(sorted(brokers.topics)))


def change(brokers: Brokers, random: Random) -> None:
    if brokers.topics:
        name = random.choice(sorted(brokers.topics))
        replicas = brokers.states[brokers.topics[name], 0].replicas
        leader = random.choice((*replicas, -1, -2))
        isr = tuple(random.sample(replicas, random.randint(1, 2)))  # in any order
        brokers.change(name, 0, isr=isr, leader=leader)


def fence(brokers: Brokers, random: Random) -> None:
    (brokers.unfence if 3 in brokers.fenced else brokers.fence)(3)


def leave(brokers: Brokers, random: Random) -> None:
    """Another change of a broker, after which it can still be reached."""
    brokers.write(
        BrokerRegistrationChangeRecord(
            broker_id=2, broker_epoch=brokers.epochs[2], in_controlled_shutdown=1
        )
    )


def configure(brokers: Brokers, random: Random) -> None:
    if brokers.topics:
        name = random.choice(sorted(brokers.topics))
        brokers.write(
            ConfigRecord(resource_type=2, resource_name=name, name="retention.ms", value="1")
        )


def nothing(brokers: Brokers, random: Random) -> None:
    pass


CHANGES = (create, delete, change, change, fence, leave, configure, nothing)


def answer(
    views: Views, request: MetadataRequest, now_ms: int, listener: str = LISTENER
) -> MetadataResponse:
    """An answer but for the controller, which is drawn."""
    asked = Request(token=1, body=request, listener=listener)
    return replace(views.metadata(asked, now_ms), controller_id=ASKED)


def views_of(broker: Broker) -> Views:
    return Views(cluster=broker.cluster, random=Random(1), auto_creation=cast(Any, None))


@dear(4)
@given(
    seed=st.integers(0, 1 << 32),
    steps=st.lists(st.lists(st.sampled_from(CHANGES), max_size=2), max_size=20),
)
def test_prepared_answer_is_what_is_made_anew(
    seed: int, steps: list[list[Callable[[Brokers, Random], None]]]
) -> None:
    """The answers hold in every version, of all topics and of some, after any change."""
    random = Random(seed)
    brokers = Brokers(3, is_dataless=True).start()
    broker = brokers.brokers[ASKED]
    for changes in steps:
        for each in changes:
            each(brokers, random)
        brokers.settle()
        request, version = random.choice(REQUESTS), random.choice(tuple(METADATA.versions))
        prepared = answer(broker._router.views, request, brokers.now_ms)
        anew = answer(views_of(broker), request, brokers.now_ms)
        assert prepared == anew
        assert untrue_in(request, prepared, broker.cluster.image) is None
        written = [encode_response(each, METADATA.key, version, 1) for each in (prepared, anew)]
        assert b"".join(written[0]) == b"".join(written[1])


def test_clients_of_a_listener_are_told_what_they_can_reach_there() -> None:
    brokers = Brokers(3, is_dataless=True).start()
    brokers.create_topic("a", (1, 2))
    views = brokers.brokers[ASKED]._router.views
    offline = {
        listener: answer(views, MetadataRequest(), 0, listener).topics[0].partitions[0]
        for listener in (LISTENER, "OTHER", LISTENER)
    }
    assert offline[LISTENER].offline_replicas == ()
    assert offline["OTHER"].offline_replicas == (1, 2)


def test_many_partitions_that_change_at_once_are_all_told_anew() -> None:
    brokers = Brokers(3, is_dataless=True).start()
    topic_id = brokers.create_topic("a", *(((1, 2),) * 600))
    brokers.create_topic("b", (2, 3))
    brokers.call(ASKED, MetadataRequest())
    brokers.write(
        *(
            PartitionChangeRecord(partition_id=index, topic_id=topic_id, leader=2)
            for index in range(600)
        )
    )
    brokers.settle()
    told = brokers.call(ASKED, MetadataRequest())
    assert {each.leader_id for each in told.topics[0].partitions} == {2}
    assert untrue_in(MetadataRequest(), told, brokers.brokers[ASKED].cluster.image) is None


# --- what is not made anew ------------------------------------------------------------------


def topics(brokers: Brokers, request: MetadataRequest) -> dict[str | None, MetadataResponseTopic]:
    return {topic.name: topic for topic in brokers.call(ASKED, request).topics}


def test_only_the_topic_that_has_changed_is_made_anew() -> None:
    brokers = Brokers(3, is_dataless=True).start()
    for name in ("a", "b", "c"):
        brokers.create_topic(name, (1, 2), (2, 3))
    before = topics(brokers, MetadataRequest())
    brokers.change("b", 1, isr=(2,))
    brokers.delete_topic("c")
    after = topics(brokers, MetadataRequest())
    assert after["a"] is before["a"]
    assert after["b"] is not before["b"]
    assert list(after) == ["a", "b"]


def test_topics_are_those_of_before_while_no_topic_changes() -> None:
    brokers = Brokers(3, is_dataless=True).start()
    brokers.create_topic("a", (1, 2))
    before = brokers.call(ASKED, MetadataRequest())
    configure(brokers, Random(1))
    brokers.settle()
    assert brokers.call(ASKED, MetadataRequest()).topics is before.topics


def test_topics_are_made_anew_once_other_brokers_can_be_reached() -> None:
    brokers = Brokers(3, is_dataless=True).start()
    brokers.create_topic("a", (3, 1))
    before = brokers.call(ASKED, MetadataRequest()).topics
    leave(brokers, Random(1))
    brokers.settle()
    assert brokers.call(ASKED, MetadataRequest()).topics is before
    fence(brokers, Random(1))
    brokers.settle()
    (topic,) = brokers.call(ASKED, MetadataRequest()).topics
    assert topic.partitions[0].offline_replicas == (3,)


def test_operations_of_a_topic_are_not_prepared() -> None:
    """They may depend on who asks; the partitions beside them do not."""
    brokers = Brokers(3, is_dataless=True).start()
    brokers.create_topic("a", (1, 2))
    plain = topics(brokers, of_names("a"))["a"]
    first, second = (topics(brokers, of_names("a", operations=True))["a"] for _ in range(2))
    assert first is not second
    assert first.partitions is second.partitions is plain.partitions
