"""Write the golden files of this directory again, with a real Apache Kafka.

    tests/kafka/fetch.sh
    python3 tests/golden/capture.py                  # every step, about 3 minutes
    python3 tests/golden/capture.py kraft3 live      # some of them

Each step runs Kafka on loopback (ports 20100-20199) in a temporary directory
and replaces its own files only.  Ids, times and offsets differ from run to
run: the tests must read them from the files, never repeat them.  README.md
says what each file is.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import signal
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent))

from tests.golden import admin_errors, described_configs, wire_captures  # noqa: E402
from tests.golden.rawkafka import Connection, Out, batch  # noqa: E402
from tests.kafka.kafka_jars import (  # noqa: E402
    JavaServer,
    KafkaNode,
    format_storage,
    jar_dir,
    run_tool,
    version,
    write_properties,
)

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"
HOST = "127.0.0.1"
BROKER_PORT = 20100
CONTROLLER_PORT = 20110
# A file larger than this is described in files.json, not kept.
KEEP = 64 * 1024

TOPICS = "org.apache.kafka.tools.TopicCommand"
CONFIGS = "kafka.admin.ConfigCommand"
ACLS = "org.apache.kafka.tools.AclCommand"
DUMP = "org.apache.kafka.tools.DumpLogSegments"


def note(text: str) -> None:
    print(f"[{time.strftime('%H:%M:%S')}] {text}", flush=True)


class Lab:
    """The nodes of one capture in one temporary directory."""

    def __init__(
        self, work: Path, ids: Iterable[int] = (1,), *, line: str = "4", **extra: object
    ) -> None:
        self.work = work
        self.line = line
        self.ids = list(ids)
        self.nodes: dict[int, KafkaNode] = {}
        work.mkdir(parents=True)
        voters = ",".join(f"{i}@{HOST}:{CONTROLLER_PORT + i}" for i in self.ids)
        servers = ",".join(f"{HOST}:{CONTROLLER_PORT + i}" for i in self.ids)
        common: dict[str, object] = {
            "process.roles": "broker,controller",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "offsets.topic.num.partitions": 1,
            "offsets.topic.replication.factor": 1,
            "transaction.state.log.num.partitions": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "log.index.size.max.bytes": 4096,
            "metadata.max.idle.interval.ms": 1000,
        }
        if extra.pop("dynamic", False):
            common["controller.quorum.bootstrap.servers"] = servers
        else:
            common["controller.quorum.voters"] = voters
        common.update({key.replace("__", "."): value for key, value in extra.items()})
        for i in self.ids:
            own = {
                "node.id": i,
                "listeners": f"PLAINTEXT://{HOST}:{BROKER_PORT + i},"
                f"CONTROLLER://{HOST}:{CONTROLLER_PORT + i}",
                "log.dirs": self.data(i),
            }
            properties = write_properties(work / f"node-{i}.properties", {**common, **own})
            self.nodes[i] = KafkaNode(properties, work / f"node-{i}.out", line=line)

    def properties(self, i: int) -> Path:
        return self.work / f"node-{i}.properties"

    def data(self, i: int = 1) -> Path:
        return self.work / f"node-{i}"

    @property
    def bootstrap(self) -> str:
        return ",".join(f"{HOST}:{BROKER_PORT + i}" for i in self.ids)

    def format(self, *options: str) -> None:
        for i in self.ids:
            format_storage(self.properties(i), CLUSTER_ID, *options, line=self.line)

    def start(self, *ids: int) -> None:
        chosen = ids or tuple(self.ids)
        for i in chosen:
            self.nodes[i].start()
        for i in chosen:
            self.nodes[i].wait_ready()

    def stop(self) -> None:
        """Orderly stop of all, together: the last ones need each other."""
        running = [node for node in self.nodes.values() if node.running]
        with ThreadPoolExecutor(max_workers=3) as pool:
            list(pool.map(lambda node: node.stop(), running))

    def kill(self) -> None:
        for node in self.nodes.values():
            if node.running:
                node.kill()

    def tool(self, main_class: str, *args: str, stdin: str | None = None) -> str:
        done = run_tool(
            main_class,
            ["--bootstrap-server", self.bootstrap, *args],
            line=self.line,
            stdin=stdin,
            cwd=self.work,
        )
        if done.returncode != 0:
            raise RuntimeError(f"{main_class} {args}: {done.stdout}{done.stderr}")
        return done.stdout

    def produce(self, topic: str, lines: Iterable[str], *args: str) -> None:
        text = "".join(f"{line}\n" for line in lines)
        self.tool("org.apache.kafka.tools.ConsoleProducer", "--topic", topic, *args, stdin=text)

    def until(self, what: str, done: Callable[[], bool], seconds: float = 60.0) -> None:
        deadline = time.monotonic() + seconds
        while not done():
            if time.monotonic() > deadline:
                raise RuntimeError(f"waited too long for {what}")
            time.sleep(0.5)


def keep_tree(source: Path, target: Path, wanted: Callable[[str], bool] = lambda _: True) -> None:
    """Copy a node's directory, and list all its files in <target>.files.json."""
    listing: dict[str, object] = {}
    for path in sorted(source.rglob("*")):
        if not path.is_file():
            continue
        name = path.relative_to(source).as_posix()
        if not wanted(name):
            continue
        data = path.read_bytes()
        listing[name] = {"size": len(data)}
        if len(data) > KEEP or name == ".lock":
            listing[name] = {
                "size": len(data),
                "kept": False,
                "bytes_before_trailing_zeros": len(data.rstrip(b"\0")),
                "sha256": hashlib.sha256(data).hexdigest(),
            }
            continue
        copy = target / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(data)
    save_json(target.parent / f"{target.name}.files.json", listing)


