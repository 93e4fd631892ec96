"""A node with an authorizer, asked by a client over its sockets: what is alice's is not for others.

Nobody is authenticated, and everybody may do what no ACL names, so that the nodes can work.
"""

import asyncio
from pathlib import Path

from controller.authorization.acl_index import Resource
from controller.metadata.security import Operation, Pattern
from quorumlab.in_process import InProcessCluster
from tests.broker.brokers import batch_of
from wire.api_table import api_of
from wire.errors import ErrorCode
from wire.message import replace
from wire.messages.acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from wire.messages.fetching import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from wire.messages.producing import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from wire.messages.registration import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from wire.messages.topics import (
    CreatableTopic,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from wire.tcp_client import ConnectionPool

AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
SETTINGS = {
    "authorizer.class.name": AUTHORIZER,
    "super.users": "User:admin",
    "allow.everyone.if.no.acl.found": "true",
    "quorumlab.node.principals": "7=User:CN=seven",
}
OWNED = AclCreation(
    resource_type=Resource.TOPIC,
    resource_name="alices",
    resource_pattern_type=Pattern.PREFIXED,
    principal="User:alice",
    host="*",
    operation=Operation.ALL,
    permission_type=3,
)


async def ask(cluster: InProcessCluster, body: object, port: int | None = None) -> object:
    node = cluster.layout.node(1)
    answered: asyncio.Future[object] = asyncio.get_running_loop().create_future()
    async with ConnectionPool(client_id="somebody") as pool:
        pool.send(
            node.host, port or node.port, "test", body, timeout_ms=10_000, done=answered.set_result
        )
        return await answered


async def names(cluster: InProcessCluster) -> list[str | None]:
    told = await ask(cluster, MetadataRequest())
    assert isinstance(told, MetadataResponse)
    return [topic.name for topic in told.topics]


def test_topics_of_others_are_hidden_and_not_changed(tmp_path: Path) -> None:
    async def test() -> None:
        async with InProcessCluster(
            tmp_path, controllers=1, brokers=1, combined=True, settings=SETTINGS
        ) as cluster:
            assert await create(cluster, "alices-first", "open") == [ErrorCode.NONE] * 2
            done = await ask(cluster, CreateAclsRequest(creations=(OWNED,)))
            assert isinstance(done, CreateAclsResponse)
            assert await names(cluster) == ["open"]
            by_name = MetadataRequest(topics=(MetadataRequestTopic(name="alices-first"),))
            told = await ask(cluster, by_name)
            assert isinstance(told, MetadataResponse)
            assert told.topics[0].error_code is ErrorCode.TOPIC_AUTHORIZATION_FAILED
            grown = await ask(
                cluster,
                CreatePartitionsRequest(
                    topics=tuple(
                        CreatePartitionsTopic(name=name, count=2)
                        for name in ("alices-first", "open")
                    )
                ),
            )
            assert isinstance(grown, CreatePartitionsResponse)
            assert {each.name: each.error_code for each in grown.results} == {
                "open": ErrorCode.NONE,
                "alices-first": ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            }, "who asked the broker is judged by the controller"
            await refuse_seven(cluster)
            await read_no_more(cluster)
            await create_by_asking(cluster)

    asyncio.run(asyncio.wait_for(test(), 60))


async def create(cluster: InProcessCluster, *wanted: str) -> list[ErrorCode]:
    topics = tuple(
        CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in wanted
    )
    made = await ask(cluster, CreateTopicsRequest(topics=topics))
    assert isinstance(made, CreateTopicsResponse)
    return [topic.error_code for topic in made.topics]


async def create_by_asking(cluster: InProcessCluster) -> None:
    """The envelope of the broker, with the client's name in it, finds the controller."""
    wanted = MetadataRequest(
        topics=(MetadataRequestTopic(name="made"),), allow_auto_topic_creation=True
    )
    while True:
        told = await ask(cluster, wanted)
        assert isinstance(told, MetadataResponse)
        if told.topics[0].error_code is not ErrorCode.LEADER_NOT_AVAILABLE:
            break
        await asyncio.sleep(0.01)
    assert told.topics[0].error_code is ErrorCode.NONE


async def read_no_more(cluster: InProcessCluster) -> None:
    """A fetch that waits at an idle topic brings no record that was written after READ was lost."""
    told = await ask(cluster, MetadataRequest())
    assert isinstance(told, MetadataResponse)
    (topic_id,) = (each.topic_id for each in told.topics)
    part = (FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000),)
    topics = (FetchTopic(topic_id=topic_id, partitions=part),)
    fetch = FetchRequest(max_wait_ms=8000, min_bytes=1, topics=topics)
    waiting = asyncio.create_task(ask(cluster, fetch))
    fetches = cluster.nodes[1].driver.counts.of(api_of(FetchRequest).name)
    while not fetches.received:  # noqa: ASYNC110 - nobody announces it
        await asyncio.sleep(0.005)
    assert not fetches.answered
    write = replace(OWNED, resource_name="open", principal="User:*", operation=Operation.WRITE)
    await ask(cluster, CreateAclsRequest(creations=(write,)))
    data = (PartitionProduceData(index=0, records=batch_of(b"secret")),)
    produce = ProduceRequest(
        acks=-1,
        timeout_ms=5000,
        topic_data=(TopicProduceData(topic_id=topic_id, partition_data=data),),
    )
    written = await ask(cluster, produce)
    assert isinstance(written, ProduceResponse)
    assert written.responses[0].partition_responses[0].error_code is ErrorCode.NONE
    fetched = await waiting
    assert isinstance(fetched, FetchResponse)
    ((found,),) = (each.partitions for each in fetched.responses)
    assert found.error_code is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert not found.records


async def refuse_seven(cluster: InProcessCluster) -> None:
    """Node 7 is bound to its certificate."""
    beat = BrokerHeartbeatRequest(broker_id=7, current_metadata_offset=0)
    told = await ask(cluster, beat, cluster.layout.node(1).controller_port)
    assert isinstance(told, BrokerHeartbeatResponse)
    assert told.error_code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
