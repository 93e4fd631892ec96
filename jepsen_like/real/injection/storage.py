"""Faults of the disk: full, slow, failing, without power. Each on a disk of the node's own.

    full-disk     no room is left. Without root: no file may grow much beyond the size of the node's
                  own log (RLIMIT_FSIZE, fails with EFBIG)
    slow-disk     `writes_per_second` reach the disk (blkio of cgroups v1). It bit if a thread
                  waited at a stretch for half as long as one write is given
    fsync-error   every write and every sync fails with EIO from now on
    power-loss    what no sync has covered is gone, and the process with it

A node may stop over the first and the third, or do without the directory; either way healing
starts it anew. The proof is what the node said, what its disk did, or what was lost.
"""

import os
import resource
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from jepsen_like.faults.fault import Fault, InForce, Injector
from jepsen_like.real.injection.filesystems import DiskImage, DiskWatch, Waits
from jepsen_like.real.injection.process_faults import NodeLog, logs_of, running, start_again
from jepsen_like.real.local_cluster import LocalCluster
from jepsen_like.real.processes import await_value

__all__ = ["STORAGE_KINDS", "is_hindered", "storage_injectors"]

STORAGE_KINDS = ("full-disk", "slow-disk", "fsync-error", "power-loss")  # that want disks
NO_DISKS = "the nodes have no disks of their own: prepare the cluster for this kind, as root"
_BLKIO = Path("/sys/fs/cgroup/blkio")
_FULL = ("No space left on device", "File too large")
_FAILED = ("Input/output error",)
_LAST_WORDS_BYTES = 16 << 10  # a node whose log cannot grow could not say what is wrong
_WRITES_PER_SECOND = 5
_HINDERED = 0.5  # of a write's time
_OTHERWISE_SECONDS = 0.1  # a free disk keeps a thread waiting for less (0.02 s were measured)
_SEEN_SECONDS = 5.0  # a node writes all the time: its state, its log, a checkpoint

Disks = Mapping[int, DiskImage]


def storage_injectors(cluster: LocalCluster, disks: Disks) -> dict[str, Injector]:
    why = "" if disks else NO_DISKS
    is_slowed = (_BLKIO / "blkio.throttle.write_iops_device").exists()
    return {
        "full-disk": Injector(partial(fill, cluster, disks)),
        "slow-disk": Injector(
            partial(slow_down, cluster, disks),
            why if is_slowed else "needs the blkio controller of cgroups v1",
        ),
        "fsync-error": Injector(partial(fail_syncs, cluster, disks), why),
        "power-loss": Injector(partial(cut_power, cluster, disks), why),
    }


def _restart(cluster: LocalCluster, node_ids: Sequence[int]) -> None:
    for node_id in node_ids:
        if node_id in cluster.running():
            cluster.kill(node_id)
        start_again(cluster, node_id)


def _await_words(logs: Mapping[int, NodeLog], words: Sequence[str]) -> list[str]:
    """The complaints of the nodes, as soon as one complains."""

    def said() -> list[str]:
        return [
            f"node {node_id}: {lines[0]}"
            for node_id, log in logs.items()
            if (lines := log.lines_with(words))
        ]

    return await_value(said, _SEEN_SECONDS)


def fill(cluster: LocalCluster, disks: Disks, fault: Fault, targets: Sequence[int]) -> InForce:
    nodes = list(running(cluster, targets))
    logs = logs_of(cluster, nodes)
    undo = [_fill(cluster, disks, node_id) for node_id in nodes]
    said: list[str] = []

    def heal() -> None:
        said.extend(_await_words(logs, _FULL))
        for each in undo:
            each()
        _restart(cluster, nodes)

    return InForce(nodes, heal=heal, prove=lambda: said)


def _fill(cluster: LocalCluster, disks: Disks, node_id: int) -> Callable[[], None]:
    disk = disks.get(node_id)
    if disk is not None:
        disk.fill()
        return disk.free
    process = running(cluster, [node_id])[node_id]
    log_bytes = cluster.layout.node(node_id).log.stat().st_size
    _, hard = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
    limit = log_bytes + _LAST_WORDS_BYTES
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (limit, hard))
    return lambda: None  # the limit ends with the process


