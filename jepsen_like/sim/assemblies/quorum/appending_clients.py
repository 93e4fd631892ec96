"""The history of a simulated quorum as its clients see it: one log that all of them append to.

    send    each record that a node proposes, by a client of its own; acknowledged once the process
            that proposed it has applied what is committed up to there, and leads the same epoch
    poll    what each process applies, by a reader that goes on from where it was; what a process
            loads from a snapshot is read anew, from the beginning
    poll    where all ends, as a leader answers who has made sure that it leads (`counting`)

So a quorum has the history of a log, and the checkers of logs can judge it: what is committed and
lost, two records at one offset, an answer from the past.
"""

from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from jepsen_like.checkers.judges import judge
from jepsen_like.histories.history import Header, History, Kind, Op, Value
from jepsen_like.planted.every_bug import planted
from jepsen_like.sim.assemblies.quorum.counting import Answer, ApplicationListener
from jepsen_like.sim.assemblies.quorum.quorum_options import Options
from jepsen_like.sim.assemblies.quorum.quorum_view import EMPTY, digest_after
from jepsen_like.sim.assemblies.quorum.simulated_quorum import SimulatedQuorum
from jepsen_like.sim.assemblies.quorum.simulation import Outcome, Simulation
from jepsen_like.sim.open_history import OpenHistory
from jepsen_like.sim.time.ending import Ending
from jepsen_like.sim.violation import Stuck
from jepsen_like.sim.world.host import Host
from jepsen_like.sim.world.observer import Observer
from quorum.core.types import OffsetAndEpoch
from wire.batch import headers, records_of

__all__ = ["Clients", "run_with_clients"]

_ANSWER_US = 2_000_000  # for the last question
_KEY = "metadata-0"
_SERIAL_BYTES = 8  # a value begins with its serial number, which no other value has

_Pairs = list[list[int]]  # [offset, serial] of records


class _Sent(NamedTuple):
    process: int
    epoch: int  # that its leader led
    offset: int
    serial: int


class _Known(NamedTuple):
    """A state that some application has been in: the one before it, and what came since."""

    before: bytes
    pairs: _Pairs


@dataclass(slots=True)
class _Life:
    """One process of a node, as its clients know it."""

    reading: int  # the process that reads what it applies
    state: bytes = EMPTY  # the digest of all that it has applied
    sent: deque[_Sent] = field(default_factory=deque)  # and not answered


