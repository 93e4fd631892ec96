"""Topics, on whatever cluster the fixture `cluster` of a file or a folder is."""

import secrets
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from jepsen_like.real.local_cluster import LocalCluster

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):  # items are those of all directories
            item.add_marker(pytest.mark.slow)


@pytest.fixture
def servers(cluster: LocalCluster) -> str:
    return cluster.layout.bootstrap_servers


@pytest.fixture
def topic(servers: str) -> str:
    """A fresh topic of three partitions, three replicas each."""
    return create_topic(servers, f"t-{secrets.token_hex(4)}")


@pytest.fixture(scope="session")
def make_topic() -> Callable[..., str]:
    return create_topic


def create_topic(
    servers: str, name: str, partitions: int = 3, replicas: int = 3, **configs: str
) -> str:
    admin = AdminClient({"bootstrap.servers": servers})
    new = NewTopic(
        name, partitions, replicas, config={k.replace("_", "."): v for k, v in configs.items()}
    )
    admin.create_topics([new])[name].result(15)
    return name
