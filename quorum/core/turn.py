"""The turn: which events a core is given together, and which of its effects may leave.

A driver, on sockets and files or on virtual time, runs its core by this object:

    turn.add(event)                                  # from sockets, disks and timers: any number
    for effect in turn.take(core, now_ms): ...       # give the core its share; write, in order
    for effect in turn.leaving(answers): ...         # then send; `answers` are the disk's

    - a turn is bounded, and the control plane has its place before clients (`quorum.core.inbox`); a
      turn that took long is followed by one with fewer clients;
    - the core settles once a turn, not after every event: one look at the high watermark, one
      answer to each request that waits, one sync for all writes. Only an event that might change
      what the events before it rest on has them settled first (`ends_batch`);
    - messages leave when all writes that they may rest on are done. Where a write fails at once,
      no message of this turn leaves: a `Send` counts as failed, and the client that waits for a
      `Reply` loses its connection, for it could take silence for success;
    - a request is answered once, or its connection is closed.

Pure: the time is told, and nothing is waited for. It decides nothing about what an event means.
"""

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from quorum.core.effects import Core, Effect, Event, HangUp, Request, StorageFailed, Told
from quorum.core.inbox import Action, Inbox

__all__ = ["CLIENTS_MAX", "CONTROL_MAX", "LONG_SECONDS", "Turn"]

CONTROL_MAX = 1000  # events of the control plane in a turn: a turn must end
CLIENTS_MAX = 64  # requests of clients in a turn
LONG_SECONDS = 0.01  # how much later than need be another node may be heard

Asker = TypeVar("Asker")


class Turn(Generic[Asker]):
    """`Asker` is what a driver has to know of where a request came from."""

    __slots__ = ("_askers", "_had_all_clients", "add", "clients_max", "inbox", "unsent")

    def __init__(self, *, prioritises: bool = True) -> None:
        """`prioritises`: the control plane before clients."""
        self.inbox = Inbox(prioritises=prioritises)
        self.clients_max = CLIENTS_MAX  # requests of clients that the next turn should have
        self._had_all_clients = False  # the last turn had as many requests of clients as it might
        self._askers: dict[int, Asker] = {}  # by token: of requests without an answer
        self.unsent: list[Effect] = []  # messages that wait for this turn's writes
        # Queues an event, or an action upon the core, as of the control plane. The inbox's own
        # method: another around it would be a call more for every event.
        self.add: Callable[[Event | Action], None] = self.inbox.add

    # --- in -------------------------------------------------------------------------------------

    def add_request(self, request: Request, asker: Asker) -> None:
        """Queue a request; `answered` returns its `asker`."""
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
        """Give `core` what waits and let it settle; returns the effects to carry out, in order."""
        events = self.inbox.take(control_max=control_max, clients_max=clients_max)
        self._had_all_clients = self.inbox.clients_taken == clients_max > 0
        is_first = True  # of the turn: there is nothing before it to be settled
        for event in events:
            if not isinstance(event, Event):
                event(now_ms)
            else:
                if not is_first and core.ends_batch(event):
                    core.settle(now_ms)
                core.receive(event, now_ms)
            is_first = False
        core.settle(now_ms)
        done: list[Effect] = []
        for effect in core.take_effects():
            (self.unsent if isinstance(effect, Told) else done).append(effect)
        return done

    def lasted(self, seconds: float) -> None:
        """How long the core took with what it was given, and with nothing else: no disk.

        A short turn shows that clients may have more only if it had as many as it might have.
        """
        if seconds > LONG_SECONDS:
            self.clients_max = max(1, self.clients_max // 2)
        elif self._had_all_clients and self.clients_max < CLIENTS_MAX:
            self.clients_max *= 2

    # --- out ------------------------------------------------------------------------------------

    def leaving(self, answers: Iterable[Event]) -> list[Effect]:
        """The messages that may leave, now that all is written. `answers` go into the next turn."""
        has_failed = False
        for answer in answers:
            self.inbox.add(answer)
            has_failed |= isinstance(answer, StorageFailed)
        unsent, self.unsent = self.unsent, []
        return self.withhold(unsent) if has_failed else unsent

    def withhold(self, unsent: Iterable[Effect]) -> list[Effect]:
        """Fail the messages: nobody may wait for ever, for the core may go on without the disk."""
        hung_up: list[Effect] = []
        for each in unsent:
            assert isinstance(each, Told), each
            instead = each.withheld()
            if isinstance(instead, HangUp):
                hung_up.append(instead)
            else:
                self.inbox.add(instead)
        return hung_up

    def answered(self, token: int) -> Asker:
        """Forget the request `token`, which is being answered; returns its asker."""
        asker = self._askers.pop(token, None)
        assert asker is not None, f"request {token} has been answered, or never came"
        return asker

    @property
    def unanswered(self) -> Iterable[Asker]:
        return self._askers.values()
