"""Recorded histories of the kafka workload, each spoiled in one place so that one rule is broken.

Whatever a rule needs must have been recorded, or it has nothing to spoil: an AssertionError.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import pairwise

from jepsen_like.histories.history import History, Kind, Op, Value

__all__ = ["SPOILED", "spoiled"]

Change = tuple[int, Op]  # of the op with this index
BEYOND = 1_000_000  # no offset that anybody saw


def spoiled(history: History, spoil: Callable[[History], Iterator[Change]]) -> History:
    changes = dict(spoil(history))
    assert changes, "nothing to spoil was recorded"
    return replace(history, ops=[changes.get(op.index, op) for op in history.ops])


def _ok(history: History, f: str) -> list[Op]:
    return [op for op in history.ops if op.f == f and op.kind is Kind.OK]


def _with(op: Op, **extra: Value) -> Change:
    return op.index, replace(op, extra={**op.extra, **extra})


# --- sequences of producers ----------------------------------------------------------------------


def _neighbours(history: History) -> tuple[Op, Op]:
    """Two sends of one producer, epoch and key that follow one another."""
    last: dict[object, Op] = {}
    for op in _ok(history, "send"):
        place = (*op.extra["producer"], op.value[0][1])
        if place in last:
            return last[place], op
        last[place] = op
    raise AssertionError("no producer sent twice to one key")


def sequence_reused(history: History) -> Iterator[Change]:
    one, other = _neighbours(history)
    yield _with(other, sequence=one.extra["sequence"])


def sequence_out_of_order(history: History) -> Iterator[Change]:
    one, other = _neighbours(history)
    yield _with(one, sequence=other.extra["sequence"])
    yield _with(other, sequence=one.extra["sequence"])


def sequence_gap(history: History) -> Iterator[Change]:
    last: dict[object, Op] = {}
    for op in _ok(history, "send"):
        last[(*op.extra["producer"], op.value[0][1])] = op
    op = next(op for op in last.values() if op.extra["sequence"] > 0)
    yield _with(op, sequence=op.extra["sequence"] + 1)


def zombie_write(history: History) -> Iterator[Change]:
    newest: dict[int, tuple[int, Op]] = {}
    for op in _ok(history, "send"):
        producer, epoch = op.extra["producer"]
        if epoch > 0 and newest.get(producer, (0, op))[0] == epoch:
            yield _with(op, producer=[producer, epoch - 1], sequence=BEYOND)
            return
        newest[producer] = epoch, op


# --- groups --------------------------------------------------------------------------------------


def _later_commits(history: History) -> Iterator[tuple[Op, Op, str]]:
    """Two commits of one generation to one key."""
    last: dict[object, Op] = {}
    for op in _ok(history, "commit"):
        for key in op.value:
            place = op.extra["group"], op.extra["generation"], key
            if place in last:
                yield last[place], op, key
            last[place] = op


def commit_backwards(history: History) -> Iterator[Change]:
    _, op, key = next(_later_commits(history))
    asked = next(each for each in reversed(history.ops[: op.index]) if each.process == op.process)
    for each in (asked, op):
        yield each.index, replace(each, value={**each.value, key: 0})


def stale_commit(history: History) -> Iterator[Change]:
    _, op, _ = next(_later_commits(history))
    yield _with(op, generation=op.extra["generation"] - 1)


def _last_committed(history: History) -> Op:
    return next(op for op in _ok(history, "committed") if any(op.value.values()))


def forgotten(history: History) -> Iterator[Change]:
    op = _last_committed(history)
    yield op.index, replace(op, value=dict.fromkeys(op.value))


def never_committed(history: History) -> Iterator[Change]:
    op = _last_committed(history)
    yield op.index, replace(op, value=dict.fromkeys(op.value, BEYOND))


def resumed_elsewhere(history: History) -> Iterator[Change]:
    """A reader that resumes does not poll its first record."""
    waiting: dict[object, set[str]] = {}
    for op in history.ops:
        if op.f == "assign" and op.kind is Kind.OK:
            waiting[op.process] = set(op.value) if "group" in op.extra else set()
        elif op.f == "poll" and op.kind is Kind.OK:
            found: Mapping[str, Value] = op.value[0][1]
            for key in waiting.get(op.process, set()).intersection(found):
                if len(found[key]) > 1:
                    changed = {**found, key: found[key][1:]}
                    yield op.index, replace(op, value=[["poll", changed]])
                    return
            waiting.get(op.process, set()).difference_update(found)


# --- what nodes say ------------------------------------------------------------------------------


def _seen(history: History) -> Iterator[tuple[Op, str, Value]]:
    """What leaders said of their partitions, if they told how far they are."""
    for op in _ok(history, "observe"):
        for key, state in op.value.items():
            if op.process == f"node-{state[0]}" and state[4].get("high_watermark", 0) > 1:
                yield op, key, state


def _changed(op: Op, key: str, state: Value, **more: Value) -> Change:
    told = [*state[:4], {**state[4], **more}]
    return op.index, replace(op, value={**op.value, key: told})


def high_watermark_backwards(history: History) -> Iterator[Change]:
    for (one, key, before), (op, same, state) in pairwise(
        sorted(_seen(history), key=lambda each: (each[1], str(each[0].process), each[0].index))
    ):
        of = (one.process, one.extra["incarnation"], key, before[1])
        if of == (op.process, op.extra["incarnation"], same, state[1]):
            yield _changed(op, key, state, high_watermark=before[4]["high_watermark"] - 1)
            return


def high_watermark_beyond_log(history: History) -> Iterator[Change]:
    op, key, state = next(_seen(history))
    yield _changed(op, key, state, high_watermark=state[4]["log_end"] + 1)


def isr_outside_replicas(history: History) -> Iterator[Change]:
    op, key, state = next(_seen(history))
    yield _changed(op, key, state, replicas=[state[0]])


def leader_outside_isr(history: History) -> Iterator[Change]:
    op, key, state = next(each for each in _seen(history) if len(each[2][3]) > 1)
    isr = [node for node in state[3] if node != state[0]]
    yield op.index, replace(op, value={**op.value, key: [*state[:3], isr, state[4]]})


def two_leaders(history: History) -> Iterator[Change]:
    op, key, state = next(each for each in _seen(history) if len(each[2][3]) > 1)
    other = next(node for node in state[3] if node != state[0])
    yield op.index, replace(op, value={**op.value, key: [other, *state[1:]]})


SPOILED: Mapping[str, tuple[str, Callable[[History], Iterator[Change]]]] = {
    "a sequence twice": ("sequence-reused", sequence_reused),
    "two sequences exchanged": ("sequence-out-of-order", sequence_out_of_order),
    "a sequence left out": ("sequence-gap", sequence_gap),
    "an older epoch writes": ("zombie-write", zombie_write),
    "a commit of an earlier offset": ("commit-backwards", commit_backwards),
    "a commit of an earlier generation": ("stale-commit", stale_commit),
    "a commit forgotten": ("not-linearizable", forgotten),
    "an offset that nobody committed": ("phantom", never_committed),
    "a record skipped when resuming": ("resumed-elsewhere", resumed_elsewhere),
    "a high watermark that goes back": ("high-watermark-backwards", high_watermark_backwards),
    "a high watermark beyond the log": ("high-watermark-beyond-log", high_watermark_beyond_log),
    "an ISR of strangers": ("isr-outside-replicas", isr_outside_replicas),
    "a leader outside its ISR": ("leader-outside-isr", leader_outside_isr),
    "two leaders": ("two-leaders", two_leaders),
}
