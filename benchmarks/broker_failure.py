"""A broker fails in a cluster of a million partitions: from the decision until all have applied it.

    python -m benchmarks broker-failure --partitions 100000 --format json

Three voters with fsync; brokers that are real registrations and real metadata followers, without
data (`peers.followers`): three of them in processes of their own, one to be killed, the others
several in a process. On the way: creating the partitions over the Kafka protocol, the memory of a
controller and of a follower, and the failover of the controllers.

All times of the failure are from the beginning of the decision: `decided_ms` when it is in the
active controller's log, `committed_ms` when the high watermark has passed it, `applied_ms` when the
last of the three separate followers has published the image, `applied_by_all_ms` when the last of
all has. `leader_processor_ms` is what the active controller has spent until the commit,
`follower_processor_ms` what a separate follower has since the image before: what else runs on the
machine moves these two least.
"""

import argparse
import json
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.figures import print_figure, progress
from benchmarks.peers.local import resident_megabytes, scratch_directory
from benchmarks.peers.quorum import leader_of
from jepsen_like.python_children import python_command, python_environment
from jepsen_like.real.free_ports import free_ports
from jepsen_like.real.kafka_client import Client
from jepsen_like.real.layout import NodeLayout
from jepsen_like.real.local_cluster import LocalCluster
from jepsen_like.real.processes import ProcessId, end, spawn
from jepsen_like.real.shape import Shape
from wire.batch import headers
from wire.errors import ErrorCode
from wire.messages.topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse

SEPARATE = (1, 2, 3)  # followers with a process of their own, and no other work
VICTIM = 4  # alone in its process, so that it can be killed
A_PROCESS = 9  # of the other followers
PER_REQUEST = 8_000  # partitions of a topic: Kafka lets a request write 10,000 records
FACTOR = 3
PATIENCE_SECONDS = 300.0


Figures = dict[str, float]  # by name and unit, in the order in which they were found


def main() -> None:
    args = _arguments()
    figures = Figures(partitions=args.partitions, brokers=args.brokers, replication_factor=FACTOR)
    with (
        scratch_directory() as directory,
        _cluster(directory) as cluster,
        _followers(directory, cluster, args.brokers) as followers,
    ):
        followers.wait_running()
        active, _ = leader_of(cluster)
        before = _memory(cluster, active, followers)
        _create(cluster, active, followers, args.partitions, figures)
        _note_memory(figures, before, _memory(cluster, active, followers), args.partitions)
        _note_stops(figures, cluster, active)
        _fail(cluster, active, followers, figures)
        _fail_over(cluster, active, figures)
    _print(figures, args)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="broker-failure")
    parser.add_argument("--partitions", type=int, default=1_000_000)
    parser.add_argument("--brokers", type=int, default=30)
    parser.add_argument("--format", choices=("json", "figures"), default="figures")
    args = parser.parse_args()
    if args.brokers < VICTIM + FACTOR:
        parser.error(f"--brokers: at least {VICTIM + FACTOR}")
    if args.partitions < 1:
        parser.error("--partitions: at least 1")
    return args


def _print(figures: Figures, args: argparse.Namespace) -> None:
    if args.format == "json":
        print(json.dumps(figures))
        return
    sizes = {name: figures.pop(name) for name in ("partitions", "brokers", "replication_factor")}
    for name, value in figures.items():
        what, _, unit = name.rpartition("_")
        print_figure(f"broker failure: {what.replace('_', ' ')}", value, unit, **sizes)


