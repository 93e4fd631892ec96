"""Three etcd servers on this machine, each syncing to disk, asked through gRPC.

Source: etcd's rpc.proto (RangeRequest is not used; PutRequest, TxnRequest, RequestOp).
"""

import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any, Self

from benchmarks.peers.http2 import CallFailed, UnaryCalls
from benchmarks.peers.load import REQUESTS_PREPARED, Load, Sample, drive, puts
from jepsen_like.real.free_ports import free_ports

__all__ = ["Etcd"]

_READY_SECONDS = 20.0
_TRY_SECONDS = 0.1  # a put that finds no leader waits for seconds: ask again sooner
_SERVICE = "/etcdserverpb.KV"
_ONE_PUT = Load(name="", in_flight=1, puts=1, seconds=0.0, first_value=2_000_000_000)


class Etcd:
    name = "etcd"
    durable = "fsync on a majority"
    warm_up_seconds = 0.5

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        ports = free_ports()
        self._clients = [f"127.0.0.1:{next(ports)}" for _ in range(3)]
        self._peers = [f"http://127.0.0.1:{next(ports)}" for _ in range(3)]
        self._servers: list[subprocess.Popen[bytes]] = []
        self._killed: int | None = None

    @staticmethod
    def missing() -> str | None:
        """Why it cannot be measured here; None if it can."""
        if shutil.which("etcd") and shutil.which("etcdctl"):
            return None
        return "no etcd and etcdctl here (Debian: etcd-server, etcd-client)"

    @staticmethod
    def version() -> str:
        answer = subprocess.run(["etcd", "--version"], capture_output=True, text=True, check=True)
        return answer.stdout.split()[2]

    def __enter__(self) -> Self:
        self._directory.mkdir(parents=True)
        for index in range(3):
            self._servers.append(self._start(index))
        try:
            self._wait_for_leader()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def measure(self, load: Load) -> Sample:
        host, _, port = self._leader_address().rpartition(":")
        requests = [_request(load, number) for number in range(REQUESTS_PREPARED)]
        method = "Put" if load.puts == 1 else "Txn"
        client = UnaryCalls(host, int(port), f"{_SERVICE}/{method}", requests)
        try:
            return drive(client, load)
        finally:
            client.close()

    def committed(self) -> int:
        return max(int(status["header"]["revision"]) for status in self._statuses())

    def processes(self) -> list[int]:
        return [server.pid for server in self._servers]

    def kill_leader(self) -> None:
        self._killed = self._clients.index(self._leader_address())
        self._servers[self._killed].kill()
        self._servers[self._killed].wait()

    def try_put(self, number: int) -> bool:
        """Ask each server that lives for one put; whether one of them acknowledged it."""
        request = _request(_ONE_PUT, number)
        for index, address in enumerate(self._clients):
            if index != self._killed and _is_done(address, request):
                return True
        return False

    def restore(self) -> None:
        """Start the server that was killed, and wait until it is a member again."""
        assert self._killed is not None
        self._servers[self._killed] = self._start(self._killed, state="existing")
        self._killed = None
        self._wait_for_leader()

    def _start(self, index: int, state: str = "new") -> subprocess.Popen[bytes]:
        members = ",".join(f"n{number}={peer}" for number, peer in enumerate(self._peers))
        client = f"http://{self._clients[index]}"
        arguments = ["etcd", "--name", f"n{index}", "--initial-cluster", members]
        arguments += ["--initial-cluster-state", state]
        arguments += ["--data-dir", str(self._directory / f"n{index}"), "--log-level", "error"]
        arguments += ["--listen-client-urls", client, "--advertise-client-urls", client]
        peer = self._peers[index]
        arguments += ["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer]
        with (self._directory / f"n{index}.log").open("ab") as log:
            return subprocess.Popen(arguments, stdout=log, stderr=log)

    def _statuses(self) -> list[dict[str, Any]]:
        done = subprocess.run(
            ["etcdctl", f"--endpoints={','.join(self._clients)}", "endpoint", "status", "-w=json"],
            capture_output=True,
            check=False,
            timeout=30,
            env=os.environ | {"ETCDCTL_API": "3"},
        )
        rows = json.loads(done.stdout or b"[]")
        return [row["Status"] | {"endpoint": row["Endpoint"]} for row in rows]

    def _leader_address(self) -> str:
        for status in self._statuses():
            if status["leader"] == status["header"]["member_id"]:
                return str(status["endpoint"])
        raise RuntimeError("etcd has no leader")

    def _wait_for_leader(self) -> None:
        deadline = time.monotonic() + _READY_SECONDS
        while time.monotonic() < deadline:
            statuses = self._statuses()
            if len(statuses) == 3 and all(status.get("leader") for status in statuses):
                return
            time.sleep(0.1)
        raise RuntimeError(f"etcd has no leader after {_READY_SECONDS:.0f} s: {self._directory}")

    def _stop(self) -> None:
        for server in self._servers:
            server.kill()
        for server in self._servers:
            server.wait()
        self._servers.clear()


def _is_done(address: str, request: bytes) -> bool:
    host, _, port = address.rpartition(":")
    try:
        client = UnaryCalls(host, int(port), f"{_SERVICE}/Put", [request], _TRY_SECONDS)
        try:
            client.send(0)
            return list(client.receive()) == [0]
        finally:
            client.close()
    except (OSError, CallFailed):
        return False


def _request(load: Load, number: int) -> bytes:
    """A PutRequest, or a TxnRequest whose `success` holds one put a key."""
    pairs = puts(load, number)
    bodies = [_field(1, key.encode()) + _field(2, value.encode()) for key, value in pairs]
    if load.puts == 1:
        return bodies[0]
    return b"".join(_field(2, _field(2, body)) for body in bodies)


def _field(number: int, content: bytes) -> bytes:
    """A length-delimited field of protobuf; everything here is shorter than 128 bytes."""
    assert len(content) < 128, content
    return bytes([number << 3 | 2, len(content)]) + content
