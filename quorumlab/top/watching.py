"""A thread watches a cluster: it looks again and again, and keeps the newest view.

The screen is made of what is known, and waits for nobody.
"""

import threading
import time
from collections.abc import Sequence
from dataclasses import replace

from quorumlab.top.asking import Observer
from quorumlab.top.chaos_faults import ChaosFaults
from quorumlab.top.cluster_view import ClusterView
from quorumlab.top.log_follower import LogFollower
from quorumlab.top.screen import Line, Reader, pressed, screen_lines, story_lines

__all__ = ["Watching"]

_EVERY_SECONDS = 1.0
_PAUSE_SECONDS = 0.5  # also where looking takes long
_ALL_SECONDS = 20.0  # to read the log of 10,000 partitions on a busy machine


class Watching:
    def __init__(
        self, observer: Observer, follower: LogFollower, chaos: ChaosFaults | None
    ) -> None:
        self._observer = observer
        self._follower = follower
        self._chaos = chaos
        self._view = ClusterView(cluster="asking ...")
        self._story_length = 0  # in lines, as it was shown last
        self._has_looked = threading.Event()
        self._failure: BaseException | None = None

    def close(self) -> None:
        """Closes the history of the chaos run. Threads end with the process."""
        if self._chaos is not None:
            self._chaos.close()

    def start(self) -> None:
        self._follower.start()
        threading.Thread(target=self._look_again, daemon=True, name="watching").start()

    def wait_for_all(self) -> None:
        """The log if it can be read, and then a look, most often the second one, which has rates;
        not for long."""
        deadline = time.monotonic() + _ALL_SECONDS
        self._has_looked.wait(_ALL_SECONDS)
        while self._follower.is_loading and time.monotonic() < deadline:
            time.sleep(0.02)
        self._has_looked.clear()
        self._has_looked.wait(2 * _EVERY_SECONDS)

    def lines(self, reader: Reader, width: int, height: int) -> Sequence[Line]:
        if self._failure is not None:
            raise self._failure
        asked = reader.asks_why
        story = None
        if asked is not None:
            story = self._follower.why(asked)
            self._story_length = len(story_lines(asked, story, width))
        return screen_lines(self._seen(), reader, width=width, height=height, story=story)

    def press(self, reader: Reader, key: str) -> Reader:
        after = pressed(reader, key, self._follower.log, story_length=self._story_length)
        if after.asks_why is None:
            self._follower.forget_why()  # it is told anew, with what has come since
        return after

    def _seen(self) -> ClusterView:
        follower, chaos = self._follower, self._chaos
        return replace(
            self._view,
            time=time.strftime("%H:%M:%S"),
            partitions=follower.partitions or self._view.partitions,
            log=follower.log,
            log_end=follower.end,
            problem=follower.problem,
            chaos=None if chaos is None else chaos.phase,
            faults=() if chaos is None else chaos.faults,
        )

    def _look_again(self) -> None:
        try:
            while True:
                began = time.monotonic()
                if self._chaos is not None:
                    self._chaos.look()
                self._view = self._observer.look()
                self._has_looked.set()
                time.sleep(max(_PAUSE_SECONDS, began + _EVERY_SECONDS - time.monotonic()))
        except Exception as error:  # noqa: BLE001  # the screen raises it, in the user's thread
            self._failure = error
            self._has_looked.set()
