"""Our directories in Apache Kafka's hands: its tools read them, and its nodes run on them."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from jepsen_like.real.local_cluster import LocalCluster
from quorumlab.inspection.entries import Entry
from quorumlab.inspection.stream import whole_entries
from tests.kafka.interop import (
    RELEASE,
    TOOLS,
    KafkaBesideUs,
    create_topic,
    image_in_the_shell,
    needs_kafka,
    produce,
    tool,
    tools,
)
from tests.kafka.kafka_jars import run_tool
from tests.started import started
from wire.control_records import LeaderChange
from wire.message import Message, values_of
from wire.primitives import uuid_text

pytestmark = needs_kafka

VALUES = [b"%d" % number * 100 for number in range(400)]
FIRST = "00000000000000000000"
METADATA = f"__cluster_metadata-0/{FIRST}"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """One node, stopped, whose directory stands as `stopped` and, later on, as `killed` too."""
    directory = tmp_path_factory.mktemp("directories")
    running = LocalCluster.create(
        directory, controllers=1, brokers=1, combined=True, release_version=RELEASE
    )
    node = running.layout.node(1)
    with started(running):
        create_topic(running.layout.bootstrap_servers, "data", [[1]])
        produce(running.layout.bootstrap_servers, "data", VALUES)
        running.stop(1)
        shutil.copytree(node.data, directory / "stopped")
        running.start_all()
        running.wait_ready()
        running.kill(1)
        shutil.copytree(node.data, directory / "killed")
        yield running


@pytest.fixture(scope="module")
def stopped(cluster: LocalCluster) -> Path:
    return cluster.layout.directory / "stopped"


@pytest.fixture(scope="module")
def killed(cluster: LocalCluster) -> Path:
    return cluster.layout.directory / "killed"


def decoded_by_kafka(dump: str) -> list[tuple[int, str, dict[str, object]]]:
    """(offset, kind, fields) of every record that DumpLogSegments printed."""
    found = []
    for offset, kind, text in re.findall(r"^\| offset: (\d+) .* (\w+): ?(\{.*\})$", dump, re.M):
        value = json.loads(text)
        if kind == "payload":
            found.append((int(offset), value["type"], value["data"]))
        else:
            found.append((int(offset), kind, value))
    return found


def kind_of(record: object) -> str:
    """PartitionChangeRecord -> PARTITION_CHANGE_RECORD; control records keep their names."""
    name = type(record).__name__
    if not name.endswith("Record"):
        return name
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).upper()


def in_json(value: object) -> object:
    """A value of ours as Kafka's converters put it."""
    if isinstance(value, UUID):
        return uuid_text(value)
    if isinstance(value, tuple):
        return [in_json(element) for element in value]
    if isinstance(value, Message):
        pairs = values_of(value).items()
        return {re.sub(r"_(\w)", lambda m: m[1].upper(), n): in_json(v) for n, v in pairs}
    return value


def assert_same(theirs: object, ours: object, where: str) -> None:
    """Kafka leaves out tagged fields that have their default, and we show all."""
    if isinstance(theirs, dict):
        assert isinstance(ours, dict), where
        for key, value in theirs.items():
            assert_same(value, ours[key], f"{where}.{key}")
    elif isinstance(theirs, list):
        assert isinstance(ours, list), where
        assert len(theirs) == len(ours), where
        for index, (left, right) in enumerate(zip(theirs, ours, strict=True)):
            assert_same(left, right, f"{where}[{index}]")
    else:
        assert theirs == ours, where


def assert_decoded_alike(dump: str, ours: list[Entry]) -> None:
    theirs = decoded_by_kafka(dump)
    assert [offset for offset, _, _ in theirs] == list(range(len(ours)))
    assert [kind for _, kind, _ in theirs] == [kind_of(entry.content) for entry in ours]
    for (offset, kind, value), entry in zip(theirs, ours, strict=True):
        assert entry.offset == offset
        if isinstance(entry.content, LeaderChange):
            assert value["leaderId"] == entry.content.leader_id
        else:
            assert_same(value, in_json(entry.content), f"{offset} {kind}")


