"""`python -m tests.recordings.screenshots`: take the screenshots of docs/pictures anew.

The page of a node, in Chromium, some seconds after another broker was killed.
"""

import asyncio
import tempfile
import time
from pathlib import Path

from jepsen_like.real.local_cluster import LocalCluster
from quorumlab.cli import main
from tests.jepsen_like.report.chromium import browser, chromium
from tests.recordings.__main__ import FOLDER
from tests.started import started

PICTURES = FOLDER.parent / "pictures"
_FENCED_SECONDS = 6.0


async def page_of(node_url: str, profile: Path) -> bytes:
    program = chromium()
    assert program is not None, "install Chromium"
    async with browser(program, profile) as opened:
        await opened.open(node_url, 1100, 1000)
        await asyncio.sleep(_FENCED_SECONDS)
        return await opened.screenshot()


def take() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        cluster = LocalCluster.create(Path(scratch) / "data", controllers=3, brokers=3)
        with started(cluster):
            words = [
                "topics",
                "create",
                "orders",
                "--partitions",
                "12",
                "--replication-factor",
                "3",
            ]
            main([*words, "--bootstrap-server", cluster.layout.bootstrap_servers])
            time.sleep(_FENCED_SECONDS)
            cluster.kill(3)
            node = cluster.layout.node(1)
            url = f"http://{node.host}:{node.http_port}/"
            picture = asyncio.run(page_of(url, Path(scratch) / "profile"))
    (PICTURES / "page.png").write_bytes(picture)


if __name__ == "__main__":
    take()
