"""The inspector on a living Apache Kafka, and Kafka's inspectors on what we wrote."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent import futures
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourcePatternType,
    ResourceType,
)
from confluent_kafka.cimpl import NewTopic

from jepsen_like.real.free_ports import free_ports
from jepsen_like.real.local_cluster import LocalCluster
from quorumlab.cli import main
from quorumlab.inspection.batches import Batch, read_batches
from quorumlab.inspection.entries import entries
from quorumlab.inspection.states import Moment, replay
from quorumlab.inspection.target import Target, find_target
from quorumlab.inspection.tree import tree_of
from tests.kafka.interop import RELEASE, TOOLS, needs_kafka, wait
from tests.kafka.kafka_jars import KafkaNode, format_storage, run_tool, write_properties
from tests.quorumlab.inspection.kafkas import assert_shell_agrees, dumped_records, told_by_us
from tests.started import started

pytestmark = needs_kafka

Node = dict[str, str]  # where its broker, its controller and its directory are
CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"
COMPLAINT = re.compile(r"ERROR|Exception|isvalid: false|not found|out of order")
# Which the shell says of every snapshot, Kafka's own too: it knows no such records.
EXPECTED = re.compile(r"Ignoring control record with type SNAPSHOT_(HEADER|FOOTER)")


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A combined node of Kafka, the only voter: its broker, its controller, its directory."""
    directory = tmp_path_factory.mktemp("kafka")
    broker, controller = (f"127.0.0.1:{port}" for port in islice(free_ports(), 2))
    properties = write_properties(
        directory / "server.properties",
        {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.bootstrap.servers": controller,
            "listeners": f"PLAINTEXT://{broker},CONTROLLER://{controller}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": directory / "data",
            "metadata.log.max.record.bytes.between.snapshots": 4000,
            "metadata.max.idle.interval.ms": 0,  # nothing is written that no test asks for
        },
    )
    format_storage(properties, CLUSTER_ID, "--standalone")
    with KafkaNode(properties, directory / "out"):
        create_topics(broker, "orders")
        yield {
            "broker": broker,
            "controller": controller,
            "directory": str(directory / "data"),
        }