def test_the_metadata_log_is_decoded_alike(stopped: Path) -> None:
    dump = tool(
        "dump-log", "--cluster-metadata-decoder", "--files", str(stopped / METADATA) + ".log"
    )
    assert "isvalid: false" not in dump
    ours = list(whole_entries(stopped))
    assert {"TOPIC_RECORD", "PARTITION_RECORD", "REGISTER_BROKER_RECORD"} <= {
        kind_of(entry.content) for entry in ours
    }
    assert_decoded_alike(dump, ours)


def test_after_kill_9_every_record_is_decoded_before_the_zeros(killed: Path) -> None:
    """The tail of a preallocated segment is no record to Kafka's reader, and it says so last."""
    log = killed / f"{METADATA}.log"
    done = run_tool(TOOLS["dump-log"], ["--cluster-metadata-decoder", "--files", str(log)])
    assert_decoded_alike(done.stdout, list(whole_entries(killed)))
    assert "Found record size 0 smaller than minimum record overhead" in done.stderr


def test_a_partition_and_its_indexes_are_sound(stopped: Path) -> None:
    indexes = [str(stopped / f"data-0/{FIRST}{end}") for end in (".index", ".timeindex")]
    log = str(stopped / f"data-0/{FIRST}.log")
    dump, sanity, whole = tools(
        ("dump-log", "--deep-iteration", "--print-data-log", "--files", log),
        ("dump-log", "--index-sanity-check", "--files", ",".join(indexes)),
        ("dump-log", "--files", ",".join(indexes)),
    )
    payloads = re.findall(r"^\| offset: (\d+) .* payload: (\d+)$", dump, re.M)
    assert payloads == [(str(n), value.decode()) for n, value in enumerate(VALUES)]
    assert sanity.count(" passed sanity check.") == len(indexes)
    assert len(re.findall(r"^offset: \d+ position: \d+$", whole, re.M)) > 5, "a sparse index"
    for complaint in ("Mismatches in", "out of order", "not found", "could not be found"):
        assert complaint not in whole


def test_the_metadata_shell_builds_the_same_image(stopped: Path) -> None:
    checkpoint = stopped / "bootstrap.checkpoint"
    tree = image_in_the_shell(stopped / f"{METADATA}.log")
    bootstrap = image_in_the_shell(checkpoint)
    dump = tool("dump-log", "--cluster-metadata-decoder", "--files", str(checkpoint))
    for image in (tree, bootstrap):
        assert "Optional[4.3-IV0]" in image
    assert re.search(r"name:\s+data\n", tree)
    assert "PartitionRegistration(replicas=[1], " in tree
    assert "BrokerRegistration(id=1, " in tree
    assert "ControllerRegistration(id=1, " in tree
    assert "KRaft bootstrap snapshot" in dump
    assert '"name":"metadata.version","featureLevel":30' in dump


def test_kafka_runs_on_our_directory_and_we_on_what_it_leaves(
    cluster: LocalCluster, killed: Path
) -> None:
    """The same server.properties, the same directory, as kill -9 left it; no tool in between."""
    servers = cluster.layout.bootstrap_servers
    kafka = KafkaBesideUs(cluster, [1]).kafka[1]
    with kafka:
        create_topic(servers, "kafkas", [[1]])
        produce(servers, "data", VALUES)
        assert tool("offsets", "--bootstrap-server", servers) == "data:0:800\nkafkas:0:0\n"
        kafka.stop()
    cluster.start(1)
    cluster.wait_ready()
    produce(servers, "kafkas", VALUES)
    read = tool(
        "consumer", "--bootstrap-server", servers, "--topic", "data", "--partition", "0",
        "--offset", "earliest", "--max-messages", "800",
    )  # fmt: skip
    assert read.split() == [value.decode() for value in VALUES * 2]
    before = list(whole_entries(killed))
    after = list(whole_entries(cluster.layout.node(1).data))
    assert [entry.content for entry in after[: len(before)]] == [e.content for e in before]
    assert [entry.offset for entry in after] == list(range(len(after)))
