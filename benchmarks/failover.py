"""From `kill -9` of a leader to the next acknowledgement: of the quorum, etcd, and partitions.

What decides is the time-out after which a silent leader is given up; each figure names its own.
"""

import statistics
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks.figures import print_figure, progress, skip
from benchmarks.peers.etcd import Etcd
from benchmarks.peers.local import running_cluster, scratch_directory
from benchmarks.peers.quorum import Quorum
from jepsen_like.real.layout import FAST_SETTINGS
from jepsen_like.real.local_cluster import LocalCluster
from quorumlab.workload import SteadyProducer

KILLS = 5
PATIENCE_SECONDS = 30.0
CALM_SECONDS = 0.5  # after a recovery, before the next kill
RATE = 200  # records a second while brokers are killed
TOPIC = "failover"


def wait_for(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {PATIENCE_SECONDS:.0f} s"
        time.sleep(0.005)


def quorum_failovers(system: Quorum | Etcd) -> list[float]:
    """Milliseconds until a put is acknowledged, asked again and again from the kill on."""
    found = []
    with system:
        for number in range(KILLS):
            wait_for(lambda: system.try_put(2 * number), "a put before the kill")  # noqa: B023
            system.kill_leader()
            began = time.monotonic()
            wait_for(lambda: system.try_put(2 * number + 1), "a put after the kill")  # noqa: B023
            found.append((time.monotonic() - began) * 1e3)
            progress(f"{system.name}: {found[-1]:.0f} ms")
            system.restore()
            time.sleep(CALM_SECONDS)
    return found


def partition_failovers(cluster: LocalCluster) -> list[float]:
    """Milliseconds from the kill of the leader to the end of the silence that follows."""
    servers = cluster.layout.bootstrap_servers
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 2})
    topic = NewTopic(TOPIC, num_partitions=1, replication_factor=3)
    admin.create_topics([topic])[TOPIC].result(20)
    producer = SteadyProducer(servers, TOPIC, 1, RATE)
    acknowledged_at = producer.account.acknowledged_at
    producer.start()
    found = []
    for _ in range(KILLS):
        wait_for(lambda: is_calm(admin, acknowledged_at.get(0, [])), "all replicas in the ISR")
        time.sleep(CALM_SECONDS)
        leader = admin.list_topics(TOPIC, 10).topics[TOPIC].partitions[0].leader
        killed_at = time.monotonic()
        cluster.kill(leader)
        wait_for(lambda: time.monotonic() - acknowledged_at[0][-1] > 0.2, "a silence")
        wait_for(lambda: time.monotonic() - acknowledged_at[0][-1] < 0.1, "an acknowledgement")
        silent = time.monotonic()
        found.append((end_of_silence(acknowledged_at[0], killed_at, silent) - killed_at) * 1e3)
        progress(f"partition: {found[-1]:.0f} ms")
        cluster.start(leader)
        cluster.wait_ready()
    left = producer.finish()
    assert not left, f"{left} records had no answer"
    assert not producer.account.failed, f"{producer.account.failed} records failed"
    return found


def is_calm(admin: AdminClient, acknowledged_at: list[float]) -> bool:
    partition = admin.list_topics(TOPIC, 10).topics[TOPIC].partitions[0]
    return len(partition.isrs) == 3 and len(acknowledged_at) > RATE // 2


def end_of_silence(acknowledged_at: list[float], killed_at: float, now: float) -> float:
    """The first acknowledgement after the longest pause that ended between the two moments.

    Acknowledgements that were under way at the kill come shortly after it and end no failover.
    """
    pauses = pairwise(list(acknowledged_at))  # a copy: it grows
    after = [(end - start, end) for start, end in pauses if killed_at < end <= now]
    assert after, "no acknowledgement since the kill"
    return max(after)[1]


def print_failovers(name: str, found: list[float], **parameters: object) -> None:
    each = [round(ms) for ms in sorted(found)]
    print_figure(name, statistics.median(found), "ms", kills=len(found), each=each, **parameters)


def measure_quorums(directory: Path) -> None:
    fast = {key: value for key, value in FAST_SETTINGS.items() if key.startswith("controller.")}
    for name, settings in (("Kafka's time-outs", {}), ("short time-outs", fast)):
        shown = settings or {
            "controller.quorum.fetch.timeout.ms": "2000",
            "controller.quorum.election.timeout.ms": "1000",
        }
        found = quorum_failovers(Quorum(directory / f"quorum-{len(settings)}", settings))
        print_failovers(f"failover of the quorum, {name}", found, settings=shown)
    reason = Etcd.missing()
    if reason is None:
        shown = {"election-timeout": "1000"}
        found = quorum_failovers(Etcd(directory / "etcd"))
        version = Etcd.version()
        print_failovers("failover of etcd, its time-outs", found, settings=shown, version=version)
    else:
        skip("failover of etcd", reason)


def main() -> None:
    with scratch_directory() as directory:
        measure_quorums(directory)
        with running_cluster(directory / "cluster") as cluster:
            found = partition_failovers(cluster)
        kept = ("broker.session.timeout.ms", "broker.heartbeat.interval.ms")
        shown = {key: FAST_SETTINGS[key] for key in kept}
        print_failovers("failover of a partition", found, settings=shown, client="librdkafka")
