"""The wall clock of a node jumps, by libfaketime. Its monotonic clock, which drives it, does not.

    offset_ms    by how much; negative: into the past

The clock of the machine is left alone: a library between the node and the system reads the offset
from a file, once a second. A node must be started with it, see `prepare_clock`.

The proof is the date in what the node answers.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path

from jepsen_like.faults.fault import Course, Fault, in_force
from jepsen_like.real.injection.process_faults import running
from jepsen_like.real.layout import ClusterError, NodeLayout
from jepsen_like.real.local_cluster import LocalCluster
from jepsen_like.real.pages import ask
from jepsen_like.real.processes import await_value

__all__ = ["jump", "prepare_clock", "why_no_clock", "why_no_jump"]

_LIBRARIES = (
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1",
    "/usr/lib/faketime/libfaketime.so.1",
    "/usr/lib64/faketime/libfaketime.so.1",
    "/usr/local/lib/faketime/libfaketime.so.1",
)
_PRELOAD = "LD_PRELOAD"
_OFFSET_MS = -3_600_000
_SEEN_SECONDS = 3.0  # more than the library keeps the offset that it has read
_SLACK_MS = 5_000  # an HTTP date has whole seconds, and a node may be slow


def _library() -> str | None:
    return next((path for path in _LIBRARIES if Path(path).exists()), None)


def why_no_clock() -> str:
    return "" if _library() else "needs libfaketime"


def _clock(node: NodeLayout) -> Path:
    return node.path / "clock"


def prepare_clock(cluster: LocalCluster, node: NodeLayout) -> None:
    """Must be called before the node starts."""
    library = _library()
    if library is None:
        raise ClusterError(why_no_clock())
    node.path.mkdir(parents=True, exist_ok=True)
    _clock(node).write_text("+0\n")
    cluster.environment[node.id] = {
        **cluster.environment.get(node.id, {}),
        _PRELOAD: library,
        "FAKETIME_TIMESTAMP_FILE": str(_clock(node)),
        "FAKETIME_CACHE_DURATION": "1",  # seconds: reading the file at every call costs dearly
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "DONT_FAKE_MONOTONIC": "1",
    }


def why_no_jump(cluster: LocalCluster) -> str:
    is_prepared = any(_PRELOAD in each for each in cluster.environment.values())
    late = "the nodes were not prepared for it before they started"
    return "" if is_prepared else why_no_clock() or late


@in_force
def jump(cluster: LocalCluster, fault: Fault, targets: Sequence[int]) -> Course:
    nodes = [cluster.layout.node(each) for each in running(cluster, targets)]
    offset_ms = fault.parameters.get("offset_ms", _OFFSET_MS)
    for node in nodes:
        _clock(node).write_text(f"{offset_ms / 1000:+.3f}\n")
    yield [node.id for node in nodes]
    seen = []
    for node in nodes:
        jumped_ms = _jump_of(cluster, node, offset_ms)
        if jumped_ms is not None:
            seen.append(f"node {node.id} dates its answers {jumped_ms / 1000:+.0f} s off")
        _clock(node).write_text("+0\n")
    return seen


def _jump_of(cluster: LocalCluster, node: NodeLayout, offset_ms: int) -> float | None:
    """By how much it has jumped, as soon as it has; None if it does not."""

    def jumped_ms() -> float | None:
        ahead_ms = _ahead_ms(cluster, node)
        has_jumped = ahead_ms is not None and abs(ahead_ms - offset_ms) < _SLACK_MS
        return ahead_ms if has_jumped else None

    return await_value(jumped_ms, _SEEN_SECONDS, pause_seconds=0.1)


def _ahead_ms(cluster: LocalCluster, node: NodeLayout) -> float | None:
    """How far the node's wall clock is ahead of ours; None if it does not answer."""
    date = ask((node.host, node.http_port), "/livez", access=cluster.page_access).date
    if date is None:
        return None
    return (parsedate_to_datetime(date) - datetime.now(UTC)).total_seconds() * 1000