def fail_syncs(
    cluster: LocalCluster, disks: Disks, fault: Fault, targets: Sequence[int]
) -> InForce:
    nodes = list(running(cluster, targets))
    logs = logs_of(cluster, nodes)
    for node_id in nodes:
        disks[node_id].die()
    said: list[str] = []

    def heal() -> None:
        said.extend(_await_words(logs, _FAILED))
        for node_id in nodes:
            if node_id in cluster.running():
                cluster.kill(node_id)
            disks[node_id].remount()
            start_again(cluster, node_id)

    return InForce(nodes, heal=heal, prove=lambda: said)


def cut_power(cluster: LocalCluster, disks: Disks, fault: Fault, targets: Sequence[int]) -> InForce:
    nodes = list(running(cluster, targets))
    lost = [text for node_id in nodes if (text := _lose_power(cluster, disks, node_id))]

    def heal() -> None:
        for node_id in nodes:
            start_again(cluster, node_id)

    return InForce(nodes, heal=heal, prove=lambda: lost)


def _lose_power(cluster: LocalCluster, disks: Disks, node_id: int) -> str:
    """A sentence on what was lost; empty if nothing was."""
    disk = disks[node_id]
    cluster.pause(node_id)  # so that nothing is written while we look
    before = disk.fingerprint()
    disk.lose_power()
    cluster.kill(node_id)
    disk.remount()
    after = disk.fingerprint()
    changed = [name for name, seen in before.items() if after.get(name) != seen]
    if not changed:
        return ""
    fewer = sum(before[name][0] - after.get(name, (0, 0))[0] for name in changed)
    return f"node {node_id}: {len(changed)} files lost what was not synced, {fewer} bytes fewer"


def slow_down(cluster: LocalCluster, disks: Disks, fault: Fault, targets: Sequence[int]) -> InForce:
    nodes = list(running(cluster, targets))
    rate = fault.parameters.get("writes_per_second", _WRITES_PER_SECOND)
    processes = running(cluster, nodes)
    groups = {node_id: _throttle(cluster, disks, node_id, rate) for node_id in nodes}
    watches = {node_id: DiskWatch(process) for node_id, process in processes.items()}
    hindered: list[str] = []

    def heal() -> None:
        # A short fault may end before the node has written anything; it soon does.
        await_value(
            lambda: any(is_hindered(watch.waits, rate) for watch in watches.values()),
            _SEEN_SECONDS,
        )
        for node_id, group in groups.items():
            waits = watches[node_id].stop()
            writes = _writes(group, disks[node_id].device)
            if writes and is_hindered(waits, rate):
                hindered.append(f"node {node_id}: {_told(waits, writes)}")
            _leave(group)

    return InForce(nodes, heal=heal, prove=lambda: hindered)


def _throttle(cluster: LocalCluster, disks: Disks, node_id: int, rate: int) -> Path:
    process = running(cluster, [node_id])[node_id]
    group = _BLKIO / f"quorumlab-{os.getpid()}-{node_id}"
    group.mkdir(exist_ok=True)
    limit = f"{disks[node_id].device} {rate}"
    (group / "blkio.throttle.write_iops_device").write_text(limit)
    (group / "cgroup.procs").write_text(str(process.pid))
    return group


def is_hindered(waits: Waits, writes_per_second: int) -> bool:
    """Did a thread wait so long that the rate explains it, and a free disk does not?"""
    return waits.longest_seconds >= max(_HINDERED / writes_per_second, _OTHERWISE_SECONDS)


def _told(waits: Waits, writes: int) -> str:
    return (
        f"threads waited {waits.total_seconds:.1f} s for the disk, {waits.longest_seconds:.1f} s"
        f" at a stretch, and it took {writes} writes"
    )


def _writes(group: Path, device: str) -> int:
    """How many writes of the group the device was given, at the rate that it is held to."""
    for line in (group / "blkio.throttle.io_serviced").read_text().splitlines():
        fields = line.split()
        if fields[:2] == [device, "Write"]:
            return int(fields[2])
    return 0


def _leave(group: Path) -> None:
    for pid in (group / "cgroup.procs").read_text().split():
        try:
            (_BLKIO / "cgroup.procs").write_text(pid)
        except OSError:
            continue  # it has ended
    group.rmdir()
