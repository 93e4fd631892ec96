"""The turn: what a core is given at a time, and what of its effects may leave.

Whoever runs a core, on sockets and files or on virtual time, runs it by this object:

    turn.add(event)                           # from sockets, disks and timers, in any number
    for effect in turn.take(core, now_ms):    # the core has had its share: do these, in order,
    for effect in turn.leaving(answers):      # and these last; `answers`: the disk's

    - a turn is bounded, and the control plane has its place before clients (`quorum.core.inbox`);
    - the core settles once a turn, not after every event: one look at the high watermark, one
      answer to whoever waits, one sync for what several have asked to be written. Only an event
      that might change what the others before it rest on has them settled first (`ends_batch`);
    - what tells others something leaves when all that it may rest on is written. Where a write
      fails at once, nothing of this turn leaves: a `Send` counts as failed, and who waits for a
      `Reply` loses the connection, for silence could be taken for success;
    - a request is answered once, or its connection is closed.

Pure: the time is told, and nothing is waited for. It decides nothing about what an event means.
"""

from collections.abc import Iterable
from typing import Generic, TypeVar

from quorum.core.effects import Core, Effect, Event, HangUp, Request, StorageFailed, Told
from quorum.core.inbox import Action, Inbox

__all__ = ["CLIENTS_MAX", "CONTROL_MAX", "Turn"]

CONTROL_MAX = 1000  # events of the control plane in a turn: a turn must end
CLIENTS_MAX = 64  # requests of clients in a turn

Asker = TypeVar("Asker")


class Turn(Generic[Asker]):
    """`Asker` is whatever a driver needs to know of where a request came from."""

    __slots__ = ("_askers", "_told", "inbox")

    def __init__(self, *, prioritises: bool = True) -> None:
        """`prioritises`: the control plane before clients."""
        self.inbox = Inbox(prioritises=prioritises)
        self._askers: dict[int, Asker] = {}  # by token: of requests without an answer
        self._told: list[Told] = []  # waits for this turn's writes

    # --- in -------------------------------------------------------------------------------------

    def add(self, event: Event | Action) -> None:
        """An event, or an action upon the core, of the control plane."""
        self.inbox.add(event)

    def add_request(self, request: Request, asker: Asker) -> None:
        """A request; `asker` comes back with its answer."""
        assert request.token not in self._askers, f"request {request.token} is there already"
        self._askers[request.token] = asker
        self.inbox.add_request(request)

    def take(
        self,
        core: Core,
        now_ms: int,
        *,
        control_max: int = CONTROL_MAX,
        clients_max: int = CLIENTS_MAX,
    ) -> list[Effect]:
        """Give `core` what waits, let it settle; what is to be carried out now, in order."""
        for event in self.inbox.take(control_max=control_max, clients_max=clients_max):
            if not isinstance(event, Event):
                event(now_ms)
                continue
            if core.ends_batch(event):
                core.settle(now_ms)
            core.receive(event, now_ms)
        core.settle(now_ms)
        done: list[Effect] = []
        for effect in core.take_effects():
            if isinstance(effect, Told):
                self._told.append(effect)
            else:
                done.append(effect)
        return done

    # --- out ------------------------------------------------------------------------------------

    def leaving(self, answers: Iterable[Event]) -> list[Effect]:
        """What may leave, now that everything is written. `answers` go into the next turn."""
        has_failed = False
        for answer in answers:
            self.inbox.add(answer)
            has_failed |= isinstance(answer, StorageFailed)
        told, self._told = self._told, []
        return self._withhold(told) if has_failed else list(told)

    def _withhold(self, told: Iterable[Told]) -> list[Effect]:
        """Whoever waits for it must not wait for ever: the core may go on without that disk."""
        hung_up: list[Effect] = []
        for each in told:
            instead = each.withheld()
            if isinstance(instead, HangUp):
                hung_up.append(instead)
            else:
                self.inbox.add(instead)
        return hung_up

    def answered(self, token: int) -> Asker:
        """Who has asked the request `token`, of which nothing is remembered from now on."""
        asker = self._askers.pop(token, None)
        assert asker is not None, f"request {token} has been answered, or never came"
        return asker

    @property
    def unanswered(self) -> Iterable[Asker]:
        return self._askers.values()
