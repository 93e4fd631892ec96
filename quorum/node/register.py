"""Registers replicated by the quorum and nothing else: the plainest application, to test it with.

    read            what the key holds; only the leader answers, once it is sure to lead
    write           the new value, whatever was there
    cas             the new value, if the old one is there; else it fails and says what it saw

A write or a cas is one record, and its outcome is found when it is applied, so every node finds the
same. It is `ok` or `fail` (nothing was done, nor ever will be) or `info` (nobody knows: the leader
resigned, or the time was up, and the record may be committed all the same).

Requests come from inside the process or the simulator; they have no form on the wire.

Source: Raft thesis 6.3 and 6.4, without sessions: who repeats an `info` may do it twice.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from quorum.core import parking
from quorum.core.application import State
from quorum.core.effects import Effect, Event, Reply, Request, earliest
from quorum.core.outbox import EffectQueue
from quorum.core.parking import Parking
from quorum.core.types import OffsetAndEpoch
from quorum.node.confirmed_reads import ConfirmedReads, ConfirmingLog
from wire.batch import data_batch, headers, records_of

__all__ = ["FUNCTIONS", "Register", "RegisterRequest", "RegisterResponse"]

FUNCTIONS = ("read", "write", "cas")
KEYS_MAX = 10_000
_PIECE_KEYS = 1_000  # of a snapshot, in a batch


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterRequest:
    f: str
    key: str
    value: int | None = None  # to write; of a cas, what to put in the place of `old`
    old: int | None = None
    timeout_ms: int = 5_000

    def __post_init__(self) -> None:
        if self.f not in FUNCTIONS:
            raise ValueError(f"f is {self.f!r}, not one of {', '.join(FUNCTIONS)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterResponse:
    outcome: str  # "ok", "fail" or "info"
    value: int | None = None  # of an ok read
    seen: int | None = None  # of a cas that found another value than the old one
    has_seen: bool = False  # whether it did
    error: str | None = None
    leader_id: int | None = None  # whom to ask instead


@dataclass(frozen=True, slots=True)
class _Written:
    request: Request
    offset: int
    epoch: int  # of the leader that wrote it


class Register:
    """An application (`quorum.core.application.Application`)."""

    def __init__(self, log: ConfirmingLog) -> None:
        self.values: Mapping[str, int | None] = {}
        self.applied_offset = 0
        self._log = log
        self._epoch: int | None = None  # that this node leads
        self._reads = ConfirmedReads(log)
        self._writes: Parking[_Written] = Parking()
        self._loading: dict[str, int | None] = {}
        self._outbox = EffectQueue("register")

    def serves(self, body: object) -> bool:
        return isinstance(body, RegisterRequest)

    # --- Core -----------------------------------------------------------------------------------

    def receive(self, event: Event, now_ms: int) -> None:
        assert isinstance(event, Request), event
        body = event.body
        assert isinstance(body, RegisterRequest), body
        if self._epoch is None:
            self._refuse(event, "this node does not lead")
        elif body.f == "read":
            if not self._reads.park(event, now_ms, timeout_ms=body.timeout_ms):
                self._refuse(event, "too many requests wait")
        elif self._writes.is_full() or self._is_one_too_many(body.key):
            self._refuse(event, "too many requests wait, or too many keys are known")
        else:
            offset = self._log.append(data_batch([_command(body)], timestamp_ms=now_ms), now_ms)
            self._writes.park(_Written(event, offset, self._epoch), now_ms + body.timeout_ms)

    def tick(self, now_ms: int) -> None:
        self._answer_reads()
        for read in self._reads.take_expired(now_ms):
            self._refuse(read, "no majority has answered in time")
        for written in self._writes.expired(now_ms):
            self._reply(written.request, "info", error="not committed in time")

    def deadline_ms(self) -> int | None:
        return earliest(self._reads.deadline_ms(self.applied_offset), self._writes.due_ms)

    def take_effects(self) -> list[Effect]:
        return self._outbox.take()

    # --- leading --------------------------------------------------------------------------------

    def lead(self, epoch: int, now_ms: int) -> None:
        self._epoch = epoch

    def resign(self, now_ms: int) -> None:
        self._epoch = None
        for read in self._reads.clear():
            self._refuse(read, "this node leads no longer")
        for written in self._writes.release(self._has_ended):
            self._reply(written.request, "info", error="this node leads no longer")

    def _has_ended(self, written: _Written) -> bool:
        """Is the epoch over that wrote it? Nobody knows then what became of it: see `resign`."""
        return parking.has_ended(written.epoch, self._epoch)

    # --- the state ------------------------------------------------------------------------------

    def committed(self, batches: bytes, next_offset: int, now_ms: int) -> None:
        values = dict(self.values)
        for position, header in headers(batches):
            if header.is_control:
                continue
            for record in records_of(batches[position : position + header.size_bytes]):
                response = _apply(values, record.value or b"")
                self._has_applied(record.offset, response)
        self.values = values
        self.applied_offset = next_offset
        self._answer_reads()

    def _has_applied(self, offset: int, response: RegisterResponse) -> None:
        for written in self._writes.release(lambda each: each.offset == offset):
            self._outbox.emit(Reply(token=written.request.token, body=response))

    def load(self, batches: bytes, *, is_first: bool) -> None:
        if is_first:
            self._loading = {}
        for position, header in headers(batches):
            if not header.is_control:
                for record in records_of(batches[position : position + header.size_bytes]):
                    self._loading |= json.loads(record.value or b"{}")

    def loaded(self, end: OffsetAndEpoch, now_ms: int) -> None:
        self.values, self._loading = self._loading, {}
        self.applied_offset = end.offset

    def state(self) -> State | None:
        return State(end_offset=self.applied_offset, batches=_pieces(self.values))

    # --- answers --------------------------------------------------------------------------------

    def _is_one_too_many(self, key: str) -> bool:
        return key not in self.values and len(self.values) + len(self._writes) >= KEYS_MAX

    def _answer_reads(self) -> None:
        for read in self._reads.take_ready(self.applied_offset):
            assert isinstance(read.body, RegisterRequest), read.body
            self._reply(read, "ok", value=self.values.get(read.body.key))

    def _refuse(self, request: Request, error: str) -> None:
        """Nothing was done."""
        self._reply(request, "fail", error=error)

    def _reply(
        self, request: Request, outcome: str, *, value: int | None = None, error: str | None = None
    ) -> None:
        leader_id = self._log.leader.leader_id
        response = RegisterResponse(outcome=outcome, value=value, error=error, leader_id=leader_id)
        self._outbox.emit(Reply(token=request.token, body=response))


def _command(request: RegisterRequest) -> bytes:
    change = {"f": request.f, "key": request.key, "value": request.value, "old": request.old}
    return json.dumps(change).encode()


def _apply(values: dict[str, int | None], command: bytes) -> RegisterResponse:
    change = json.loads(command)
    key, seen = change["key"], values.get(change["key"])
    if change["f"] == "cas" and seen != change["old"]:
        return RegisterResponse(outcome="fail", seen=seen, has_seen=True)
    values[key] = change["value"]
    return RegisterResponse(outcome="ok")


def _pieces(values: Mapping[str, int | None]) -> Iterator[bytes]:
    keys = sorted(values)
    for at in range(0, len(keys), _PIECE_KEYS):
        piece = {key: values[key] for key in keys[at : at + _PIECE_KEYS]}
        yield data_batch([json.dumps(piece).encode()], timestamp_ms=0)
