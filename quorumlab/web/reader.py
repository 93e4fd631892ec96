"""A process that reads for a page, so that the node which serves it does next to nothing.

    python -m quorumlab.web.reader '{"node": 1, "nodes": {"1": ["127.0.0.1", 8001]}, "servers": [],
        "design": "quorum", "chaos": null}'

A server is [host, port, is it a controller's?]; without nodes it is any Kafka's. `chaos` is where
a chaos run may have begun. What opens them comes by the environment.

On stdin it is asked, a line of JSON each: `{"number": 7, "ask": "past", "offset": 12}`. It answers
on stdout with frames, a line `7 1234` before 1,234 bytes of JSON; number 0 is the change of the
last second, for everybody. It ends with its stdin, and so with its node, whatever becomes of that.
"""

import json
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from controller.metadata.image import MetadataImage
from jepsen_like.real.layout import ClusterError
from quorumlab.inspection.target import Address
from quorumlab.scratch import scratch
from quorumlab.top.any_cluster import AnyCluster
from quorumlab.top.chaos_faults import ChaosFaults, faults_of
from quorumlab.top.cluster_view import ClusterView, LogEntry, Partitions, of_image
from quorumlab.top.log_follower import LogFollower
from quorumlab.web.documents import head, log_lines, past, sent_rows, story_of
from quorumlab.web.http_cluster import HttpCluster
from quorumlab.web.reader_keys import KEYS, ReaderKeys, keys_of
from quorumlab.web.rows import Lists, changed_rows, every_row, gone_topics
from quorumlab.web.sources import MetadataLog, Source
from quorumlab.web.znode_log import ZnodeLog
from wire.zk.designs import DESIGNS

__all__ = ["Live", "main"]

EVERYBODY = 0
_EVERY_SECONDS = 1.0
_LOADING_SECONDS = 0.25  # while the log is read for the first time
_EVENTS_MAX = 500  # of a story, the newest
_ENTRIES_AT_FIRST = 200
_OF_ANY = "By Kafka's protocol, nodes do not say when each of them applied a record."
Json = dict[str, Any]


class Cluster(Protocol):
    def look(self) -> ClusterView: ...

    def applied(self, offsets: Sequence[int]) -> Mapping[str, Any]: ...


class Live:
    """The cluster as pages have it: `whole` for who comes, `change` for who is there."""

    def __init__(self, cluster: Cluster, source: Source, run: Path | None = None) -> None:
        """`run`: where a chaos run may begin."""
        self._cluster = cluster
        self._source = source
        self._run = run
        self._chaos: ChaosFaults | None = None
        self._lists = Lists()
        self._lock = threading.Lock()
        self._turn = 0
        self._head: Json = {}
        self._image = MetadataImage()  # what pages have
        self._entries: Sequence[LogEntry] = ()
        self._counted: tuple[object, Partitions] | None = None

    def close(self) -> None:
        if self._chaos is not None:
            self._chaos.close()

    def look(self) -> Json:
        """What has changed since the last look, with the number of this one."""
        view = self._cluster.look()
        chaos = self._chaos = self._chaos or faults_of(self._run)
        if chaos is not None:
            chaos.look()
        state = self._source.state
        image = None if state is None else state.image.stable
        entries = self._source.entries
        view = replace(
            view,
            partitions=None if image is None else self._counts(image),
            log_end=None if image is None else image.at.offset,
            problem=self._source.problem,
            chaos=None if chaos is None else chaos.phase,
            faults=() if chaos is None else chaos.faults,
        )
        with self._lock:
            known = len(self._lists.known)
            now = self._image if image is None else image
            gone = gone_topics(self._image, now)
            rows = changed_rows(self._image, now, self._lists)
            last = self._entries[-1].offset if self._entries else -1
            newer = [each for each in entries if each.offset > last]
            self._image, self._entries = now, entries
            self._turn += 1
            self._head = head(view)
            self._head["loading"] = self._source.is_loading
            sent = {"gone": gone, **sent_rows(rows, self._lists, known)}
            return {"turn": self._turn, **self._head, **sent, "log": log_lines(newer)}

    def whole(self) -> Json:
        """Raises ClusterError while no look has succeeded."""
        with self._lock:
            if not self._head:
                raise ClusterError("the cluster cannot be looked at: see the log of this node")
            rows = every_row(self._image, self._lists)
            return {
                "turn": self._turn,
                **self._head,
                **sent_rows(rows, self._lists, 0),
                "log": log_lines(self._entries[-_ENTRIES_AT_FIRST:]),
                "source": {
                    "name": self._source.name,
                    "unit": self._source.unit,
                    "note": self._source.note,
                },
            }

    def _counts(self, image: Any) -> Partitions:
        if self._counted is None or self._counted[0] is not image.partitions:
            self._counted = image.partitions, of_image(image)
        return self._counted[1]