class Clients(ApplicationListener):
    """Looks on at all that the quorum does, and enters it in the history."""

    def __init__(self, history: OpenHistory, quorum: SimulatedQuorum) -> None:
        self._history = history
        self._quorum = quorum
        self._lives: dict[tuple[int, int], _Life] = {}  # by node, and which start of it
        self._states: dict[bytes, _Known] = {}  # by digest
        history.now_us = lambda: quorum.world.now_us
        self._asks_for_all = False
        quorum.clients = self

    def _life_of(self, host: Host) -> _Life:
        life = host.node_id, host.incarnation
        if life not in self._lives:
            self._lives[life] = _Life(self._new_reader())
        return self._lives[life]

    def _new_reader(self) -> int:
        """A process that will read from the beginning."""
        process = self._history.invoke("assign", [_KEY], seek="beginning")
        self._history.complete(process, Kind.OK)
        return process

    # --- sends --------------------------------------------------------------------------

    def proposes(self, host: Host, values: list[bytes], last_offset: int) -> None:
        """What was sent in an epoch before, and has no answer, gets none any more."""
        epoch, sent = self._quorum.nodes[host.node_id].leader.epoch, self._life_of(host).sent
        if sent and sent[-1].epoch != epoch:
            sent.clear()
        for offset, value in enumerate(values, last_offset - len(values) + 1):
            serial = _serial(value)
            process = self._history.invoke("send", [["send", _KEY, serial]])
            sent.append(_Sent(process, epoch, offset, serial))

    def _acknowledge(self, host: Host, sent: deque[_Sent]) -> None:
        """As a node does it: by offset, whatever has been applied there."""
        application = self._quorum.nodes[host.node_id].application
        while sent and sent[0].offset < application.end_offset:
            process, epoch, offset, serial = sent.popleft()
            if epoch == application.leads_epoch:
                self._history.complete(process, Kind.OK, [["send", _KEY, [offset, serial]]])

    # --- polls --------------------------------------------------------------------------

    def applies(self, host: Host, batches: bytes, next_offset: int) -> None:
        life = self._life_of(host)
        pairs: _Pairs = []
        for position, header in headers(batches):
            batch = batches[position : position + header.size_bytes]
            known = _Known(life.state, [] if header.is_control else _pairs_in(batch))
            life.state = digest_after(life.state, batch)
            self._states[life.state] = known
            pairs += known.pairs
        self._poll(life.reading, pairs)
        self._acknowledge(host, life.sent)

    def loads(self, host: Host, end: OffsetAndEpoch, digest: bytes) -> None:
        """A reader can make nothing of a state that no process was ever in."""
        life = self._life_of(host)
        life.state = digest
        life.reading = self._new_reader()
        self._poll(life.reading, self._all_of(digest))

    def _all_of(self, state: bytes) -> _Pairs:
        """What has been applied on the way to this state, from the beginning."""
        steps: list[_Known] = []
        while state in self._states:
            steps.append(self._states[state])
            state = steps[-1].before
        return [pair for step in reversed(steps) for pair in step.pairs]

    def _poll(self, process: int, pairs: _Pairs) -> None:
        self._history.go_on(process, "poll", [["poll"]])
        self._history.complete(process, Kind.OK, _polled(pairs))

    # --- reads that are sure ------------------------------------------------------------

    def asks(self, host: Host) -> Answer:
        """It is asked where all ends; in the end, for all records, too."""
        for_all = self._asks_for_all
        process = self._new_reader() if for_all else self._history.invoke("poll", [["poll"]])
        if for_all:
            self._history.go_on(process, "poll", [["poll"]])

        def answered(end_offset: int) -> None:
            extra: dict[str, Value] = {"ends": {_KEY: end_offset}}
            if for_all:
                extra["caught_up"] = True
            pairs = self._all_of(self._life_of(host).state) if for_all else []
            self._history.complete(process, Kind.OK, _polled(pairs), extra=extra)

        return answered

    def ask_leaders(self) -> None:
        """Whoever takes itself for the leader is asked for all, once it is sure."""
        self._asks_for_all = True
        for host in self._quorum.up():
            application = self._quorum.nodes[host.node_id].application
            if application.leads_epoch is not None:
                host.command(application.reader.ask)
        self._asks_for_all = False


def _polled(pairs: _Pairs) -> Value:
    return [["poll", {_KEY: pairs} if pairs else {}]]


def _pairs_in(batch: bytes) -> _Pairs:
    return [[record.offset, _serial(record.value or b"")] for record in records_of(batch)]


def _serial(value: bytes) -> int:
    return int.from_bytes(value[:_SERIAL_BYTES], "big")


def run_with_clients(
    seed: int,
    *,
    options: Options | None = None,
    plant: str | None = None,
    until_event: int | None = None,
    tracer: Observer | None = None,
) -> Outcome:
    """Run one seed, on the shipped rules or with the planted bug `plant`; judge its history alone.

    A seed gives the same run as in `simulation.run` for as long as no invariant is violated. That
    one ends there, and this one goes on: does a broken rule ever harm a client?

    What the judge finds comes first; without a finding the outcome says how the run ended.
    """
    simulation = Simulation(seed, options, tracer, is_judged=False)
    history = OpenHistory()
    clients = Clients(history, simulation.quorum)
    with planted(plant):
        ended = simulation.outcome_of(partial(_play, simulation, clients), until_event)
    history.end()
    header = Header(workload="log", seed=seed, design="quorum")
    verdict = judge(History(header=header, ops=tuple(history.ops)))
    if verdict.findings:
        finding = verdict.findings[0]
        detail = f"{finding.object}: {finding.detail}"
        return simulation.outcome(Ending(kind="safety", rule=finding.rule, detail=detail))
    if ended.kind == "ok" and not any(_is_whole(op) for op in history.ops):
        detail = "nobody answers the last question"
        return simulation.outcome(Ending(kind="liveness", rule="not-readable", detail=detail))
    return ended


def _is_whole(op: Op) -> bool:
    """Does it tell all that there is?"""
    return op.kind is Kind.OK and bool(op.extra.get("caught_up"))


def _play(simulation: Simulation, clients: Clients, events_max: int) -> None:
    """All phases, as far as they come, and the last question.

    A bound that is missed ends the phases, and is no finding: clients know nothing of bounds.
    """
    world = simulation.world
    with suppress(Stuck), world.judging:
        simulation.run(events_max)
    clients.ask_leaders()
    world.run_until(world.now_us + _ANSWER_US, events_max=events_max)
