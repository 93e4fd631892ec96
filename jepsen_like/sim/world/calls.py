"""The requests and answers of one node: what goes out as messages, and what comes in as events.

Keeps a driver's promise that every `Send` is answered exactly once: with a response, with the end
of its connection, or after its time-out. A message is carried as the peer reads it, perhaps through
the wire's codecs. When the core is given an event is not decided here (`host.py`).
"""

from collections.abc import Callable
from dataclasses import dataclass

from jepsen_like.sim.time.virtual_time import VirtualTime
from jepsen_like.sim.world.codec import InVersion, Speech, answer_in, request_in
from jepsen_like.sim.world.network import Message, Network
from quorum.core.effects import Event, Failure, Request, RequestFailed, Response, Send, Token
from wire.capabilities import NOTHING_LACKING, lacking
from wire.writing import CannotExpress

__all__ = ["Calls"]


class Calls:
    def __init__(
        self,
        *,
        node_id: int,
        world: VirtualTime,
        network: Network,
        speech: Speech | None,
        listener: str,
    ) -> None:
        """All requests come in on `listener`; without `speech` a peer reads what was said."""
        self._node_id = node_id
        self._world = world
        self._network = network
        self._speech = speech
        self._listener = listener
        self._sent: dict[int, Token] = {}  # by correlation: our requests without an answer
        self._next_token = 0

    def forget(self) -> None:
        """The process has ended: whatever is answered now, nobody waits for it."""
        self._sent.clear()

    # --- in -------------------------------------------------------------------------------------

    def request(self, message: Message) -> Request:
        """The event that a request is, under a token of its own."""
        self._next_token += 1
        body, version = message.body, message.version
        return Request(
            token=self._next_token,
            body=body,
            listener=self._listener,
            lacking=NOTHING_LACKING if version is None else lacking(type(body), version),
        )

    def answer(self, message: Message) -> Response | RequestFailed | None:
        """The event that an answer is. None: nobody waits for it any more."""
        token = self._sent.pop(message.correlation, None)
        if token is None:
            return None
        if isinstance(message.body, _Refused):
            self._world.counts.fired("disconnected")
            return RequestFailed(token=token, failure=Failure.DISCONNECTED)
        return Response(token=token, body=message.body)

    # --- out ------------------------------------------------------------------------------------

    def send(self, effect: Send, hear: Callable[[Event], None]) -> RequestFailed | None:
        """Send a request; `hear` is told if its time runs out. Returns why it cannot be sent."""
        correlation = self._world.sequence()
        to = effect.to  # a bootstrap server has no id: its host names the node
        target = to.node_id if to.node_id >= 0 else int(to.host.removeprefix("node-"))
        body, version = effect.body, None
        try:
            if isinstance(body, InVersion):
                body, version = request_in(*body), body.version
            elif self._speech is not None:
                body = self._speech.request(body, (self._node_id, target))
        except CannotExpress:
            return RequestFailed(token=effect.token, failure=Failure.UNSUPPORTED_VERSION)
        self._sent[correlation] = effect.token
        self._network.send(
            Message(self._node_id, target, effect.channel, correlation, True, body, version)
        )

        def give_up() -> None:
            token = self._sent.pop(correlation, None)
            if token is not None:
                self._world.counts.fired("timed_out")
                hear(RequestFailed(token=token, failure=Failure.TIMED_OUT))

        self._world.after(effect.timeout_ms * 1000, give_up)
        return None

    def reply(self, asked: Message, body: object) -> None:
        """Answer in the version of the request."""
        if asked.version is not None:
            body = answer_in(body, asked.version)
        elif self._speech is not None:
            body = self._speech.response(body, (self._node_id, asked.source))
        self._respond(asked, body)

    def refuse(self, asked: Message) -> None:
        """End the connection in the place of an answer."""
        self._respond(asked, _Refused())

    def _respond(self, asked: Message, body: object) -> None:
        self._network.send(
            Message(self._node_id, asked.source, asked.channel, asked.correlation, False, body)
        )


@dataclass(frozen=True, slots=True)
class _Refused:
    """It stands for a response: the connection broke or was never made."""
