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

from jepsen_like.faults.fault import Course, Fault, Injector, in_force
from jepsen_like.real.injection.filesystems import DiskImage, DiskWatch, Waits
from jepsen_like.real.injection.process_faults import (
    NodeLog,
    complaints,
    logs_of,
    restart,
    running,
    start_again,
)
from jepsen_like.real.local_cluster import LocalCluster
from jepsen_like.real.processes import ProcessId, await_value

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


def _await_words(logs: Mapping[int, NodeLog], words: Sequence[str]) -> list[str]:
    """The complaints of the nodes, as soon as one complains."""
    return await_value(partial(complaints, logs, words), _SEEN_SECONDS)


@in_force
def fill(cluster: LocalCluster, disks: Disks, fault: Fault, targets: Sequence[int]) -> Course:
    nodes = list(running(cluster, targets))
    logs = logs_of(cluster, nodes)
    undo = [_fill(cluster, disks, node_id) for node_id in nodes]
    yield nodes
    said = _await_words(logs, _FULL)
    for each in undo:
        each()
    restart(cluster, nodes)
    return said


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


@in_force
def fail_syncs(cluster: LocalCluster, disks: Disks, fault: Fault, targets: Sequence[int]) -> Course:
    nodes = list(running(cluster, targets))
    logs = logs_of(cluster, nodes)
    for node_id in nodes:
        disks[node_id].die()
    yield nodes
    said = _await_words(logs, _FAILED)
    restart(cluster, nodes, meanwhile=lambda node_id: disks[node_id].remount())
    return said


@in_force
def cut_power(cluster: LocalCluster, disks: Disks, fault: Fault, targets: Sequence[int]) -> Course:
    nodes = list(running(cluster, targets))
    lost = [text for node_id in nodes if (text := _lose_power(cluster, disks, node_id))]
    yield nodes
    for node_id in nodes:
        start_again(cluster, node_id)
    return lost


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


@in_force
def slow_down(cluster: LocalCluster, disks: Disks, fault: Fault, targets: Sequence[int]) -> Course:
    rate = fault.parameters.get("writes_per_second", _WRITES_PER_SECOND)
    processes = running(cluster, targets)
    groups = {each: _throttle(process, disks[each], rate) for each, process in processes.items()}
    watches = {each: DiskWatch(process) for each, process in processes.items()}
    yield list(processes)
    # A short fault may end before the node has written anything; it soon does.
    await_value(
        lambda: any(is_hindered(watch.waits, rate) for watch in watches.values()), _SEEN_SECONDS
    )
    hindered = []
    for node_id, group in groups.items():
        waits = watches[node_id].stop()
        writes = _writes(group, disks[node_id].device)
        if writes and is_hindered(waits, rate):
            hindered.append(f"node {node_id}: {_told(waits, writes)}")
        _leave(group)
    return hindered


def _throttle(process: ProcessId, disk: DiskImage, rate: int) -> Path:
    group = _BLKIO / f"quorumlab-{os.getpid()}-{process.pid}"
    group.mkdir(exist_ok=True)
    limit = f"{disk.device} {rate}"
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
