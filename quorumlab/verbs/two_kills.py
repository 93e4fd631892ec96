"""The demo: a cluster of six processes, a producer, two kills, and every record accounted for."""

import sys
import time
from collections import deque
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from jepsen_like.installation import command
from jepsen_like.real.layout import FAST_SETTINGS, ClusterError
from jepsen_like.real.local_cluster import LocalCluster
from jepsen_like.real.processes import DirectoryLock, await_value
from quorumlab.client_properties import librdkafka_of
from quorumlab.cluster_status import describe
from quorumlab.folding import COLUMNS_ELSEWHERE, columns
from quorumlab.inspection.entries import Entry, TopicNames, as_text
from quorumlab.inspection.stream import whole_entries
from quorumlab.output import Progress, print_rows, say, say_folded, say_if_heard, say_settings
from quorumlab.top.log_follower import log_entry
from quorumlab.verbs.nodes import stop_all
from quorumlab.verbs.up import secure_if_asked
from quorumlab.workload import SteadyProducer, read_back
from wire.control_records import LeaderChange
from wire.metadata_records import BrokerRegistrationChangeRecord, NoOpRecord

__all__ = ["run"]

TOPIC = "orders"
PARTITIONS = 6
RATE = 400  # records a second
CALM_SECONDS = 1.5  # of undisturbed work before, between and after the kills
PATIENCE_SECONDS = 20.0
LAST_RECORDS = 16
MORE = " ..."  # what registers a node says more than a story needs
_POLL_SECONDS = 0.01


def run(args: SimpleNamespace) -> int:
    """0 if every acknowledged record is read back at its offset, else 1."""
    began = time.monotonic()
    numbered = (Path("demo-data") / str(number) for number in count(1))
    directory = (args.dir or next(path for path in numbered if not path.exists())).resolve()
    if directory.exists() and any(directory.iterdir()):  # it kills what it finds, and stops it
        raise ClusterError(f"{directory} is not empty: the demo makes a cluster of its own")
    with DirectoryLock(directory):
        cluster = LocalCluster.create(
            directory, controllers=3, brokers=3, security=args.security or ""
        )
        missing = _played(cluster, began)
    _farewell(cluster)
    say(f"\nthe whole demo took {time.monotonic() - began:.1f} s")
    return 1 if missing else 0


def _played(cluster: LocalCluster, began: float) -> int:
    directory = cluster.layout.directory
    say_folded(
        f"starting 3 controllers and 3 brokers as six processes; their data is in {directory}"
    )
    say_settings(FAST_SETTINGS)
    secure_if_asked(cluster)
    try:
        cluster.start_all()
        progress = Progress()
        cluster.wait_ready(progress=progress)
        progress.done()
        say(f"ready in {time.monotonic() - began:.1f} s")
        return _story(cluster)
    except KeyboardInterrupt:
        say_if_heard("\ninterrupted: stopping the cluster", sys.stderr)
        raise
    except BrokenPipeError:
        say_if_heard("nobody reads the output any more: stopping the cluster", sys.stderr)
        raise
    except KafkaException as error:
        raise ClusterError(
            f"the client was refused: {error.args[0].str()}; what the nodes said is in {directory}"
        ) from error
    finally:
        stop_all(cluster)


def _story(cluster: LocalCluster) -> int:
    servers = cluster.layout.bootstrap_servers
    security = librdkafka_of(cluster.layout)
    _create_topic(servers, TOPIC, security)
    say(f"\ncreated topic {TOPIC}: {PARTITIONS} partitions, replication factor 3")
    before = _partitions(cluster)
    print_rows(before, ("partition", "leader", "leader_epoch", "replicas", "isr"))

    producer = SteadyProducer(servers, TOPIC, PARTITIONS, RATE, security=security)
    producer.start()
    say(f"\nproducing {RATE} records a second with confluent-kafka, acks=all, idempotent")
    time.sleep(CALM_SECONDS)

    dead_broker = _kill_leader(cluster, producer)
    time.sleep(CALM_SECONDS)
    dead_controller = _kill_controller(cluster, producer)
    time.sleep(CALM_SECONDS)
    _restart(cluster, dead_broker, dead_controller)

    unanswered = producer.finish()
    _show_last_records(cluster)
    say("\nthe partition table now:")
    print_rows(_partitions(cluster), ("partition", "leader", "leader_epoch", "replicas", "isr"))
    return _verdict(servers, producer, unanswered, security)


def _create_topic(servers: str, name: str, security: Mapping[str, str]) -> None:
    """Uses a client that begins now. A client that was there before would wait for the broker that
    it took for the controller, and not ask again though that one was killed."""
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 2, **security})
    futures = admin.create_topics([NewTopic(name, PARTITIONS, 3)], request_timeout=10)
    futures[name].result(15)


def _kill_leader(cluster: LocalCluster, producer: SteadyProducer) -> int:
    broker = int(_partitions(cluster)[0]["leader"])
    clock = _Clock()
    cluster.kill(broker)
    say(f"\nkill -9 broker {broker}, the leader of partition 0")
    others = {node.id for node in cluster.layout.brokers} - {broker}
    known = _wait(lambda: _partitions(cluster)[0]["leader"] in others, "no new leader")
    _wait(lambda: producer.account.first_after(0, known), "no acknowledgement")
    decided = _recorded(
        cluster,
        clock,
        lambda record: (
            isinstance(record, BrokerRegistrationChangeRecord)
            and record.broker_id == broker
            and record.fenced == 1
        ),
    )
    leader = _partitions(cluster)[0]["leader"]
    say(f"  {decided:6.2f} s  its session has run out: the controller fences it, and elects")
    say(f"  {clock.since(known):6.2f} s  the brokers know that {leader} leads partition 0 now")
    acknowledged = producer.account.first_after(0, known) or known
    say(f"  {clock.since(acknowledged):6.2f} s  a record of partition 0 is acknowledged again")
    return broker


