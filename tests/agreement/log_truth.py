"""Which rules a history of a log breaks: each rule as docs/checking.md says it, word by word.

Nothing is fast here: a rule is a loop over all records. Values are compared by their texts, so that
1, 1.0, true and "1" are four.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from jepsen_like.checkers.operations import Operation, operations
from jepsen_like.histories.history import History, Kind

__all__ = ["Broken", "Logs", "Read", "Sent", "Stretch", "broken_logs", "is_doubted"]

Broken = set[tuple[str, str]]  # rule, object


@dataclass(frozen=True, slots=True)
class Sent:
    of: Operation
    key: str
    value: str
    offset: int | None  # as it was told

    @property
    def is_acknowledged(self) -> bool:
        return self.of.kind is Kind.OK


@dataclass(eq=False, slots=True)
class Stretch:
    """What one process reads of a key, one record after the other, from an assignment on."""

    key: str
    begun: int  # the call of the assignment
    is_from_zero: bool
    is_from_beginning: bool = False  # it said so
    reads: list["Read"] = field(default_factory=list)
    whole: list[tuple[int, int]] = field(default_factory=list)  # at its end: records so far, when


@dataclass(frozen=True, eq=False, slots=True)
class Read:
    of: Operation
    key: str
    value: str
    offset: int
    is_moved: bool  # by others, while it was polled
    is_alone: bool  # its process has subscribed: what it reads next may be anywhere
    stretch: Stretch
    since: int  # it speaks of no offset before


class Logs:
    """All that was sent and read, and by whom."""

    def __init__(self, history: History) -> None:
        self.sent: list[Sent] = []
        self.read: list[Read] = []
        self.ends: list[tuple[Operation, str, int]] = []
        self.stretches: list[Stretch] = []
        self._reading: dict[int | str, dict[str, Stretch]] = {}
        self._subscribed: set[int | str] = set()
        self.every = operations(history.ops)
        for each in self.every:
            self._add(each)
        self.keys = {each.key for each in self.sent} | {each.key for each in self.read}
        self.keys |= {key for _, key, _ in self.ends}
        self.keys |= {each.key for each in self.stretches if each.whole}

    def _add(self, of: Operation) -> None:
        if of.f in ("send", "poll", "txn"):
            for step in of.result if of.kind is Kind.OK else of.argument:
                if step[0] == "send":
                    self._add_send(of, *step[1:])
                elif of.kind is Kind.OK:
                    self._add_poll(of, step[1])
            self._add_ends(of)
        elif of.kind is not Kind.FAIL and of.f == "crash":
            self._reading.pop(of.process, None)
            self._subscribed.discard(of.process)
        elif of.kind is Kind.OK and of.f in ("assign", "subscribe"):
            self._assign(of)

    def _add_send(self, of: Operation, key: str, told: Any) -> None:
        offset, value = told if of.kind is Kind.OK else (None, told)
        self.sent.append(Sent(of, str(key), repr(value), offset))

    def _assign(self, of: Operation) -> None:
        seek = of.extra.get("seek")
        old = self._reading.get(of.process, {})
        goes_on = seek is None and of.f == "assign" and of.process not in self._subscribed
        new = {}
        for key in map(str, of.argument):
            if goes_on and key in old:
                new[key] = old[key]
            else:
                is_whole = seek == "beginning" and of.f == "assign"
                new[key] = Stretch(key, of.call, seek in (None, "beginning"), is_whole)
                self.stretches.append(new[key])
        self._reading[of.process] = new
        (self._subscribed.add if of.f == "subscribe" else self._subscribed.discard)(of.process)

    def _add_poll(self, of: Operation, polled: dict[str, list[tuple[int, object]]]) -> None:
        moved = {key for entry in of.extra.get("rebalance-log", ()) for key in entry["keys"]}
        mine = self._reading.setdefault(of.process, {})
        for key, records in polled.items():
            if key not in mine:
                mine[key] = Stretch(key, of.call, is_from_zero=True)
                self.stretches.append(mine[key])
            is_alone = of.process in self._subscribed
            before = [] if key in moved else mine[key].reads
            if is_alone:
                before = [each for each in before if each.of is of]
            first = before[0].offset if before else records[0][0] if records else 0
            since = 0 if mine[key].is_from_zero else first
            for offset, value in records:
                read = Read(of, key, repr(value), offset, key in moved, is_alone, mine[key], since)
                mine[key].reads.append(read)
                self.read.append(read)

    def _add_ends(self, of: Operation) -> None:
        if of.kind is not Kind.OK:
            return
        self.ends += [(of, key, end) for key, end in of.extra.get("ends", {}).items()]
        if of.extra.get("caught_up"):
            for stretch in self._reading.get(of.process, {}).values():
                stretch.whole.append((len(stretch.reads), of.ret))

    def acknowledged(self) -> Iterator[Sent]:
        return (each for each in self.sent if each.is_acknowledged)

    def readers(self, key: str, value: str) -> list[Read]:
        return [each for each in self.read if (each.key, each.value) == (key, value)]

    def located(self, sent: Sent) -> int | None:
        """As acknowledged, else where it was read."""
        if sent.is_acknowledged and sent.offset is not None:
            return sent.offset
        return next((each.offset for each in self.readers(sent.key, sent.value)), None)

    def offsets(self, key: str) -> list[int]:
        """All that any client was told."""
        told = {each.offset for each in self.acknowledged() if each.key == key}
        told |= {each.offset for each in self.read if each.key == key}
        return sorted(each for each in told if each is not None)

    def wholes(self, key: str) -> Iterator[tuple[Stretch, set[str], int]]:
        """Readings from the beginning to the end: what they found, and when they ended."""
        for stretch in self.stretches:
            if stretch.key == key and stretch.is_from_beginning:
                for count, ret in stretch.whole:
                    yield stretch, {each.value for each in stretch.reads[:count]}, ret


def broken_logs(logs: Logs, *, is_idempotent: bool) -> Broken:
    rules: dict[str, Callable[[Logs, str], bool]] = {
        "inconsistent-offsets": _has_two_values_at_one_offset,
        "G1a": _has_read_what_failed,
        "phantom": _has_read_what_nobody_sent,
        "precommitted-read": _has_read_what_it_sent_itself,
        "lost-write": lambda logs, key: bool(_lost(logs, key)),
        "unseen": _has_unseen,
        "vanished": _has_vanished,
    }
    if is_idempotent:
        rules |= {
            "duplicate": _has_duplicate,
            "acknowledged-elsewhere": _is_acknowledged_elsewhere,
        }
    broken = {
        (rule, key)
        for rule, is_broken in rules.items()
        for key in logs.keys
        if is_broken(logs, key)
    }
    return broken | set(_polls(logs)) | set(_sends(logs))


def _has_two_values_at_one_offset(logs: Logs, key: str) -> bool:
    told = {(each.offset, each.value) for each in logs.acknowledged() if each.key == key}
    told |= {(each.offset, each.value) for each in logs.read if each.key == key}
    offsets = [offset for offset, _ in told if offset is not None]
    return len(offsets) != len(set(offsets))


def _has_duplicate(logs: Logs, key: str) -> bool:
    found = {(each.value, each.offset) for each in logs.read if each.key == key}
    return len(found) != len({value for value, _ in found})


def _is_acknowledged_elsewhere(logs: Logs, key: str) -> bool:
    for sent in logs.acknowledged():
        offsets = {each.offset for each in logs.readers(key, sent.value)}
        if sent.key == key and sent.offset is not None and offsets and sent.offset not in offsets:
            return True
    return False


def _has_read_what_failed(logs: Logs, key: str) -> bool:
    kinds = {each.value: each.of.kind for each in logs.sent if each.key == key}
    return any(each.key == key and kinds.get(each.value) is Kind.FAIL for each in logs.read)


def _has_read_what_nobody_sent(logs: Logs, key: str) -> bool:
    known = {each.value for each in logs.sent if each.key == key}
    return any(each.key == key and each.value not in known for each in logs.read)


def _has_read_what_it_sent_itself(logs: Logs, key: str) -> bool:
    sent = {(each.of.index, each.value) for each in logs.sent if each.key == key}
    return any(each.key == key and (each.of.index, each.value) in sent for each in logs.read)


def _unread(logs: Logs, key: str) -> list[Sent]:
    mine = (each for each in logs.acknowledged() if each.key == key)
    return [each for each in mine if not logs.readers(key, each.value)]


def _lost(logs: Logs, key: str) -> list[Sent]:
    """The offset that was read may be the same: then another value is there. A value that was read
    at several offsets counts at the first."""
    read = [each for each in logs.read if each.key == key]
    first = {
        each.value: min(other.offset for other in read if other.value == each.value)
        for each in read
    }
    return [
        sent
        for sent in _unread(logs, key)
        if sent.offset is not None
        and any(
            each.since <= sent.offset <= each.offset and sent.offset <= first[each.value]
            for each in read
        )
    ]


def _unseen(logs: Logs, key: str) -> list[Sent]:
    begun = [stretch.begun for stretch, _, _ in logs.wholes(key)]
    lost = _lost(logs, key)
    left = [each for each in _unread(logs, key) if each not in lost]
    return [each for each in left if any(each.of.ret < at for at in begun)]


def _has_unseen(logs: Logs, key: str) -> bool:
    return bool(_unseen(logs, key))


def is_doubted(logs: Logs, key: str) -> bool:
    """Something was acknowledged, and nobody can know whether it is there."""
    return len(_unread(logs, key)) > len(_lost(logs, key)) + len(_unseen(logs, key))


def _has_vanished(logs: Logs, key: str) -> bool:
    read = [each for each in logs.read if each.key == key]
    there = [(each.value, each.of.ret) for each in read]
    known = [each for each in logs.acknowledged() if each.key == key]
    there += [(each.value, each.of.ret) for each in known if logs.readers(key, each.value)]
    return any(
        ret < stretch.begun and value not in found
        for stretch, found, _ in logs.wholes(key)
        for value, ret in there
    )


def _polls(logs: Logs) -> Iterator[tuple[str, str]]:
    for stretch in logs.stretches:
        places = {offset: at for at, offset in enumerate(logs.offsets(stretch.key))}
        for one, other in pairwise(stretch.reads):
            is_inside = one.of is other.of
            if other.is_moved or (other.is_alone and not is_inside):
                continue
            step = places[other.offset] - places[one.offset]
            name = "int-" if is_inside else ""
            if step > 1:
                yield f"{name}poll-skip", stretch.key
            elif step < 1:
                yield f"{name}nonmonotonic-poll", stretch.key


def _sends(logs: Logs) -> Iterator[tuple[str, str]]:
    done = [each for each in logs.sent if each.of.kind is not Kind.FAIL]
    for process, key in {(each.of.process, each.key) for each in done}:
        mine = [each for each in done if (each.of.process, each.key) == (process, key)]
        located = [(each.of, logs.located(each)) for each in mine]
        for (one, at), (other, after) in pairwise(
            [each for each in located if each[1] is not None]
        ):
            if at is not None and after is not None and after <= at:
                yield f"{'int-' if one is other else ''}nonmonotonic-send", key
