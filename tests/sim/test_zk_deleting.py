"""Topics that a client deletes, and what is left alone meanwhile: designs with Kafka's paths."""

import pytest

from jepsen_like.clients.admin_client import deletion
from tests.sim.zookeeper import Administrator, Producer, begin, of
from wire.errors import ErrorCode
from wire.messages.topics import DeleteTopicsResponse
from wire.zk import paths
from wire.zk.designs import ZK_KIP497, ZK_REDESIGN, Design
from wire.zk.session import Create
from wire.zk.znodes import PartitionList

KAFKA_PATHS = pytest.mark.parametrize(
    "design", [ZK_REDESIGN, ZK_KIP497], ids=lambda each: each.name
)


@KAFKA_PATHS
def test_topic_that_a_client_deletes_is_gone_from_every_broker(design: Design) -> None:
    cluster = begin(design)
    admin, client = Administrator(cluster), Producer(cluster)
    admin.create_topic("t", {0: (1, 2, 3)})
    cluster.run_until(lambda: cluster.leaders() == [1])
    cluster.run(300)
    named = deletion("t", 1000)
    answer = client.told(cluster.controller, named)
    assert isinstance(answer, DeleteTopicsResponse)
    assert [each.error_code for each in answer.responses] == [ErrorCode.NONE]
    cluster.run_until(lambda: admin.children(paths.TOPICS) == ())
    assert [cluster.replica(each) for each in (1, 2, 3)] == [None, None, None]
    assert all(not cluster.has_log(each) for each in (1, 2, 3))


@KAFKA_PATHS
def test_topic_that_is_being_deleted_has_no_preferred_election(design: Design) -> None:
    cluster = begin(design)
    admin = Administrator(cluster)
    owner = cluster.controller
    away, other = cluster.others
    partitions: dict[int, tuple[int, ...]] = {0: (other, owner, away)}
    for topic in ("t", "kept"):
        admin.create_topic(topic, partitions)
        cluster.run_until(lambda topic=topic: cluster.leaders(of(topic)) == [other])  # type: ignore[misc]
    cluster.run(300)
    cluster.crash(other)
    cluster.crash(away)
    cluster.run_until(lambda: cluster.leaders(of("kept")) == cluster.leaders() == [owner])
    cluster.restart(other)
    cluster.run(2000)
    admin.do(Create(path=f"{paths.DELETE_TOPICS}/t"))  # it waits for who is away
    cluster.run(300)
    before = cluster.state()
    wanted = PartitionList(partitions=(("t", 0), ("kept", 0))).encode()
    admin.do(Create(path=paths.PREFERRED_REPLICA_ELECTION, data=wanted))
    cluster.run_until(lambda: cluster.leaders(of("kept")) == [other])
    cluster.run(300)
    assert cluster.state() == before
    assert admin.children(paths.DELETE_TOPICS) == ("t",)
