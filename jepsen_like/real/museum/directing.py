"""What every stage of processes with a topic has: its account, its time, its brokers, its proxies.

Decides nothing of what a schedule may ask; `RealClusterStage` and `RealZkStage` do.
"""

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable

from jepsen_like.faults.message_rules import Action, Armed, Frame, FrameRule, Trigger
from jepsen_like.real.kafka_client import Client
from jepsen_like.real.museum.process_clients import Address
from jepsen_like.real.museum.rig import Rig, reaches
from jepsen_like.sim.schedules.production import Production
from jepsen_like.sim.violation import Stuck
from wire.api_table import api_of
from wire.batch import headers
from wire.messages.fetching import FetchRequest
from wire.varint import Malformed

__all__ = ["SETTLED_MS", "TIMEOUT_MS", "TOPIC", "WAIT_MS", "Directing"]

TOPIC = "orders"
WAIT_MS = 15_000
SETTLED_MS = 10_000  # after healing: until all are in sync
TIMEOUT_MS = 10_000


class Directing(ABC):
    """`names`: a, b, c, … for people; what is awaited is noted from when somebody has a name."""

    def __init__(self, production: Production, rig: Rig) -> None:
        self._production = production
        self._rig = rig
        self._names: dict[int, str] = {}
        self.lock = threading.Lock()  # around the production, which clients' threads write to
        began = time.monotonic()
        production.now_us = lambda: int((time.monotonic() - began) * 1e6)

    @abstractmethod
    def _look(self) -> None:
        """Note what has become of the partition, and judge it."""

    def note(self, what: str) -> None:
        with self.lock:
            self._production.note(what)

    def name(self, node: int) -> str:
        return self._names.get(node, str(node))

    def end_offset(self, node: int) -> int:
        """By its file."""
        data = self._rig.cluster.layout.node(node).data
        try:
            content = (data / f"{TOPIC}-0" / "00000000000000000000.log").read_bytes()
            ends = [header.next_offset for _, header in headers(content)]
        except (OSError, Malformed):
            return 0  # not there yet, or in the midst of a write
        return ends[-1] if ends else 0

    def _address(self, node: int) -> Address:
        layout = self._rig.cluster.layout.node(node)
        return layout.host, layout.port

    def _any_broker(self) -> Client:
        up = [node for node in self._rig.cluster.layout.brokers if self._rig.is_up(node.id)]
        return Client([(node.host, node.port) for node in up], TIMEOUT_MS / 1000)

    # --- time ---------------------------------------------------------------------------

    def wait(self, ms: int) -> None:
        reaches(self._never, ms)

    def reaches(self, condition: Callable[[], bool], within_ms: int) -> bool:
        """Does it come to hold in time?"""
        return reaches(condition, within_ms)

    def _never(self) -> bool:
        self._look()
        return False

    def until(
        self,
        condition: Callable[[], bool],
        what: str,
        *,
        bound: str = "",
        within_ms: int = WAIT_MS,
    ) -> None:
        def holds() -> bool:
            self._look()
            return condition()

        if reaches(holds, within_ms):
            if self._names:
                self.note(what)
            return
        assert bound, f"the schedule never came to this: {what}"
        raise Stuck(bound, f"not within {within_ms} ms: {what}")

    # --- processes ----------------------------------------------------------------------

    def kill(self, node: int) -> None:
        self.note(f"{self.name(node)} is killed")
        self._rig.cluster.kill(node)

    def start(self, node: int) -> None:
        self.note(f"{self.name(node)} is started")
        self._rig.cluster.start(node)

    # --- messages -----------------------------------------------------------------------

    def hold(
        self, body: type, *, target: int, source: int | None = None, times: int | None = None
    ) -> Armed[Frame]:
        count = "every" if times is None else "one" if times == 1 else f"{times} times"
        ends = "" if source is None else f"from {self.name(source)} "
        self.note(f"a proxy holds {count} {body.__name__} {ends}to {self.name(target)}")
        return self._rig.mesh.arm(
            FrameRule(
                action=Action.HOLD,
                source=source,
                target=target,
                api_key=api_of(body).key,
                is_request=body.__name__.endswith("Request"),
                trigger=Trigger(count=times),
            )
        )

    def stop_fetching(self, follower: int, leader: int) -> tuple[Armed[Frame], Armed[Frame]]:
        """Those that are asked, and what is answered."""
        self.note(f"a proxy holds every fetch of {self.name(follower)} from {self.name(leader)}")
        ways = ((follower, leader, True), (leader, follower, False))
        asking, answers = (
            self._rig.mesh.arm(
                FrameRule(
                    action=Action.HOLD,
                    source=source,
                    target=target,
                    api_key=api_of(FetchRequest).key,
                    is_request=is_request,
                )
            )
            for source, target, is_request in ways
        )
        return asking, answers

    def let_go(self, *rules: Armed[Frame]) -> None:
        count = sum(len(rule.kept) for rule in rules)
        self.note(f"the proxies let go of what they held ({count} messages)")
        for rule in rules:
            self._rig.mesh.release(rule)

    def drop(self, *rules: Armed[Frame]) -> None:
        for rule in rules:
            self.note(f"a proxy loses what it held ({len(rule.kept)} messages)")
            self._rig.mesh.drop(rule)
