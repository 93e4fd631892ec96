"""The process that has a port is named, as far as the system tells."""

import os
import socket
from pathlib import Path

import pytest

from jepsen_like.real.free_ports import free_ports, holder_of
from jepsen_like.real.layout import ClusterError

HEAD = (
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt uid timeout inode"
)
LISTENS = "   0: 0100007F:2384 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 4711 1"
CONNECTED = "   1: 0100007F:2385 00000000:0000 01 00000000:00000000 00:00000000 00000000 0 0 4712 1"


def write_process(proc: Path, pid: int, inode: int, name: str, *arguments: str) -> None:
    descriptors = proc / str(pid) / "fd"
    descriptors.mkdir(parents=True)
    (descriptors / "3").symlink_to(f"socket:[{inode}]")
    (proc / str(pid) / "comm").write_text(f"{name}\n")
    (proc / str(pid) / "cmdline").write_text("\0".join((*arguments, "")))


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """9092 (0x2384) is listened on, 9093 is only connected from."""
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "tcp").write_text("\n".join((HEAD, LISTENS, CONNECTED)))
    write_process(tmp_path, 12, 4712, "curl", "curl")
    return tmp_path


def test_process_is_named(proc: Path) -> None:
    write_process(proc, 34, 4711, "nginx", "/usr/sbin/nginx", "--config")
    assert holder_of(9092, proc) == "nginx, process 34"
    assert holder_of(9093, proc) == ""


def test_node_of_a_cluster_is_told_with_its_directory(proc: Path, tmp_path: Path) -> None:
    config = tmp_path / "data" / "2" / "server.properties"
    write_process(proc, 34, 4711, "python3", "python3", "-P", "node", "--config", str(config))
    assert holder_of(9092, proc) == "python3, process 34"  # the directory holds no cluster
    config.parent.mkdir(parents=True)
    (tmp_path / "data" / "cluster.json").touch()
    assert holder_of(9092, proc) == f"node 2 of the cluster in {tmp_path}/data, process 34"


def test_what_the_system_hides_is_not_told(proc: Path, tmp_path: Path) -> None:
    assert holder_of(9092, proc) == ""  # another user's
    assert holder_of(9092, tmp_path / "none") == ""  # no Linux


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="this system has no /proc/net/tcp")
def test_taken_port_is_refused_with_its_holder() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(
            ClusterError, match=rf"port {port} is taken by .*, process {os.getpid()}"
        ):
            next(free_ports(port))