def create_topics(servers: str, *names: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    for future in admin.create_topics([NewTopic(name, 2, 1) for name in names]).values():
        future.result(15)


def end_offset(kafka: Node, capsys: pytest.CaptureFixture[str]) -> int:
    assert main(["inspect", kafka["directory"], "--format", "json"]) == 0
    return int(json.loads(capsys.readouterr().out)["end_offset"])


@pytest.mark.parametrize("listener", ["broker", "controller"])
def test_a_living_kafka_is_looked_into(
    kafka: Node, listener: str, capsys: pytest.CaptureFixture[str]
) -> None:
    where = kafka[listener]
    assert main(["inspect", where, "--format", "json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["cluster_id"] == CLUSTER_ID
    assert summary["kraft_version"] == 1
    assert [voter["id"] for voter in summary["voters"]["voters"]] == [1]
    assert summary["committed"]["offset"] == summary["end_offset"] > 10
    assert main(["inspect", "verify", where]) == 0
    assert main(["inspect", "why", "orders-1", where]) == 0
    assert "created on [1], ISR [1], leader 1" in capsys.readouterr().out
    assert main(["doctor", where, kafka["directory"]]) == 0


@pytest.mark.parametrize("listener", ["broker", "controller", "directory"])
def test_a_living_kafka_is_followed(kafka: Node, listener: str) -> None:
    """It follows from when it has begun, and does not say when: topics come until one is shown."""
    command = ["inspect", "tail", "--format", "json", kafka[listener]]
    with (
        subprocess.Popen(
            [sys.executable, "-m", "quorumlab", *command], stdout=subprocess.PIPE, text=True
        ) as tail,
        ThreadPoolExecutor(1) as pool,
    ):
        assert tail.stdout is not None
        topics = (json.loads(line).get("topic") for line in tail.stdout)
        shown = pool.submit(lambda: next(topic for topic in topics if topic))
        for number in range(60):
            create_topics(kafka["broker"], f"seen-{listener}-{number}")
            if futures.wait([shown], timeout=0.5).done:
                break
        tail.send_signal(2)
        assert re.fullmatch(rf"seen-{listener}-\d+", shown.result())


def test_the_newest_snapshot_of_a_living_kafka_is_fetched(
    kafka: Node, capsys: pytest.CaptureFixture[str]
) -> None:
    """The state that a live quorum tells is the one in its directory."""
    create_topics(kafka["broker"], *(f"many-{number}" for number in range(40)))
    log = Path(kafka["directory"]) / "__cluster_metadata-0"
    wait(lambda: [p for p in log.glob("*.checkpoint") if int(p.name[:20])], "a snapshot")
    # No snapshot may pass the place that is asked for, and nothing is written any more.
    place = ["--at", str(end_offset(kafka, capsys) - 1)]
    assert main(["inspect", "diff", kafka["directory"], kafka["controller"], *place]) == 0
    told = capsys.readouterr().out.splitlines()
    assert [line[:3] for line in told[:2]] == ["---", "+++"]
    assert told[2:] == ["no difference"], told


# --- the other way round --------------------------------------------------------------------


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The metadata directory of a node of ours, stopped: segments, and snapshots of all kinds."""
    cluster = LocalCluster.create(
        tmp_path_factory.mktemp("ours") / "cluster",
        controllers=1,
        brokers=1,
        combined=True,
        release_version=RELEASE,
        settings={
            "metadata.log.max.record.bytes.between.snapshots": "3000",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
        },
    )
    log = cluster.layout.node(1).data / "__cluster_metadata-0"
    with started(cluster):
        fill(cluster.layout.bootstrap_servers)
        before = len(list(log.glob("*.checkpoint")))
        create_topics(cluster.layout.bootstrap_servers, *(f"late-{n}" for n in range(30)))
        wait(lambda: len(list(log.glob("*.checkpoint"))) > before, "a snapshot of all that")
        cluster.stop(1)
    return log


def fill(servers: str) -> None:
    """Something of everything that admin clients change."""
    admin = AdminClient({"bootstrap.servers": servers})
    create_topics(servers, "orders", "gone")
    change = ConfigEntry("retention.ms", "60000", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, "orders", incremental_configs=[change])
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(15)
    binding = AclBinding(
        *(ResourceType.TOPIC, "orders", ResourcePatternType.LITERAL, "User:bob", "*"),
        *(AclOperation.READ, AclPermissionType.ALLOW),
    )
    for created in admin.create_acls([binding]).values():
        created.result(15)
    admin.delete_topics(["gone"])["gone"].result(15)


def complaints(said: str) -> list[str]:
    return [
        line for line in said.splitlines() if COMPLAINT.search(line) and not EXPECTED.search(line)
    ]


def test_kafkas_dump_tells_every_record_of_ours(ours: Path) -> None:
    files = sorted([*ours.glob("*.log"), *ours.glob("*.checkpoint")])
    assert [path.suffix for path in files].count(".checkpoint") >= 1
    with ThreadPoolExecutor(max_workers=2) as pool:
        list(pool.map(assert_dumped_alike, files))


def assert_dumped_alike(path: Path) -> None:
    arguments = ["--cluster-metadata-decoder", "--deep-iteration", "--files", str(path)]
    done = run_tool(TOOLS["dump-log"], arguments)
    assert done.returncode == 0, done.stderr
    found = [each for each in read_batches(path) if isinstance(each, Batch)]
    told = [told_by_us(entry) for each in found for entry in entries(each)]
    assert dumped_records(done.stdout) == told
    assert not complaints(done.stdout + done.stderr)


def test_kafkas_shell_shows_the_same_state_of_our_snapshots(ours: Path) -> None:
    snapshots = sorted(path for path in ours.glob("*.checkpoint") if int(path.name[:20]))
    for path in (snapshots[0], snapshots[-1]):
        shown = shown_by_the_shell(path)
        target = find_target(str(path))
        assert isinstance(target, Target)
        assert_shell_agrees(shown, tree_of(replay(target, Moment()).image))
    assert "late-" in shown


def shown_by_the_shell(path: Path) -> str:
    """It may show an image that is not loaded yet: ask again."""
    arguments = ["--snapshot", str(path), "tree", "/image"]
    for _ in range(5):
        done = run_tool(TOOLS["metadata-shell"], arguments, timeout=30.0)
        assert not complaints(done.stdout + done.stderr)
        if "offset -1, epoch -1" not in done.stdout:
            return done.stdout
    raise AssertionError(f"the shell loads nothing of {path}")


@pytest.mark.parametrize("listener", ["broker", "controller"])
def test_top_shows_a_living_kafka(
    kafka: Node,
    listener: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LINES", "300")  # other tests have made topics there
    assert main(["top", "--once", "--bootstrap-server", kafka[listener]]) == 0
    screen = capsys.readouterr().out
    assert f"{CLUSTER_ID} at {kafka[listener]}\n" in screen
    assert re.search(r"\ncontroller 1, epoch \d+ ", screen)
    assert re.search(r"\n1 +leader +\d+ +0 +0\n", screen)
    assert re.search(r"\n1 +running +\d+ +0 +", screen)
    assert re.search(r"\norders-1 +1 +1 +1\n", screen)
    entry, none = r"> \d+ \d\d:\d\d:\d\d [A-Z_]+ ", r"nothing but no-ops since"
    assert re.search(f"\n({entry}|{none})", screen)  # other tests have made snapshots there
    assert "missing" not in screen
