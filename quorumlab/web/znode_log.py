"""The past of a ZooKeeper design, which has no metadata log: the znode changes that a node saw.

A thread of its own asks the node. What the changes say is decided in `znode_states`; the newest
state is what the node's broker answers clients.
"""

import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from controller.metadata.image import MetadataImage
from jepsen_like.real import pages
from jepsen_like.real.layout import ClusterError
from jepsen_like.real.pages import PageAccess
from quorum.core.types import OffsetAndEpoch
from quorum.zookeeper.znode_changes import CHANGES_MAX, ZnodeChange
from quorumlab.inspection.broker_story import BrokerStory
from quorumlab.inspection.live import client_of
from quorumlab.inspection.partition_story import PartitionStory
from quorumlab.inspection.states import Replay
from quorumlab.inspection.stories import Event, parse_subject
from quorumlab.inspection.target import Address
from quorumlab.top.cluster_view import LogEntry
from quorumlab.web import znode_states as states
from wire.messages.metadata import MetadataRequest, MetadataResponse
from wire.zk.designs import Design

__all__ = ["ZnodeLog"]

_ENTRIES_MAX = 1000
_ENTRIES_THEN = 100  # up to one change
_EVERY_SECONDS = 1.0
_LIMIT_SECONDS = 10.0  # for all partitions, in zk-v3 one after the other
_REST = 10  # times as long as the last answer took: some designs read ZooKeeper for each
_ALL = MetadataRequest(allow_auto_topic_creation=False)


class ZnodeLog:
    """`http` and `server` are the two sides of one node."""

    name = "znode changes this node saw"
    unit = "change"
    away = "not registered"

    def __init__(
        self, design: Design, http: Address, server: Address, access: PageAccess | None = None
    ) -> None:
        self.is_loading = True
        self.problem = ""
        self.state: Replay | None = None
        self.entries: Sequence[LogEntry] = ()
        self._design = design
        self._http = (http.host, http.port)
        self._access = access
        self._server = server
        self._lock = threading.Lock()
        self._changes: deque[ZnodeChange] = deque(maxlen=CHANGES_MAX)
        self._next = 1  # the number of the next change
        self._epoch = states.epoch_after((), 0)
        self._now: tuple[states.Sight, MetadataImage] | None = None
        self._asks_at = 0.0

    def start(self) -> None:
        threading.Thread(target=self._run, daemon=True, name="znode-changes").start()

    @property
    def note(self) -> str:
        """For people: how far to believe it."""
        most = "the active controller's node sees most; " if self._design.has_controller else ""
        return (
            f"{self._design.name} has no metadata log. Only what this node saw of ZooKeeper is "
            f"known: {most}what it never saw change is shown as it is now."
        )

    def first(self) -> int:
        with self._lock:
            return self._next - len(self._changes) - 1

    def after(self, offset: int) -> Replay:
        with self._lock:
            now, changes, end = self._now, tuple(self._changes), self._next
        if now is None:
            raise ClusterError(self.problem or "the node's znode changes are not read yet")
        offset = max(offset, end - len(changes) - 1)
        if offset >= end - 1:
            return self.state or Replay()
        found = states.sight_after(changes, offset, self._design.layout, now[0])
        at = OffsetAndEpoch(offset + 1, states.epoch_after(changes, offset))
        state = Replay(states.image_of(found.sight, at), _time_ms(changes, offset))
        if found.left_out:
            which = _partitions(found.left_out)
            state.problems.add(f"{which} left out, whose state then this node did not see")
        if found.as_now:
            which = _partitions(found.as_now)
            state.problems.add(f"{which} shown as now, of which this node saw no change")
        return state

    def entries_until(self, offset: int) -> Sequence[LogEntry]:
        with self._lock:
            changes = [each for each in self._changes if each.number <= offset]
        return [states.entry(each) for each in changes[-_ENTRIES_THEN:]]

    def story(self, subject: str) -> Sequence[Event]:
        with self._lock:
            changes = tuple(self._changes)
        match parse_subject(subject):
            case PartitionStory(topic=topic, index=index):
                return [*states.partition_story(changes, self._design.layout, topic, index)]
            case BrokerStory(id=broker):
                return [*states.broker_story(changes, broker)]
            case other:
                raise ValueError(f"{other} has no story in {self._design.name}")

    # --- following ---------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            try:
                self._look()
                self.problem = ""
            except (ClusterError, OSError, ValueError) as error:
                self.problem = f"znode changes: {error}"
            self.is_loading = False
            time.sleep(_EVERY_SECONDS)

    def _look(self) -> None:
        told = pages.ask(
            self._http,
            f"/v1/znode-changes?after={self._next - 1}",
            timeout_seconds=_LIMIT_SECONDS,
            access=self._access,
        )
        if told.status != 200:
            raise ClusterError(told.reason or f"the node answered {told.status}")
        has_changed = self._take(told.page)
        if has_changed or time.monotonic() >= self._asks_at:
            began = time.monotonic()
            try:
                self._publish(states.sight_now(self._metadata()))
            finally:
                ended = time.monotonic()
                self._asks_at = ended + _REST * (ended - began)

    def _metadata(self) -> MetadataResponse:
        with client_of(self._server, _LIMIT_SECONDS) as client:
            return client.ask(_ALL, MetadataResponse)

    def _take(self, page: Mapping[str, Any]) -> bool:
        """Has anything changed? Begins anew where the node has."""
        new = [ZnodeChange(**each) for each in page["changes"]]
        with self._lock:
            if page["next"] < self._next:
                self._changes.clear()
                self._epoch, self._next = states.epoch_after((), 0), 1
                return True  # the next look has them all
            self._changes.extend(new)
            self._next = page["next"]
            self._epoch = max(self._epoch, states.epoch_after(new, self._next))
            if new or self.is_loading:
                newest = [*self._changes][-_ENTRIES_MAX:]
                self.entries = tuple(states.entry(each) for each in newest)
            return bool(new)

    def _publish(self, sight: states.Sight) -> None:
        """What did not change stays the same object, for whoever compares."""
        with self._lock:
            at = OffsetAndEpoch(self._next, self._epoch)
            if self._now is not None and (self._now[0], self._now[1].at) == (sight, at):
                return
            image = states.image_of(sight, at, self._now)
            self._now = sight, image
            self.state = Replay(image, _time_ms(tuple(self._changes), self._next))


def _partitions(count: int) -> str:
    return "1 partition is" if count == 1 else f"{count} partitions are"


def _time_ms(changes: Sequence[ZnodeChange], number: int) -> int:
    """When the last change up to `number` was seen; -1: none was."""
    return max((each.at_ms for each in changes if each.number <= number), default=-1)
