"""Attack every port of a cluster of real processes, and look what it costs its nodes.

`python -m tests.hostile [--security sasl_ssl] [--sends 100000]`: hostile bytes on all ports, 5,000
connections that send a byte a second, frames of two gigabytes that are announced, and 10,000 TLS
handshakes a minute. After each attack every node has to live, with its broker unfenced, and to have
grown by less than 300 MB meanwhile.
"""

import argparse
import asyncio
import logging
import re
import sys
import tempfile
import time
from collections.abc import Awaitable, Mapping
from pathlib import Path
from typing import Any

from jepsen_like.real.local_cluster import LocalCluster
from quorumlab.verbs.secured_cluster import secure
from tests.hostile.attacks import announce, handshakes, hostile_sends, slow_bytes

GROWTH_MAX_MB = 300
_LOOK_SECONDS = 0.5


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.hostile", description=__doc__)
    parser.add_argument("--sends", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=30.0, help="of each slow attack")
    parser.add_argument("--security", default="", help="as of `quorumlab up`")
    args = parser.parse_args()
    logging.getLogger("asyncio").setLevel(logging.ERROR)  # it warns of what is sent in vain
    wanted = {"security": args.security} if args.security else {}
    with tempfile.TemporaryDirectory() as directory:
        cluster = LocalCluster.create(Path(directory) / "c", controllers=3, brokers=3, **wanted)
        secure(cluster)
        try:
            cluster.start_all()
            cluster.wait_ready()
            return int(not asyncio.run(Siege(cluster).all(args)))
        finally:
            cluster.stop_all()


class Siege:
    def __init__(self, cluster: LocalCluster) -> None:
        self.cluster = cluster
        self.nodes = cluster.layout.nodes
        ports = (
            (node.port, node.broker_port, node.controller_port, node.http_port)
            for node in self.nodes
        )
        self.ports = [port for each in ports for port in each if port]
        self.broker_port = self.cluster.layout.brokers[0].port or 0
        self.begun_mb = self.memory_mb()

    async def all(self, args: argparse.Namespace) -> bool:
        is_tls = "ssl" in args.security
        port, seconds = self.broker_port, args.seconds
        attacks: list[tuple[str, Awaitable[Any]]] = [
            (f"{args.sends} hostile sends", hostile_sends(self.ports, args.sends, args.seed)),
            ("5,000 connections, a byte a second", slow_bytes(port, 5000, seconds)),
            ("500 frames of 2 GB announced", announce(port, 500, 2**31 - 1, seconds)),
            ("500 frames of 500 KB announced", announce(port, 500, 500_000, seconds)),
        ]
        if is_tls:
            attacks.append(("10,000 handshakes a minute", handshakes(port, 10_000, seconds)))
        results = [await self.attack(name, attack) for name, attack in attacks]
        return all(results)

    async def attack(self, name: str, attack: Awaitable[Any]) -> bool:
        """Carry it out, and look at the nodes meanwhile."""
        began, highest, fenced = time.monotonic(), self.memory_mb(), 0
        task = asyncio.ensure_future(attack)
        while not task.done():
            await asyncio.wait([task], timeout=_LOOK_SECONDS)
            now = self.memory_mb()
            highest = {node: max(mb, highest.get(node, 0)) for node, mb in now.items()}
            fenced = max(fenced, await asyncio.to_thread(self.fenced))
        grown = max(mb - self.begun_mb[node] for node, mb in highest.items())
        alive = len(self.memory_mb())
        is_well = alive == len(self.nodes) and not fenced and grown < GROWTH_MAX_MB
        print(
            f"{name}: {task.result()} in {time.monotonic() - began:.0f} s; {alive} of "
            f"{len(self.nodes)} nodes live, {fenced} brokers fenced at most, "
            f"{grown:.0f} MB more at most{'' if is_well else '   FAILED'}",
            flush=True,
        )
        return is_well

    def memory_mb(self) -> Mapping[int, float]:
        """Resident, of the nodes that live."""
        found = {}
        for node in self.nodes:
            process = self.cluster.process(node)
            if process is not None:
                status = Path(f"/proc/{process.pid}/status").read_text()
                (kilobytes,) = re.findall(r"VmRSS:\s+(\d+) kB", status)
                found[node.id] = int(kilobytes) / 1024
        return found

    def fenced(self) -> int:
        """Brokers that the controllers have not heard of for a while, as the active one says."""
        status, value = self.cluster.ask(self.cluster.layout.controllers[0], "/v1/node")
        return int(value["metadata"]["fenced_brokers"]) if status == 200 else 0


if __name__ == "__main__":
    sys.exit(main())
