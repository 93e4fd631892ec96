"""What a node refuses, and how it ends: with words that say what to do, and nothing lost.

Each sentence of "errors" in the project's promise is held against real processes: no stack trace,
no hang, no silent death, and an exit code that says that something is wrong.
"""

import json
import os
import resource
import shutil
import socket
import ssl
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from prometheus_client.parser import text_string_to_metric_families

from jepsen_like.real.free_ports import free_ports
from jepsen_like.real.layout import NodeLayout
from jepsen_like.real.local_cluster import LocalCluster
from quorumlab.workload import Account, read_back
from wire.batch import Record, assign, build_batch, headers

ROOT = Path(__file__).parent.parent.parent
TOPIC = "kept"
TOO_LONG_SECONDS = 30.0
OTHER_CLUSTER = "b3RoZXJvdGhlcm90aGVyMA"
KRAFT_VERSION_RECORD = 5
GIGABYTES = struct.pack(">i", 2**31 - 1)


@dataclass(frozen=True, slots=True)
class Outcome:
    code: int
    output: str


def start(*arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "quorumlab", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=ROOT,
    )


def outcome(process: "subprocess.Popen[str]") -> Outcome:
    try:
        output, _ = process.communicate(timeout=TOO_LONG_SECONDS)
    finally:
        process.kill()
    return Outcome(process.returncode, output)


def check(refused: Outcome, *words: str) -> None:
    assert refused.code == 1, refused.output
    assert "Traceback" not in refused.output
    last = refused.output.splitlines()[-1]
    assert last.startswith("quorumlab: ")
    assert [word for word in words if word not in last] == [], last


# --- a small cluster that has something to lose -----------------------------------------------


def produce(servers: str, count: int, *, size: int = 10, timeout_ms: int = 9000) -> Account:
    """Records up to the first that is not acknowledged."""
    account = Account()

    def delivered(error: object, message: object) -> None:
        if error is None:
            place = (message.partition(), message.offset())  # type: ignore[attr-defined]
            account.acknowledged[place] = message.value()  # type: ignore[attr-defined]
        else:
            account.failed += 1

    settings = {"bootstrap.servers": servers, "acks": "all", "message.timeout.ms": timeout_ms}
    producer = Producer(settings | {"log_level": 0, "error_cb": lambda _: None})
    for number in range(count):
        producer.produce(TOPIC, (b"%d " % number).ljust(size, b"x"), on_delivery=delivered)
        producer.poll(0)
        if number % 10 == 0:
            producer.flush()
        if account.failed:
            break
    producer.flush()
    return account


def make_cluster(directory: Path) -> LocalCluster:
    cluster = LocalCluster.create(directory, controllers=1, brokers=1, combined=True)
    cluster.start_all()
    cluster.wait_ready()
    admin = AdminClient({"bootstrap.servers": cluster.layout.bootstrap_servers})
    admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result(15)
    return cluster


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LocalCluster, Account]]:
    """A combined node with a hundred records, stopped in good order."""
    cluster = make_cluster(tmp_path_factory.mktemp("written"))
    try:
        account = produce(cluster.layout.bootstrap_servers, 100)
        assert len(account.acknowledged) == 100
        cluster.stop_all()
        yield cluster, account
    finally:
        cluster.stop_all()


@pytest.fixture(scope="module")
def node(written: tuple[LocalCluster, Account]) -> Iterator[NodeLayout]:
    """The same node, running again."""
    cluster, _ = written
    cluster.start_all()
    cluster.wait_ready()
    yield cluster.layout.nodes[0]
    cluster.stop_all()


def configure(node: NodeLayout, path: Path, file: Path, changes: dict[str, str]) -> tuple[str, ...]:
    """The arguments of a node like this one on the directory `path`, with other ports."""
    ports = free_ports()
    controller = next(ports)
    settings = {
        "process.roles": "broker,controller",
        "node.id": str(node.id),
        "controller.quorum.voters": f"{node.id}@127.0.0.1:{controller}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://127.0.0.1:{next(ports)},CONTROLLER://127.0.0.1:{controller}",
        "quorumlab.http.listener": "127.0.0.1:0",
        "log.dirs": str(path),
    }
    file.write_text("".join(f"{key}={value}\n" for key, value in (settings | changes).items()))
    return ("node", "--config", str(file))


