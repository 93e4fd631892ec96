"""A cluster whose metadata raftos replicates: used, killed, restarted. See docs/engines.md."""

import asyncio
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from jepsen_like.real.layout import ClusterError
from jepsen_like.real.local_cluster import LocalCluster
from quorumlab import cluster_status as status
from tests.integration.waiting import wait
from tests.integration.writing import Writer, everything
from tests.started import started
from wire.batch import headers

pytestmark = [
    pytest.mark.extra,
    pytest.mark.skipif(
        find_spec("raftos") is None, reason="raftos is not installed: `make raftos` does it"
    ),
]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    with started(LocalCluster.create(tmp_path / "cluster", engine="raftos")) as made:
        yield made


def active(cluster: LocalCluster) -> int | None:
    found = status.describe(cluster)["active_controller"]
    return None if found is None else int(found)


def metadata_batches(cluster: LocalCluster, node_id: int) -> list[tuple[int, int, int]]:
    """Where each batch of a stopped node's metadata log is, and what it holds."""
    directory = cluster.layout.node(node_id).data / "__cluster_metadata-0"
    (segment,) = directory.glob("*.log")
    return [(h.base_offset, h.leader_epoch, h.crc) for _, h in headers(segment.read_bytes())]


def test_cluster_outlives_its_active_controller_and_a_restart_of_all(cluster: LocalCluster) -> None:
    servers = cluster.layout.bootstrap_servers
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic("before", 3, 3)])["before"].result(20)
    writer = Writer(servers)
    writer.write("before", 300)

    first = active(cluster)
    assert first is not None
    epoch = status.describe(cluster)["controller_epoch"]
    cluster.kill(first)
    wait(lambda: active(cluster) not in (first, None), "a new active controller", 60)
    assert status.describe(cluster)["controller_epoch"] > epoch
    admin.create_topics([NewTopic("after", 1, 3)])["after"].result(30)
    writer.write("before", 300)
    cluster.start(first)
    cluster.wait_ready()

    assert cluster.stop_all() == []
    logs = [metadata_batches(cluster, node.id) for node in cluster.layout.controllers]
    shortest = min(map(len, logs))
    assert shortest > 10
    assert all(log[:shortest] == logs[0][:shortest] for log in logs)

    cluster.start_all()
    cluster.wait_ready()
    assert {"before", "after"} <= set(admin.list_topics(timeout=20).topics)
    found = everything(servers, "before", len(writer.acknowledged))
    assert sorted(found) == sorted(writer.acknowledged)


def test_directory_of_our_own_engine_is_refused(tmp_path: Path) -> None:
    directory = tmp_path / "cluster"
    LocalCluster.create(directory, engine="native")
    with pytest.raises(ClusterError, match="whose engine is native, not raftos"):
        LocalCluster.create(directory, engine="raftos")


def test_raftos_forgets_its_vote_when_it_starts(tmp_path: Path) -> None:
    """As docs/engines.md says, and why a term of it can have two leaders."""
    import raftos
    from raftos.serializers import JSONSerializer
    from raftos.state import Follower
    from raftos.storage import FileStorage

    raftos.configure({"log_path": str(tmp_path), "serializer": JSONSerializer})
    storage = FileStorage("127.0.0.1:1")
    storage.update({"term": 5, "voted_for": "127.0.0.1:2"})
    Follower.init_storage(SimpleNamespace(storage=storage))
    assert (storage.term, storage.voted_for) == (5, None)


def test_raftos_takes_half_of_four_for_a_majority() -> None:
    """Hence the refusal of even numbers."""
    from raftos.state import State

    others = SimpleNamespace(server=SimpleNamespace(cluster_count=3))
    assert State.is_majority(others, 2)


def test_second_node_in_a_process_is_refused(tmp_path: Path) -> None:
    from quorum.raftos.library import RaftosLibrary, Timing

    async def begin(node_id: int) -> RaftosLibrary:
        return RaftosLibrary(
            {1: ("127.0.0.1", 1), 2: ("127.0.0.1", 2), 3: ("127.0.0.1", 3)},
            node_id=node_id,
            directory=tmp_path / str(node_id),
            timing=Timing(step_down_ms=1000, election_spread_ms=500),
            hear=lambda news: None,
        )

    async def work() -> None:
        await begin(1)
        with pytest.raises(ValueError, match=r"in processes only \(its state is class-level\)"):
            await begin(2)

    asyncio.run(work())
