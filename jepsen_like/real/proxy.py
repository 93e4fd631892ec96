"""Proxies on every link of a cluster, which know frames: where messages are cut, late and struck.

    with ProxyMesh(cluster.layout.links) as mesh:
        cut = mesh.impose(Cut(), [(1, 2), (2, 1)])
        held = mesh.arm(FrameRule(action=Action.HOLD, source=1, target=101, ...))
        mesh.lift(cut); mesh.release(held)

All proxies run in one thread with a loop of its own; every method may be called from any other. A
connection is accepted at once, as a system does on behalf of its process, even while a cut keeps
everything from the other end. Works without root and reads no more of a frame than its header.

What a trouble or a rule did is counted in it: that is the proof that it bit.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable
from functools import partial
from random import Random
from typing import Self

from jepsen_like.faults.cut_links import Way
from jepsen_like.faults.message_rules import Action, Armed, Frame, FrameRule, Rules
from jepsen_like.real.flows import Flows, Imposed, Refuse, Trouble
from jepsen_like.real.kafka_relay import KafkaRelay, send_alone
from jepsen_like.real.lanes import reset
from jepsen_like.real.links import Link
from jepsen_like.real.relay import Relay
from jepsen_like.real.server_thread import STREAM_BYTES_MAX, ServerThread, Streams

__all__ = ["ProxyMesh"]

_PARKED_SECONDS = 0.5  # for a frame that is to go behind the next one, if none comes


class ProxyMesh:
    """Entering it listens on every link; leaving it resets every connection."""

    def __init__(self, links: Iterable[Link], *, host: str = "127.0.0.1", seed: int = 0) -> None:
        self.host = host
        self._links = tuple(links)
        random = Random(seed)
        self._rules: Rules[Frame] = Rules(random)
        self._flows = Flows(random)
        self._relays: set[Relay] = set()
        self._parked: dict[tuple[int, int, bool], list[Callable[[], None]]] = {}
        accepts = {link.port: partial(self._accept, link) for link in self._links}
        self._servers = ServerThread("proxies", host, accepts)

    def __enter__(self) -> Self:
        self._servers.__enter__()
        return self

    def __exit__(self, *raised: object) -> None:
        self._servers.__exit__(*raised)

    # --- commands, from any thread -----------------------------------------------------------

    def impose(self, trouble: Trouble, ways: Collection[Way]) -> Imposed:
        """Lay a trouble on flows, each given as (who says it, to whom)."""
        return self._servers.do(partial(self._impose, trouble, ways))

    def lift(self, imposed: Imposed) -> None:
        """What had waited goes on."""
        self._servers.do(lambda: self._flows.lift(imposed))

    def arm(self, rule: FrameRule) -> Armed[Frame]:
        """Put a rule into force. Raises ValueError for one that TCP cannot express."""
        if rule.action is Action.DUPLICATE and rule.is_request is not True:
            raise ValueError("only requests come twice: a client takes one answer to each")
        armed = Armed(
            rule.matches, action=rule.action, trigger=rule.trigger, delay_ms=rule.delay_ms
        )
        return self._servers.do(lambda: self._rules.arm(armed))

    def release(self, armed: Armed[Frame]) -> None:
        """What it kept goes on; it takes nothing more."""
        self._servers.do(armed.release)

    def drop(self, armed: Armed[Frame]) -> None:
        """What it kept is lost; it takes nothing more."""
        self._servers.do(armed.drop)

    def reset(self, ways: Collection[Way]) -> int:
        """Reset the connections that carry requests these ways; how many there were."""
        return self._servers.do(partial(self._for_each, ways, Relay.reset))

    def leave_askers(self, ways: Collection[Way]) -> int:
        """Close the askers' ends of these connections; the asked are told as their flows say."""
        return self._servers.do(partial(self._for_each, ways, Relay.leave_asker))

    def heal(self) -> None:
        """Lift and release everything."""
        self._servers.do(self._heal)

    def frames(self) -> dict[Way, int]:
        """How many frames got through, by flow."""
        return self._servers.do(self._flows.frames)

    # --- in the thread -----------------------------------------------------------------------

    async def _accept(self, link: Link, asker: Streams) -> None:
        try:
            await self._relay(link, asker)
        finally:
            reset(asker[1])

    async def _relay(self, link: Link, asker: Streams) -> None:
        flow = self._flows[link.source, link.target]
        refused = flow.refusal()
        if refused is not None:
            refused.counts["connections refused"] += 1
            return
        await flow.pass_cut("connections")
        try:
            asked = await asyncio.open_connection(
                self.host, link.target_port, limit=STREAM_BYTES_MAX
            )
        except OSError:
            return  # nobody listens there: the asker's connection is reset
        kind = Relay if link.zookeeper else partial(KafkaRelay, self)
        relay = kind(
            link,
            asker=asker,
            asked=asked,
            requests=flow,
            answers=self._flows[link.target, link.source],
        )
        self._relays.add(relay)
        try:
            await relay.run()
        finally:
            self._relays.discard(relay)

    def _impose(self, trouble: Trouble, ways: Collection[Way]) -> Imposed:
        imposed = self._flows.impose(trouble, ways)
        if isinstance(trouble, Refuse):
            count = self._for_each(ways, Relay.reset)
            if count:
                imposed.counts["connections reset"] += count
        return imposed

    def _for_each(self, ways: Collection[Way], action: Callable[[Relay], None]) -> int:
        struck = [relay for relay in self._relays if (relay.link.source, relay.link.target) in ways]
        for relay in struck:
            action(relay)
        return len(struck)

    def _heal(self) -> None:
        self._flows.lift_all()
        self._rules.release_all()

    # --- for connections ---------------------------------------------------------------------

    def taking(self, frame: Frame) -> Armed[Frame] | None:
        return self._rules.taking(frame) if self._rules else None

    def passed(self, frame: Frame) -> None:
        if self._parked:
            self._unpark((frame.source, frame.target, frame.is_request))

    def park(self, frame: Frame, go_on: Callable[[], None]) -> None:
        place = (frame.source, frame.target, frame.is_request)
        self._parked.setdefault(place, []).append(go_on)
        self._servers.later(_PARKED_SECONDS, partial(self._unpark, place))

    def _unpark(self, place: tuple[int, int, bool]) -> None:
        for go_on in self._parked.pop(place, ()):
            go_on()

    def send_alone(self, link: Link, frame: bytes) -> None:
        flow = self._flows[link.source, link.target]
        self._servers.begin(send_alone(self.host, link, frame, flow))