def damage(path: Path, position: int) -> bytes:
    """Turn one bit; returns what the file then holds."""
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)
    return bytes(content)


# --- before it has begun ----------------------------------------------------------------------

# Forks a process for each list of arguments, to pay once for the imports of all.
RUN_ALL = """
import json, os, sys
from quorumlab.cli import main
import quorumlab.verbs.run_node
from wire.canonical import preload

preload()
for arguments, output in json.load(sys.stdin):
    child = os.fork()
    if not child:
        log = os.open(output, os.O_WRONLY | os.O_CREAT)
        os.dup2(log, 1)
        os.dup2(log, 2)
        sys.exit(main(arguments))
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


class Refusals:
    """Every way to be refused before the work begins."""

    def __init__(self, node: NodeLayout, directory: Path) -> None:
        self.damaged: dict[Path, bytes] = {}
        self._node = node
        self._directory = directory
        self._runs: dict[str, tuple[tuple[str, ...], str]] = {}
        (directory / "foreign").mkdir()
        (directory / "foreign" / "thesis.txt").write_text("years of work")
        (directory / "file").write_text("no directory")
        for name in ("absent", "foreign", "file"):
            self._add(name, directory / name)
        self._add_wrong_ids()
        self._damage("meta.properties", "meta.properties", 0)
        self._damage("quorum-state", "__cluster_metadata-0/quorum-state", 0)
        self._damage("metadata", f"__cluster_metadata-0/{0:020}.log", 100)
        self._damage("records", f"{TOPIC}-0/{0:020}.log", 100)
        self._add_later_release()
        with socket.create_server(("127.0.0.1", 0)) as taken:
            self._add_taken_ports(taken.getsockname()[1])
            self.outcomes = self._run()

    def _add_wrong_ids(self) -> None:
        path = self._copy("ids")
        unused = "99@127.0.0.1:1"
        self._add("cluster id", path, {"cluster.id": OTHER_CLUSTER})
        self._add("format as", path, more=("--format-as", OTHER_CLUSTER))
        self._add("voters", path, {"controller.quorum.voters": unused})
        broker = {"process.roles": "broker", "listeners": "PLAINTEXT://127.0.0.1:0"}
        self._add("node id", path, broker | {"node.id": "7", "controller.quorum.voters": unused})

    def _add_taken_ports(self, port: int) -> None:
        listeners = f"PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:{port}"
        self._add("port", self._copy("port"), {"listeners": listeners})
        http = {"quorumlab.http.listener": f"127.0.0.1:{port}"}
        self._add("http port", self._copy("http"), http)

    def _add_later_release(self) -> None:
        """The metadata log ends with a version of a control record that is not known yet."""
        path = self._copy("later")
        (log,) = (path / "__cluster_metadata-0").glob("*.log")
        written = log.read_bytes()
        last = max((header for _, header in headers(written)), key=lambda each: each.base_offset)
        size = sum(header.size_bytes for _, header in headers(written))
        record = Record(struct.pack(">hh", 0, KRAFT_VERSION_RECORD), struct.pack(">hhb", 9, 1, 0))
        later = assign(
            build_batch([record], timestamp_ms=0, is_control=True),
            base_offset=last.next_offset,
            leader_epoch=last.leader_epoch,
        )
        log.write_bytes(written[:size] + later)
        self._add("later release", path)

    def _copy(self, name: str) -> Path:
        return Path(shutil.copytree(self._node.data, self._directory / name))

    def _add(
        self,
        name: str,
        path: Path,
        changes: dict[str, str] | None = None,
        more: tuple[str, ...] = (),
    ) -> None:
        file = self._directory / f"{name}.properties"
        self._runs[name] = (
            (*configure(self._node, path, file, changes or {}), *more),
            str(self._directory / f"{name}.out"),
        )

    def _damage(self, name: str, file: str, position: int) -> None:
        path = self._copy(f"damaged-{len(self.damaged)}")
        self.damaged[path / file] = damage(path / file, position)
        self._add(name, path)

    def _run(self) -> dict[str, Outcome]:
        done = subprocess.run(
            [sys.executable, "-c", RUN_ALL],
            input=json.dumps(list(self._runs.values())),
            capture_output=True,
            text=True,
            timeout=TOO_LONG_SECONDS * 2,
            cwd=ROOT,
            check=True,
        )
        return {
            name: Outcome(int(code), Path(output).read_text())
            for code, (name, (_, output)) in zip(
                done.stdout.split(), self._runs.items(), strict=True
            )
        }


@pytest.fixture(scope="module")
def refusals(
    written: tuple[LocalCluster, Account], tmp_path_factory: pytest.TempPathFactory
) -> Refusals:
    return Refusals(written[0].layout.nodes[0], tmp_path_factory.mktemp("refusals"))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("absent", ("does not exist", "quorumlab format --config FILE")),
        ("foreign", ("is not formatted", "quorumlab format --config FILE")),
        ("file", ("is no directory", "correct it")),
        ("node id", ("belongs to node 1, but node.id is 7", "correct node.id")),
        ("cluster id", ("belongs to cluster", OTHER_CLUSTER, "correct the directory")),
        ("format as", ("belongs to cluster", OTHER_CLUSTER, "correct the directory")),
        ("voters", ("node.id=1 is a controller but not one of", "correct node.id or the voters")),
        ("port", ("Address already in use; change `listeners`",)),
        ("http port", ("Address already in use; change `quorumlab.http.listener`",)),
        ("meta.properties", ("meta.properties", "restore it from a backup")),
        ("quorum-state", ("quorum-state", "restore it from a backup")),
        ("metadata", ("__cluster_metadata-0", "is damaged at byte", "restore the directory")),
        ("later release", ("KRaftVersion version 9", "a later release", "start that one")),
        ("records", (f"{TOPIC}-0", "is damaged at byte", "restore the directory")),
    ],
)
def test_node_does_not_start_on(refusals: Refusals, name: str, words: tuple[str, ...]) -> None:
    check(refusals.outcomes[name], *words)


def test_nothing_is_touched_by_a_refusal(refusals: Refusals) -> None:
    for path, content in refusals.damaged.items():
        assert path.read_bytes() == content, path


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_unreadable_directory_is_named(
    written: tuple[LocalCluster, Account], tmp_path: Path
) -> None:
    layout = written[0].layout.nodes[0]
    path = Path(shutil.copytree(layout.data, tmp_path / "data"))
    path.chmod(0)
    arguments = configure(layout, path, tmp_path / "properties", {})
    check(outcome(start(*arguments)), "cannot be read and written by this user")
    path.chmod(0o700)


def test_format_refuses_what_it_would_destroy(
    written: tuple[LocalCluster, Account], tmp_path: Path
) -> None:
    layout = written[0].layout.nodes[0]
    config = str(layout.config)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "thesis.txt").write_text("years of work")
    foreign = configure(layout, tmp_path / "data", tmp_path / "properties", {})[-1]
    again, skipped, other = (
        start("format", "--config", config),
        start("format", "--config", config, "--ignore-formatted"),
        start("format", "--config", foreign),
    )
    check(outcome(again), "is formatted already", "--ignore-formatted")
    assert outcome(skipped) == Outcome(0, "All of the log directories are already formatted.\n")
    check(outcome(other), "holds 'thesis.txt'; nothing was changed")


# --- while it runs ----------------------------------------------------------------------------


def test_second_process_and_foreign_cluster_are_turned_away(
    node: NodeLayout, written: tuple[LocalCluster, Account], tmp_path: Path
) -> None:
    cluster, account = written
    stranger = configure(
        node,
        tmp_path / "stranger",
        tmp_path / "properties",
        {
            "node.id": "7",
            "process.roles": "broker",
            "listeners": f"PLAINTEXT://127.0.0.1:{next(free_ports())}",
            "controller.quorum.voters": f"{node.id}@127.0.0.1:{node.controller_port}",
        },
    )
    second = start("node", "--config", str(node.config))
    foreign = start(*stranger, "--format-as", OTHER_CLUSTER)
    process = cluster.process(node)
    assert process is not None
    check(outcome(second), f"is in use by process {process.pid}", "stop it first")
    check(outcome(foreign), f"is of cluster {OTHER_CLUSTER}", "correct controller.quorum.voters")
    _, broken = read_back(cluster.layout.bootstrap_servers, TOPIC, account)
    assert broken == []


def tls_hello() -> bytes:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname="broker")
    with suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


def frame(api_key: int, version: int, body: bytes) -> bytes:
    return struct.pack(">ihhih", 10 + len(body), api_key, version, 1, -1) + body


NONSENSE = {
    "2 GB": (GIGABYTES + b"x", "a frame of 2147483647 bytes, above the limit"),
    "negative": (struct.pack(">i", -7), "a frame has the length -7"),
    "HTTP": (b"GET / HTTP/1.1\r\nHost: broker\r\n\r\n", "this looks like an HTTP request"),
    "TLS": (tls_hello(), "this looks like a TLS handshake"),
    "random": (Random(1).randbytes(4000), "a frame"),
    "random frame": (struct.pack(">i", 99) + Random(2).randbytes(99), "not served"),
    "zeros": (bytes(64), "a request header needs 8 bytes, not 0"),
    "unknown API": (frame(999, 0, b""), "an unknown API (key 999)"),
    "bad ApiVersions": (frame(18, 3, b"\xff" * 9), "api_versions version 3"),
}


@pytest.mark.parametrize("name", NONSENSE)
@pytest.mark.parametrize("listener", ["PLAINTEXT", "CONTROLLER"])
def test_nonsense_loses_its_connection_and_nobody_else_does(
    node: NodeLayout, listener: str, name: str
) -> None:
    port = node.port if listener == "PLAINTEXT" else node.controller_port
    content, reason = NONSENSE[name]
    said_before = len(node.log.read_text())
    with (
        socket.create_connection(("127.0.0.1", port or 0), 5) as other,
        socket.create_connection(("127.0.0.1", port or 0), 5) as peer,
    ):
        address = "{}:{}".format(*peer.getsockname())
        with suppress(ConnectionError):  # it may be refused before we have said all
            peer.sendall(content)
        with suppress(ConnectionError):
            assert peer.recv(1) == b""
        other.sendall(frame(18, 0, b""))
        assert len(other.recv(100)) > 8, "another connection is still served"
    said = node.log.read_text()[said_before:].splitlines()
    (line,) = [line for line in said if f"peer={address} " in line]
    assert f"warning: connection closed peer={address} listener={listener} reason=" in line
    assert reason in line
    assert "Traceback" not in "".join(said)


def test_announced_gigabytes_take_no_memory(
    node: NodeLayout, written: tuple[LocalCluster, Account]
) -> None:
    def resident_bytes() -> float:
        with socket.create_connection((node.host, node.http_port), 5) as connection:
            connection.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            page = connection.makefile().read().partition("\n\n")[2]
        families = {family.name: family for family in text_string_to_metric_families(page)}
        return families["process_resident_memory_bytes"].samples[0].value

    before = resident_bytes()
    nearly = struct.pack(">i", 99 << 20)  # below the limit: it waits for the rest
    announced = [socket.create_connection((node.host, node.port), 5) for _ in range(20)]
    for connection in announced:
        connection.sendall(nearly + b"x")
    assert resident_bytes() - before < 50 << 20
    for connection in announced:
        connection.close()
    _, broken = read_back(written[0].layout.bootstrap_servers, TOPIC, written[1])
    assert broken == []


# --- how it ends ------------------------------------------------------------------------------

# Read by every Python process that has it in its path, before anything else runs.
FAULTS = """
import errno, os
from controller.controller import Controller

