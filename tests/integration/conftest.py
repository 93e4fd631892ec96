"""A real cluster of six processes, shared by the tests that do not break it.

`tests/conftest.py` gives all that ask for it to one worker.
"""

import secrets
from collections.abc import Callable, Iterator
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


@pytest.fixture(scope="session")
def shared_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    directory: Path = tmp_path_factory.mktemp("cluster")
    running = LocalCluster.create(directory, controllers=3, brokers=3)
    try:
        running.start_all()
        running.wait_ready()
        yield running
    finally:
        running.stop_all()


@pytest.fixture(scope="session")
def cluster(shared_cluster: LocalCluster) -> LocalCluster:
    """Files that break theirs have a fixture of this name of their own."""
    return shared_cluster


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


def create_topic(servers: str, name: str, partitions: int = 3, **configs: str) -> str:
    admin = AdminClient({"bootstrap.servers": servers})
    new = NewTopic(name, partitions, 3, config={k.replace("_", "."): v for k, v in configs.items()})
    admin.create_topics([new])[name].result(15)
    return name
