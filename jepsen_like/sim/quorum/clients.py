"""What clients of a simulated quorum see: the history of one log that everybody appends to.

    send    each record that a node proposes, by a client of its own; acknowledged when the process
            that proposed it leads still and has applied what is committed up to there
    poll    what each process applies, as a reader that goes on from where it was; what it loads
            from a snapshot is read anew, from the beginning
    poll    what a sure leader answers (`reader`): by its `ends`, how much there is

So a quorum has the history of a log, and the checkers of logs can judge it: what is committed and
lost, two records at one offset, an answer from the past.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from jepsen_like.history import Kind, Value
from jepsen_like.sim.host import Host
from jepsen_like.sim.open_history import OpenHistory
from jepsen_like.sim.quorum.history import EMPTY, digest_after
from jepsen_like.sim.quorum.reader import Answer
from jepsen_like.sim.quorum.simulated_quorum import SimulatedQuorum
from wire.batch import headers, records_of

__all__ = ["Clients"]

_KEY = "metadata-0"
_SERIAL_BYTES = 8  # what a value begins with, and no other does

Pairs = list[list[int]]  # [offset, serial] of records


class _Sent(NamedTuple):
    process: int
    epoch: int | None  # that its leader led
    offset: int
    serial: int


class _Known(NamedTuple):
    """A state that some application has been in: the one before it, and what came since."""

    before: bytes
    pairs: Pairs


@dataclass(slots=True)
class _Life:
    """One process of a node, as its clients know it."""

    reading: int  # the process that reads what it applies
    state: bytes = EMPTY  # the digest of all that it has applied
    sent: deque[_Sent] = field(default_factory=deque)  # and not answered


class Clients:
    def __init__(self, history: OpenHistory, quorum: SimulatedQuorum) -> None:
        self._history = history
        self._quorum = quorum
        self._lives: dict[tuple[int, int], _Life] = {}  # by node, and which start of it
        self._states: dict[bytes, _Known] = {}  # by digest
        history.now_us = lambda: quorum.world.now_us
        quorum.proposed = self._has_proposed
        quorum.applied = self._has_applied
        quorum.loaded = self._has_loaded
        quorum.asks = self._asks

    def _life(self, host: Host) -> _Life:
        life = host.node_id, host.incarnation
        if life not in self._lives:
            self._lives[life] = _Life(self._from_the_beginning())
        return self._lives[life]

    def _from_the_beginning(self) -> int:
        process = self._history.invoke("assign", [_KEY], seek="beginning")
        self._history.complete(process, Kind.OK)
        return process

    # --- sends --------------------------------------------------------------------------

    def _has_proposed(self, host: Host, values: list[bytes], last_offset: int) -> None:
        epoch = self._quorum.replicas[host.node_id].application.leads_epoch
        for offset, value in enumerate(values, last_offset - len(values) + 1):
            process = self._history.invoke("send", [["send", _KEY, _serial(value)]])
            sent = _Sent(process, epoch, offset, _serial(value))
            self._life(host).sent.append(sent)

    def _acknowledge(self, host: Host, sent: deque[_Sent]) -> None:
        """As the node does it: by offset, whatever was applied there."""
        application = self._quorum.replicas[host.node_id].application
        while sent and sent[0].offset < application.end_offset:
            process, epoch, offset, serial = sent.popleft()
            if epoch == application.leads_epoch:
                self._history.complete(process, Kind.OK, [["send", _KEY, [offset, serial]]])

    # --- polls --------------------------------------------------------------------------

    def _has_applied(self, host: Host, batches: bytes) -> None:
        life = self._life(host)
        pairs: Pairs = []
        for position, header in headers(batches):
            batch = batches[position : position + header.size_bytes]
            known = _Known(life.state, [] if header.is_control else _pairs_in(batch))
            life.state = digest_after(life.state, batch)
            self._states[life.state] = known
            pairs += known.pairs
        self._poll(life.reading, pairs)
        self._acknowledge(host, life.sent)

    def _has_loaded(self, host: Host, state: bytes) -> None:
        """A state that nobody was ever in has nothing that a reader could make out."""
        life = self._life(host)
        life.state = state
        life.reading = self._from_the_beginning()
        self._poll(life.reading, self._all_of(state))

    def _all_of(self, state: bytes) -> Pairs:
        known = []
        while state in self._states:
            known.append(self._states[state])
            state = known[-1].before
        return [pair for each in reversed(known) for pair in each.pairs]

    def _poll(self, process: int, pairs: Pairs, **extra: Value) -> None:
        self._history.go_on(process, "poll", [["poll"]])
        self._history.complete(process, Kind.OK, _polled(pairs), extra=extra)

    # --- reads that are sure ------------------------------------------------------------

    def _asks(self, host: Host) -> Answer:
        process = self._history.invoke("poll", [["poll"]])

        def answered(end_offset: int) -> None:
            extra = {"ends": {_KEY: end_offset}}
            self._history.complete(process, Kind.OK, _polled([]), extra=extra)

        return answered

    def _asks_for_all(self, host: Host) -> Answer:
        process = self._from_the_beginning()
        self._history.go_on(process, "poll", [["poll"]])

        def answered(end_offset: int) -> None:
            polled = _polled(self._all_of(self._life(host).state))
            extra = {"ends": {_KEY: end_offset}, "caught_up": True}
            self._history.complete(process, Kind.OK, polled, extra=extra)

        return answered

    # --- in the end ---------------------------------------------------------------------

    def ask_leaders(self) -> None:
        """Whoever takes itself for the leader is asked for all, once it is sure."""
        self._quorum.asks = self._asks_for_all
        for host in self._quorum.up():
            application = self._quorum.replicas[host.node_id].application
            if application.leads_epoch is not None:
                host.command(application.reader.ask)
        self._quorum.asks = self._asks


def _polled(pairs: Pairs) -> Value:
    return [["poll", {_KEY: pairs} if pairs else {}]]


def _pairs_in(batch: bytes) -> Pairs:
    return [[record.offset, _serial(record.value or b"")] for record in records_of(batch)]


def _serial(value: bytes) -> int:
    return int.from_bytes(value[:_SERIAL_BYTES], "big")
