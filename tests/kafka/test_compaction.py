"""Logs that we have compacted in Apache Kafka's hands, and back."""

import re
import struct
from pathlib import Path

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from jepsen_like.real.layout import NodeLayout
from jepsen_like.real.local_cluster import LocalCluster
from quorum.log.files.checkpoints import CLEANED_OFFSETS
from quorum.log.files.producer_snapshot import format_producers, producers_path
from tests.integration.test_compaction import COMPACTED, KEYS, cleaned_to, produce, read
from tests.kafka.interop import RELEASE, KafkaBesideUs, needs_kafka, tool, wait
from tests.quorum.keyed_batches import read_records
from tests.quorum.storage.compacted_node import LOG, Node
from tests.quorum.storage.test_compacted_transactions import drawn, end_all, fill
from tests.quorum.storage.test_compaction import filled
from tests.quorum.storage.transactional_node import TransactionalNode
from wire.batch import headers
from wire.transaction_markers import read_marker

pytestmark = needs_kafka

_BATCH = re.compile(
    r"baseOffset: (\d+) lastOffset: (\d+) count: (\d+) baseSequence: (-?\d+) .*"
    r"deleteHorizonMs: (\S+) .*isvalid: (\w+)"
)
_RECORD = re.compile(
    r"\| offset: (\d+) CreateTime: (\d+) keySize: \d+ valueSize: (-?\d+).* key: (\S+)"
)
_MARKER = re.compile(r"\| offset: (\d+) .*endTxnMarker: (\w+) coordinatorEpoch: 0")
_ABORTED = re.compile(
    r"version: 0 producerId: (\d+) firstOffset: (\d+) lastOffset: (\d+) lastStableOffset: (\d+)"
)


def left_as_files(node: Node, directory: Path) -> list[Path]:
    target = directory / LOG
    target.mkdir()
    for name in node.names(""):
        (target / name).write_bytes(node.files.content(f"/data/{LOG}/{name}"))
    return sorted(target.glob("*.log"))


def test_kafkas_tool_reads_what_is_left(tmp_path: Path) -> None:
    """All codecs, tombstones with their horizon, batches without records, indexes."""
    node = filled(producers=3)
    node.clean(delete_retention_ms=5)
    node.settle()
    logs = left_as_files(node, tmp_path)
    dump = tool(
        "dump-log", "--print-data-log", "--deep-iteration", "--files", ",".join(map(str, logs))
    )
    found = [match.groups() for match in _BATCH.finditer(dump)]
    batches = node.batches()
    assert found == [
        (
            str(header.base_offset),
            str(header.last_offset),
            str(header.record_count),
            str(header.base_sequence),
            "OptionalLong.empty"
            if header.delete_horizon_ms is None
            else f"OptionalLong[{header.delete_horizon_ms}]",
            "true",
        )
        for _, header in headers(batches)
    ]
    assert any(header.record_count == 0 for _, header in headers(batches))
    assert any(header.delete_horizon_ms for _, header in headers(batches))
    records = [match.groups() for match in _RECORD.finditer(dump)]
    assert records == [
        (
            str(record.offset),
            str(record.timestamp_ms),
            str(-1 if record.value is None else len(record.value)),
            (record.key or b"").decode(),
        )
        for record in read_records(batches)
    ]
    indexes = [str(path) for path in logs[0].parent.glob("*index") if path.stat().st_size]
    checked = tool("dump-log", "--index-sanity-check", "--files", ",".join(indexes))
    assert checked.count("passed sanity check") == len(indexes), checked


def left_at_most(node: NodeLayout, end_offset: int) -> int:
    """Below the clean point a key has one record; the rest is as it was written."""
    return len(KEYS) + end_offset - cleaned_to(node, "t")


def test_kafkas_cleaner_goes_on_where_ours_was_and_ours_where_kafkas(tmp_path: Path) -> None:
    cluster = LocalCluster.create(
        tmp_path / "cluster",
        controllers=1,
        brokers=1,
        combined=True,
        settings={"log.cleaner.backoff.ms": "200"},
        release_version=RELEASE,
    )
    node = cluster.layout.node(1)
    servers = cluster.layout.bootstrap_servers
    cluster.start_all()
    try:
        cluster.wait_ready()
        admin = AdminClient({"bootstrap.servers": servers})
        new = NewTopic("t", 1, 1, config=COMPACTED)
        admin.create_topics([new])["t"].result(15)
        values = produce(servers, "t", 20)
        wait(lambda: cleaned_to(node, "t") >= 180, "ours has cleaned")
        cluster.stop(1)
        ours = cleaned_to(node, "t")
        kafka = KafkaBesideUs(cluster, [1]).kafka[1]
        with kafka:
            kafka.wait_ready()
            wait(lambda: read(servers, "t")[1] == values, "Kafka has the last values")
            values = produce(servers, "t", 20)
            wait(lambda: cleaned_to(node, "t") >= ours + 180, "Kafka's has cleaned")
            assert read(servers, "t")[1] == values
            kafka.stop()
        kafkas = cleaned_to(node, "t")
        cluster.start(1)
        cluster.wait_ready()
        most = left_at_most(node, 400)
        count, found = read(servers, "t")
        assert found == values
        assert count <= most
        values = produce(servers, "t", 20)
        wait(lambda: cleaned_to(node, "t") >= kafkas + 180, "ours goes on")
        most = left_at_most(node, 600)
        count, found = read(servers, "t")
        assert found == values
        assert count <= most
    finally:
        cluster.stop_all()
    logs = sorted((node.data / "t-0").glob("*.log"))
    dump = tool("dump-log", "--files", ",".join(map(str, logs)))
    assert "isvalid: false" not in dump
    assert (node.data / CLEANED_OFFSETS).read_text().startswith("0\n")


def test_kafkas_tool_reads_what_is_left_of_transactions(tmp_path: Path) -> None:
    """Markers with a horizon and without, the index of aborted ones, and who has one open."""
    node = TransactionalNode(1)
    drawn(node, 40)
    end_all(node)
    node.producers.pop(0, None)
    for _ in range(2):
        fill(node)
        node.clean(delete_retention_ms=5)
    node.write(9, [(b"open", b"1")])
    logs = left_as_files(node, tmp_path)
    producers = tuple(node.producers.values())
    snapshot = Path(producers_path(str(logs[0].parent), node.end_offset))
    snapshot.write_bytes(format_producers(producers))
    indexes = sorted(logs[0].parent.glob("*.txnindex"))
    files = ",".join(map(str, [*logs, *indexes, snapshot]))
    dump = tool("dump-log", "--print-data-log", "--deep-iteration", "--files", files)
    found = [match.groups() for match in _MARKER.finditer(dump)]
    batches = node.batches()
    markers = [
        (header, marker)
        for at, header in headers(batches)
        if (marker := read_marker(batches[at : at + header.size_bytes], header)) is not None
    ]
    assert found == [
        (str(header.base_offset), "COMMIT" if marker.is_commit else "ABORT")
        for header, marker in markers
    ]
    horizons = {header.delete_horizon_ms is None for header, _ in markers}
    assert horizons == {False, True}
    assert "isvalid: false" not in dump
    told = [tuple(map(int, match.groups())) for match in _ABORTED.finditer(dump)]
    assert told
    assert told == [
        each[1:] for path in indexes for each in struct.iter_unpack(">hqqqq", path.read_bytes())
    ]
    opened = f"producerId: 9 .*currentTxnFirstOffset: OptionalLong\\[{node.end_offset - 1}\\]"
    assert re.search(opened, dump)
