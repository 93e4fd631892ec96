"""Registers whose operations tell versions: each version became current once, in their order.

A write of version n bounds the moment of n on both sides; a read of n came before n + 1 was
current, and after n was. With that, a versioned register is a log of which the last record is read
(`zones.Bounds`). Versions may have gaps: they count all changes of a log that many registers share.

A write that tells which version it `expected` is a compare-and-set: no other one may have been made
since. `lost-update` is ours.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence

import numpy as np

from jepsen_like.checkers.operations import NEVER, Operation
from jepsen_like.checkers.register_accesses import Register, never_written
from jepsen_like.checkers.verdict import Finding, Told, Verdict, report
from jepsen_like.checkers.zones import Bounds, Rows
from jepsen_like.histories.history import Value

__all__ = ["check_versions"]

_Row = tuple[int, int, int, int]


def check_versions(registers: Sequence[Register]) -> Verdict:
    findings = [
        *(finding for register in registers for finding in _inconsistent(register)),
        *(finding for register in registers for finding in never_written(register)),
        *(finding for register in registers for finding in _lost_updates(register)),
        *(finding for register in registers for finding in _went_back(register)),
        *_out_of_order(registers),
    ]
    return Verdict.of(findings, objects=[register.key for register in registers])


def _out_of_order(registers: Sequence[Register]) -> list[Finding]:
    lower: list[_Row] = []
    upper: list[_Row] = []
    operations: list[Operation] = []
    for number, register in enumerate(registers):
        for row in _rows(number, register, len(operations)):
            (lower if row[0] else upper).append(row[1])
        operations += register.accesses
    bounds = Bounds.of(_columns(lower), _columns(upper))
    late, forbidden_by = bounds.broken()

    def tell(at: int) -> Told:
        after, before = int(late[at]), int(forbidden_by[at])
        ops = [operations[int(bounds.upper_by[after])], operations[int(bounds.lower_by[before])]]
        detail = (
            f"version {bounds.place[after]} was there when operation {ops[0].index} ended, "
            f"and not yet version {bounds.place[before]} when operation {ops[1].index} began later"
        )
        return detail, ops

    names = [register.key for register in registers]
    return report("not-linearizable", names, bounds.key[late], tell)


def _rows(number: int, register: Register, offset: int) -> Iterator[tuple[bool, _Row]]:
    """Whether it is a lower bound; key, version, moment, operation."""
    versions = {each.result: each.extra["version"] for each in register.reads}
    for at, each in enumerate(register.accesses, offset):
        is_read, has_ended = each.f == "read", each.ret != NEVER
        if is_read or has_ended or each.argument in versions:
            told = each.extra["version"] if is_read or has_ended else versions[each.argument]
            yield True, (number, told + is_read, each.call, at)
            yield False, (number, told, each.ret, at)


def _columns(found: Sequence[_Row]) -> Rows:
    key, place, moment, operation = np.array(found, dtype=np.int64).reshape(-1, 4).T
    return key, place, moment, operation


def _value(operation: Operation) -> Value:
    return operation.result if operation.f == "read" else operation.argument


def _inconsistent(register: Register) -> Iterator[Finding]:
    """Each value is written once: it has one version. The initial one is before all others."""
    by_version: dict[int, Operation] = {}
    by_value: dict[Value, Operation] = {}
    for each in register.accesses:
        if each.ret == NEVER:
            continue
        version, value = each.extra["version"], _value(each)
        other, same = by_version.setdefault(version, each), by_value.setdefault(value, each)
        if _value(other) != value:
            told = f"version {version} is {_value(other)!r}, and {value!r}"
            yield Finding.of("inconsistent-version", register.key, told, other, each)
        elif same.extra["version"] != version:
            told = f"{value!r} is version {same.extra['version']}, and {version}"
            yield Finding.of("inconsistent-version", register.key, told, same, each)
    first, initial = min(by_version, default=0), by_value.get(None)
    if initial is not None and first < initial.extra["version"]:
        told = f"version {initial.extra['version']} is None, after version {first}"
        yield Finding.of("inconsistent-version", register.key, told, by_version[first], initial)


def _lost_updates(register: Register) -> Iterator[Finding]:
    """Writes that were to be made only if a version was still current, and another one was."""
    told = {each.extra["version"]: each for each in register.accesses if each.ret != NEVER}
    versions = sorted(told)
    for write in register.changes:
        if write.ret == NEVER or "expected" not in write.extra:
            continue
        expected, made = write.extra["expected"], write.extra["version"]
        at = bisect_right(versions, expected)
        between = versions[at] if at < len(versions) else made
        if expected < made and between >= made:
            continue
        why = f"and version {between} was there" if expected < made else "which is no earlier one"
        detail = f"version {made} was made of version {expected}, {why}"
        yield Finding.of("lost-update", register.key, detail, told[min(between, made)], write)


def _went_back(register: Register) -> Iterator[Finding]:
    highest: dict[Value, Operation] = {}
    for read in (each for each in register.stale if each.extra.get("node") is not None):
        by = read.process, read.extra["node"]
        before = highest.setdefault(by, read)
        if read.extra["version"] < before.extra["version"]:
            older, newer = read.extra["version"], before.extra["version"]
            detail = f"version {newer} was read, and later version {older}"
            yield Finding.of("nonmonotonic-read", register.key, detail, before, read)
        else:
            highest[by] = read
