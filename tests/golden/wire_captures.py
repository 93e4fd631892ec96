"""Raw exchanges with a real Kafka: the request and response frames in hex."""

from __future__ import annotations

import time
from collections.abc import Mapping

from tests.golden.rawkafka import (
    METADATA_TOPIC_ID,
    ZERO_UUID,
    Connection,
    In,
    Out,
    batch,
    uuid_bytes,
)

TOPIC = "w"
METADATA = "__cluster_metadata"

# Names that the broker's own tool does not print.
CONTROLLER_NAMES = {
    52: "Vote",
    53: "BeginQuorumEpoch",
    54: "EndQuorumEpoch",
    56: "AlterPartition",
    58: "Envelope",
    59: "FetchSnapshot",
    62: "BrokerRegistration",
    63: "BrokerHeartbeat",
    67: "AllocateProducerIds",
    70: "ControllerRegistration",
    73: "AssignReplicasToDirs",
    82: "UpdateRaftVoter",
}

METADATA_VERSIONS = {
    7: "3.3-IV3",
    8: "3.4-IV0",
    9: "3.5-IV0",
    10: "3.5-IV1",
    11: "3.5-IV2",
    12: "3.6-IV0",
    13: "3.6-IV1",
    14: "3.6-IV2",
    15: "3.7-IV0",
    16: "3.7-IV1",
    17: "3.7-IV2",
    18: "3.7-IV3",
    19: "3.7-IV4",
    20: "3.8-IV0",
    21: "3.9-IV0",
    22: "4.0-IV0",
    23: "4.0-IV1",
    24: "4.0-IV2",
    25: "4.0-IV3",
    26: "4.1-IV0",
    27: "4.1-IV1",
    28: "4.2-IV0",
    29: "4.2-IV1",
    30: "4.3-IV0",
    31: "4.4-IV0",
    32: "4.4-IV1",
    33: "4.4-IV2",
}

FEATURES = [
    "metadata.version=33",
    "kraft.version=1",
    "transaction.version=1",
    "transaction.version=2",
    "group.version=1",
    "eligible.leader.replicas.version=1",
    "share.version=1",
    "share.version=2",
    "streams.version=1",
]


class Recorder:
    """One connection whose exchanges are collected under the API's name."""

    def __init__(self, listener: str, port: int, found: dict[str, list[dict[str, object]]]) -> None:
        self.listener = listener
        self.connection = Connection(port)
        self._found = found

    def call(self, name: str, key: int, version: int, body: Out, comment: str = "") -> In:
        answer = self.connection.call(key, version, body)
        self.keep(name, key, version, comment)
        return answer

    def keep(self, name: str, key: int, version: int, comment: str = "") -> None:
        """Put the connection's last exchange among the found ones."""
        entry: dict[str, object] = {
            "listener": self.listener,
            "api_key": key,
            "api_version": version,
            "request": self.connection.request.hex(),
            "response": self.connection.response.hex(),
        }
        if comment:
            entry["comment"] = comment
        self._found.setdefault(name, []).append(entry)


def smallest_isr(answer: In) -> list[int]:
    """The smallest ISR in a Metadata response (v12 or v13)."""
    answer.i32()
    answer.array(lambda b: (b.i32(), b.string(), b.i32(), b.string(), b.tags()))
    answer.string()
    answer.i32()
    found: list[list[int]] = []

    def partition(p: In) -> None:
        p.i16(), p.i32(), p.i32(), p.i32()
        p.array(In.i32)
        found.append(p.array(In.i32))
        p.array(In.i32)
        p.tags()

    def topic(t: In) -> None:
        t.i16(), t.string(), t.uuid(), t.flag()
        t.array(partition)
        t.i32()
        t.tags()

    answer.array(topic)
    return min(found, key=len) if found else []


def api_versions_table(port: int, names: Mapping[int, str]) -> dict[str, object]:
    """The ApiVersions v4 answer of one listener as a table."""
    with Connection(port) as connection:
        answer = connection.call(18, 4, Out().string("golden").string("1").tags())
    if answer.i16() != 0:
        raise ValueError("ApiVersions v4 refused")
    ranges = answer.array(lambda r: (r.i16(), r.i16(), r.i16(), r.tags()))
    answer.i32()
    tags = answer.tags()
    answer.end()
    table: dict[str, object] = {
        "api_versions": {
            str(key): [low, high] for key, low, high, _ in sorted(ranges, key=lambda r: r[0])
        },
        "names": {str(r[0]): names.get(r[0], "") for r in sorted(ranges, key=lambda r: r[0])},
    }
    supported = In(tags[0]).array(lambda r: (r.string() or "", r.i16(), r.i16(), r.tags()))
    table["supported_features"] = {
        name: [low, high] for name, low, high, _ in sorted(supported, key=lambda r: r[0])
    }
    # On the wire a finalized feature has its maximum level before its minimum.
    finalized = In(tags[2]).array(lambda r: (r.string() or "", r.i16(), r.i16(), r.tags()))
    table["finalized_features"] = {
        name: high for name, high, _, _ in sorted(finalized, key=lambda r: r[0])
    }
    table["tags_present"] = sorted(tags)
    return table


