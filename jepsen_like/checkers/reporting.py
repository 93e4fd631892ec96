"""From rows that break a rule to findings that a person can read: the first of each object.

A broken log breaks a rule a million times. The first few say what is wrong; the rest is a number.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from jepsen_like.verdict import Finding

__all__ = ["SHOWN", "Told", "report"]

SHOWN = 3  # findings of one rule on one object

Told = tuple[str, tuple[int, ...]]  # the detail, and the evidence


def report(
    rule: str, rows: Iterable[int], name: Callable[[int], str], tell: Callable[[int], Told]
) -> list[Finding]:
    """A finding a row, of the first SHOWN rows of each object; the last of them counts the rest."""
    of_object: Counter[str] = Counter()
    shown: dict[str, list[Told]] = {}
    for row in rows:
        of = name(row)
        of_object[of] += 1
        if of_object[of] <= SHOWN:
            shown.setdefault(of, []).append(tell(row))
    return [
        finding for of, told in shown.items() for finding in _findings(rule, of, told, of_object)
    ]


def _findings(rule: str, of: str, told: Sequence[Told], counted: Counter[str]) -> list[Finding]:
    more = counted[of] - len(told)
    findings = []
    for place, (detail, evidence) in enumerate(told, 1):
        tail = f" (and {more} more like this)" if more and place == len(told) else ""
        findings.append(Finding(rule=rule, object=of, detail=detail + tail, ops=evidence))
    return findings
