"""Whole clusters of ours on this machine, what processes cost, and where benchmarks write to."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.figures import progress
from jepsen_like.real.local_cluster import LocalCluster
from quorumlab.interrupts import sigterm_as_ctrl_c

__all__ = ["processor_seconds", "resident_megabytes", "running_cluster", "scratch_directory"]

_INTERRUPTED = 130


@contextmanager
def scratch_directory() -> Iterator[Path]:
    """A directory of the current directory's file system: that of /tmp may be no disk at all.

    Removed at the end, also after an interrupt, but kept and named after a failure.
    """
    path = Path(tempfile.mkdtemp(prefix="quorumlab-bench-", dir=".")).resolve()
    try:
        with sigterm_as_ctrl_c():  # whoever writes here has processes to end
            yield path
    except KeyboardInterrupt:  # by the one who has started us, and tells of it
        shutil.rmtree(path, ignore_errors=True)
        raise SystemExit(_INTERRUPTED) from None
    except BaseException:
        progress(f"what was written is left in {path}")
        raise
    shutil.rmtree(path)


@contextmanager
def running_cluster(directory: Path) -> Iterator[LocalCluster]:
    """Three controllers and three brokers with the settings of `quorumlab up`, ready."""
    cluster = LocalCluster.create(directory)
    try:
        cluster.start_all()
        cluster.wait_ready()
        yield cluster
    finally:
        cluster.stop_all()


def resident_megabytes(pid: int) -> float:
    """The memory of a process that lies in RAM now (Linux: VmRSS), shared pages and all."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise AssertionError(f"process {pid} is gone")


def processor_seconds(pid: int) -> float:
    """Processor time that a process has used, its own and the kernel's (Linux: utime and stime)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
