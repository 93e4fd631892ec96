"""Measures the live page of a node: the node, the wire, and a browser.

    python -m benchmarks live-page --partitions 10000

Three controllers and three brokers, replication factor 3, the time-outs of `up`. A broker's
processor time is read while nothing is asked of it, with a page open, and with `quorumlab top`
beside it; then a page is opened twice in Chromium, where there is one: its reader has to be started
for the first, and has read the log for the second. Frames take as long as JavaScript needs for an
update, or for drawing all partitions anew.
"""

import argparse
import asyncio
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks.figures import percentile, print_figure, progress, skip
from benchmarks.peers.local import processor_seconds, running_cluster, scratch_directory
from jepsen_like.python_children import python_command, python_environment
from jepsen_like.real.layout import NodeLayout
from jepsen_like.real.local_cluster import LocalCluster
from tests.jepsen_like.report.chromium import Page, browser, chromium

TOPIC_PARTITIONS_MAX = 1000
SECONDS = 20.0
SETTLING_SECONDS = 10.0
TIMED = """(() => {
  window.took = [];
  const shipped = take;
  take = (...sent) => {
    const began = performance.now();
    shipped(...sent);
    took.push(performance.now() - began);
  };
})()"""
PAINT = "performance.getEntriesByType('paint').find(each => /contentful/.test(each.name)).startTime"
ANEW = (
    "(() => { const at = performance.now(); showPartitions(); return performance.now() - at; })()"
)
KNOWN = "live.head !== null && live.head.counts !== null"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--partitions", type=int, default=10_000)
    partitions = parser.parse_args().partitions
    with scratch_directory() as scratch, running_cluster(scratch / "cluster") as cluster:
        create(cluster, partitions)
        node = cluster.layout.brokers[0]
        measure_node(cluster, node, partitions)
        if chromium() is None:
            skip("browser", "there is no Chromium")
        else:
            asyncio.run(measure_browser(node, scratch / "profile", partitions))


def create(cluster: LocalCluster, partitions: int) -> None:
    progress(f"creating {partitions} partitions")
    admin = AdminClient({"bootstrap.servers": cluster.layout.bootstrap_servers})
    for first in range(0, partitions, TOPIC_PARTITIONS_MAX):
        count = min(TOPIC_PARTITIONS_MAX, partitions - first)
        for made in admin.create_topics([NewTopic(f"t{first}", count, 3)]).values():
            made.result(120)
    time.sleep(2 * SETTLING_SECONDS)


def measure_node(cluster: LocalCluster, node: NodeLayout, partitions: int) -> None:
    pid = cluster.running()[node.id].pid

    def share(state: str) -> None:
        time.sleep(SETTLING_SECONDS)
        before = processor_seconds(pid)
        time.sleep(SECONDS)
        used = (processor_seconds(pid) - before) / SECONDS
        print_figure("node", 100 * used, "% of a core", state=state, partitions=partitions)

    share("idle")
    with open_page(node) as first_bytes:
        share("with a page")
    print_figure("whole", first_bytes / 1000, "kB", partitions=partitions)
    with top(cluster):
        share("with top")


@contextmanager
def open_page(node: NodeLayout) -> Iterator[int]:
    """With the size of the first event that has all partitions."""
    for is_warm in (False, True):
        connection = HTTPConnection(node.host, node.http_port, timeout=60)
        connection.request("GET", "/v1/page/events")
        events = connection.getresponse()
        events.readline()
        size = len(events.readline())
        if is_warm:
            yield size
        else:
            time.sleep(SETTLING_SECONDS)  # until its reader has read the log
        connection.close()


@contextmanager
def top(cluster: LocalCluster) -> Iterator[None]:
    """On a terminal of its own."""
    words = python_command("quorumlab", "top", "--dir", str(cluster.layout.directory))
    shown = subprocess.Popen(
        ["script", "--quiet", "--command", " ".join(words), "/dev/null"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        env=python_environment(),
    )
    try:
        yield
    finally:
        shown.terminate()
        shown.communicate(timeout=30)


async def measure_browser(node: NodeLayout, profile: Path, partitions: int) -> None:
    program = chromium()
    assert program is not None
    url = f"http://{node.host}:{node.http_port}/"
    async with browser(program, profile) as opened:
        for reader in ("starts", "has read"):
            began = time.monotonic()
            await opened.open(url, 1280, 900)
            while not await opened.value(KNOWN):  # noqa: ASYNC110  # the page announces nothing
                await asyncio.sleep(0.02)
            known = time.monotonic() - began
            about = {"reader": reader, "partitions": partitions}
            print_figure("first paint", await opened.value(PAINT), "ms", **about)
            print_figure("all partitions there", known, "s", **about)
        await measure_frames(opened, partitions)


async def measure_frames(opened: Page, partitions: int) -> None:
    await opened.value(TIMED)
    await asyncio.sleep(SECONDS)
    took = await opened.value("took")
    print_figure("update", percentile(took, 50), "ms", partitions=partitions)
    print_figure("update, the longest", max(took), "ms", partitions=partitions)
    anew = [await opened.value(ANEW) for _ in range(5)]
    print_figure("all partitions anew", percentile(anew, 50), "ms", partitions=partitions)
    for step in (-1000, -1100):
        began = time.monotonic()
        await opened.value(f"goTo(Number(byId('at').max) + {step}).then(() => 1)")
        print_figure("past", time.monotonic() - began, "s", partitions=partitions, step=step)