def _kill_controller(cluster: LocalCluster, producer: SteadyProducer) -> int:
    described = describe(cluster)
    controller = int(described["active_controller"])
    epoch = int(described["controller_epoch"])
    clock = _Clock()
    cluster.kill(controller)
    say(f"\nkill -9 controller {controller}, the active one, epoch {epoch}")

    def successor() -> dict[str, Any] | None:
        now = describe(cluster)
        taken_over = now["active_controller"] is not None and now["controller_epoch"] > epoch
        return now if taken_over else None

    seen = _wait(successor, "no new active controller")
    now = describe(cluster)
    elected = _recorded(
        cluster, clock, lambda record: isinstance(record, LeaderChange), epoch=epoch + 1
    )
    say(
        f"  {elected:6.2f} s  a majority has elected controller {now['active_controller']}, "
        f"epoch {now['controller_epoch']}"
    )
    layout = cluster.layout
    _create_topic(layout.bootstrap_servers, "made-after-the-controller-died", librdkafka_of(layout))
    say(f"  {clock.since():6.2f} s  a change of metadata is committed: a new topic")
    during = [
        at
        for times in producer.account.acknowledged_at.values()
        for at in times
        if clock.start < at < seen
    ]
    say_folded(
        f"          meanwhile {len(during)} records were acknowledged: brokers need no controller"
    )
    return controller


class _Clock:
    """Seconds since a kill, for moments of this process and for timestamps of records."""

    def __init__(self) -> None:
        self.start = time.monotonic()
        self.start_ms = time.time() * 1000

    def since(self, moment: float | None = None) -> float:
        return (time.monotonic() if moment is None else moment) - self.start


def _recorded(
    cluster: LocalCluster, clock: _Clock, wanted: Callable[[object], bool], epoch: int = 0
) -> float:
    """Finds when the first such record since the kill was appended, in a living node's log."""
    for node in cluster.layout.controllers:
        if cluster.process(node) is None:
            continue
        for entry in whole_entries(node.data):
            is_new = entry.timestamp_ms >= clock.start_ms - 1
            if is_new and entry.epoch >= epoch and wanted(entry.content):
                return max(0.0, (entry.timestamp_ms - clock.start_ms) / 1000)
    raise ClusterError("the metadata log does not tell of what was just seen")


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


def _verdict(
    servers: str, producer: SteadyProducer, unanswered: int, security: Mapping[str, str]
) -> int:
    account = producer.account
    progress = Progress()
    read, broken = read_back(servers, TOPIC, account, progress=progress, security=security)
    progress.done()
    total = len(account.acknowledged)
    say(f"\n{total} records were acknowledged, {account.failed + unanswered} were not")
    say(f"{read} records were read back")
    say(f"{total - len(broken)} of {total} acknowledged records stand exactly at their offset")
    for mismatch in broken[:10]:
        say_folded(f"  MISSING {mismatch}")
    return len(broken) or int(total == 0)  # a run in which nothing was written shows nothing


def _show_last_records(cluster: LocalCluster) -> None:
    node = cluster.layout.node(int(describe(cluster)["active_controller"]))
    names = TopicNames()
    told: deque[Entry] = deque(maxlen=LAST_RECORDS)
    for entry in whole_entries(node.data):
        names.learn(entry)
        if not isinstance(entry.content, NoOpRecord):
            told.append(entry)
    say(f"\nthe last records of the metadata log, as controller {node.id} has them:")
    width = (columns() or COLUMNS_ELSEWHERE) - 2
    for entry in told:
        line = as_text(entry, names) if columns() is None else log_entry(entry, names).text
        say(f"  {line if len(line) <= width else line[: width - len(MORE)] + MORE}")
    dump = command("inspect", "dump", cluster.layout.directory / str(node.id))
    say(f"the whole of it: `{dump}`")


def _farewell(cluster: LocalCluster) -> None:
    directory = cluster.layout.directory
    say("")
    say_folded(
        f"the data stays in {directory}: go on with `{command('up', '--dir', directory)}`, "
        f"or read what a node said, in {cluster.layout.nodes[0].log}",
        0,
    )


def _partitions(cluster: LocalCluster) -> list[dict[str, Any]]:
    """The partition table as a living broker knows it, or an empty one."""
    for node in cluster.layout.brokers:
        if cluster.process(node) is None:
            continue
        if page := cluster.page(node, f"/v1/topics/{TOPIC}"):
            return [
                row | {name: ",".join(map(str, row[name])) for name in ("replicas", "isr")}
                for row in page["partitions"]
            ]
    raise ClusterError("no broker tells about the topic")


def _wait(condition: Callable[[], Any], complaint: str) -> float:
    """The moment at which the condition came true."""
    if not await_value(condition, PATIENCE_SECONDS, pause_seconds=_POLL_SECONDS):
        raise ClusterError(f"{complaint} within {PATIENCE_SECONDS:.0f} s")
    return time.monotonic()