class Reader:
    def __init__(
        self, cluster: Cluster, source: Source, out: BinaryIO, run: Path | None = None
    ) -> None:
        self._cluster = cluster
        self._source = source
        self._out = out
        self._lock = threading.Lock()
        self._has_looked = threading.Event()
        self._is_over = threading.Event()
        self._began = 0.0
        self._live = Live(cluster, source, run)
        # Each kind waits for its own kind alone; states of the past are found one at a time.
        self._answers: Mapping[str, tuple[ThreadPoolExecutor, Callable[[Json], Json]]] = {
            "whole": (ThreadPoolExecutor(1), lambda _: self._whole()),
            "past": (ThreadPoolExecutor(1), lambda asked: self._after(int(asked["offset"]))),
            "story": (ThreadPoolExecutor(1), lambda asked: self._story(str(asked["subject"]))),
        }

    def run(self, questions: BinaryIO) -> None:
        """Until `questions` end, or nobody hears the answers any more."""
        self._source.start()
        threading.Thread(target=self._hear, args=(questions,), daemon=True).start()
        with closing(self._live), suppress(BrokenPipeError):
            while not self._is_over.wait(self._pause()):
                self._began = time.monotonic()
                self._send(EVERYBODY, self._look())
                self._has_looked.set()

    def _pause(self) -> float:
        seconds = _LOADING_SECONDS if self._source.is_loading else _EVERY_SECONDS
        return max(0.0, self._began + seconds - time.monotonic())

    def _look(self) -> Json:
        try:
            return self._live.look()
        except Exception as error:  # noqa: BLE001  # whatever a node may answer: pages are told
            traceback.print_exc()
            return {"error": f"the cluster cannot be looked at: {error!r}"}

    def _hear(self, questions: BinaryIO) -> None:
        for line in questions:
            asked = json.loads(line)
            threads, answer = self._answers[asked["ask"]]
            threads.submit(self._answer, asked, answer)
        self._is_over.set()

    def _answer(self, asked: Json, answer: Callable[[Json], Json]) -> None:
        try:
            document = answer(asked)
        except (ClusterError, OSError, ValueError) as error:
            document = {"error": str(error)}
        except Exception as error:  # noqa: BLE001  # whoever asked waits for an answer
            traceback.print_exc()
            document = {"error": repr(error)}
        with suppress(BrokenPipeError):
            self._send(asked["number"], document)

    def _send(self, number: int, document: Json) -> None:
        content = json.dumps(document, separators=(",", ":")).encode()
        with self._lock:
            self._out.write(b"%d %d\n" % (number, len(content)) + content)
            self._out.flush()

    def _whole(self) -> Json:
        self._has_looked.wait()
        return self._live.whole()

    def _after(self, offset: int) -> Json:
        state = self._source.after(offset)
        entries = self._source.entries_until(offset)
        first = self._source.first()
        image = state.image.stable
        shown = past(image, of_image(image), state.timestamp_ms, entries, away=self._source.away)
        return {**shown, "first": first, "problems": [*state.problems]}

    def _story(self, subject: str) -> Json:
        events = self._source.story(subject)[-_EVENTS_MAX:]
        return story_of(subject, events, self._cluster.applied([each.offset for each in events]))


def main(text: str) -> None:
    """Ends the process, whatever threads still wait for."""
    out, sys.stdout = sys.stdout.buffer, sys.stderr  # frames alone go there
    code = 0
    try:
        _read(json.loads(text), out)
    except Exception:  # noqa: BLE001  # told, and in the code
        traceback.print_exc()
        code = 1
    os._exit(code)


def _read(given: Json, out: BinaryIO) -> None:
    keys = keys_of(json.loads(os.environ[KEYS])) if KEYS in os.environ else ReaderKeys()
    servers = [
        Address(host, port, keys.controllers if is_controller else keys.brokers)
        for host, port, is_controller in given["servers"]
    ]
    nodes = {int(node): Address(*each) for node, each in given["nodes"].items()}
    run = None if given["chaos"] is None else Path(given["chaos"])
    design = DESIGNS.get(given["design"])
    with scratch("page") as directory:
        follower = LogFollower(servers, directory)
        source: Source = MetadataLog(follower)
        cluster: Cluster
        if not nodes:
            source = MetadataLog(follower, note=_OF_ANY)
            cluster = AnyCluster(servers, follower)
        else:
            if design is not None:
                source = ZnodeLog(design, nodes[given["node"]], servers[0], keys.pages)
            cluster = HttpCluster(given["node"], nodes, servers, source, design, keys)
        Reader(cluster, source, out, run).run(sys.stdin.buffer)


if __name__ == "__main__":
    main(sys.argv[1])
