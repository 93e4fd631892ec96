"""What isolation levels forbid, and the verdict on what was found in a history of transactions.

The history says in its header what is promised, as the option `isolation`: one of `LEVELS`. If
the header names none, it is strict serializability. What a level allows is counted, and no finding.

Source: Adya, Liskov and O'Neil 2000; Cerone and Gotsman 2018 for snapshot isolation.
"""

from bisect import insort
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from jepsen_like.checkers.verdict import Finding, Verdict
from jepsen_like.histories.history import MalformedHistory, Value

__all__ = ["ISOLATION", "LEVELS", "STRICT", "Found", "level_of", "verdict_of"]

ISOLATION = "isolation"  # an option of the header
STRICT = "strict-serializable"
_COMMITTED = frozenset(("G0", "G1a", "G1b", "G1c"))
_SNAPSHOT = _COMMITTED | {"internal", "lost-update", "G-single", "G-nonadjacent"}
LEVELS: Mapping[str, frozenset[str]] = {  # what each forbids
    "read-committed": _COMMITTED,
    "snapshot-isolation": _SNAPSHOT,
    "serializable": _SNAPSHOT | {"G2-item"},
    STRICT: _SNAPSHOT | {"G2-item"},
}
_CYCLES = frozenset(("G0", "G1c", "G-single", "G-nonadjacent", "G2-item"))
_OTHERS = frozenset(("G1a", "G1b", "internal", "lost-update"))  # rules that a level may allow
_SHOWN = 3  # of one name
_HIDDEN = "anomalies that this level allows were found, and may hide forbidden ones"


def level_of(options: Mapping[str, Value]) -> str:
    """Raises `MalformedHistory` if the promise is none that is known."""
    level = options.get(ISOLATION, STRICT)
    if not isinstance(level, str) or level not in LEVELS:
        raise MalformedHistory(f"isolation {level!r:.60}: known are {', '.join(LEVELS)}")
    return level


@dataclass(slots=True)
class Found:
    """How often each rule is broken, and of each the first findings, in the order of their lines:
    the same ones, in whatever order they were found."""

    counts: dict[str, int] = field(default_factory=dict)
    first: dict[str, list[Finding]] = field(default_factory=dict)

    @classmethod
    def of(cls, findings: Iterable[Finding]) -> "Found":
        found = cls()
        found.add(findings)
        return found

    def add(self, findings: Iterable[Finding]) -> None:
        for each in findings:
            self.counts[each.rule] = self.counts.get(each.rule, 0) + 1
            self._show(each)

    def merge(self, other: "Found") -> None:
        for rule, count in other.counts.items():
            self.counts[rule] = self.counts.get(rule, 0) + count
        for first in other.first.values():
            for each in first:
                self._show(each)

    def _show(self, finding: Finding) -> None:
        first = self.first.setdefault(finding.rule, [])
        insort(first, finding, key=_in_order)
        del first[_SHOWN:]


def _in_order(finding: Finding) -> tuple[tuple[int, ...], str, str]:
    return finding.ops, finding.object, finding.detail


def verdict_of(found: Found, level: str, counts: Mapping[str, Value]) -> Verdict:
    forbidden = [
        each for rule, first in found.first.items() if _is_forbidden(rule, level) for each in first
    ]
    allowed = {
        f"{rule}, allowed": count
        for rule, count in found.counts.items()
        if not _is_forbidden(rule, level)
    }
    if not forbidden and _may_hide_more(allowed, level):
        return replace(Verdict.undecided(f"{level}: {_HIDDEN}"), counts={**counts, **allowed})
    return Verdict.of(forbidden, {**counts, **allowed})


def _may_hide_more(allowed: Mapping[str, int], level: str) -> bool:
    """An allowed cycle may contain a forbidden one; and after an internal read, that read is not
    examined further."""
    return bool(allowed) if level == "snapshot-isolation" else "internal, allowed" in allowed


def _is_forbidden(rule: str, level: str) -> bool:
    name = rule.removesuffix("-realtime").removesuffix("-process")
    return name not in _CYCLES | _OTHERS or name in LEVELS[level]
