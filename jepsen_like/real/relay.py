"""One connection through a proxy: frames of the asker to the asked, and the answers back.

Both directions are lanes, which the troubles of their flows hold up. What a frame says is not read:
that is for `jepsen_like.real.kafka_relay`, where single messages can be struck. This one is enough
for ZooKeeper's protocol.
"""

import asyncio

from jepsen_like.real.flows import Flow
from jepsen_like.real.lanes import Lane, NoFrame, read_frame, reset
from jepsen_like.real.links import Link
from jepsen_like.real.server_thread import Streams

__all__ = ["Relay"]


class Relay:
    """`await Relay(...).run()` until both ends are gone."""

    def __init__(
        self, link: Link, *, asker: Streams, asked: Streams, requests: Flow, answers: Flow
    ) -> None:
        self.link = link
        self._from_asker, self._to_asker = asker
        self._from_asked, self._to_asked = asked
        self._requests = Lane(requests, self._to_asked)
        self._answers = Lane(answers, self._to_asker)

    async def run(self) -> None:
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._read_requests())
                tasks.create_task(self._read_answers())
                tasks.create_task(self._requests.run())
                tasks.create_task(self._answers.run())
        except* NoFrame:
            pass  # another protocol is not for this proxy: both ends are told below
        finally:
            self.reset()

    def reset(self) -> None:
        """Both ends see their connection reset."""
        for lane in (self._requests, self._answers):
            lane.put(None)
        for writer in (self._to_asker, self._to_asked):
            reset(writer)

    def leave_asker(self) -> None:
        """The asker sees the end at once, the asked node when its flow tells it."""
        self._to_asker.close()
        self._from_asker.feed_eof()

    async def _read_requests(self) -> None:
        while (frame := await read_frame(self._from_asker)) is not None:
            self._take_request(frame)
            await self._requests.has_room()
        self._requests.put(None)

    async def _read_answers(self) -> None:
        while (frame := await read_frame(self._from_asked)) is not None:
            self._take_answer(frame)
            await self._answers.has_room()
        self._answers.put(None)

    def _take_request(self, frame: bytes) -> None:
        self._requests.put(frame)

    def _take_answer(self, frame: bytes) -> None:
        self._answers.put(frame)