def fetch_body(
    version: int,
    topic_id: bytes,
    offset: int,
    *,
    topic: str = TOPIC,
    epoch: int = -1,
    last_epoch: int = -1,
    max_wait: int = 100,
) -> Out:
    body = Out()
    if version < 15:
        body.i32(-1)
    body.i32(max_wait).i32(1).i32(1 << 20).i8(0).i32(0).i32(-1)

    def partition(out: Out, index: int) -> None:
        out.i32(index).i32(epoch).i64(offset).i32(last_epoch).i64(-1).i32(1 << 20).tags()

    def one(out: Out, name: str) -> None:
        if version < 13:
            out.string(name)
        else:
            out.raw(topic_id)
        out.array([0], partition).tags()

    return body.array([topic], one).array([], Out.i32).string("").tags()


def capture(
    broker_port: int, controller_port: int, cluster_id: str
) -> dict[str, list[dict[str, object]]]:
    """All exchanges, by the file they go into."""
    found: dict[str, list[dict[str, object]]] = {}
    broker = Recorder("broker", broker_port, found)
    controller = Recorder("controller", controller_port, found)
    for recorder in (broker, controller):
        common(recorder)
    topic_id = topic_id_of(broker)
    data(broker, topic_id)
    raft(controller, cluster_id)
    controller_only(controller, cluster_id)
    for recorder in (broker, controller):
        recorder.connection.close()
    return found


def common(recorder: Recorder) -> None:
    recorder.connection.call_legacy(18, 0)
    recorder.keep("api_versions", 18, 0)
    for version in (3, 4, 5):
        body = Out().string("golden").string("1").tags()
        recorder.call("api_versions", 18, version, body, "refused" if version == 5 else "")
    for version in (1, 2):
        body = Out().flag(True).i8(2 if recorder.listener == "controller" else 1)
        if version >= 2:
            body.flag(True)
        recorder.call("describe_cluster", 60, version, body.tags())
    wrong = Out().flag(False).i8(1 if recorder.listener == "controller" else 2).tags()
    recorder.call("describe_cluster", 60, 1, wrong, "wrong endpoint type for the listener")
    for version in (0, 1, 2):
        body = Out().array(
            [METADATA], lambda o, t: o.string(t).array([0], lambda p, i: p.i32(i).tags()).tags()
        )
        recorder.call("describe_quorum", 55, version, body.tags())
    body = Out().array(
        ["w"], lambda o, t: o.string(t).array([0], lambda p, i: p.i32(i).tags()).tags()
    )
    recorder.call("describe_quorum", 55, 2, body.tags(), "a topic that is not the metadata log")


def topic_id_of(broker: Recorder) -> bytes:
    for version in (12, 13):
        for name in (TOPIC, "unknown"):
            body = Out().array([name], lambda o, n: o.raw(ZERO_UUID).string(n).tags())
            body.flag(False).flag(True).tags()
            answer = broker.call("metadata", 3, version, body)
            if name == TOPIC:
                first = answer
        broker.call(
            "metadata",
            3,
            version,
            Out().array(None, Out.i32).flag(False).flag(False).tags(),
            "all topics",
        )
    first.i32()
    first.array(lambda b: (b.i32(), b.string(), b.i32(), b.string(), b.tags()))
    first.string()
    first.i32()
    first.uvarint()
    first.i16()
    first.string()
    return uuid_bytes(first.uuid())


