"""Proxies on every link of a cluster: messages are cut and delayed there, and taken by rules.

    with ProxyMesh(cluster.layout.links) as mesh:
        cut = mesh.impose(Cut(), [(1, 2), (2, 1)])
        held = mesh.arm(FrameRule(action=Action.HOLD, source=1, target=101, ...))
        mesh.lift(cut); mesh.release(held)

All proxies run in one thread with a loop of its own; every method may be called from any other. A
connection is accepted at once, as a system does on behalf of its process, even while a cut keeps
everything from the other end. The proxies work without root and read no more of a frame than its
header. An impairment or a rule counts what it did: that is the proof that it bit. A link of TLS has
impairments alone: whoever dials it meets the certificate of the node behind it.

A rule may take a frame out of its connection (`KafkaRelay`): it goes on later or never, while those
behind it pass. Kafka's clients match answers to requests by their order. The proxy therefore keeps
the order in which the asker sent its requests: the answer to a request that is held makes the
answers behind it wait, and a lost one does so for ever, until the asker gives up.

A request that goes on after its connection has ended takes a connection of its own, as bytes that a
network had kept arrive after the retry. Nobody reads the answer.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from random import Random
from struct import Struct

from jepsen_like.faults.cut_links import Direction
from jepsen_like.faults.message_rules import Action, Armed, Frame, FrameRule, Rules
from jepsen_like.real.address_rewriting import redirected
from jepsen_like.real.credentials import ProxyTls
from jepsen_like.real.impairments import Flow, Flows, Impairment, Imposed, Refuse
from jepsen_like.real.layout import HOST, Address, Link
from jepsen_like.real.relay import (
    LENGTH,
    STREAM_BYTES_MAX,
    TLS_RECORDS,
    NoFrame,
    Relay,
    ServerThread,
    Streams,
    read_frame,
    reset,
)
from jepsen_like.real.tampering import Exchange, Tamper

__all__ = ["ProxyMesh"]

_HEADER = Struct(">hhi")  # api key, api version, correlation id
_CORRELATION_ID = Struct(">i")
_LONE_ANSWER_SECONDS = 10.0
_PARKED_SECONDS = 0.5  # for a frame that is to go behind the next one, if none comes


@dataclass(slots=True, eq=False)
class _Slot:
    """The place of an answer in the order that the asker expects."""

    correlation_id: int
    api_key: int
    version: int
    is_aside: bool = False  # a rule has the request or its answer: others may overtake
    answer: bytes | None = None
    change: Callable[[bytes], bytes] | None = None  # of the answer, before anything else


class KafkaRelay(Relay):
    def __init__(
        self,
        mesh: "ProxyMesh",
        link: Link,
        *,
        asker: Streams,
        asked: Streams,
        requests: Flow,
        answers: Flow,
    ) -> None:
        super().__init__(asker=asker, asked=asked, requests=requests, answers=answers)
        self._mesh = mesh
        self._link = link
        self._slots: deque[_Slot] = deque()

    # --- requests -----------------------------------------------------------------------

    def _take_request(self, frame: bytes) -> None:
        if len(frame) < _HEADER.size:
            raise NoFrame
        api_key, version, correlation_id = _HEADER.unpack_from(frame)
        slot = _Slot(correlation_id, api_key, version)
        self._slots.append(slot)
        exchange = self._mesh.exchange(self._link, frame)
        if exchange is None:
            self._judge_request(frame, slot)
        elif exchange.request is None:
            self._judge_answer(exchange.answer(b""), slot)
        else:
            slot.change = exchange.answer
            self._judge_request(exchange.request, slot)

    def _judge_request(self, frame: bytes, slot: _Slot) -> None:
        told = self._told(slot, is_request=True)
        rule = self._mesh.taking(told)
        if rule is not None and rule.action is Action.DUPLICATE:
            self._mesh.send_alone(self._link, frame)
            rule = None
        if rule is None:
            self._requests.put(frame)
            self._mesh.passed(told)
            return

        def go_on() -> None:
            if self._requests.is_ended:
                self._mesh.send_alone(self._link, frame)
            else:
                self._requests.put(frame)

        self._apply(rule, slot, told, go_on)

    # --- answers ------------------------------------------------------------------------

    def _take_answer(self, frame: bytes) -> None:
        if len(frame) < _CORRELATION_ID.size:
            raise NoFrame
        slot = self._slot_of(_CORRELATION_ID.unpack_from(frame)[0])
        if slot is None:
            self._answers.put(frame)  # to nothing: the asker shall judge it
        else:
            answer = frame if slot.change is None else slot.change(frame)
            self._judge_answer(self._mesh.redirected(answer, slot.api_key, slot.version), slot)

    def _slot_of(self, correlation_id: int) -> _Slot | None:
        """The request that is answered. Earlier ones that no rule has expect no answer (acks=0)."""
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
        told = self._told(slot, is_request=False)

        def go_on() -> None:
            slot.answer = frame
            while self._slots and (answer := self._slots[0].answer) is not None:
                self._slots.popleft()
                self._answers.put(answer)

        rule = self._mesh.taking(told)
        if rule is None:
            go_on()
            self._mesh.passed(told)
        else:
            self._apply(rule, slot, told, go_on)

    def _told(self, slot: _Slot, *, is_request: bool) -> Frame:
        asker, asked = self._link.source, self._link.target
        source, target = (asker, asked) if is_request else (asked, asker)
        return Frame(source=source, target=target, api_key=slot.api_key, is_request=is_request)

    def _apply(
        self, rule: Armed[Frame], slot: _Slot, told: Frame, go_on: Callable[[], None]
    ) -> None:
        slot.is_aside = True
        match rule.action:
            case Action.HOLD:
                rule.kept.append(go_on)
            case Action.REORDER:
                self._mesh.park(told, go_on)
            case Action.DROP:
                pass
            case Action.DUPLICATE | Action.DELAY:
                raise AssertionError(f"no proxy does that to this frame: {rule.action}")


class ProxyMesh(ServerThread):
    """Entering it listens on every link; leaving it resets every connection.

    `elsewhere`: the brokers of somebody else's cluster, by id, to which the links lead.
    `tamper` sees every request of a Kafka client or node first. `tls`: it ends at the proxies.
    """

    def __init__(
        self,
        links: Collection[Link],
        *,
        seed: int = 0,
        elsewhere: Mapping[int, Address] | None = None,
        tamper: Tamper | None = None,
        tls: ProxyTls | None = None,
    ) -> None:
        accepts = {each.port: partial(self._accept, each) for each in links}
        super().__init__("proxies", accepts, None if tls is None else tls.shown)
        self._asking = None if tls is None else tls.asking
        self._elsewhere = elsewhere or {}
        self._tamper = tamper
        self._proxies = {each.target: (HOST, each.port) for each in links if self._elsewhere}
        random = Random(seed)
        self._rules: Rules[Frame] = Rules(random)
        self._flows = Flows(random)
        self._relays: dict[Relay, Link] = {}
        self._parked: dict[tuple[int, int, bool], list[Callable[[], None]]] = {}

    # --- commands, from any thread -----------------------------------------------------------

    def impose(self, impairment: Impairment, directions: Collection[Direction]) -> Imposed:
        """Lay an impairment on flows, each given as (sender, receiver)."""
        return self.do(partial(self._impose, impairment, directions))

    def lift(self, imposed: Imposed) -> None:
        """Let the frames that waited go on."""
        self.do(lambda: self._flows.lift(imposed))

    def arm(self, rule: FrameRule) -> Armed[Frame]:
        """Put a rule into force. Raises ValueError for one that TCP cannot express."""
        if rule.action is Action.DUPLICATE and not rule.is_request:
            raise ValueError("only requests come twice: a client takes one answer to each")
        armed = Armed(rule.matches, action=rule.action, trigger=rule.trigger)
        return self.do(lambda: self._rules.arm(armed))

    def release(self, armed: Armed[Frame]) -> None:
        """Let the frames that it kept go on; it takes no more."""
        self.do(armed.release)

    def drop(self, armed: Armed[Frame]) -> None:
        """Drop the frames that it kept; it takes no more."""
        self.do(armed.drop)

    def reset(self, directions: Collection[Direction]) -> int:
        """Reset the connections that carry requests in these directions; how many there were."""
        return self.do(partial(self._for_each, directions, Relay.reset))

    def leave_askers(self, directions: Collection[Direction]) -> int:
        """Close the askers' ends of these connections; the asked are told as their flows say."""
        return self.do(partial(self._for_each, directions, Relay.leave_asker))

    def heal(self) -> None:
        """Lift and release everything."""
        self.do(self._heal)

    # --- in the thread -----------------------------------------------------------------------

    async def _accept(self, link: Link, asker: Streams) -> None:
        try:
            flow = self._flows[link.source, link.target]
            refused = flow.refusal()
            if refused is not None:
                refused.counts["connections refused"] += 1
                return
            await flow.pass_cut("connections")
            try:
                asked = await self._connected_to(link)
            except OSError:
                return  # nobody listens there: the asker's connection is reset
            answers = self._flows[link.target, link.source]
            relay = self._kind(link)(asker=asker, asked=asked, requests=flow, answers=answers)
            self._relays[relay] = link
            try:
                await relay.run()
            finally:
                del self._relays[relay]
        finally:
            reset(asker[1])

    def _kind(self, link: Link) -> Callable[..., Relay]:
        if link.tls:
            return partial(Relay, framing=TLS_RECORDS)
        return Relay if link.zookeeper else partial(KafkaRelay, self, link)

    async def _connected_to(self, link: Link) -> Streams:
        address = self._elsewhere.get(link.target, (HOST, link.target_port))
        return await asyncio.open_connection(*address, limit=STREAM_BYTES_MAX, ssl=self._asking)

    def _impose(self, impairment: Impairment, directions: Collection[Direction]) -> Imposed:
        imposed = self._flows.impose(impairment, directions)
        if isinstance(impairment, Refuse):
            count = self._for_each(directions, Relay.reset)
            if count:
                imposed.counts["connections reset"] += count
        return imposed

    def _for_each(self, directions: Collection[Direction], action: Callable[[Relay], None]) -> int:
        relays = [
            relay
            for relay, link in self._relays.items()
            if (link.source, link.target) in directions
        ]
        for relay in relays:
            action(relay)
        return len(relays)

    def _heal(self) -> None:
        self._flows.lift_all()
        self._rules.release_all()

    # --- for connections ---------------------------------------------------------------------

    def redirected(self, answer: bytes, api_key: int, version: int) -> bytes:
        """The answer with the proxies' addresses, if the brokers are somebody else's."""
        if not self._proxies:
            return answer
        return redirected(answer, api_key, version, self._proxies)

    def exchange(self, link: Link, request: bytes) -> Exchange | None:
        """What is to become of a request, if it does not pass as it is."""
        return None if self._tamper is None else self._tamper.exchange(link, request)

    def taking(self, frame: Frame) -> Armed[Frame] | None:
        """The rule that takes this frame, if any."""
        return self._rules.taking(frame) if self._rules else None

    def passed(self, frame: Frame) -> None:
        """The frame goes on: those that were to go behind it follow."""
        if self._parked:
            self._unpark((frame.source, frame.target, frame.is_request))

    def park(self, frame: Frame, go_on: Callable[[], None]) -> None:
        """Let the frame go on behind the next one of its link, or after a while."""
        place = (frame.source, frame.target, frame.is_request)
        self._parked.setdefault(place, []).append(go_on)
        self.later(_PARKED_SECONDS, partial(self._unpark, place))

    def _unpark(self, place: tuple[int, int, bool]) -> None:
        for go_on in self._parked.pop(place, ()):
            go_on()

    def send_alone(self, link: Link, frame: bytes) -> None:
        """Send a request on a connection of its own, whose answer nobody reads."""
        self.begin(self._send_alone(link, frame))

    async def _send_alone(self, link: Link, frame: bytes) -> None:
        await self._flows[link.source, link.target].pass_cut("frames")
        try:
            async with asyncio.timeout(_LONE_ANSWER_SECONDS):
                reader, writer = await self._connected_to(link)
                try:
                    writer.writelines((LENGTH.pack(len(frame)), frame))
                    await read_frame(reader)  # closing too early may take the request along
                finally:
                    writer.close()
        except (OSError, NoFrame):
            return  # it was sent; that the answer is late or missing does not matter
