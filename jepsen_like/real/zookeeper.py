"""A real ZooKeeper on this machine, out of the jars that PySpark ships: one node or an ensemble.

Everything about it lies in its directory, as with a cluster: whoever comes later finds by the pid
files what runs. Servers are asked how they are by ZooKeeper's four-letter words.

A client that connects after a server listens, and before it has its database, may never be
answered (ZooKeeper 3.9.5 loses the connection's state): readiness is asked with a short time-out,
again and again.

    DIR/zookeeper.json            who it is
    DIR/<id>/zoo.cfg              the server's configuration
    DIR/<id>/node.pid, node.log   its process, and what it printed
    DIR/<id>/data/                its database

Five jars are all that a server needs, and starting with those alone is what makes it quick. A tick
is short, so that sessions may be; ensembles get ten seconds to find a leader nonetheless.
"""

import importlib.util
import json
import os
import re
import signal
import socket
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import ClassVar

from jepsen_like.installation import install_command
from jepsen_like.real.java import java_of_wheel, java_version, javas_of_machine
from jepsen_like.real.layout import HOST, ClusterError, ProcessDirectory, write_json
from jepsen_like.real.processes import ProcessId, end, kill, last_lines, living, spawn

__all__ = ["STOP_SECONDS", "NoZooKeeper", "ZooKeeper", "missing_reason"]

_JARS = ("zookeeper", "zookeeper-jute", "slf4j-api", "metrics-core", "snappy-java")
_JAVA_MIN = 8
_INSTALL = f"{install_command('zk')} brings it"
_FLAGS = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "-Xmx256m",
    "-Dzookeeper.preAllocSize=1024",  # kB; the 64 MB of a default log look like a full disk
)
_SETTINGS: Mapping[str, str] = {
    "tickTime": "100",
    "minSessionTimeout": "200",
    "maxSessionTimeout": "60000",
    "admin.enableServer": "false",
    "4lw.commands.whitelist": "*",
    "autopurge.purgeInterval": "1",  # hours
}
_ENSEMBLE_SETTINGS: Mapping[str, str] = {
    "initLimit": "100",  # ticks
    "syncLimit": "50",
    "standaloneEnabled": "false",
}
_READY_SECONDS = 30.0
_ASK_SECONDS = 0.25  # see above
_POLL_SECONDS = 0.02
STOP_SECONDS = 5.0
_SESSION = re.compile(r"^0x([0-9a-f]+):", re.MULTILINE)  # as `dump` lists them