def data(broker: Recorder, topic_id: bytes) -> None:
    now = int(time.time() * 1000)
    for version, compress in ((9, False), (12, True), (13, False)):
        records = batch([f"v{version} {i}".encode() for i in range(3)], now, compress=compress)
        produce(broker, version, topic_id, records)
    produce(broker, 13, bytes(15) + b"\x09", batch([b"x"], now), "unknown topic id")
    bad = bytearray(batch([b"x"], now))
    bad[-1] ^= 1
    produce(broker, 13, topic_id, bytes(bad), "wrong CRC")
    for version in (12, 13, 15, 17, 18):
        broker.call("fetch", 1, version, fetch_body(version, topic_id, 0), "data from 0")
    broker.call("fetch", 1, 17, fetch_body(17, topic_id, 4), "data from inside a batch")
    broker.call("fetch", 1, 17, fetch_body(17, topic_id, 9), "at the end: empty after max wait")
    broker.call("fetch", 1, 17, fetch_body(17, topic_id, 99), "offset out of range")
    broker.call("fetch", 1, 17, fetch_body(17, bytes(15) + b"\x09", 0), "unknown topic id")
    broker.call("fetch", 1, 17, fetch_body(17, topic_id, 0, epoch=7), "leader epoch too new")
    broker.call("fetch", 1, 12, fetch_body(12, topic_id, 0, topic="no"), "unknown topic name")
    for version in (7, 9, 10, 11):
        for stamp in (-1, -2, -3, now):
            broker.call("list_offsets", 2, version, offsets_body(version, stamp), f"{stamp}")
    broker.call("list_offsets", 2, 7, offsets_body(7, -1, "no"), "unknown topic")
    body = (
        Out()
        .i32(-1)
        .array(
            [TOPIC],
            lambda o, t: o.string(t).array([0], lambda p, i: p.i32(i).i32(-1).i32(0).tags()).tags(),
        )
        .tags()
    )
    broker.call("offset_for_leader_epoch", 23, 4, body, "epoch 0")


def produce(
    broker: Recorder, version: int, topic_id: bytes, records: bytes, comment: str = ""
) -> None:
    body = Out().string(None).i16(-1).i32(10000)

    def one(out: Out, name: str) -> None:
        if version < 13:
            out.string(name)
        else:
            out.raw(topic_id)
        out.array([records], lambda o, r: o.i32(0).blob(r).tags()).tags()

    broker.call("produce", 0, version, body.array([TOPIC], one).tags(), comment)


def offsets_body(version: int, stamp: int, topic: str = TOPIC) -> Out:
    body = Out().i32(-1).i8(0)
    body.array(
        [topic],
        lambda o, t: o.string(t).array([0], lambda p, i: p.i32(i).i32(-1).i64(stamp).tags()).tags(),
    )
    if version >= 10:
        body.i32(5000)
    return body.tags()


def leader_epoch(controller: Recorder) -> int:
    """The quorum's epoch, by DescribeQuorum v0."""
    body = Out().array([METADATA], lambda o, t: o.string(t).array([0], one_partition).tags())
    answer = controller.connection.call(55, 0, body.tags())
    answer.i16()
    answer.uvarint()
    answer.string()
    answer.uvarint()
    answer.i32(), answer.i16(), answer.i32()
    return answer.i32()


def one_partition(out: Out, index: int) -> None:
    out.i32(index).tags()


def snapshot_of(answer: In) -> tuple[int, int]:
    """The snapshot id (end offset, epoch) a Fetch v13+ response points to."""
    answer.i32(), answer.i16(), answer.i32()
    answer.uvarint()
    answer.uuid()
    answer.uvarint()
    answer.i32(), answer.i16(), answer.i64(), answer.i64(), answer.i64()
    answer.uvarint()
    answer.i32()
    answer.blob()
    found = In(answer.tags()[2])
    return found.i64(), found.i32()


def raft(controller: Recorder, cluster_id: str) -> None:
    """Raft requests that change nothing, as an observer (or nobody) sends them."""
    epoch = leader_epoch(controller)
    if epoch < 2:
        raise ValueError("the captures want a leader epoch of 2 or more")

    def fetch(
        version: int,
        comment: str,
        *,
        offset: int = 0,
        last: int = 0,
        at_epoch: int = epoch,
        topic_id: bytes = METADATA_TOPIC_ID,
    ) -> In:
        body = fetch_body(
            version,
            topic_id,
            offset,
            topic=METADATA,
            epoch=at_epoch,
            last_epoch=last,
            max_wait=2000,
        )
        return controller.call("raft_fetch", 1, version, body, comment)

    fetch(12, "by name: refused")
    end, snapshot_epoch = snapshot_of(fetch(17, "from 0 while there is a snapshot"))
    for version in (13, 17, 18):
        fetch(version, "from the snapshot's end", offset=end, last=snapshot_epoch)
    fetch(17, "leader epoch too old", at_epoch=1)
    fetch(17, "leader epoch too new", at_epoch=epoch + 7)
    fetch(17, "diverging: offset beyond the end", offset=100000, last=epoch)
    fetch(17, "diverging: an old epoch, beyond its end", offset=100000, last=1)
    fetch(17, "last epoch beyond the leader epoch", offset=5, last=epoch + 1)
    fetch(17, "another topic id", topic_id=bytes(15) + b"\x09")
    for version in (0, 1, 2):
        for comment, cluster, at_epoch in (
            ("epoch too old", cluster_id, 1),
            ("epoch of the present leader: not granted", cluster_id, epoch),
            ("epoch not above the last epoch: invalid", cluster_id, 0),
            ("another cluster id", "AAAAAAAAAAAAAAAAAAAAAA", 1),
        ):
            controller.call("vote", 52, version, vote_body(version, cluster, at_epoch), comment)
    fetch_snapshots(controller, epoch, end, snapshot_epoch)
    begin = Out().string(cluster_id).i32(1)
    begin.array(
        [METADATA],
        lambda o, t: (
            o.string(t).array([0], lambda p, i: p.i32(i).raw(ZERO_UUID).i32(9).i32(1).tags()).tags()
        ),
    )
    controller.call("begin_quorum_epoch", 53, 1, begin.array([], Out.i32).tags(), "epoch too old")
    finish = Out().string(cluster_id)
    finish.array(
        [METADATA],
        lambda o, t: (
            o.string(t)
            .array([0], lambda p, i: p.i32(i).i32(9).i32(1).array([], Out.i32).tags())
            .tags()
        ),
    )
    controller.call("end_quorum_epoch", 54, 1, finish.array([], Out.i32).tags(), "epoch too old")


