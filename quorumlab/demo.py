"""The demo: a cluster of six processes, a producer, two kills, and every record accounted for."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from jepsen_like.real.layout import FAST_SETTINGS, ClusterError
from jepsen_like.real.local_cluster import LocalCluster
from quorumlab import status
from quorumlab.output import Progress, print_rows, say
from quorumlab.records import last_records
from quorumlab.workload import SteadyProducer, read_back

__all__ = ["run"]

TOPIC = "orders"
PARTITIONS = 6
RATE = 400  # records a second
CALM_SECONDS = 1.5  # of undisturbed work before, between and after the kills
PATIENCE_SECONDS = 20.0
_POLL_SECONDS = 0.01


def run(directory: Path) -> int:
    """0 if every acknowledged record is read back at its offset, else 1."""
    began = time.monotonic()
    cluster = LocalCluster.create(directory, controllers=3, brokers=3)
    say(f"starting 3 controllers and 3 brokers as six processes; their data is in {directory}")
    shorter = ", ".join(f"{key}={value}" for key, value in FAST_SETTINGS.items())
    say(f"(with time-outs shorter than Kafka's: {shorter})")
    try:
        cluster.start_all()
        cluster.wait_ready(progress=Progress())
        say(f"ready in {time.monotonic() - began:.1f} s")
        missing = _story(cluster)
    finally:
        cluster.stop_all()
    _farewell(cluster)
    say(f"\nthe whole demo took {time.monotonic() - began:.1f} s")
    return 1 if missing else 0


def _story(cluster: LocalCluster) -> int:
    servers = cluster.layout.bootstrap_servers
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 2})
    _create_topic(admin, TOPIC)
    say(f"\ncreated topic {TOPIC}: {PARTITIONS} partitions, replication factor 3")
    before = _partitions(cluster)
    print_rows(before, ("partition", "leader", "leader_epoch", "replicas", "isr"))

    producer = SteadyProducer(servers, TOPIC, PARTITIONS, RATE)
    producer.start()
    say(f"\nproducing {RATE} records a second with confluent-kafka, acks=all, idempotent")
    time.sleep(CALM_SECONDS)

    dead_broker = _kill_leader(cluster, producer)
    time.sleep(CALM_SECONDS)
    dead_controller = _kill_controller(cluster, producer, admin)
    time.sleep(CALM_SECONDS)
    _restart(cluster, dead_broker, dead_controller)

    unanswered = producer.finish()
    say("\nthe partition table now:")
    print_rows(_partitions(cluster), ("partition", "leader", "leader_epoch", "replicas", "isr"))
    return _verdict(servers, producer, unanswered)


def _create_topic(admin: AdminClient, name: str) -> None:
    futures = admin.create_topics([NewTopic(name, PARTITIONS, 3)], request_timeout=10)
    futures[name].result(15)


def _kill_leader(cluster: LocalCluster, producer: SteadyProducer) -> int:
    broker = int(_partitions(cluster)[0]["leader"])
    cluster.kill(broker)
    moment = time.monotonic()
    say(f"\nkill -9 broker {broker}, the leader of partition 0")
    others = {node.id for node in cluster.layout.brokers} - {broker}
    elected = _wait(lambda: _partitions(cluster)[0]["leader"] in others, "no new leader")
    first = _wait(lambda: producer.account.first_after(0, elected), "no acknowledgement")
    say(f"  {elected - moment:6.2f} s  the controller noticed and fenced it, and the brokers know")
    say(f"          the new leader of partition 0: {_partitions(cluster)[0]['leader']}")
    del first
    acknowledged = producer.account.first_after(0, elected) or elected
    say(f"  {acknowledged - moment:6.2f} s  first record of partition 0 acknowledged again")
    return broker


def _kill_controller(cluster: LocalCluster, producer: SteadyProducer, admin: AdminClient) -> int:
    described = status.describe(cluster)
    controller = int(described["active_controller"])
    epoch = int(described["controller_epoch"])
    cluster.kill(controller)
    moment = time.monotonic()
    say(f"\nkill -9 controller {controller}, the active one, epoch {epoch}")

    def successor() -> dict[str, Any] | None:
        now = status.describe(cluster)
        taken_over = now["active_controller"] is not None and now["controller_epoch"] > epoch
        return now if taken_over else None

    elected = _wait(successor, "no new active controller")
    now = status.describe(cluster)
    say(
        f"  {elected - moment:6.2f} s  controller {now['active_controller']} is elected, "
        f"epoch {now['controller_epoch']}"
    )
    _create_topic(admin, "made-after-the-controller-died")
    say(f"  {time.monotonic() - moment:6.2f} s  first change of metadata committed: a new topic")
    during = [
        at
        for times in producer.account.acknowledged_at.values()
        for at in times
        if moment < at < elected
    ]
    say(f"          meanwhile {len(during)} records were acknowledged: brokers need no controller")
    return controller


def _restart(cluster: LocalCluster, *dead: int) -> None:
    moment = time.monotonic()
    for node_id in dead:
        cluster.start(node_id)
    cluster.wait_ready(nodes=dead)
    say(f"\nstarted {' and '.join(map(str, dead))} again")
    say(f"  {time.monotonic() - moment:6.2f} s  both are ready")
    healed = _wait(
        lambda: all(len(row["isr"].split(",")) == 3 for row in _partitions(cluster)),
        "replicas did not come back in sync",
    )
    say(f"  {healed - moment:6.2f} s  every partition has three in-sync replicas again")


def _verdict(servers: str, producer: SteadyProducer, unanswered: int) -> int:
    account = producer.account
    count, broken = read_back(servers, TOPIC, account, progress=Progress())
    total = len(account.acknowledged)
    say(f"\n{total} records were acknowledged, {account.failed + unanswered} were not")
    say(f"{count} records were read back")
    say(f"{total - len(broken)} of {total} acknowledged records stand exactly at their offset")
    for mismatch in broken[:10]:
        say(f"  MISSING {mismatch}")
    return len(broken) or int(total == 0)  # a run in which nothing was written shows nothing


def _farewell(cluster: LocalCluster) -> None:
    node = cluster.layout.controllers[0]
    say(f"\nthe last records of the metadata log (controller {node.id}):")
    for line in last_records(node.data, 12):
        say(f"  {line}")
    directory = cluster.layout.directory
    say(f"\nthe data stays in {directory}: go on with `quorumlab up --dir {directory}`,")
    say(f"read a node's log in {node.log}")


def _partitions(cluster: LocalCluster) -> list[dict[str, Any]]:
    """The partition table as a living broker knows it, or an empty one."""
    for node in cluster.layout.brokers:
        if cluster.process(node) is not None:
            code, page = cluster.ask(node, f"/v1/topics/{TOPIC}")
            if code == 200:
                return [
                    row
                    | {
                        "replicas": ",".join(map(str, row["replicas"])),
                        "isr": ",".join(map(str, row["isr"])),
                    }
                    for row in page["partitions"]
                ]
    raise ClusterError("no broker tells about the topic")


def _wait(condition: Callable[[], Any], complaint: str) -> float:
    """The moment at which the condition came true."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise ClusterError(f"{complaint} within {PATIENCE_SECONDS:.0f} s")
        time.sleep(_POLL_SECONDS)
    return time.monotonic()
