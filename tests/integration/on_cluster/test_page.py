"""The page of real nodes: what browsers are sent of now and of the past, and who reads for them."""

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from jepsen_like.real import pages
from jepsen_like.real.layout import NodeLayout
from jepsen_like.real.local_cluster import LocalCluster
from quorumlab.cli import main
from tests.integration.waiting import wait

Json = dict[str, Any]
SECONDS = 30.0
READER = b"quorumlab.web.reader"


def asked(node: NodeLayout, path: str) -> tuple[int, Json]:
    answered = pages.ask((node.host, node.http_port), path, timeout_seconds=SECONDS)
    return answered.status, answered.page


@contextmanager
def watched(node: NodeLayout) -> Iterator[Iterator[tuple[str, Json]]]:
    """The events of a page, with their names, until the node ends them."""
    connection = HTTPConnection(node.host, node.http_port, timeout=SECONDS)
    connection.request("GET", "/v1/page/events")
    answer = connection.getresponse()

    def events() -> Iterator[tuple[str, Json]]:
        while line := answer.readline():
            name = line.decode().removeprefix("event: ").strip()
            yield name, json.loads(answer.readline().removeprefix(b"data: "))
            answer.readline()

    try:
        yield events()
    finally:
        connection.close()


def until_known(events: Iterator[tuple[str, Json]], topic: str) -> Json:
    """The first event that has rows of the topic, with the log up to its last partition."""
    rows: Json = {}
    log: list[Any] = []
    for _, event in events:
        rows.update(event["rows"].get(topic, {}))
        log += event["log"]
        if rows and any(f" PARTITION {topic}-1 " in line[1] for line in log):
            return {**event, "rows": {topic: rows}, "log": log}
    raise AssertionError(f"no rows of {topic}")


def create(cluster: LocalCluster, topic: str) -> None:
    line = f"topics create {topic} --partitions 2 --replication-factor 3 --bootstrap-server"
    assert main([*line.split(), cluster.layout.bootstrap_servers]) == 0


def readers() -> list[int]:
    """Processes of all nodes on this machine that read for pages."""
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        try:
            words = (each / "cmdline").read_bytes()
        except OSError:
            continue  # it has just ended
        if READER in words:
            found.append(int(each.name))
    return found


def reader_of(cluster: LocalCluster, node: NodeLayout) -> list[int]:
    pid = cluster.running()[node.id].pid
    return [each for each in readers() if f"PPid:\t{pid}\n" in status(each)]


def status(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return ""


@pytest.mark.parametrize(
    "node_id",
    [pytest.param(1, id="broker"), pytest.param(101, id="controller", marks=pytest.mark.extra)],
)
def test_pages_hear_of_a_new_topic_and_know_the_time_before_it(
    cluster: LocalCluster, node_id: int
) -> None:
    node, topic = cluster.layout.node(node_id), f"page-{node_id}"
    with watched(node) as events:
        name, whole = next(events)
        assert (name, topic in whole["rows"]) == ("whole", False)
        known = whole if whole["end"] else next(event for _, event in events if event["end"])
        create(cluster, topic)
        change = until_known(events, topic)
    assert {index: row[0] for index, row in change["rows"][topic].items()}.keys() == {"0", "1"}
    (created,) = [line for line in change["log"] if f" PARTITION {topic}-1 " in line[1]]
    assert {each["id"] for each in change["controllers"]} == {101, 102, 103}
    assert [each["state"] for each in change["brokers"]] == ["running"] * 3
    assert change["active"] == change["views"]["quorum_leader"]
    assert change["views"]["metadata_brokers"] == [1, 2, 3]

    for offset, there in ((known["end"] - 1, []), (created[0], ["0", "1"])):
        code, past = asked(node, f"/v1/page/past?offset={offset}")
        assert (code, past["offset"]) == (200, offset)
        assert [*past["rows"].get(topic, [])] == there
    assert past["log"][-1][0] == created[0]


def test_story_is_told_with_the_time_at_every_node(cluster: LocalCluster) -> None:
    create(cluster, "page-story")
    node = cluster.layout.node(2)
    path = "/v1/page/story?subject=page-story-0"
    wait(lambda: asked(node, path)[1].get("events"), "story")
    _, told = asked(node, path)
    (event,) = told["events"]
    assert event["text"].startswith("created on [")
    assert told["silent"] == []
    assert told["nodes"].keys() == {"1", "2", "3", "101", "102", "103"}
    for each in told["nodes"].values():
        late_ms = each["applied_ms"][str(event["offset"])] - event["time_ms"]
        assert -10 <= late_ms < 5000  # clocks of one machine, in whole milliseconds


@pytest.mark.parametrize(
    ("path", "code", "words"),
    [
        ("past?offset=x", 400, "no whole number"),
        ("past", 400, "no whole number"),
        ("past?offset=" + "9" * 30, 400, "no whole number"),
        ("story", 400, "say whose story"),
        ("past?offset=%D9%A3", 400, "no whole number"),
        ("story?subject=%3Cb%3E", 200, "name a partition"),
    ],
)
def test_wrong_question_is_told_so(cluster: LocalCluster, path: str, code: int, words: str) -> None:
    answered, page = asked(cluster.layout.node(3), f"/v1/page/{path}")
    assert answered == code
    assert words in page["error"]


def test_reader_that_is_killed_is_replaced_when_the_browser_comes_again(
    cluster: LocalCluster,
) -> None:
    node = cluster.layout.node(3)
    with watched(node) as events:
        next(events)
        (pid,) = reader_of(cluster, node)
        os.kill(pid, signal.SIGKILL)
        assert all(name in ("change", "trouble") for name, _ in events)  # and then they end
    with watched(node) as events:
        assert next(events)[0] == "whole"
        (other,) = reader_of(cluster, node)
    assert other != pid


def test_page_allows_nothing_but_itself(cluster: LocalCluster) -> None:
    node = cluster.layout.node(102)
    connection = HTTPConnection(node.host, node.http_port, timeout=SECONDS)
    connection.request("GET", "/")
    html = connection.getresponse().read().decode()
    connection.close()
    assert "default-src 'none'; style-src 'sha256-" in html
    assert "connect-src 'self'" in html
    assert "http://" not in html
    assert "https://" not in html
    assert len(html) < 60_000
