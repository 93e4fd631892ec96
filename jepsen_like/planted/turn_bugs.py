"""Planted bugs of the turn: what it takes first, what it does, and what may leave it."""

from collections.abc import Iterable
from typing import Any

from jepsen_like.planted.planting import plant_in
from quorum.core import inbox
from quorum.core.effects import (
    Core,
    Effect,
    Event,
    HangUp,
    Request,
    RequestFailed,
    StorageFailed,
    Told,
)
from quorum.core.inbox import Action, Inbox
from quorum.core.turn import Turn
from wire.messages.fetching import FetchRequest

_take_events = Inbox.take
_is_control = inbox.is_control
_take = Turn.take
_withhold = Turn.withhold


# --- what is taken first --------------------------------------------------------------------


@plant_in("cluster_turn", Inbox, "take", seeds_max=10, found_at=1)
def takes_clients_first(self: Inbox, *, control_max: int, clients_max: int) -> list[Event | Action]:
    """Breaks: clients have their turn once nothing of the control plane waits (KAFKA-4453)."""
    clients: list[Event | Action] = []
    while self.clients and len(clients) < clients_max:
        clients.append(self.clients.popleft())
    return [*clients, *_take_events(self, control_max=control_max, clients_max=0)]


@plant_in("cluster_turn", inbox, "is_control", seeds_max=10, found_at=1)
def takes_followers_for_clients(request: Request) -> bool:
    """Breaks: a follower's fetch does not wait behind clients."""
    return not isinstance(request.body, FetchRequest) and _is_control(request)


@plant_in("turn", Inbox, "add")
def hears_last_of_its_disk(self: Inbox, event: Event | Action) -> None:
    """Breaks: a core hears of a failure of its disk before anything else."""
    self.control.append(event)


# --- what is done ---------------------------------------------------------------------------


class _ForgettingCore:
    """A core that forgets at a failure what it has asked for since its turn began."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self.ends_batch, self.settle = core.ends_batch, core.settle
        self.deadline_ms, self.take_effects = core.deadline_ms, core.take_effects

    def receive(self, event: Event, now_ms: int) -> None:
        if isinstance(event, RequestFailed | StorageFailed):
            self._core.take_effects()
        self._core.receive(event, now_ms)


@plant_in("turn", Turn, "take", seeds_max=10, found_at=0)
def forgets_what_came_before_a_failure(
    self: Turn[Any], core: Core, now_ms: int, **limits: int
) -> list[Effect]:
    """Breaks: what an event asks for is done, though a later one of its turn is a failure."""
    return _take(self, _ForgettingCore(core), now_ms, **limits)


# Each log keeps its own order all the same, and no rule of today rests on that of two.


@plant_in("cluster_turn", Turn, "take", seeds_max=10, found_at=0)
def writes_log_by_log(self: Turn[Any], core: Core, now_ms: int, **limits: int) -> list[Effect]:
    """Breaks: what a core asks of two logs is done in the order in which it asks."""
    effects = _take(self, core, now_ms, **limits)
    return sorted(effects, key=lambda effect: getattr(effect, "log", ""))


@plant_in("turn", Turn, "take", seeds_max=10, found_at=0)
def tells_before_it_writes(self: Turn[Any], core: Core, now_ms: int, **limits: int) -> list[Effect]:
    """Breaks: a message leaves when all writes of its turn are done."""
    written = _take(self, core, now_ms, **limits)
    told, self.unsent = self.unsent, []
    return [*told, *written]


# --- what may leave -------------------------------------------------------------------------


@plant_in("turn", Turn, "leaving", seeds_max=100, found_at=15)
def tells_though_a_write_failed(self: Turn[Any], answers: Iterable[Event]) -> list[Effect]:
    """Breaks: no message leaves a turn of which a write has failed."""
    for answer in answers:
        self.inbox.add(answer)
    told, self.unsent = self.unsent, []
    return told


@plant_in("turn", Turn, "withhold", seeds_max=150, found_at=15)
def fails_no_withheld_send(self: Turn[Any], unsent: Iterable[Effect]) -> list[Effect]:
    """Breaks: a request that is withheld fails: its core waits for an answer."""
    return _withhold(self, [each for each in unsent if _hangs_up(each)])


@plant_in("turn", Turn, "withhold", seeds_max=150, found_at=15)
def hangs_up_on_nobody(self: Turn[Any], unsent: Iterable[Effect]) -> list[Effect]:
    """Breaks: who waits for an answer that is withheld loses its connection."""
    return _withhold(self, [each for each in unsent if not _hangs_up(each)])


def _hangs_up(effect: Effect) -> bool:
    return isinstance(effect, Told) and isinstance(effect.withheld(), HangUp)
