"""What a crash or an ageing disk leaves in a file: a write that is half there, a bit that is wrong.

    torn-write   the node dies while it appends: half a batch stands behind the end of its log
    bit-flip     one bit of a record that was synced is wrong when the node starts again

    log          "metadata", or "partition": the largest log of a partition that the node has; where
                 it has none, the metadata log all the same

The first is harmless, and a node cuts it off and says so. The second may be a record that was
acknowledged: a node that starts all the same, without a word, has failed the test, and then the
fault counts as one that did not bite. Healing restores the bit.

A node reads the metadata log from its start when it starts, and of a partition's only the newest
segments: the bit is in what it reads.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

from jepsen_like.faults.fault import Course, Fault, Proof, in_force
from jepsen_like.real.injection.process_faults import (
    NodeLog,
    complaints,
    logs_of,
    restart,
    running,
    start_again,
    stop,
)
from jepsen_like.real.layout import ClusterError, NodeLayout
from jepsen_like.real.local_cluster import LocalCluster
from jepsen_like.real.processes import await_value
from quorum.core.storage import METADATA_LOG
from wire import batch

__all__ = ["CORRUPT", "CUT_OFF", "damage", "flip", "flip_bit", "segments_of", "tear", "tear_write"]

_ON_THE_WAY_OUT = ("-delete", "-stray")
CUT_OFF = ("cut off",)  # what a node says of the one
CORRUPT = ("checksum", "corrupt", "synced up to")
_START_SECONDS = 15.0


@in_force
def tear_write(cluster: LocalCluster, fault: Fault, targets: Sequence[int]) -> Course:
    nodes = list(running(cluster, targets))
    logs = logs_of(cluster, nodes)
    layout = cluster.layout
    restart(cluster, nodes, lambda node_id: tear(segments_of(layout.node(node_id), fault)[-1]))
    yield nodes
    for node_id in nodes:
        _until_said(cluster, node_id, logs[node_id], CUT_OFF)
        start_again(cluster, node_id)
    return complaints(logs, CUT_OFF)


def segments_of(node: NodeLayout, fault: Fault) -> list[Path]:
    """The segments of the log that the fault damages, the oldest first."""
    logs = [_segments(node.data / METADATA_LOG)]
    if fault.parameters.get("log") == "partition":
        others = (path for path in sorted(node.data.glob("*-*")) if path.name != METADATA_LOG)
        logs += [_segments(path) for path in others if not path.name.endswith(_ON_THE_WAY_OUT)]
    held = [log for log in logs[1:] if sum(path.stat().st_size for path in log)] or logs[:1]
    found = max(held, key=lambda log: sum(path.stat().st_size for path in log))
    if not found:
        raise ClusterError(f"node {node.id} has no metadata log")
    return found


def _segments(directory: Path) -> list[Path]:
    return sorted(directory.glob("*.log"))


def tear(segment: Path) -> None:
    """Half of a batch that would follow the last one."""
    content = segment.read_bytes()
    batches = list(batch.headers(content))
    if not batches:
        return  # it has just been rolled: nothing to make a likely batch of
    position, header = batches[-1]
    end = position + header.size_bytes
    following = bytearray(content[position:end])
    batch.write_header(following, header._replace(base_offset=header.next_offset))
    with segment.open("r+b") as file:
        file.seek(end)
        file.write(following[: len(following) // 2])


def _until_said(cluster: LocalCluster, node_id: int, log: NodeLog, words: Sequence[str]) -> None:
    """Waits until the node has said it, has ended, or is ready without a word."""
    node = cluster.layout.node(node_id)
    await_value(
        lambda: (
            log.lines_with(words)
            or cluster.process(node) is None
            or cluster.ask(node, "/readyz")[0] == 200
        ),
        _START_SECONDS,
    )


@in_force
def flip_bit(cluster: LocalCluster, fault: Fault, targets: Sequence[int]) -> Course:
    nodes = list(running(cluster, targets))
    logs = logs_of(cluster, nodes)
    restore: dict[int, Callable[[], None]] = {}
    for node_id in nodes:
        stop(cluster, node_id)
        try:
            restore[node_id] = damage(segments_of(cluster.layout.node(node_id), fault))
        finally:
            start_again(cluster, node_id)
    for node_id, log in logs.items():
        _until_said(cluster, node_id, log, CORRUPT)
        _expect_end(cluster, node_id)
    yield nodes
    restart(cluster, nodes, lambda node_id: restore[node_id]())
    silent = [node_id for node_id, log in logs.items() if not log.lines_with(CORRUPT)]
    if silent:
        return Proof(bit=False, evidence=f"nodes {silent} started without a word")
    return complaints(logs, CORRUPT)


def _expect_end(cluster: LocalCluster, node_id: int) -> None:
    """A node that refuses to start ends, which nobody shall take for a crash."""
    node = cluster.layout.node(node_id)
    await_value(
        lambda: cluster.process(node) is None or cluster.ask(node, "/livez")[0] == 200,
        _START_SECONDS,
    )
    if cluster.process(node) is None:
        node.pid_file.unlink(missing_ok=True)


def damage(segments: Sequence[Path]) -> Callable[[], None]:
    """One bit in the middle of what will be read; what restores it.

    A stopped node has synced everything, so that any bit of a batch is one that it vouches for. One
    that was killed instead may cut the batch off as never synced and fetch it again: then there is
    nothing to restore.
    """
    is_metadata = segments[0].parent.name == METADATA_LOG
    for segment in segments if is_metadata else reversed(segments):
        batches = list(batch.headers(segment.read_bytes()))
        if batches:
            break
    else:
        raise ClusterError(f"{segments[0].parent} holds no records")
    position, header = batches[len(batches) // 2]
    end = position + header.size_bytes
    flip(segment, end - 1)
    damaged = segment.read_bytes()[position:end]

    def restore() -> None:
        if segment.read_bytes()[position:end] == damaged:
            flip(segment, end - 1)

    return restore


def flip(segment: Path, position: int) -> None:
    with segment.open("r+b") as file:
        file.seek(position)
        (byte,) = file.read(1)
        file.seek(position)
        file.write(bytes([byte ^ 0x10]))
