"""What a reader sends: changes add up to the whole; whatever happens, it answers, and it ends."""

import json
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from controller.metadata.image import MetadataImage
from jepsen_like.python_children import python_command, python_environment
from quorumlab.inspection.states import Replay
from quorumlab.inspection.stories import Event
from quorumlab.top.cluster_view import ClusterView, LogEntry
from quorumlab.web.reader import Live
from tests.quorumlab.top.test_chaos_faults import run_with_a_kill
from tests.quorumlab.web.test_rows import applied, created, moved, topic_id
from wire import metadata_records as records

SERVERS = [["127.0.0.1", 9, False]]
ABOUT = json.dumps({"node": 1, "nodes": {}, "servers": SERVERS, "design": None, "chaos": None})


@dataclass
class Log:
    """A source whose state and entries a test sets."""

    state: Replay | None = None
    entries: Sequence[LogEntry] = ()
    name: str = "log"
    unit: str = "offset"
    note: str = ""
    away: str = "fenced"
    problem: str = ""
    is_loading: bool = False

    def start(self) -> None: ...

    def first(self) -> int:
        return -1

    def after(self, offset: int) -> Replay:
        return Replay()

    def entries_until(self, offset: int) -> Sequence[LogEntry]:
        return ()

    def story(self, subject: str) -> Sequence[Event]:
        return ()

    def write(self, image: MetadataImage) -> None:
        self.state = Replay(image=image)
        self.entries = [*self.entries, LogEntry(image.at.offset - 1, "changed", "")][-3:]


class Nobody:
    """A cluster of which no node answers."""

    def look(self) -> ClusterView:
        return ClusterView()

    def applied(self, offsets: Sequence[int]) -> Mapping[str, Any]:
        return {}


@dataclass
class Browser:
    """Takes what comes as `page.js` does."""

    turn: int = 0
    topics: dict[str, dict[str, Any]] = field(default_factory=dict)
    lists: dict[int, Any] = field(default_factory=dict)
    log: list[int] = field(default_factory=list)

    def take(self, sent: dict[str, Any], *, is_whole: bool = False) -> None:
        sent = json.loads(json.dumps(sent))
        if is_whole:
            self.topics, self.log = {}, []
        elif sent["turn"] <= self.turn:
            return
        self.turn = sent["turn"]
        self.lists |= {sent["lists_from"] + n: each for n, each in enumerate(sent["lists"])}
        for topic in sent.get("gone", ()):
            self.topics.pop(topic, None)
        for topic, rows in sent["rows"].items():
            self.topics.setdefault(topic, {}).update(rows)
        self.log += [line[0] for line in sent["log"]]

    @property
    def seen(self) -> dict[str, dict[str, Any]]:
        return {
            topic: {
                index: (leader, epoch, self.lists[replicas], self.lists[isr])
                for index, (leader, epoch, replicas, isr) in sorted(rows.items())
            }
            for topic, rows in self.topics.items()
        }


def images() -> Iterator[MetadataImage]:
    image = applied(MetadataImage(), *created(0, 3))
    yield image
    yield (image := applied(image, moved(0, 1, 2, (2, 3)), *created(1, 2)))
    yield (image := applied(image, records.RemoveTopicRecord(topic_id=topic_id(0))))
    renamed = [records.TopicRecord(name="t0", topic_id=topic_id(2)), *created(2, 1)[1:]]
    yield (image := applied(image, *renamed))
    yield applied(image, moved(1, 0, 3, (3,)))


def test_changes_add_up_to_the_whole_from_wherever_a_page_begins() -> None:
    log = Log()
    live = Live(Nobody(), log)
    early = Browser()
    early.take(live.look())
    for image in images():
        log.write(image)
        late = Browser()
        change = live.look()
        late.take(live.whole(), is_whole=True)
        late.take(change)  # which the whole had
        early.take(change)
        early.take(live.look())  # without news
        assert early.seen == late.seen
        assert early.log[-len(late.log) :] == late.log
        assert len({*early.log}) == len(early.log)
    assert early.seen["t0"] == {"0": (1, 0, [1, 2, 3], [1, 2, 3])}
    assert early.seen["t1"]["0"][0] == 3


def test_chaos_run_that_begins_later_is_told_with_its_faults(tmp_path: Path) -> None:
    with closing(Live(Nobody(), Log(), tmp_path)) as live:
        assert live.look()["chaos"] == ""
        run_with_a_kill(tmp_path)
        assert live.look()["chaos"] == "chaos run, safety: kill 2,3 for 3 s"


@pytest.mark.parametrize(
    "questions",
    ["", '{"number": 1, "ask": "whole"}\n', '{"number": 1, "ask": "past", "offset": 7}\n'],
    ids=["nothing", "whole", "past"],
)
def test_reader_ends_with_its_questions(questions: str) -> None:
    ended = subprocess.run(
        python_command("quorumlab.web.reader", ABOUT),
        input=questions.encode(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=python_environment(),
        timeout=60,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, b"")


class Strange(BaseHTTPRequestHandler):
    """Another program, where a node was."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"node_id": 2, "roles": 7}')

    def log_message(self, *_: object) -> None: ...


def test_answer_that_makes_no_sense_is_told_and_ends_nothing() -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Strange) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        about = {**json.loads(ABOUT), "nodes": {"2": server.server_address}}
        reader = subprocess.Popen(
            python_command("quorumlab.web.reader", json.dumps(about)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=python_environment(),
        )
        assert reader.stdin is not None
        assert reader.stdout is not None
        for _ in range(2):
            number, size = map(int, reader.stdout.readline().split())
            assert number == 0
            assert "cannot be looked at" in json.loads(reader.stdout.read(size))["error"]
        reader.communicate(timeout=60)
        assert reader.returncode == 0
        server.shutdown()