def fetch_snapshots(controller: Recorder, epoch: int, end: int, snapshot_epoch: int) -> None:
    for version in (0, 1):
        for comment, snapshot_end, at_epoch, position, size in (
            ("the whole snapshot", end, epoch, 0, 1 << 20),
            ("a part of it, cut anywhere", end, epoch, 100, 50),
            ("no such snapshot", end + 1000, epoch, 0, 1 << 20),
            ("position out of range", end, epoch, 1 << 30, 1 << 20),
            ("leader epoch too old", end, 1, 0, 1 << 20),
        ):
            partition = Out().i32(0).i32(at_epoch).i64(snapshot_end).i32(snapshot_epoch).tags()
            part = bytes(partition.i64(position).tags().data)
            topic = Out().string(METADATA).array([part], Out.raw).tags()
            body = Out().i32(-1).i32(size).array([bytes(topic.data)], Out.raw).tags()
            controller.call("fetch_snapshot", 59, version, body, comment)


def vote_body(version: int, cluster: str, epoch: int) -> Out:
    body = Out().string(cluster)
    if version >= 1:
        body.i32(1)

    def partition(out: Out, index: int) -> None:
        out.i32(index).i32(epoch).i32(9)
        if version >= 1:
            out.raw(ZERO_UUID).raw(ZERO_UUID)
        out.i32(0).i64(0)
        if version >= 2:
            out.flag(True)
        out.tags()

    return body.array([METADATA], lambda o, t: o.string(t).array([0], partition).tags()).tags()


def controller_only(controller: Recorder, cluster_id: str) -> None:
    """Broker requests with ids or epochs that are wrong, and one registration."""
    for broker, epoch, comment in ((1, 1, "stale broker epoch"), (7, 1, "unknown broker")):
        body = Out().i32(broker).i64(epoch).i64(10).flag(False).flag(False).tags()
        controller.call("broker_heartbeat", 63, 1, body, comment)
        body = Out().i32(broker).i64(epoch).tags()
        controller.call("allocate_producer_ids", 67, 0, body, comment)
    for comment, broker, cluster, level, dirs in (
        ("broker id in use by a live broker", 1, cluster_id, 30, [bytes([1] * 16)]),
        ("another cluster id", 7, "AAAAAAAAAAAAAAAAAAAAAA", 30, [bytes([1] * 16)]),
        ("metadata.version not supported by the broker", 7, cluster_id, 29, [bytes([1] * 16)]),
        ("no log directory", 7, cluster_id, 30, []),
        ("reserved log directory id", 7, cluster_id, 30, [bytes(15) + b"\x02"]),
        ("features missing", 7, cluster_id, 30, [bytes([1] * 16)]),
    ):
        body = Out().i32(broker).string(cluster).raw(bytes(range(16)))
        body.array(
            ["PLAINTEXT"],
            lambda o, n: (
                o.string(n).string("127.0.0.1").raw((20199).to_bytes(2, "big")).i16(0).tags()
            ),
        )
        body.array(
            [("metadata.version", 7, level)], lambda o, f: o.string(f[0]).i16(f[1]).i16(f[2]).tags()
        )
        body.string(None).flag(False).array(dirs, Out.raw).i64(-1).tags()
        controller.call("broker_registration", 62, 4, body, comment)
