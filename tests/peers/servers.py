"""Clusters that other people's suites are run on: ours or Apache Kafka's, with equal settings."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from types import MappingProxyType

from jepsen_like.real.free_ports import free_ports
from jepsen_like.real.local_cluster import LocalCluster
from tests.kafka.kafka_jars import KafkaNode, format_storage, write_properties
from tests.started import started

__all__ = ["PASSWORD", "SASL_SETTINGS", "SERVERS", "USER", "kafka_of_three"]

_BROKERS = 3
_CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"
_SETTINGS = {
    "num.partitions": "4",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "8",
    "transaction.state.log.num.partitions": "8",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
USER, PASSWORD = "alice", "alice-secret"
SASL_SETTINGS = {
    "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name": "PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "listener.name.plaintext.plain.sasl.jaas.config": (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        f'username="{USER}" password="{PASSWORD}" user_{USER}="{PASSWORD}";'
    ),
    "connections.max.reauth.ms": "10000",
}


@contextmanager
def _ours(directory: Path, settings: Mapping[str, str]) -> Iterator[str]:
    """Three brokers and a controller; yields where clients find them."""
    wanted = {**_SETTINGS, **settings}
    cluster = LocalCluster.create(directory, controllers=1, brokers=_BROKERS, settings=wanted)
    with started(cluster):
        yield cluster.layout.bootstrap_servers


@contextmanager
def _kafka(directory: Path, settings: Mapping[str, str]) -> Iterator[str]:
    with kafka_of_three(directory, settings) as (servers, _):
        yield servers


@contextmanager
def kafka_of_three(
    directory: Path, settings: Mapping[str, str] = MappingProxyType({})
) -> Iterator[tuple[str, list[KafkaNode]]]:
    """Three brokers, the first of which is the controller, too: their addresses and processes."""
    controller, *ports = islice(free_ports(), 1 + _BROKERS)
    with ExitStack() as stack:
        nodes = []
        for node_id, port in enumerate(ports, 1):
            listeners = f"PLAINTEXT://127.0.0.1:{port}"
            if node_id == 1:
                listeners += f",CONTROLLER://127.0.0.1:{controller}"
            properties = {
                "process.roles": "broker,controller" if node_id == 1 else "broker",
                "node.id": node_id,
                "controller.quorum.voters": f"1@127.0.0.1:{controller}",
                "controller.listener.names": "CONTROLLER",
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
                "listeners": listeners,
                "log.dirs": directory / f"data{node_id}",
                **_SETTINGS,
                **settings,
            }
            path = write_properties(directory / f"server{node_id}.properties", properties)
            format_storage(path, _CLUSTER_ID)
            nodes.append(KafkaNode(path, directory / f"output{node_id}"))
            nodes[-1].start()
            stack.callback(nodes[-1].stop)
        for node in nodes:
            node.wait_ready()
        yield ",".join(f"127.0.0.1:{port}" for port in ports), nodes


SERVERS: dict[str, Callable[[Path, Mapping[str, str]], AbstractContextManager[str]]] = {
    "quorumlab": _ours,
    "kafka": _kafka,
}
