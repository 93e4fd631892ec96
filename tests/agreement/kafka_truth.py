"""What transactions, producers and consumer groups break, as docs/checking.md says it.

An order of transactions is sought by laying them out one by one; what a group may have committed
at a moment, by asking whether a read of it there has any order among all others.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import permutations

from jepsen_like.checkers.operations import NEVER, Operation
from jepsen_like.histories.history import Kind
from tests.agreement.log_truth import Logs, Sent, Stretch

__all__ = ["broken_groups", "broken_producers", "group_objects", "has_serial_order"]

Broken = set[tuple[str, str]]  # rule, object


# --- transactions -------------------------------------------------------------------------------


def has_serial_order(logs: Logs, *, is_isolated: bool) -> bool:
    """Is there one order of all that is known to have happened, in which nobody reads before it is
    written, and nothing comes before what had ended when it began? If writes are isolated, the
    records of a key are in this order, too."""
    edges = {
        (one.index, other.index)
        for one in logs.every
        for other in logs.every
        if one.ret < other.call and _acts(one) and _acts(other)
    }
    readers = [(each.of.index, each.key, each.value) for each in logs.read]
    writers = {}
    for sent in logs.sent:
        is_read = any((key, value) == (sent.key, sent.value) for _, key, value in readers)
        if sent.is_acknowledged or (is_read and sent.of.kind is not Kind.FAIL):
            writers[sent.key, sent.value] = sent
    for index, key, value in readers:
        if (key, value) in writers:
            edges.add((writers[key, value].of.index, index))
    if is_isolated:
        edges |= set(_one_behind_the_other(logs, writers))
    return _can_be_laid_out({(one, other) for one, other in edges if one != other})


def _acts(operation: Operation) -> bool:
    return operation.f in ("send", "poll", "txn") and operation.kind is not Kind.FAIL


def _one_behind_the_other(
    logs: Logs, writers: Mapping[tuple[str, str], Sent]
) -> Iterator[tuple[int, int]]:
    """Of each key, whoever wrote to an offset, and whoever wrote to a later one."""
    told = [(each.key, each.offset, each.value) for each in logs.acknowledged()]
    read = [(each.key, each.offset, each.value) for each in logs.read]
    at = [(key, offset, value) for key, offset, value in told if offset is not None] + read
    for (key, one, value), (other_key, other, later) in permutations(at, 2):
        are_known = (key, value) in writers and (key, later) in writers
        if key == other_key and one < other and are_known:
            yield writers[key, value].of.index, writers[key, later].of.index


def _can_be_laid_out(edges: set[tuple[int, int]]) -> bool:
    while edges:
        first = {one for one, _ in edges} - {other for _, other in edges}
        if not first:
            return False
        edges = {(one, other) for one, other in edges if one not in first}
    return True


# --- producers ----------------------------------------------------------------------------------


def broken_producers(logs: Logs) -> Broken:
    """`sequence-gap`: nobody's reading from the beginning to the end, begun after the later record
    was acknowledged, has a record with the number that is missing before it."""
    broken: Broken = set()
    told = [
        each for each in logs.sent if "sequence" in each.of.extra and each.of.kind is not Kind.FAIL
    ]
    in_log = [each for each in told if logs.located(each) is not None]
    for one, other in permutations(in_log, 2):
        if one.key != other.key or _producer(one)[0] != _producer(other)[0]:
            continue
        if _producer(one) == _producer(other):
            first, second = one.of.extra["sequence"], other.of.extra["sequence"]
            if first == second and one.value != other.value:
                broken.add(("sequence-reused", one.key))
            if first < second and (logs.located(one) or 0) > (logs.located(other) or 0):
                broken.add(("sequence-out-of-order", one.key))
        elif _producer(one)[1] < _producer(other)[1] and _written_by(logs, other) < one.of.call:
            broken |= {("zombie-write", one.key)} if one.is_acknowledged else set()
    for each in in_log:
        its = {
            other.of.extra["sequence"]
            for other in in_log
            if _producer(other) == _producer(each) and other.key == each.key
        }
        is_missing = set(range(min(its), each.of.extra["sequence"])) - its
        begun = [stretch.begun for stretch, _, _ in logs.wholes(each.key)]
        if is_missing and any(at > _written_by(logs, each) for at in begun):
            broken.add(("sequence-gap", each.key))
    return broken


def _producer(sent: Sent) -> tuple[int, int]:
    name, epoch = sent.of.extra["producer"]
    return name, epoch


def _written_by(logs: Logs, sent: Sent) -> int:
    """When somebody knew that it is in the log."""
    known = [each.of.ret for each in logs.readers(sent.key, sent.value)]
    return min([*known, sent.of.ret if sent.is_acknowledged else NEVER])


# --- groups -------------------------------------------------------------------------------------


def group_objects(logs: Logs) -> set[tuple[str, str]]:
    """Group and key of all that is committed, or asked for."""
    asked = [each for each in logs.every if each.f in ("commit", "committed", "committed-stale")]
    return {(each.extra["group"], key) for each in asked for key in each.argument}


def broken_groups(logs: Logs) -> tuple[Broken, set[str]]:
    """The rules that are broken; and the objects whose commits and answers have no order."""
    broken: Broken = set()
    unordered = set()
    for group, key in group_objects(logs):
        name = f"{group} {key}"
        mine = [each for each in logs.every if each.extra.get("group") == group]
        commits = [each for each in mine if each.f == "commit" and key in each.argument]
        commits = [each for each in commits if each.kind is not Kind.FAIL]
        events = [_Event(each.call, each.ret, "commit", each.argument[key]) for each in commits]
        events += _answers([each for each in mine if each.kind is Kind.OK], key)
        broken |= {(rule, name) for rule in _backwards(commits, key)}
        if not _can_happen(frozenset(events), None, set()):
            unordered.add(name)
            events = [each for each in events if each.what == "commit"]
        if any(not _resumes(logs, commits, events, each) for each in _resumed(logs, group, key)):
            broken.add(("resumed-elsewhere", name))
    return broken, unordered


@dataclass(frozen=True, eq=False, slots=True)
class _Event:
    call: int
    ret: int
    what: str  # commit, or read
    value: object
    behind: "_Event | None" = None  # what its process had read before, of the same node


def _answers(mine: list[Operation], key: str) -> Iterator[_Event]:
    """What may be old is a read of any moment before, but does not go back where it was told
    whom a process asked."""
    last: dict[object, _Event] = {}
    for each in mine:
        if each.f == "committed" and key in each.result:
            yield _Event(each.call, each.ret, "read", each.result[key])
        elif each.f == "committed-stale" and key in each.result:
            view = each.process, each.extra.get("node", f"unknown {each.index}")
            last[view] = _Event(-1, each.ret, "read", each.result[key], last.get(view))
            yield last[view]


def _can_happen(left: frozenset[_Event], value: object, hopeless: set[object]) -> bool:
    first_ret = min((each.ret for each in left), default=NEVER)
    if first_ret == NEVER:
        return True
    if (left, value) in hopeless:
        return False
    for each in left:
        if each.call < first_ret and each.behind not in left:
            is_able = each.what == "commit" or each.value == value
            if is_able and _can_happen(left - {each}, each.value, hopeless):
                return True
    hopeless.add((left, value))
    return False


def _was_once(commits: list[Operation], offset: object, ret: int, key: str) -> bool:
    return any(each.argument[key] == offset and each.call < ret for each in commits)


def _backwards(commits: list[Operation], key: str) -> Iterator[str]:
    """Of commits that were acknowledged, each to a generation that it told."""
    told = [
        each
        for each in commits
        if each.kind is Kind.OK and each.extra.get("generation") is not None
    ]
    for one, other in permutations(told, 2):
        if one.ret < other.call:
            generations = one.extra["generation"], other.extra["generation"]
            if generations[0] == generations[1] and one.argument[key] > other.argument[key]:
                yield "commit-backwards"
            if generations[0] > generations[1]:
                yield "stale-commit"


def _resumed(logs: Logs, group: str, key: str) -> Iterator[tuple[Operation, Stretch]]:
    for stretch in logs.stretches:
        by = next((each for each in logs.every if each.call == stretch.begun), None)
        if by is None or by.f != "assign" or stretch.key != key or not stretch.reads:
            continue
        if by.extra.get("group") == group and f"{by.extra.get('seek')}".startswith("committed"):
            yield by, stretch


def _resumes(
    logs: Logs, commits: list[Operation], events: list[_Event], resumed: tuple[Operation, Stretch]
) -> bool:
    by, stretch = resumed
    key, first, ret = stretch.key, stretch.reads[0].offset, stretch.reads[0].of.ret
    if not any(each.ret < by.call for each in commits):
        return True
    for offset in {each.argument[key] for each in commits}:
        if by.extra["seek"] == "committed-stale":
            is_possible = _was_once(commits, offset, ret, key)
        else:
            read = _Event(by.call, ret, "read", offset)
            is_possible = _can_happen(frozenset([*events, read]), None, set())
        if is_possible:
            behind = [at for at in logs.offsets(key) if at >= offset]
            if behind and behind[0] == first:
                return True
    return False