def planted():
    try:
        return open(os.environ["PLANTED_FAULT"]).read()
    except OSError:
        return ""

def fdatasync(fd, real=os.fdatasync):
    if planted() == "fsync":
        raise OSError(errno.EIO, os.strerror(errno.EIO))
    real(fd)

def tick(self, now_ms, real=Controller.tick):
    if planted() == "bug":
        raise ZeroDivisionError("planted")
    real(self, now_ms)

os.fdatasync, Controller.tick = fdatasync, tick
"""


def wait_for_the_end(cluster: LocalCluster, pid: int) -> tuple[int, str]:
    """Exit code and log of the only node."""
    deadline = time.monotonic() + TOO_LONG_SECONDS
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status), cluster.layout.nodes[0].log.read_text()
        assert time.monotonic() < deadline, "it neither works nor ends"
        time.sleep(0.02)


def restart_and_read(cluster: LocalCluster, account: Account) -> None:
    """What was acknowledged before the end is there after it."""
    assert account.acknowledged
    cluster.start_all()
    cluster.wait_ready()
    _, broken = read_back(cluster.layout.bootstrap_servers, TOPIC, account)
    assert broken == []


@pytest.fixture
def doomed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalCluster]:
    """A combined node in which a fault can be planted, by writing its name into a file."""
    (tmp_path / "sitecustomize.py").write_text(FAULTS)
    path = os.pathsep.join([str(tmp_path), str(ROOT), os.environ.get("PYTHONPATH", "")])
    monkeypatch.setenv("PYTHONPATH", path.rstrip(os.pathsep))
    monkeypatch.setenv("PLANTED_FAULT", str(tmp_path / "fault"))
    cluster = make_cluster(tmp_path / "cluster")
    try:
        yield cluster
    finally:
        (tmp_path / "fault").unlink(missing_ok=True)
        cluster.stop_all()


def test_failing_fsync_stops_the_node_with_a_message(doomed: LocalCluster, tmp_path: Path) -> None:
    account = produce(doomed.layout.bootstrap_servers, 20)
    pid = doomed.running()[1].pid
    (tmp_path / "fault").write_text("fsync")
    code, log = wait_for_the_end(doomed, pid)
    assert code == 1
    last = log.splitlines()[-1]
    assert last.startswith("quorumlab: cannot store __cluster_metadata-0: cannot sync ")
    assert "Input/output error; the disk is failing" in last
    assert "Traceback" not in log
    (tmp_path / "fault").unlink()
    restart_and_read(doomed, account)


def test_bug_in_a_core_ends_the_node_with_its_traceback(
    doomed: LocalCluster, tmp_path: Path
) -> None:
    pid = doomed.running()[1].pid
    (tmp_path / "fault").write_text("bug")
    code, log = wait_for_the_end(doomed, pid)
    assert code == 1
    assert " critical: node 1 fails\nTraceback (most recent call last):\n" in log
    assert "ZeroDivisionError: planted\n" in log
    last = log.splitlines()[-1]
    assert last.startswith("quorumlab: node 1 stopped on a bug, ZeroDivisionError: planted;")


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="limits of others: Linux only")
def test_full_disk_stops_the_node_and_loses_nothing(tmp_path: Path) -> None:
    """A limit of the file size stands for the disk: a write is cut short, then refused."""
    cluster = make_cluster(tmp_path / "cluster")
    try:
        pid = cluster.running()[1].pid
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (300_000, resource.RLIM_INFINITY))
        account = produce(cluster.layout.bootstrap_servers, 100, size=10_000, timeout_ms=1000)
        assert account.failed
        code, log = wait_for_the_end(cluster, pid)
        assert code == 1
        last = log.splitlines()[-1]
        assert f"{TOPIC}-0" in last
        assert "File too large; raise the file size limit (ulimit -f)" in last
        assert "Traceback" not in log
        restart_and_read(cluster, account)
    finally:
        cluster.stop_all()


@pytest.mark.extra
@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small file system: needs root")
def test_full_file_system_with_the_log_on_it(tmp_path: Path) -> None:
    """Not even the last words can be written: the exit code must do, and the records stay."""
    mount = tmp_path / "small"
    mount.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(mount)]
    if subprocess.run(command, check=False).returncode:
        pytest.skip("this machine mounts nothing")
    try:
        cluster = make_cluster(mount / "cluster")
        try:
            pid = cluster.running()[1].pid
            ballast = mount / "ballast"
            ballast.write_bytes(bytes(1_500_000))  # reading back makes 50 partitions of offsets
            account = produce(cluster.layout.bootstrap_servers, 2000, size=10_000, timeout_ms=1000)
            code, _ = wait_for_the_end(cluster, pid)
            assert code == 1
            ballast.unlink()
            restart_and_read(cluster, account)
        finally:
            cluster.stop_all()
    finally:
        subprocess.run(["umount", "-l", str(mount)], check=True)