def save_json(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=1, ensure_ascii=True) + "\n", encoding="ascii")


def save_text(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def dump(source: Path, target: Path, *options: str, line: str = "4") -> None:
    """What Kafka's own dump tool says of the files in one directory."""
    for path in sorted(source.iterdir()):
        kinds = {".log", ".checkpoint", ".index", ".timeindex", ".snapshot", ".txnindex"}
        if path.suffix not in kinds:
            continue
        if path.suffix in {".index", ".timeindex", ".txnindex"} and path.stat().st_size == 0:
            continue
        chosen = list(options) if path.suffix in {".log", ".checkpoint"} else []
        files = ["--files", f"{source.name}/{path.name}"]
        done = run_tool(DUMP, [*files, *chosen], line=line, cwd=source.parent)
        text = done.stdout + done.stderr
        save_text(target / f"{path.name}.txt", text.replace(f"{source.parent}/", ""))


def is_metadata(name: str) -> bool:
    """Files of a node without the user partitions' directories."""
    return "/" not in name or name.startswith("__cluster_metadata-0/")


def fresh(name: str) -> Path:
    target = HERE / name
    shutil.rmtree(target, ignore_errors=True)
    return target


def metadata_dumps(lab: Lab, out: Path, i: int = 1) -> None:
    """Dump a node's metadata log and bootstrap file into the directory ``out``."""
    options = ("--cluster-metadata-decoder", "--deep-iteration")
    log = "__cluster_metadata-0"
    dump(lab.data(i) / log, out / log, *options, line=lab.line)
    if not (lab.data(i) / "bootstrap.checkpoint").exists():
        return  # since 4.4 the first snapshot has what stood there (KIP-1170)
    name = f"{lab.data(i).name}/bootstrap.checkpoint"
    done = run_tool(DUMP, ["--files", name, *options], cwd=lab.work)
    save_text(out / "bootstrap.checkpoint.txt", done.stdout + done.stderr)


# --- steps -----------------------------------------------------------------


def kraft3(work: Path) -> None:
    """Three combined nodes, static voters: most record types, a kill, elections."""
    lab = Lab(
        work / "kraft3",
        (1, 2, 3),
        metadata__log__max__record__bytes__between__snapshots=6000,
        internal__metadata__log__segment__bytes=8192,
        broker__session__timeout__ms=4000,
        broker__heartbeat__interval__ms=1000,
        authorizer__class__name="org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        super__users="User:ANONYMOUS",
    )
    try:
        lab.format("--add-scram", "SCRAM-SHA-256=[name=root,password=root-secret,iterations=4096]")
        lab.start()
        target = fresh("kraft3")
        run_kraft3(lab, target)
        lab.stop()
    finally:
        lab.kill()
    for i in lab.ids:
        keep_tree(lab.data(i), target / f"node-{i}", is_metadata)
    # The three logs are the same bytes: one dump does.
    metadata_dumps(lab, target / "dump" / "node-1")


def run_kraft3(lab: Lab, target: Path) -> None:
    lab.tool(TOPICS, "--create", "--topic", "six", "--partitions", "6", "--replication-factor", "1")
    lab.tool(
        TOPICS,
        *("--create", "--topic", "safe", "--partitions", "3", "--replication-factor", "3"),
        *("--config", "min.insync.replicas=2", "--config", "retention.ms=86400000"),
    )
    lab.tool(TOPICS, "--create", "--topic", "gone", "--partitions", "1")
    lab.tool(TOPICS, "--alter", "--topic", "six", "--partitions", "7")
    alter_configs(lab)
    lab.produce("safe", (f"m{i}" for i in range(5)))
    note("kraft3: kill a node that is not the active controller")
    leader = active_controller(lab)
    victim = next(i for i in lab.ids if i != leader)
    lab.nodes[victim].kill()
    lab.until("fencing", lambda: len(isr_of(lab, "safe", leader)) == 2)
    lab.start(victim)
    lab.until("ISR growth", lambda: len(isr_of(lab, "safe", leader)) == 3)
    note("kraft3: kill the active controller")
    lab.nodes[leader].kill()
    lab.until("a new leader", lambda: len(isr_of(lab, "safe", victim)) == 2)
    lab.start(leader)
    lab.until("ISR growth", lambda: len(isr_of(lab, "safe", victim)) == 3)
    change_replicas(lab)
    lab.tool(TOPICS, "--delete", "--topic", "gone")
    quorum = "org.apache.kafka.tools.MetadataQuorumCommand"
    text = lab.tool(quorum, "describe", "--status")
    text += "\n" + lab.tool(quorum, "describe", "--replication")
    save_text(target / "quorum-describe.txt", text)
    save_text(
        target / "features-describe.txt",
        lab.tool("org.apache.kafka.tools.FeatureCommand", "describe"),
    )
    save_text(target / "topics-describe.txt", lab.tool(TOPICS, "--describe"))


def alter_configs(lab: Lab) -> None:
    topic = ("--entity-type", "topics", "--entity-name", "six")
    lab.tool(CONFIGS, "--alter", *topic, "--add-config", "retention.ms=3600000,segment.ms=600000")
    lab.tool(CONFIGS, "--alter", *topic, "--delete-config", "segment.ms")
    brokers = ("--entity-type", "brokers", "--entity-default")
    lab.tool(CONFIGS, "--alter", *brokers, "--add-config", "log.retention.ms=7200000")
    users = ("--entity-type", "users", "--entity-name", "alice")
    lab.tool(
        CONFIGS, "--alter", *users, "--add-config", "SCRAM-SHA-512=[iterations=4096,password=a-b-c]"
    )
    lab.tool(CONFIGS, "--alter", *users, "--delete-config", "SCRAM-SHA-512")
    lab.tool(
        CONFIGS,
        *("--alter", "--entity-type", "users", "--entity-name", "bob"),
        *("--entity-type", "clients", "--entity-default"),
        *("--add-config", "producer_byte_rate=1024,request_percentage=12.5"),
    )
    acl = ("--allow-principal", "User:bob", "--topic", "six")
    lab.tool(ACLS, "--add", *acl, "--operation", "Read", "--operation", "Describe")
    lab.tool(ACLS, "--remove", "--force", *acl, "--operation", "Describe")


def change_replicas(lab: Lab) -> None:
    """A reassignment, then the preferred leaders, then a feature downgrade."""
    now = lab.tool(TOPICS, "--describe", "--topic", "six")
    found = re.search(r"Partition: 0\s+Leader: \d+\s+Replicas: (\d+)", now)
    assert found is not None
    other = next(i for i in lab.ids if i != int(found.group(1)))
    plan = {
        "version": 1,
        "partitions": [{"topic": "six", "partition": 0, "replicas": [other]}],
    }
    save_json(lab.work / "plan.json", plan)
    reassign = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
    lab.tool(reassign, "--reassignment-json-file", "plan.json", "--execute")
    lab.until(
        "the reassignment",
        lambda: (
            re.search(
                rf"Partition: 0\s+Leader: {other}\s+Replicas: {other}\s",
                lab.tool(TOPICS, "--describe", "--topic", "six"),
            )
            is not None
        ),
    )
    lab.tool(
        "org.apache.kafka.tools.LeaderElectionCommand",
        *("--election-type", "preferred", "--all-topic-partitions"),
    )
    lab.tool("org.apache.kafka.tools.FeatureCommand", "downgrade", "--feature", "share.version=0")


def active_controller(lab: Lab) -> int:
    text = lab.tool("org.apache.kafka.tools.MetadataQuorumCommand", "describe", "--status")
    found = re.search(r"LeaderId:\s+(\d+)", text)
    assert found is not None
    return int(found.group(1))


def isr_of(lab: Lab, topic: str, through: int) -> list[int]:
    """The smallest ISR of a topic's partitions, as one broker knows it."""
    body = Out().array([topic], lambda o, t: o.raw(bytes(16)).string(t).tags())
    with Connection(BROKER_PORT + through) as connection:
        answer = connection.call(3, 12, body.flag(False).flag(False).tags())
    return wire_captures.smallest_isr(answer)


def standalone(work: Path) -> None:
    """kraft.version 1: format --standalone; then one start and orderly stop."""
    target = fresh("standalone")
    lab = Lab(work / "standalone", dynamic=True)
    try:
        lab.format("--standalone")
        keep_tree(lab.data(), target / "after-format")
        metadata_dumps(lab, target / "dump" / "after-format")
        lab.start()
        describe = "org.apache.kafka.tools.MetadataQuorumCommand"
        save_text(target / "quorum-describe.txt", lab.tool(describe, "describe", "--status"))
        lab.stop()
        keep_tree(lab.data(), target / "after-restart")
        metadata_dumps(lab, target / "dump" / "after-restart")
    finally:
        lab.kill()
    other = Lab(work / "initial", (1, 2, 3), dynamic=True)
    ids = ["AQIDBAUGBwgJCgsMDQ4PEA", "EQIDBAUGBwgJCgsMDQ4PEA", "IQIDBAUGBwgJCgsMDQ4PEA"]
    voters = [f"{i}@{HOST}:{CONTROLLER_PORT + i}:{ids[i - 1]}" for i in (1, 2, 3)]
    format_storage(other.properties(1), CLUSTER_ID, "--initial-controllers", ",".join(voters))
    keep_tree(other.data(), target / "initial-controllers")
    metadata_dumps(other, target / "dump" / "initial-controllers")


def killed(work: Path) -> None:
    """A node with open segments, ended by SIGKILL: preallocated indexes, no marks."""
    target = fresh("killed")
    lab = Lab(work / "killed")
    try:
        lab.format()
        lab.start()
        lab.tool(
            TOPICS,
            *("--create", "--topic", "t", "--partitions", "1"),
            *("--config", "index.interval.bytes=100"),
        )
        for part in range(3):
            lab.produce("t", (f"value {part} {i}" for i in range(10)))
        os.kill(lab.nodes[1].pid, signal.SIGKILL)
        lab.kill()
    finally:
        lab.kill()
    keep_tree(lab.data(), target / "node-1")
    metadata_dumps(lab, target / "dump" / "node-1")


def versions(work: Path) -> None:
    """One combined node whose metadata.version rises: records of many versions in one log."""
    target = fresh("versions")
    lab = Lab(work / "versions")
    try:
        lab.format("--release-version", "3.3")
        lab.start()
        for release in ("3.3", "3.6", "3.7", "4.0", version()):
            if release != "3.3":
                upgrade = ("upgrade", "--release-version", release)
                lab.tool("org.apache.kafka.tools.FeatureCommand", *upgrade)
            topic = ("--topic", f"made-in-{release}", "--partitions", "2")
            lab.tool(TOPICS, "--create", *topic, "--config", "retention.ms=3600000")
        lab.tool(TOPICS, "--alter", "--topic", "made-in-3.3", "--partitions", "3")
        lab.tool(TOPICS, "--delete", "--topic", "made-in-3.6")
        lab.stop()
        lab.start()  # a second epoch, and a registration at the highest level
        lab.stop()
    finally:
        lab.kill()
    keep_tree(lab.data(), target / "node-1", is_metadata)
    metadata_dumps(lab, target / "dump" / "node-1")


def dynamic(work: Path) -> None:
    """kraft.version 1: voters that come and go; one controller and one combined node."""
    target = fresh("dynamic")
    lab = Lab(work / "dynamic", (1, 2), dynamic=True)
    quorum = "org.apache.kafka.tools.MetadataQuorumCommand"
    of_node_2 = ("--command-config", str(lab.properties(2)))
    try:
        format_storage(lab.properties(1), CLUSTER_ID, "--standalone")
        format_storage(lab.properties(2), CLUSTER_ID, "--no-initial-controllers")
        lab.start()
        lab.tool(TOPICS, "--create", "--topic", "t", "--partitions", "2")
        lab.tool(quorum, *of_node_2, "add-controller")
        lab.tool(
            quorum,
            *("remove-controller", "--controller-id", "2"),
            *("--controller-directory-id", directory_id(lab.data(2))),
        )
        lab.tool(quorum, *of_node_2, "add-controller")
        save_text(target / "quorum-describe.txt", lab.tool(quorum, "describe", "--status"))
        lab.stop()
    finally:
        lab.kill()
    for i in lab.ids:
        keep_tree(lab.data(i), target / f"node-{i}", is_metadata)
    metadata_dumps(lab, target / "dump" / "node-1")


def newest(work: Path) -> None:
    """Kafka 4.4: bootstrap records in the first snapshot; a network in an ACL; a controller that
    comes, and is unregistered."""
    target = fresh("newest")
    authorizer = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    lab = Lab(
        work / "newest",
        (1, 2),
        line="4.4",
        dynamic=True,
        authorizer__class__name=authorizer,
        super__users="User:ANONYMOUS",
    )
    quorum = "org.apache.kafka.tools.MetadataQuorumCommand"
    of_node_2 = ("--command-config", str(lab.properties(2)))
    static = Lab(work / "static", line="4.4")
    add_scram = ("--add-scram", "SCRAM-SHA-256=[name=root,password=root-secret,iterations=4096]")
    try:
        static.format(*add_scram)
        keep_tree(static.data(), target / "static-after-format", is_metadata)
        format_storage(lab.properties(1), CLUSTER_ID, "--standalone", *add_scram, line="4.4")
        keep_tree(lab.data(), target / "after-format", is_metadata)
        format_storage(lab.properties(2), CLUSTER_ID, "--no-initial-controllers", line="4.4")
        lab.start()
        lab.tool(TOPICS, "--create", "--topic", "t", "--partitions", "2")
        network = ("--allow-principal", "User:a", "--allow-host", "10.1.0.0/16")
        lab.tool(ACLS, "--add", *network, "--operation", "Read", "--topic", "t")
        lab.tool(quorum, *of_node_2, "add-controller")
        lab.tool(
            quorum,
            *("remove-controller", "--controller-id", "2"),
            *("--controller-directory-id", directory_id(lab.data(2))),
        )
        lab.nodes[2].stop()
        cluster = "org.apache.kafka.tools.ClusterTool"
        asked = ["unregister-controller", "--bootstrap-server", lab.bootstrap, "--id", "2"]
        run_tool(cluster, asked, line="4.4", check=True)
        lab.stop()
    finally:
        lab.kill()
    keep_tree(lab.data(), target / "node-1", is_metadata)
    metadata_dumps(lab, target / "dump" / "node-1")
    metadata_dumps(static, target / "dump" / "static-after-format")


def directory_id(data: Path) -> str:
    found = re.search(r"directory\.id=(\S+)", (data / "meta.properties").read_text())
    assert found is not None
    return found.group(1)


def shell(work: Path) -> None:
    """What MetadataShell shows of whole logs and snapshots among the golden files."""
    del work
    for step in ("kraft3", "killed", "versions", "dynamic"):
        for path in sorted(HERE.glob(f"{step}/node-1/__cluster_metadata-0/*")):
            begins, _, epoch = path.stem.partition("-")
            is_whole = path.suffix == ".log" and int(begins) == 0
            if is_whole or (path.suffix == ".checkpoint" and int(epoch)):
                tree = shell_tree(path)
                save_text(HERE / step / "shell" / "node-1" / f"{path.name}.txt", tree)


def shell_tree(path: Path) -> str:
    """It may show an image that is not loaded yet: ask again."""
    arguments = ["--snapshot", str(path), "tree", "/image"]
    for _ in range(5):
        done = run_tool("org.apache.kafka.shell.MetadataShell", arguments, timeout=20.0)
        if done.returncode == 0 and "offset -1, epoch -1" not in done.stdout:
            return done.stdout
    raise RuntimeError(f"the shell loads nothing of {path}")


def data(work: Path) -> None:
    """User partitions: every codec, idempotent, transactional, offsets, rolled."""
    target = fresh("data")
    lab = Lab(work / "data", log__initial__task__delay__ms=500)
    try:
        lab.format()
        lab.start()
        lab.tool(
            TOPICS,
            *("--create", "--topic", "t", "--partitions", "1"),
            *("--config", "index.interval.bytes=200"),
        )
        lab.tool(
            TOPICS,
            *("--create", "--topic", "stamped", "--partitions", "1"),
            *("--config", "message.timestamp.type=LogAppendTime"),
        )
        lab.tool(
            TOPICS,
            *("--create", "--topic", "rolled", "--partitions", "1", "--config", "segment.ms=100"),
        )
        fill_data(lab)
        text = lab.tool(
            "org.apache.kafka.tools.consumer.ConsoleConsumer",
            *("--topic", "t", "--group", "g", "--from-beginning", "--max-messages", "26"),
            *("--isolation-level", "read_committed"),
            *("--formatter-property", "print.offset=true"),
            *("--formatter-property", "print.key=true"),
            *("--formatter-property", "print.headers=true"),
        )
        save_text(target / "consumed.txt", text)
        lab.stop()
    finally:
        lab.kill()
    keep_tree(lab.data(), target / "node-1")
    metadata_dumps(lab, target / "dump" / "node-1")
    out = target / "dump" / "node-1"
    for name in ("t-0", "stamped-0", "rolled-0"):
        dump(lab.data() / name, out / name, "--print-data-log", "--deep-iteration")
    dump(lab.data() / "__consumer_offsets-0", out / "__consumer_offsets-0", "--offsets-decoder")
    dump(
        lab.data() / "__transaction_state-0",
        out / "__transaction_state-0",
        "--transaction-log-decoder",
    )


def fill_data(lab: Lab) -> None:
    plain = ("--command-property", "enable.idempotence=false")
    reader = ("--reader-property", "parse.key=true", "--reader-property", "parse.headers=true")
    lab.produce("t", [f"h1:a{i},h2:b\tk{i}\tplain {i}" for i in range(4)], *plain, *reader)
    for codec in ("gzip", "snappy", "lz4", "zstd"):
        lines = [f"{codec} {'z' * 60} {i}" for i in range(4)]
        lab.produce("t", lines, "--compression-codec", codec, *plain)
    lab.produce("t", [f"idempotent {i}" for i in range(4)], "--sync")
    lab.produce("stamped", ["stamped 0", "stamped 1"], "--compression-codec", "gzip")
    with Connection(BROKER_PORT + 1) as connection:
        transactions(connection)
        roll(connection)


def produce_body(
    topic: str, records: bytes, *, transactional_id: str | None = None, acks: int = -1
) -> Out:
    body = Out().string(transactional_id).i16(acks).i32(10000)
    return body.array(
        [topic],
        lambda o, t: o.string(t).array([records], lambda p, r: p.i32(0).blob(r).tags()).tags(),
    ).tags()


def transactions(connection: Connection) -> None:
    """One committed and one aborted transaction (client side of version 1)."""
    name = "golden-tx"
    find = Out().i8(1).array([name], Out.string).tags()
    ready = False
    for _ in range(60):
        answer = connection.call(10, 4, find)
        answer.i32()
        codes = answer.array(
            lambda r: (r.string(), r.i32(), r.string(), r.i32(), r.i16(), r.string(), r.tags())
        )
        ready = codes[0][4] == 0
        if ready:
            break
        time.sleep(0.5)
    assert ready, "no transaction coordinator"
    init = Out().string(name).i32(60000).i64(-1).i16(-1).tags()
    error, producer, epoch = 15, -1, -1
    while error in {14, 15, 16}:
        time.sleep(0.5)
        answer = connection.call(22, 4, init)
        answer.i32()
        error, producer, epoch = answer.i16(), answer.i64(), answer.i16()
    assert error == 0, f"InitProducerId: {error}"
    sequence = 0
    for commit in (True, False):
        head = Out().string(name).i64(producer).i16(epoch)
        add = (
            Out()
            .raw(bytes(head.data))
            .array(["t"], lambda o, t: o.string(t).array([0], Out.i32).tags())
        )
        settled(connection, 24, 3, add.tags())
        values = [f"transaction {commit} {i}".encode() for i in range(2)]
        records = batch(
            values,
            int(time.time() * 1000),
            producer_id=producer,
            producer_epoch=epoch,
            sequence=sequence,
            transactional=True,
        )
        sequence += len(values)
        connection.call(0, 9, produce_body("t", records, transactional_id=name))
        settled(connection, 26, 3, Out().raw(bytes(head.data)).flag(commit).tags())


def settled(connection: Connection, key: int, api_version: int, body: Out) -> None:
    """Repeat a transaction request while the answer says concurrent transaction."""
    for _ in range(50):
        connection.call(key, api_version, body)
        if b"\x00\x33" not in connection.response[9:]:
            break
        time.sleep(0.1)


def roll(connection: Connection) -> None:
    """Three segments with a producer's state: appends further apart than segment.ms."""
    answer = connection.call(22, 4, Out().string(None).i32(60000).i64(-1).i16(-1).tags())
    answer.i32()
    assert answer.i16() == 0
    producer, epoch = answer.i64(), answer.i16()
    for part in range(3):
        records = batch(
            [f"roll {part}".encode()],
            int(time.time() * 1000),
            producer_id=producer,
            producer_epoch=epoch,
            sequence=part,
            compress=part == 1,
        )
        connection.call(0, 9, produce_body("rolled", records))
        time.sleep(0.4)


def live(work: Path) -> None:
    """One combined node: ApiVersions tables, raw exchanges, admin errors."""
    lab = Lab(work / "live", metadata__log__max__record__bytes__between__snapshots=1000)
    try:
        lab.format()
        lab.start()
        lab.tool(TOPICS, "--create", "--topic", "w", "--partitions", "2")
        # A second epoch, so that there is an old one to name in a request.
        lab.stop()
        lab.start()
        log = lab.data() / "__cluster_metadata-0"
        lab.until("a snapshot", lambda: any(log.glob("*.checkpoint")))
        save_api_versions(lab)
        described = described_configs.capture(BROKER_PORT + 1)
        save_json(HERE / "configs.json", {"kafka": version(), "resources": described})
        target = fresh("wire")
        exchanges = wire_captures.capture(BROKER_PORT + 1, CONTROLLER_PORT + 1, CLUSTER_ID)
        for name, found in exchanges.items():
            save_json(target / f"{name}.json", {"kafka": version(), "exchanges": found})
        errors = admin_errors.capture(BROKER_PORT + 1, CONTROLLER_PORT + 1)
        save_json(HERE / "admin_errors.json", {"kafka": version(), "cases": errors})
        lab.stop()
    finally:
        lab.kill()


def save_api_versions(lab: Lab) -> None:
    text = lab.tool("org.apache.kafka.tools.BrokerApiVersionsCommand")
    names = {int(key): name for name, key in re.findall(r"(\w+)\((\d+)\):", text)}
    names.update(wire_captures.CONTROLLER_NAMES)
    for listener, port in (("broker", BROKER_PORT + 1), ("controller", CONTROLLER_PORT + 1)):
        save_json(
            HERE / f"api_versions_{listener}.json",
            {
                "kafka": version(),
                "listener": listener,
                **wire_captures.api_versions_table(port, names),
            },
        )


def features(work: Path) -> None:
    """What each release's metadata.version implies for the other features."""
    del work
    table: dict[str, Mapping[str, int]] = {}
    tool = "kafka.tools.StorageTool"
    levels = wire_captures.METADATA_VERSIONS
    for level, name in levels.items():
        done = run_tool(tool, ["version-mapping", "--release-version", name], line="4.4")
        found = {key: int(value) for key, value in re.findall(r"(\S+\.version)=(\d+)", done.stdout)}
        if done.returncode != 0 or found.get("metadata.version") != level:
            raise RuntimeError(f"version-mapping {name}: {done.stdout}{done.stderr}")
        table[name] = found
    needs: dict[str, list[str]] = {}
    for feature in wire_captures.FEATURES:
        done = run_tool(tool, ["feature-dependencies", "--feature", feature], line="4.4")
        needs[feature] = (done.stdout + done.stderr).strip().splitlines()
    about = {"kafka": version("4.4"), "mapping": table, "dependencies": needs}
    save_json(HERE / "features.json", about)


def schemas(work: Path) -> None:
    """Valid versions of every message and metadata record, from the jars' schemas."""
    del work
    table: dict[str, dict[str, object]] = {}
    for jar, folder, kind in (
        ("kafka-metadata", "common/metadata/", "metadata"),
        ("kafka-clients", "common/message/", "message"),
    ):
        found: dict[str, object] = {}
        with zipfile.ZipFile(jar_dir() / f"{jar}-{version()}.jar") as archive:
            for name in sorted(archive.namelist()):
                if not name.startswith(folder) or not name.endswith(".json"):
                    continue
                text = archive.read(name).decode()
                lines = [line for line in text.splitlines() if not line.strip().startswith("//")]
                schema = json.loads(re.sub(r"\s//[^\n\"]*(?=\n)", "", "\n".join(lines)))
                if "apiKey" in schema or schema["type"] == "data":
                    keys = ("apiKey", "type", "validVersions", "flexibleVersions")
                    latest = {"latestVersionUnstable": True}
                    unstable = latest if schema.get("latestVersionUnstable") else {}
                    found[schema["name"]] = {
                        **{key: schema[key] for key in keys if key in schema},
                        **unstable,
                    }
        table[kind] = found
    save_json(HERE / "schemas.json", {"kafka": version(), **table})


def zookeeper(work: Path) -> None:
    """ZooKeeper mode of 3.9: every znode of a one-broker cluster, with its data."""
    lab = work / "zookeeper"
    lab.mkdir()
    ports = {"zookeeper": CONTROLLER_PORT, "broker": BROKER_PORT}
    zoo = write_properties(
        lab / "zoo.properties",
        {
            "dataDir": lab / "zk",
            "clientPort": ports["zookeeper"],
            "clientPortAddress": HOST,
            "admin.enableServer": "false",
        },
    )
    server = write_properties(
        lab / "server.properties",
        {
            "broker.id": 0,
            "broker.rack": "r1",
            "zookeeper.connect": f"{HOST}:{ports['zookeeper']}",
            "listeners": f"PLAINTEXT://{HOST}:{ports['broker']}",
            "log.dirs": lab / "data",
            "offsets.topic.replication.factor": 1,
            "offsets.topic.num.partitions": 1,
        },
    )
    main_class = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
    keeper = JavaServer(
        main_class,
        [str(zoo)],
        lab / "zk.out",
        line="3.9",
        heap="128m",
        ready_pattern=None,
        ready_ports=[(HOST, ports["zookeeper"])],
    )
    with keeper, KafkaNode(server, lab / "broker.out", line="3.9"):
        to_broker = ["--bootstrap-server", f"{HOST}:{ports['broker']}"]
        for args in (
            ["--create", "--topic", "t", "--partitions", "2", "--config", "retention.ms=1000000"],
            ["--create", "--topic", "gone"],
            ["--delete", "--topic", "gone"],
        ):
            run_tool(TOPICS, [*to_broker, *args], line="3.9", check=True)
        add = ["--alter", "--entity-type", "brokers", "--entity-default", "--add-config"]
        run_tool(CONFIGS, [*to_broker, *add, "log.cleaner.threads=2"], line="3.9", check=True)
        time.sleep(2.0)
        znodes = read_znodes(ports["zookeeper"])
    meta = (lab / "data" / "meta.properties").read_text()
    lines = [line for line in meta.splitlines() if not line.startswith("#")]
    save_json(
        HERE / "zookeeper.json",
        {"kafka": version("3.9"), "znodes": znodes, "meta.properties": sorted(lines)},
    )


def read_znodes(port: int) -> dict[str, object]:
    """Path -> data, version, owner of all znodes outside /zookeeper."""

    def shell(*args: str) -> str:
        done = run_tool(
            "org.apache.zookeeper.ZooKeeperMain",
            ["-server", f"{HOST}:{port}", *args],
            line="3.9",
            check=True,
        )
        return done.stdout.split("path:null\n", 1)[1]

    found: dict[str, object] = {}
    for path in shell("ls", "-R", "/").split():
        if path == "/" or path.startswith("/zookeeper"):
            continue
        data, _, stat = shell("get", "-s", path).partition("cZxid")
        found[path] = {
            "data": None if data.strip() == "null" else data.strip(),
            "version": int(re.findall(r"dataVersion = (\d+)", stat)[0]),
            "ephemeral": "ephemeralOwner = 0x0\n" not in stat,
        }
    return found


STEPS: dict[str, Callable[[Path], None]] = {
    "standalone": standalone,
    "killed": killed,
    "data": data,
    "live": live,
    "features": features,
    "schemas": schemas,
    "zookeeper": zookeeper,
    "kraft3": kraft3,
    "versions": versions,
    "newest": newest,
    "dynamic": dynamic,
    "shell": shell,  # of what is there
}


def main() -> int:
    parser = argparse.ArgumentParser(description="capture the golden files")
    parser.add_argument("steps", nargs="*", metavar="STEP", help=" ".join(STEPS))
    parser.add_argument("--keep", action="store_true", help="leave the temporary directory")
    options = parser.parse_args()
    unknown = set(options.steps) - set(STEPS)
    if unknown:
        parser.error(f"unknown steps: {' '.join(sorted(unknown))}")
    work = Path(tempfile.mkdtemp(prefix="golden-"))
    try:
        for step in options.steps or STEPS:
            note(f"{step} (Kafka {version()})")
            STEPS[step](work)
    finally:
        if options.keep:
            note(f"left {work}")
        else:
            shutil.rmtree(work, ignore_errors=True)
    note("done")
    return 0


if __name__ == "__main__":
    sys.exit(main())
