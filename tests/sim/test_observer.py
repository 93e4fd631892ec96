"""Observers are called for the kinds that they name, and for no others."""

from typing import Any, cast

from jepsen_like.sim.logs.logtree import Tolerance
from jepsen_like.sim.world.host import Host
from jepsen_like.sim.world.observer import Observer, Observers, tolerated
from quorum.core.effects import Effect, Event, Request, Stop, StorageFailed, Token, Trace
from wire.messages.quorum_epochs import EndQuorumEpochRequest, VoteRequest

HOST = cast(Host, None)
VOTE = Request(token=1, body=VoteRequest(topics=()))
END = Request(token=2, body=EndQuorumEpochRequest(topics=()))
FAILED = StorageFailed(log="log", token=Token("raft", 3), reason="full")
STOP = Stop(reason="shut down", exit_code=0)
TRACE = Trace(event="role", fields=())


class Everything(Observer):
    def __init__(self) -> None:
        self.seen: list[Any] = []

    def received(self, host: Host, event: Event) -> None:
        self.seen.append(event)

    def performing(self, host: Host, effect: Effect) -> None:
        self.seen.append(effect)


class Some(Everything):
    received_kinds = (VoteRequest, StorageFailed)
    performing_kinds = (Stop,)


def seen_by(*observers: Observer) -> None:
    asked = Observers()
    for each in observers:
        asked.add(each)
    for event in (VOTE, END, FAILED):
        asked.received(HOST, event)
    for effect in (STOP, TRACE):
        asked.performing(HOST, effect)


def test_an_observer_is_told_of_the_kinds_that_it_names_and_of_bodies_of_these_kinds() -> None:
    some, everything = Some(), Everything()
    seen_by(some, everything)
    assert some.seen == [VOTE, FAILED, STOP]
    assert everything.seen == [VOTE, END, FAILED, STOP, TRACE]


def test_one_that_looks_on_alone_or_is_tolerated_is_told_of_the_same() -> None:
    alone, excused = Some(), Some()
    seen_by(alone)
    seen_by(tolerated(excused, Tolerance()))
    assert alone.seen == excused.seen == [VOTE, FAILED, STOP]
