"""Reads and writes of registers, each key by itself, and the chains that compare-and-sets make.

Left out: reads that were not answered, and writes that failed (they are kept apart, since nobody
may read what they would have written). A compare-and-set that failed and tells what it saw is a
read. A stale read (`read-stale`) saw what was once there: its call is moved before all else. A
value that comes without a key is of the register "".

A chain: where every value is written once, a compare-and-set of a to b happened while a was there,
and a never comes back: so b came right after a. Each write begins a chain, and so does the initial
value. Two compare-and-sets of one value cannot both have happened; and one of a value that no chain
reaches cannot have happened at all. An unknown change happened if what it made was seen, or
replaced by another change that happened; otherwise it need not have. Source: checking facts, c2.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from jepsen_like.checkers.operations import NEVER, Operation, exact, malformed, not_of, pair_of
from jepsen_like.checkers.verdict import Finding
from jepsen_like.histories.history import Kind, MalformedHistory, Value

__all__ = [
    "Chains",
    "Register",
    "chains_of",
    "happened",
    "never_written",
    "new_value",
    "registers",
    "unwritten",
    "without_useless",
]

STALE = "read-stale"
_READS = ("read", STALE)
_KNOWN = (*_READS, "write", "cas")
_AT_ANY_TIME_BEFORE = -1
_VERSION_MAX = 1 << 40  # beyond, columns of numbers would overflow


@dataclass(slots=True)
class Register:
    """The accesses of one key. `f` is read, write or cas; values are without the key."""

    key: str
    accesses: list[Operation] = field(default_factory=list)  # in the order of their calls
    stale: list[Operation] = field(default_factory=list)  # reads with their true calls
    failed: list[Operation] = field(default_factory=list)  # writes that never happened

    @property
    def changes(self) -> Iterator[Operation]:
        """The accesses that happened, or may have."""
        return (each for each in self.accesses if each.f != "read" and each.kind is not Kind.FAIL)

    @property
    def reads(self) -> Iterator[Operation]:
        return (each for each in self.accesses if each.f == "read")


def new_value(change: Operation) -> Value:
    return change.argument[1] if change.f == "cas" else change.argument


def unwritten(register: Register) -> Iterator[tuple[Value, Operation]]:
    """Values that were seen though no write of them can have happened, and who saw them."""
    written = {None} | {new_value(each) for each in register.changes}
    for access in register.accesses:
        if access.f == "write" or access.kind is not Kind.OK:
            continue
        seen = access.result if access.f == "read" else access.argument[0]
        if seen not in written:
            yield seen, access


def never_written(register: Register) -> Iterator[Finding]:
    """Values that were seen, and that nobody wrote, or whose write failed."""
    failed = {new_value(each): each for each in register.failed}
    for seen, access in unwritten(register):
        writer = failed.get(seen)
        yield Finding(
            rule="phantom" if writer is None else "G1a",
            object=register.key,
            detail=f"{seen!r} was {'read' if access.f == 'read' else 'replaced'}, and "
            + ("nobody wrote it" if writer is None else "its write failed"),
            ops=access.evidence if writer is None else (*writer.evidence, *access.evidence),
        )


def without_useless(operations: Sequence[Operation]) -> list[Operation]:
    """Without unknown changes that no order needs: to values that nobody saw or expected.

    Such a value may yet have helped a compare-and-set to fail that tells no more than that. Each of
    those needs one at most, and of all that is done to such values a write that began early is as
    good as anything later.
    """
    wanted = _wanted(operations)
    needed = sum(each.kind is Kind.FAIL for each in operations)
    kept = []
    for each in operations:
        is_wanted = each.ret != NEVER or new_value(each) in wanted
        if is_wanted or needed > 0:
            kept.append(each)
        if not is_wanted and each.f == "write":
            needed -= 1
    return kept


def _wanted(operations: Sequence[Operation]) -> set[Value]:
    """Values that somebody saw or expected, or that lead to one of these."""
    wanted: set[Value] = set()
    waiting: list[Value] = []
    expected_for: dict[Value, list[Value]] = {}  # by unknown changes that make it
    for each in operations:
        if each.f == "read":
            waiting.append(each.result)
        elif each.f == "cas" and each.ret != NEVER:
            waiting.append(each.argument[0])
        elif each.f == "cas":
            expected_for.setdefault(each.argument[1], []).append(each.argument[0])
    while waiting:
        value = waiting.pop()
        if value not in wanted:
            wanted.add(value)
            waiting += expected_for.get(value, ())
    return wanted


def registers(operations: Sequence[Operation]) -> list[Register]:
    found: dict[str, Register] = {}
    for operation in operations:
        if operation.f not in _KNOWN:
            raise not_of(operation, "a register")
        _check_extra(operation)
        try:
            key, argument, result = _split(operation)
            register = found.setdefault(key, Register(key))
            _add(register, replace(operation, argument=argument, result=result))
        except (TypeError, ValueError) as error:
            raise malformed(operation, f"a {operation.f} of a register") from error
    for register in found.values():
        register.accesses.sort(key=lambda each: each.call)
    return list(found.values())


def _check_extra(operation: Operation) -> None:
    if not isinstance(node := operation.extra.get("node"), int | str | None):
        raise MalformedHistory(f"operation {operation.index}: no node: {node!r:.100}")
    for name in ("version", "expected"):
        version = operation.extra.get(name, 0)
        if type(version) is not int or not 0 <= version <= _VERSION_MAX:
            raise MalformedHistory(f"operation {operation.index}: no version: {version!r:.100}")


def _split(operation: Operation) -> tuple[str, Value, Value]:
    """The key, what is asked for, and what was answered."""
    key, argument = pair_of(operation.argument)
    is_answered = operation.f in _READS and operation.kind is Kind.OK
    result = pair_of(operation.result)[1] if is_answered else None
    if operation.f == "cas":
        argument = pair_of(argument)
    return str(key), exact(argument), exact(result)


def _add(register: Register, operation: Operation) -> None:
    is_ok, is_failed = operation.kind is Kind.OK, operation.kind is Kind.FAIL
    match operation.f:
        case "read" if is_ok:
            register.accesses.append(operation)
        case "read-stale" if is_ok:
            register.stale.append(operation)
            relaxed = replace(operation, f="read", call=_AT_ANY_TIME_BEFORE)
            register.accesses.append(relaxed)
        case "cas" if is_failed and "seen" in operation.extra:
            seen = exact(operation.extra["seen"])
            register.accesses.append(replace(operation, f="read", kind=Kind.OK, result=seen))
        case "cas" if is_failed and operation.extra.get("mismatch"):
            register.accesses.append(operation)
        case "write" | "cas":
            (register.failed if is_failed else register.accesses).append(operation)
        case _:
            pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Chains:
    """Where there is something `broken`, every value is a chain by itself."""

    roots: Mapping[Value, Value] = field(default_factory=dict)  # of each value
    places: Mapping[Value, int] = field(default_factory=dict)  # of each value, in its chain
    links: Mapping[tuple[Value, int], Operation] = field(default_factory=dict)  # to each place
    broken: Sequence[Finding] = field(default=())

    def root(self, value: Value) -> Value:
        return self.roots.get(value, value)

    def place(self, value: Value) -> int:
        return self.places.get(value, 0)


def happened(register: Register) -> Register:
    """The register with what surely happened, or was seen, and without all that failed."""
    told = [each for each in register.accesses if each.kind is not Kind.FAIL]
    return replace(register, accesses=without_useless(told))


def chains_of(register: Register) -> Chains:
    """Takes a register that `happened` made, in which every change is to a value of its own."""
    roots: dict[Value, Value] = {None: None}
    following: dict[Value, list[Operation]] = {}
    for change in register.changes:
        if change.f == "write":
            roots[change.argument] = change.argument
        else:
            following.setdefault(change.argument[0], []).append(change)
    places = dict.fromkeys(roots, 0)
    links: dict[tuple[Value, int], Operation] = {}
    waiting = list(roots)
    while waiting:
        value = waiting.pop()
        for cas in following.get(value, ()):
            made = new_value(cas)
            roots[made], places[made] = roots[value], places[value] + 1
            links[roots[made], places[made]] = cas
            waiting.append(made)
    broken = [*_forks(register.key, following), *_rootless(register, roots)]
    return Chains(broken=broken) if broken else Chains(roots=roots, places=places, links=links)


def _forks(key: str, following: dict[Value, list[Operation]]) -> Iterator[Finding]:
    for value, (first, *others) in following.items():
        if others:
            made = f"{new_value(first)!r}, and by {new_value(others[0])!r}"
            detail = f"{value!r} was replaced by {made}, and it was there once"
            yield Finding.of("not-linearizable", key, detail, first, others[0])


def _rootless(register: Register, roots: Mapping[Value, Value]) -> Iterator[Finding]:
    """The first one: of a value that was never there, or of a cycle."""
    for change in register.changes:
        made = new_value(change)
        if made not in roots:
            detail = f"{change.argument[0]!r} was replaced by {made!r}, and cannot have been there"
            seen = [each for each in register.reads if each.result == made]
            yield Finding.of("not-linearizable", register.key, detail, change, *seen[:1])
            return
