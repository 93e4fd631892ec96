"""The headline of a history, which its verdict carries: "3,426 sends acknowledged, none
lost, under 9 proven faults"; what was planted, and how to make it again. Pure.

Nothing is said to be lost or not where no rule looked for it; and what no reading reached the end
of has only not been seen to be lost.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jepsen_like.checkers.verdict import Outcome, Verdict
from jepsen_like.histories.history import Value
from jepsen_like.report.bands import Band

__all__ = ["again", "headline", "outcome_of", "told_of_plants"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    """What a workload wants kept. `function`: the operation that gives it."""

    function: str
    noun: str
    rules: frozenset[str]  # broken by a loss
    counted: str = ""  # a count of the verdict that is 0 unless everything was read afterwards


_SENDS = _Kept(
    function="send",
    noun="sends acknowledged",
    rules=frozenset(("lost-write", "unseen", "vanished")),
    counted="readings to the end",
)
_KEPT: Mapping[str, _Kept] = {
    "admin": _SENDS,
    "kafka": _SENDS,
    "log": _SENDS,
    "transactions": _Kept(
        function="txn", noun="transactions committed", rules=_SENDS.rules, counted=_SENDS.counted
    ),
    "set": _Kept(function="add", noun="elements added", rules=frozenset(("lost-element",))),
}
_SIMULATED = "quorumlab chaos replay"  # a command that begins like this does the same again
_RULES_MAX = 3


def outcome_of(verdict: Verdict, void: Sequence[str]) -> str:
    """A run that is void proves nothing, however valid."""
    is_void = verdict.outcome is Outcome.VALID and void
    return "void" if is_void else verdict.outcome.value


def headline(
    workload: str,
    told: tuple[Verdict, Sequence[str]],
    succeeded: Mapping[str, int],
    faults: Sequence[Band],
) -> str:
    """`told`: the verdict, and why the run is void; `succeeded`: operations by function."""
    verdict, void = told
    kept = _KEPT.get(workload)
    number = sum(succeeded.values()) if kept is None else succeeded.get(kept.function, 0)
    noun = "operations ok" if kept is None else kept.noun
    parts = [f"{number:,} {noun}"]
    if verdict.outcome is not Outcome.UNDECIDED:
        parts += _found(kept, verdict)
    line = ", ".join([*parts, _under(faults)])
    if verdict.outcome is Outcome.UNDECIDED:
        return f"{line}: undecided, which proves nothing"
    return f"{line}; but the run is void, and proves nothing" if void else line


def _found(kept: _Kept | None, verdict: Verdict) -> list[str]:
    """What became of what was to be kept, and which rules are broken."""
    rules = Counter(finding.rule for finding in verdict.findings)
    lost = [rule for rule in rules if kept is not None and rule in kept.rules]
    said = []
    if kept is not None and not lost:
        said.append("none lost" if _is_read(kept, verdict.counts) else "none seen to be lost")
    if rules:
        most = rules.most_common(_RULES_MAX)
        named = [f"{rule} ({count:,} finding{'s' * (count > 1)})" for rule, count in most]
        more = len(rules) - len(most)
        rest = f" and {more} more rules" if more else ""
        said.append(f"{'but ' if not lost else ''}{', '.join(named)}{rest}")
    return said or ["no rule broken"]


def _is_read(kept: _Kept, counts: Mapping[str, Value]) -> bool:
    return not kept.counted or bool(counts.get(kept.counted))


def _under(faults: Sequence[Band]) -> str:
    proven = sum(fault.bit is True for fault in faults)
    if not faults:
        return "without a fault"
    if proven:
        rest = len(faults) - proven
        more = f" ({rest:,} more {'was' if rest == 1 else 'were'} not proven)" if rest else ""
        return f"under {proven:,} proven fault{'s' * (proven > 1)}{more}"
    return f"under {len(faults):,} fault{'s' * (len(faults) > 1)}, none proven"


def told_of_plants(about: Mapping[str, str]) -> str:
    """Empty for a run that does not say how it was made: then nobody knows."""
    if about.get("planted"):
        return f"Planted: {about['planted']}."
    return "Nothing was planted: the rules are those that ship." if about.get("command") else ""


def again(about: Mapping[str, str]) -> str:
    """What the command is worth, in front of it; empty if there is none."""
    command = about.get("command", "")
    if not command:
        return ""
    if command.startswith(_SIMULATED):
        return "The same run again, operation by operation:"
    return "The same faults again, though real processes do nothing twice in the same way:"
