"""One connection through a proxy: frames of the asker to the asked, and the answers back.

Frames may be taken aside by rules, and go on later or never, while those behind them pass. Kafka's
clients match answers to requests by their order, so that answers leave in the order in which the
asker sent its requests, whatever happened on the way: the answer to a request that is held makes
those behind it wait, as a lost one does for ever, until the asker gives up.

A request that goes on when its connection is gone takes one of its own, as bytes that a network
had kept arrive after the retry: nobody reads the answer.
"""

import asyncio
import socket
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from struct import Struct, pack
from typing import Protocol

from jepsen_like.real.flows import Flow
from jepsen_like.real.links import Link
from jepsen_like.rules import Action, Armed, Frame
from wire.framing import FRAME_BYTES_MAX

__all__ = ["Owner", "Relay", "reset", "send_alone"]

_LENGTH = Struct(">i")
_HEADER = Struct(">hhi")  # api key, api version, correlation id
_LANE_FRAMES_MAX = 1000  # frames that wait in one direction of one connection; then it is not read
_LONE_ANSWER_SECONDS = 10.0


class Owner(Protocol):
    """The mesh that a connection belongs to."""

    @property
    def host(self) -> str: ...

    def taking(self, frame: Frame) -> Armed[Frame] | None:
        """The rule that has this frame, if any."""
        ...

    def passed(self, frame: Frame) -> None:
        """It goes on: those that were to go behind it follow."""
        ...

    def park(self, frame: Frame, go_on: Callable[[], None]) -> None:
        """Let it go on behind the next frame of its link, or after a while."""
        ...

    def send_alone(self, link: Link, frame: bytes) -> None:
        """Over a connection of its own."""
        ...


@dataclass(slots=True, eq=False)
class _Slot:
    """The place of an answer in the order that the asker expects."""

    correlation_id: int
    api_key: int
    is_aside: bool = False  # a rule has the request or its answer: others may overtake
    answer: bytes | None = None


class _Lane:
    """One direction: frames in order, each when its flow lets it pass, then the end."""

    def __init__(self, flow: Flow, writer: asyncio.StreamWriter) -> None:
        self._flow = flow
        self._writer = writer
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[tuple[float, bytes | None]] = deque()
        self._filled = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self.is_ended = False  # nothing more gets through

    def put(self, frame: bytes | None) -> None:
        """None: the end, behind all that waits."""
        self.is_ended |= frame is None
        self._waiting.append((self._loop.time() + self._flow.later_seconds(), frame))
        self._filled.set()
        if len(self._waiting) >= _LANE_FRAMES_MAX:
            self._room.clear()

    async def has_room(self) -> None:
        await self._room.wait()

    async def run(self) -> None:
        """Until the end has been told."""
        while True:
            await self._filled.wait()
            due, frame = self._waiting.popleft()
            if not self._waiting:
                self._filled.clear()
            self._room.set()
            await asyncio.sleep(due - self._loop.time())
            try:
                if frame is None:
                    await self._tell_end()
                    return
                await self._write(frame)
            except OSError:
                continue  # who should get it is gone; its own end will come the other way

    async def _write(self, frame: bytes) -> None:
        await asyncio.sleep(self._flow.room_seconds(len(frame), self._loop.time()))
        await self._flow.pass_cut("frames")
        if not self._writer.is_closing():
            self._flow.frames += 1
            self._writer.writelines((_LENGTH.pack(len(frame)), frame))
            await self._writer.drain()

    async def _tell_end(self) -> None:
        await self._flow.pass_cut("closes")
        await asyncio.sleep(self._flow.close_seconds())
        self._writer.close()
        await self._writer.wait_closed()