class NoZooKeeper(ClusterError):
    """The message says what is missing or went wrong, and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ZooKeeperServer(ProcessDirectory):
    id: int
    port: int
    peer_port: int
    election_port: int
    dir: str
    host: ClassVar[str] = HOST

    @property
    def config(self) -> Path:
        return self.path / "zoo.cfg"


def missing_reason() -> str | None:
    """Why no ZooKeeper can be started here, in one sentence; None if it can."""
    try:
        _command()
    except NoZooKeeper as error:
        return str(error)
    return None


class ZooKeeper:
    """The servers of one directory. Methods that start or end processes may be called by anyone."""

    def __init__(self, directory: Path, servers: tuple[ZooKeeperServer, ...]) -> None:
        self.directory = directory
        self.servers = servers

    @classmethod
    def create(cls, directory: Path, *, count: int, ports: Iterator[int]) -> "ZooKeeper":
        """Lay out `count` servers on free `ports`, or go on with those that `directory` holds."""
        if (directory / "zookeeper.json").exists():
            return cls.open(directory)
        directory = directory.resolve()
        servers = tuple(
            ZooKeeperServer(
                id=server_id,
                port=next(ports),
                peer_port=next(ports),
                election_port=next(ports),
                dir=str(directory / str(server_id)),
            )
            for server_id in range(1, count + 1)
        )
        laid_out = cls(directory, servers)
        for server in servers:
            (server.path / "data").mkdir(parents=True, exist_ok=True)
            (server.path / "data/myid").write_text(f"{server.id}\n")
            server.config.write_text(laid_out._config(server))
        write_json(directory / "zookeeper.json", list(map(asdict, servers)))
        return laid_out

    @classmethod
    def open(cls, directory: Path) -> "ZooKeeper":
        stored = json.loads((directory.resolve() / "zookeeper.json").read_text())
        servers = tuple(ZooKeeperServer(**server) for server in stored)
        return cls(directory.resolve(), servers)

    @property
    def connect(self) -> str:
        """The value of `zookeeper.connect`."""
        return ",".join(f"{server.host}:{server.port}" for server in self.servers)

    def server(self, server_id: int) -> ZooKeeperServer:
        for server in self.servers:
            if server.id == server_id:
                return server
        known = ", ".join(str(server.id) for server in self.servers)
        raise NoZooKeeper(f"no ZooKeeper server {server_id} in {self.directory}; there are {known}")

    # --- processes ----------------------------------------------------------------------

    def process(self, server: ZooKeeperServer) -> ProcessId | None:
        """The server's living process, if it has one."""
        return living(server.pid_file)

    def start(self, server_id: int) -> ProcessId:
        server = self.server(server_id)
        running = self.process(server)
        if running is not None:
            raise NoZooKeeper(f"ZooKeeper {server_id} runs already, as process {running.pid}")
        try:
            process = spawn([*_command(), str(server.config)], log=server.log)
            process.save(server.pid_file)
        except OSError as error:
            raise NoZooKeeper(f"cannot start ZooKeeper {server_id}: {error}") from error
        return process

    def start_all(self) -> None:
        """Start every server that does not run."""
        for server in self.servers:
            if self.process(server) is None:
                self.start(server.id)

    def wait_ready(self, timeout_seconds: float = _READY_SECONDS) -> None:
        """Until every server serves clients: alone, or in an ensemble with a leader."""
        deadline = time.monotonic() + timeout_seconds
        waiting = list(self.servers)
        while waiting:
            for server in waiting:
                if self.process(server) is None:
                    lines = "\n  ".join(last_lines(server.log, 12))
                    raise NoZooKeeper(f"ZooKeeper {server.id} ended while starting:\n  {lines}")
            waiting = [server for server in waiting if not self.role(server)]
            if waiting and time.monotonic() > deadline:
                raise NoZooKeeper(
                    f"ZooKeeper {waiting[0].id} is not ready after {timeout_seconds:.0f} s; "
                    f"see {waiting[0].log}"
                )
            if waiting:
                time.sleep(_POLL_SECONDS)

    def kill(self, server_id: int) -> None:
        """SIGKILL. Who watches will report the death."""
        process = self.process(self.server(server_id))
        if process is None:
            raise NoZooKeeper(f"ZooKeeper {server_id} is not running")
        kill(process)

    def stop_all(self) -> list[int]:
        """An orderly stop of all; returns the ids of those that had to be killed.

        All at once: a server that is left alone in an ensemble has no leader to close with.
        """
        found = [(server, self.process(server)) for server in self.servers]
        running = [(server, process) for server, process in found if process is not None]
        for _, process in running:
            os.kill(process.pid, signal.SIGTERM)
            os.kill(process.pid, signal.SIGCONT)  # one that is paused would not hear it
        killed = []
        deadline = time.monotonic() + STOP_SECONDS
        for server, process in running:
            left = max(0.1, deadline - time.monotonic())
            if not end(process, how=signal.SIGTERM, timeout_seconds=left):
                kill(process)
                killed.append(server.id)
        for server in self.servers:
            server.pid_file.unlink(missing_ok=True)
        return killed

    # --- asking -------------------------------------------------------------------------

    def role(self, server: ZooKeeperServer) -> str:
        """`leader`, `follower` or `standalone`; nothing while it does not serve clients."""
        for line in self.ask(server, "srvr").splitlines():
            if line.startswith("Mode: "):
                return line.removeprefix("Mode: ")
        return ""

    def sessions(self) -> frozenset[int] | None:
        """The sessions that own something ephemeral, as brokers do; None if no server can tell."""
        for server in self.servers:
            _, heading, owners = self.ask(server, "dump").partition("Sessions with Ephemerals")
            if heading:
                return frozenset(int(each, 16) for each in _SESSION.findall(owners))
        return None

    def ask(self, server: ZooKeeperServer, word: str) -> str:
        """The answer to a four-letter word; nothing if there is none."""
        told = b""
        try:
            address = (server.host, server.port)
            with socket.create_connection(address, timeout=_ASK_SECONDS) as connection:
                connection.sendall(word.encode())
                while piece := connection.recv(65536):
                    told += piece
        except OSError:
            return ""
        return told.decode(errors="replace")

    def _config(self, server: ZooKeeperServer) -> str:
        settings = {**_SETTINGS, "dataDir": f"{server.dir}/data"}
        if len(self.servers) == 1:
            settings |= {"clientPort": str(server.port), "clientPortAddress": server.host}
        else:
            settings |= _ENSEMBLE_SETTINGS
            for each in self.servers:
                peers = f"{each.host}:{each.peer_port}:{each.election_port}"
                settings[f"server.{each.id}"] = f"{peers};{each.host}:{each.port}"
        return "".join(f"{key}={value}\n" for key, value in settings.items())


def _command() -> list[str]:
    """All but the configuration file. A cluster is of no use if its nodes have no client."""
    if importlib.util.find_spec("kazoo") is None:
        raise NoZooKeeper(f"nodes need kazoo for ZooKeeper: {_INSTALL}")
    jars = _jars()
    java = _java()
    main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
    return [str(java), *_FLAGS, "-cp", os.pathsep.join(map(str, jars)), main]


def _jars() -> list[Path]:
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise NoZooKeeper(f"ZooKeeper comes with PySpark: {_INSTALL}")
    folder = Path(spec.origin).parent / "jars"
    found = []
    for name in _JARS:
        jars = sorted(folder.glob(f"{name}-[0-9]*.jar"))
        if not jars:
            raise NoZooKeeper(f"PySpark's {folder} has no {name}: another PySpark may")
        found.append(jars[-1])
    return found


@cache  # asking one for its version takes as long as starting it
def _java() -> Path:
    for java in javas_of_machine():
        if java_version(java) >= _JAVA_MIN:
            return java
    wheel = java_of_wheel()
    if wheel is None:
        raise NoZooKeeper(f"ZooKeeper needs a Java: {_INSTALL}")
    return wheel