def _wait(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError(f"{what}: not within {PATIENCE_SECONDS:.0f} s")
        time.sleep(0.02)


# --- the cluster ----------------------------------------------------------------------------


class _Controllers(LocalCluster):
    command = tuple(python_command("benchmarks.peers.timed_controller"))

    def lines(self, node: NodeLayout) -> Iterator[dict[str, Any]]:
        """What the node has timed."""
        yield from _json_lines(node.log)


@contextmanager
def _cluster(directory: Path) -> Iterator[_Controllers]:
    layout = Shape(controllers=3, brokers=0).lay_out(directory / "cluster", free_ports())
    cluster = _Controllers(layout, {"default.replication.factor": str(FACTOR)})
    try:
        cluster.start_all()
        cluster.wait_ready()
        yield cluster
    finally:
        cluster.stop_all()


class _Followers:
    """The processes of the followers, and what they have said."""

    def __init__(self, directory: Path, cluster: _Controllers, brokers: int) -> None:
        rest = range(VICTIM + 1, brokers + 1)
        groups: list[tuple[int, ...]] = [(node_id,) for node_id in (*SEPARATE, VICTIM)]
        groups += [tuple(rest[at : at + A_PROCESS]) for at in range(0, len(rest), A_PROCESS)]
        self.node_ids = range(1, brokers + 1)
        self._log = directory / "followers.log"
        layout = cluster.layout
        voters = ",".join(f"{c.id}@{c.host}:{c.controller_port}" for c in layout.controllers)
        self.processes: dict[int, ProcessId] = {}  # by the first broker in it
        self._common = [str(directory / "followers"), layout.cluster_id, voters]
        self._groups = groups

    def start(self) -> None:
        for group in self._groups:
            command = python_command("benchmarks.peers.followers", *self._common, *map(str, group))
            environment = python_environment()
            self.processes[group[0]] = spawn(command, log=self._log, environment=environment)

    def wait_running(self) -> None:
        progress("waiting until all brokers are unfenced")
        _wait(
            lambda: (
                {line["node"] for line in self._lines() if line.get("state") == "RUNNING"}
                == set(self.node_ids)
            ),
            "brokers unfenced",
        )

    def wait_offset(self, offset: int) -> None:
        _wait(lambda: self.applied(offset).keys() == set(self.node_ids), f"offset {offset}")

    def applied(self, offset: int) -> dict[int, int]:
        """When each broker published an image that has everything before `offset`, in ns."""
        found: dict[int, int] = {}
        for line in self._lines():
            if line.get("offset", -1) >= offset:
                found.setdefault(line["node"], line["at_ns"])
        return found

    def processor_ns(self, node_id: int, known_to: int, offset: int) -> int:
        """What its process has spent from the image of `known_to` on until that of `offset`."""
        lines = [line for line in self._lines() if line["node"] == node_id and "offset" in line]
        before = max(line["processor_ns"] for line in lines if line["offset"] <= known_to)
        after = next(line["processor_ns"] for line in lines if line["offset"] >= offset)
        return int(after - before)

    def end(self, node_id: int) -> None:
        assert end(self.processes.pop(node_id), how=signal.SIGKILL, timeout_seconds=10.0)

    def _lines(self) -> Iterator[dict[str, Any]]:
        yield from _json_lines(self._log)


@contextmanager
def _followers(directory: Path, cluster: _Controllers, brokers: int) -> Iterator[_Followers]:
    followers = _Followers(directory, cluster, brokers)
    try:
        followers.start()
        yield followers
    finally:
        for first in tuple(followers.processes):
            followers.end(first)


def _json_lines(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_text().splitlines():
        if line.startswith("{") and line.endswith("}"):
            yield json.loads(line)


# --- what is measured -----------------------------------------------------------------------


def _create(
    cluster: _Controllers,
    active: NodeLayout,
    followers: _Followers,
    partitions: int,
    figures: Figures,
) -> None:
    """Topics of up to 8,000 partitions, one a request; the next when all have applied it.

    Thirty followers on two processors are the slowest by far: without a pause they would fall
    behind until their sessions end.
    """
    before = _log_bytes(active)
    began = time.monotonic()
    created, answering, slowest = 0, 0.0, 0.0
    with Client([(active.host, active.port)], timeout_seconds=60.0) as client:
        while created < partitions:
            count = min(PER_REQUEST, partitions - created)
            asked = time.monotonic()
            _create_topic(client, f"topic-{created // PER_REQUEST:04}", count)
            taken = time.monotonic() - asked
            answering, slowest = answering + taken, max(slowest, taken)
            followers.wait_offset(leader_of(cluster)[1].high_watermark)
            created += count
            progress(f"{created} partitions created")
    figures["creation_seconds"] = round(time.monotonic() - began, 2)
    figures["creation_answers_seconds"] = round(answering, 2)
    figures["slowest_answer_ms"] = round(slowest * 1e3, 1)
    figures["log_bytes"] = _log_bytes(active) - before


def _create_topic(client: Client, name: str, partitions: int) -> None:
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=FACTOR)
    request = CreateTopicsRequest(topics=(topic,), timeout_ms=60_000)
    answer = client.ask(request, CreateTopicsResponse).topics[0]
    assert answer.error_code is ErrorCode.NONE, answer


def _log_bytes(node: NodeLayout) -> int:
    """Counts the bytes of batches alone: segments end in preallocated zeros."""
    folder = node.data / "__cluster_metadata-0"
    segments = (path.read_bytes() for path in folder.glob("*.log"))
    return sum(header.size_bytes for content in segments for _, header in headers(content))


def _memory(cluster: _Controllers, active: NodeLayout, followers: _Followers) -> dict[str, float]:
    process = cluster.process(active)
    assert process is not None
    return {
        "controller": resident_megabytes(process.pid),
        "follower": resident_megabytes(followers.processes[SEPARATE[0]].pid),
    }


def _note_memory(
    figures: Figures, before: Mapping[str, float], after: Mapping[str, float], partitions: int
) -> None:
    for role, megabytes in after.items():
        figures[f"{role}_resident_MiB"] = round(megabytes, 1)
        grown = (megabytes - before[role]) * 2**20 / partitions
        figures[f"{role}_a_partition_bytes"] = round(grown, 1)


def _note_stops(figures: Figures, cluster: _Controllers, active: NodeLayout) -> None:
    """The longest stops of an event loop while a snapshot was written, creations in between."""

    def longest(nodes: list[NodeLayout]) -> float:
        lines = (line for node in nodes for line in cluster.lines(node))
        return max((line["stop_ms"] for line in lines if "stop_ms" in line), default=0.0)

    standbys = [node for node in cluster.layout.controllers if node.id != active.id]
    figures["active_longest_stop_while_saving_ms"] = longest([active])
    figures["standby_longest_stop_while_saving_ms"] = longest(standbys)


def _fail(
    cluster: _Controllers, active: NodeLayout, followers: _Followers, figures: Figures
) -> None:
    """Kill the victim, and follow what comes of it."""
    progress("killing a broker")
    known = sum(1 for line in cluster.lines(active) if "committed_ns" in line)
    known_to = leader_of(cluster)[1].high_watermark
    followers.wait_offset(known_to)
    followers.end(VICTIM)

    def committed() -> list[dict[str, Any]]:
        return [line for line in cluster.lines(active) if "committed_ns" in line][known:]

    _wait(committed, "the failure decided and committed")
    done = committed()[0]
    decided = next(
        line
        for line in cluster.lines(active)
        if "decided_ns" in line and line["end"] == done["end"]
    )
    alive = set(followers.node_ids) - {VICTIM}
    _wait(lambda: followers.applied(done["end"]).keys() >= alive, "the failure applied")
    applied = followers.applied(done["end"])
    began = decided["began_ns"]
    figures["records"] = decided["records"]
    figures["decided_ms"] = _ms(decided["decided_ns"] - began)
    figures["committed_ms"] = _ms(done["committed_ns"] - began)
    figures["applied_ms"] = _ms(max(applied[node_id] for node_id in SEPARATE) - began)
    figures["applied_by_all_ms"] = _ms(max(applied[node_id] for node_id in alive) - began)
    figures["leader_processor_ms"] = _ms(done["processor_ns"])
    spent = [followers.processor_ns(node_id, known_to, done["end"]) for node_id in SEPARATE]
    figures["follower_processor_ms"] = _ms(sorted(spent)[len(spent) // 2])


def _ms(nanoseconds: int) -> float:
    return round(nanoseconds / 1e6, 1)


def _fail_over(cluster: _Controllers, active: NodeLayout, figures: Figures) -> None:
    """Kill the active controller: until another creates a topic; then until it is back."""
    progress("killing the active controller")
    cluster.kill(active.id)
    began = time.monotonic()
    others = [node for node in cluster.layout.controllers if node.id != active.id]
    _wait(lambda: any(_creates(node) for node in others), "a topic after the failover")
    figures["failover_ms"] = round((time.monotonic() - began) * 1e3, 1)
    progress("starting it again")
    began = time.monotonic()
    cluster.start(active.id)
    cluster.wait_ready(PATIENCE_SECONDS, (active.id,))
    figures["restart_seconds"] = round(time.monotonic() - began, 2)


def _creates(node: NodeLayout) -> bool:
    try:
        with Client([(node.host, node.port)], timeout_seconds=2.0) as client:
            _create_topic(client, "after-failover", 1)
    except (OSError, RuntimeError, AssertionError):
        return False
    return True
