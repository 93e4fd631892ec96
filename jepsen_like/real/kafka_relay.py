"""One connection in Kafka's protocol through a proxy, where rules strike single messages.

Frames may be taken aside by rules, and go on later or never, while those behind them pass. Kafka's
clients match answers to requests by their order, so that answers leave in the order in which the
asker sent its requests, whatever happened on the way: the answer to a request that is held makes
those behind it wait, as a lost one does for ever, until the asker gives up.

A request that goes on when its connection is gone takes one of its own, as bytes that a network
had kept arrive after the retry: nobody reads the answer.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from struct import Struct
from typing import Protocol

from jepsen_like.faults.message_rules import Action, Armed, Frame
from jepsen_like.real.flows import Flow
from jepsen_like.real.lanes import LENGTH, NoFrame, read_frame
from jepsen_like.real.links import Link
from jepsen_like.real.relay import Relay
from jepsen_like.real.server_thread import Streams

__all__ = ["KafkaRelay", "Owner", "send_alone"]

_HEADER = Struct(">hhi")  # api key, api version, correlation id
_CORRELATION_ID = Struct(">i")
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


class KafkaRelay(Relay):
    def __init__(
        self,
        owner: Owner,
        link: Link,
        *,
        asker: Streams,
        asked: Streams,
        requests: Flow,
        answers: Flow,
    ) -> None:
        super().__init__(link, asker=asker, asked=asked, requests=requests, answers=answers)
        self._owner = owner
        self._slots: deque[_Slot] = deque()

    # --- requests -----------------------------------------------------------------------

    def _take_request(self, frame: bytes) -> None:
        if len(frame) < _HEADER.size:
            raise NoFrame
        api_key, _, correlation_id = _HEADER.unpack_from(frame)
        slot = _Slot(correlation_id, api_key)
        self._slots.append(slot)
        self._judge_request(frame, slot)

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

    def _take_answer(self, frame: bytes) -> None:
        if len(frame) < _CORRELATION_ID.size:
            raise NoFrame
        slot = self._slot_of(_CORRELATION_ID.unpack_from(frame)[0])
        if slot is None:
            self._answers.put(frame)  # to nothing: the asker shall judge it
        else:
            self._judge_answer(frame, slot)

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


async def send_alone(host: str, link: Link, frame: bytes, flow: Flow) -> None:
    """A request on a connection of its own, whose answer nobody reads."""
    await flow.pass_cut("frames")
    try:
        async with asyncio.timeout(_LONE_ANSWER_SECONDS):
            reader, writer = await asyncio.open_connection(host, link.target_port)
            try:
                writer.writelines((LENGTH.pack(len(frame)), frame))
                await read_frame(reader)  # a connection that is closed too early may take it along
            finally:
                writer.close()
    except (OSError, NoFrame):
        return  # also a time-out: it was sent, and that is all
