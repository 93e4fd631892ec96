"""The museum's page of an item, in words: the story, the run step by step, the witness."""

import textwrap
from collections.abc import Iterator, Sequence

from jepsen_like.checkers.verdict import Finding
from jepsen_like.histories.history import Op
from jepsen_like.museum.comparison import Comparison
from jepsen_like.museum.item import Exhibit, Item
from jepsen_like.museum.playing import Played
from jepsen_like.planted.every_bug import EVERY_PLANT
from jepsen_like.scenarios.schedules import ALL_SCHEDULES

__all__ = ["described", "exhibit_page", "item_page", "run_page", "summary"]

_WIDTH = 80  # of a terminal
_STEPS_SHOWN = 60
_FINDINGS_SHOWN = 3


def item_page(item: Item, shown: list[Comparison]) -> Iterator[str]:
    """Lines."""
    yield f"{item.id}  {item.title}  ({item.issue})"
    yield f"design: {item.design}"
    yield ""
    yield from textwrap.wrap(item.mechanism, _WIDTH)
    yield f"mended by: {item.mended_by}"
    for each in shown:
        yield ""
        yield from exhibit_page(each)


def exhibit_page(shown: Comparison) -> Iterator[str]:
    exhibit = shown.exhibit
    yield f"--- {exhibit.schedule}"
    yield from textwrap.wrap(ALL_SCHEDULES[exhibit.schedule].story, _WIDTH)
    yield ""
    yield f"RED, with {described(exhibit)}"
    yield from _steps(shown.red)
    if shown.judged is not None:
        yield f"the simulator's judges: {_end(shown.judged)}"
    if shown.unjudged is not None and shown.seen is not None:
        yield f"the clients' history alone: {shown.seen.outcome.value}"
        ops = shown.unjudged.history.ops
        for finding in _first(shown.seen.findings, exhibit.seen):
            yield from _witness(finding, ops)
    yield ""
    yield f"GREEN, with {_mended(exhibit)}"
    yield from _steps(shown.green)
    yield f"the simulator's judges: {_end(shown.green)}"
    yield f"the clients' history alone: {shown.green_seen.outcome.value}"
    yield from (f"NOT AS IT SHOULD BE: {problem}" for problem in shown.problems())


def run_page(played: Played, rule: str) -> Iterator[str]:
    """One run that was judged as it went on, and by its history."""
    yield from _steps(played)
    if played.rule:
        yield f"what was looked at: {_end(played)}"
    verdict = played.verdict()
    yield f"the clients' history: {verdict.outcome.value} {verdict.reason}".rstrip()
    for finding in _first(verdict.findings, rule):
        yield from _witness(finding, played.history.ops)


def described(exhibit: Exhibit) -> str:
    """The bug, and the rule that is missing."""
    if not exhibit.plants:
        return exhibit.bug
    rules = [f"{name} (not: {EVERY_PLANT[name].breaks})" for name in exhibit.plants.split(",")]
    return " and ".join(rules)


def _mended(exhibit: Exhibit) -> str:
    settings = ", ".join(f"{name}={value}" for name, value in exhibit.mended.items())
    return settings or "the shipped rules"


def summary(shown: Comparison) -> str:
    """What the checkers say of the red run, in one line."""
    said = []
    if shown.judged is not None:
        said.append(shown.judged.rule or shown.judged.end.value)
    if shown.seen is not None:
        found = _first(shown.seen.findings, shown.exhibit.seen)
        said += [found[0].rule] if found else ["nothing"]
    return ", ".join(said)


def _steps(played: Played) -> Iterator[str]:
    yield f"{'t_ms':>8}  what"
    for step in played.steps[:_STEPS_SHOWN]:
        yield f"{step.at_ms:8}  {step.what}"
    if len(played.steps) > _STEPS_SHOWN:
        yield f"{'':8}  and {len(played.steps) - _STEPS_SHOWN} steps more"


def _end(played: Played) -> str:
    if not played.rule:
        return f"{played.end.value}, at {played.at_ms} ms {played.detail}".rstrip()
    detail = textwrap.shorten(played.detail, 300)
    return f"{played.rule} at {played.at_ms} ms: {detail}"


def _first(findings: tuple[Finding, ...], rule: str) -> list[Finding]:
    """The first findings: those of the rule that the item names come before the others."""
    ordered = sorted(findings, key=lambda finding: finding.rule != rule)
    return ordered[:_FINDINGS_SHOWN]


def _witness(finding: Finding, ops: Sequence[Op]) -> Iterator[str]:
    yield f"  {finding.rule} in {finding.object}: {finding.detail}"
    for index in finding.ops:
        op = ops[index]
        error = f" {op.error}" if op.error else ""
        yield (
            f"    operation {op.index}, {op.time_ns // 1_000_000} ms: process {op.process}"
            f" {op.kind.value} {op.f} {op.value}{error}"
        )