class Relay:
    """`await Relay(...).run()` until both ends are gone."""

    def __init__(
        self,
        owner: Owner,
        link: Link,
        *,
        asker: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        asked: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        requests: Flow,
        answers: Flow,
    ) -> None:
        self.link = link
        self._owner = owner
        self._from_asker, self._to_asker = asker
        self._from_asked, self._to_asked = asked
        self._requests = _Lane(requests, self._to_asked)
        self._answers = _Lane(answers, self._to_asker)
        self._slots: deque[_Slot] = deque()

    async def run(self) -> None:
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._read_requests())
                tasks.create_task(self._read_answers())
                tasks.create_task(self._requests.run())
                tasks.create_task(self._answers.run())
        except* _NoFrame:
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

    # --- requests -----------------------------------------------------------------------

    async def _read_requests(self) -> None:
        while (frame := await _read(self._from_asker)) is not None:
            if len(frame) < _HEADER.size:
                raise _NoFrame
            api_key, _, correlation_id = _HEADER.unpack_from(frame)
            slot = _Slot(correlation_id, api_key)
            self._slots.append(slot)
            self._judge_request(frame, slot)
            await self._requests.has_room()
        self._requests.put(None)

    def _judge_request(self, frame: bytes, slot: _Slot) -> None:
        told = Frame(
            source=self.link.source,
            target=self.link.target,
            api_key=slot.api_key,
            is_request=True,
        )
        rule = self._owner.taking(told)
        if rule is not None and rule.action is Action.DUPLICATE:
            self._owner.send_alone(self.link, frame)
            rule = None
        if rule is None:
            self._requests.put(frame)
            self._owner.passed(told)
            return

        def go_on() -> None:
            if self._requests.is_ended:
                self._owner.send_alone(self.link, frame)
            else:
                self._requests.put(frame)

        self._strike(rule, slot, told, go_on)

    # --- answers ------------------------------------------------------------------------

    async def _read_answers(self) -> None:
        while (frame := await _read(self._from_asked)) is not None:
            if len(frame) < _LENGTH.size:
                raise _NoFrame
            slot = self._slot_of(_LENGTH.unpack_from(frame)[0])
            if slot is None:
                self._answers.put(frame)  # to nothing: the asker shall judge it
            else:
                self._judge_answer(frame, slot)
            await self._answers.has_room()
        self._answers.put(None)

    def _slot_of(self, correlation_id: int) -> _Slot | None:
        """Whose answer it is. Requests before it that were not put aside want none (acks=0)."""
        found = next(
            (
                slot
                for slot in self._slots
                if slot.correlation_id == correlation_id and slot.answer is None
            ),
            None,
        )
        if found is not None:
            before = list(self._slots)[: self._slots.index(found)]
            for slot in before:
                if not slot.is_aside and slot.answer is None:
                    self._slots.remove(slot)
        return found

    def _judge_answer(self, frame: bytes, slot: _Slot) -> None:
        told = Frame(
            source=self.link.target,
            target=self.link.source,
            api_key=slot.api_key,
            is_request=False,
        )

        def go_on() -> None:
            slot.answer = frame
            while self._slots and (answer := self._slots[0].answer) is not None:
                self._slots.popleft()
                self._answers.put(answer)

        rule = self._owner.taking(told)
        if rule is None:
            go_on()
            self._owner.passed(told)
        else:
            self._strike(rule, slot, told, go_on)

    def _strike(
        self, rule: Armed[Frame], slot: _Slot, told: Frame, go_on: Callable[[], None]
    ) -> None:
        slot.is_aside = True
        match rule.action:
            case Action.HOLD:
                rule.kept.append(go_on)
            case Action.DELAY:
                asyncio.get_running_loop().call_later(rule.delay_ms / 1000, go_on)
            case Action.REORDER:
                self._owner.park(told, go_on)
            case Action.RESET:
                self.reset()
            case Action.CLOSE:
                self._requests.put(None)
                self._answers.put(None)
            case Action.DROP:
                pass
            case Action.DUPLICATE:
                raise AssertionError("answers are not doubled: see ProxyMesh.arm")


class _NoFrame(Exception):
    """What came is no frame of Kafka's protocol."""


async def _read(reader: asyncio.StreamReader) -> bytes | None:
    """The next frame without its length; None at the end, of which half a frame is a part."""
    try:
        (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
        if not 0 <= length <= FRAME_BYTES_MAX:
            raise _NoFrame
        return await reader.readexactly(length)
    except (asyncio.IncompleteReadError, ConnectionError):
        return None


def reset(writer: asyncio.StreamWriter) -> None:
    """End a connection so that the other end sees a reset, not an orderly end."""
    transport = writer.transport
    if not transport.is_closing():
        linger = pack("ii", 1, 0)
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    transport.abort()


async def send_alone(host: str, link: Link, frame: bytes, flow: Flow) -> None:
    """A request on a connection of its own, whose answer nobody reads."""
    await flow.pass_cut("frames")
    try:
        async with asyncio.timeout(_LONE_ANSWER_SECONDS):
            reader, writer = await asyncio.open_connection(host, link.target_port)
            try:
                writer.writelines((_LENGTH.pack(len(frame)), frame))
                await _read(reader)  # a connection that is closed too early may take it along
            finally:
                writer.close()
    except (OSError, _NoFrame):
        return  # also a time-out: it was sent, and that is all
