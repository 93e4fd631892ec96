"""The verdict on registers, each by the fastest algorithm that is exact for it.

    every change is to a value of its own               zones, all such keys in one pass
    the same, all writes, and each tells a version      versions, in one pass
    a compare-and-set failed and did not tell what of   zones first, and then search
    anything else                                       search, key by key, under a budget

`not-linearizable` is the rule; `phantom` and `G1a` are its simplest cases, and say more: a value
that nobody wrote, or whose write failed. `nonmonotonic-read`: stale reads of one process at one
node went back. For the latter what the registers themselves force is the order of the values.

Before anybody writes, a register holds nil, or a value that is told; or nobody knows what. A told
value is a write before all operations, one for each key. It is no line of the history, and no
evidence. Where nobody knows, a register that nil does not explain and another value does is
undecided. Sources: Knossos' registers begin with nil unless they are told a value, and Porcupine's
models tell theirs; histories themselves do not say it.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from shlex import quote

from jepsen_like.checkers.models import REGISTER
from jepsen_like.checkers.operations import NEVER, NO_LINE, Operation
from jepsen_like.checkers.register_accesses import (
    Register,
    happened,
    never_written,
    new_value,
    registers,
    unwritten,
    without_useless,
)
from jepsen_like.checkers.register_versions import check_versions
from jepsen_like.checkers.register_zones import check_zones
from jepsen_like.checkers.search import Budget, check_by_search
from jepsen_like.checkers.verdict import Outcome, Verdict, compose
from jepsen_like.histories.history import INITIAL, Kind, MalformedHistory, Value

__all__ = ["beginning_with", "check_registers", "initial_of", "may_begin_with_nil"]

Initial = Sequence[Value]
_BEFORE = 2  # positions: the write's call and return


def initial_of(options: Mapping[str, Value]) -> Initial:
    """Our own registers begin with nil. Raises `MalformedHistory`."""
    told = options.get(INITIAL, [None])
    if not isinstance(told, list) or len(told) > 1:
        raise MalformedHistory(f"option {INITIAL}: not [value] or []: {told!r:.100}")
    return told


def may_begin_with_nil(initial: Initial) -> bool:
    return not initial or initial[0] is None


def beginning_with(operations: Sequence[Operation], value: Value) -> list[Operation]:
    """The same, later, with a write of this value to each key before them; nil takes none."""
    if value is None:
        return list(operations)
    later = [
        replace(
            each,
            call=each.call + _BEFORE,
            ret=each.ret if each.ret == NEVER else each.ret + _BEFORE,
        )
        for each in operations
    ]
    return [*_writes(operations, value), *later]


def _writes(operations: Sequence[Operation], value: Value) -> Iterator[Operation]:
    has_versions = any("version" in each.extra for each in operations)
    for key in dict.fromkeys(map(_key, operations)):
        yield Operation(
            process="initial",
            f="write",
            kind=Kind.OK,
            argument=[key, value],
            call=0,
            ret=1,
            index=NO_LINE,
            extra={"version": 0} if has_versions else {},
        )


def _key(operation: Operation) -> str:
    match operation.argument:
        case [key, *_]:
            return str(key)
    raise MalformedHistory(f"operation {operation.index}: no [key, value]")


def supposed(register: Register) -> Sequence[Value]:
    """Values with which it may have begun: the only one that was seen and never written.

    If all are written, then those that were seen or expected before any change had returned.
    """
    never_written = list(dict(unwritten(register)))
    if never_written:
        return never_written if len(never_written) == 1 else ()
    first = min((each.ret for each in register.changes), default=NEVER)
    values = (
        each.result if each.f == "read" else each.argument[0]
        for each in register.accesses
        if each.f != "write" and each.kind is not Kind.FAIL and each.call < first
    )
    return [value for value in dict.fromkeys(values) if value is not None]


def why_doubted(value: Value) -> str:
    text = json.dumps(value, default=_plain)
    return (
        f"{text} was seen and nobody had written it: that is right if registers begin with it "
        f"(--initial {quote(text)}), "
        "and wrong if they begin with nil (--initial nil)"
    )


def _plain(value: Value) -> Value:
    """`exact` keeps numbers of other kinds than int as they are written."""
    text = repr(value)
    return text == "True" if text in ("True", "False") else float(text)


def check_registers(
    operations: Sequence[Operation], budget: Budget | None = None, *, initial: Initial = (None,)
) -> Verdict:
    """`initial`: the value that they begin with; empty if nobody knows it."""
    if initial:
        return _checked(beginning_with(operations, initial[0]), budget)
    verdict = _checked(operations, budget)
    doubts = dict(_explained(verdict, operations, budget))
    if not doubts:
        return verdict
    findings = tuple(each for each in verdict.findings if each.object not in doubts)
    why = Verdict.of([], doubts=doubts)
    return replace(
        verdict,
        outcome=Outcome.VIOLATED if findings else Outcome.UNDECIDED,
        findings=findings,
        reason="; ".join(filter(None, [verdict.reason, why.reason])),
        objects={**verdict.objects, **why.objects},
    )


def _explained(
    verdict: Verdict, operations: Sequence[Operation], budget: Budget | None
) -> Iterator[tuple[str, str]]:
    """Broken registers that a value to begin with would make right, and why they are doubted."""
    broken = {each.object: list[Operation]() for each in verdict.findings}
    for operation in operations if broken else ():
        if (own := broken.get(str(operation.argument[0]))) is not None:
            own.append(operation)
    for key, own in broken.items():
        (register,) = registers(own)
        for value in supposed(register):
            if _checked(beginning_with(own, value), budget).outcome is Outcome.VALID:
                yield key, why_doubted(value)


def _checked(operations: Sequence[Operation], budget: Budget | None) -> Verdict:
    zoned, versioned, searched = [], [], []
    for register in registers(operations):
        if not _is_written_once(register):
            searched.append(register)
        elif _has_versions(register):
            versioned.append(register)
        else:
            zoned.append(register)
    by_zones = check_zones([happened(register) for register in zoned])
    searched += [register for register in zoned if _is_left_open(register, by_zones)]
    verdict = compose(
        [
            by_zones,
            check_versions(versioned),
            *(_check_by_search(register, budget) for register in searched),
        ]
    )
    counts = {
        "registers": len({register.key for register in (*zoned, *versioned, *searched)}),
        "by zones": len(zoned),
        "by versions": len(versioned),
        "by search": len(searched),
    }
    return replace(verdict, counts=counts)


def _is_written_once(register: Register) -> bool:
    written = [new_value(each) for each in register.changes]
    return len(set(written)) == len(written) and None not in written


def _has_versions(register: Register) -> bool:
    ended = [each for each in register.accesses if each.ret != NEVER]
    return bool(ended) and all("version" in each.extra and each.f != "cas" for each in ended)


def _is_left_open(register: Register, by_zones: Verdict) -> bool:
    """Zones do not see what a compare-and-set tells that failed: the value was another."""
    is_broken = by_zones.objects[register.key] is Outcome.VIOLATED
    return not is_broken and any(each.kind is Kind.FAIL for each in register.accesses)


def _check_by_search(register: Register, budget: Budget | None) -> Verdict:
    unwritten = list(never_written(register))
    if unwritten:
        return Verdict.of(unwritten)
    return check_by_search(
        register.key, register.accesses, REGISTER, budget, without_useless=without_useless
    )
