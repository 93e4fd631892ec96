"""The answer of an experiment, in one sentence that its cells carry. Pure.

The sentence is about one size and setting: the largest size at which the quorum can be compared
with another design, with equal time-outs if there are such cells. It names the quorum first, then
the fastest and the slowest of the others, by the middle of their runs. What would make more of it
than was measured is said in it: runs that overlap or are too close, designs that gave up or failed,
records that were lost. Where no time is known, the sentence says what was done, and nothing else.
"""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import combinations
from math import inf

from quorumlab.compare.experiments import EXPERIMENTS
from quorumlab.compare.results import FAILED, GAVE_UP, Cell, Results, Spread
from quorumlab.compare.runs import Runs, runs_of
from quorumlab.compare.subjects import QUORUM, as_shown, subject_named

__all__ = [
    "QUESTIONS",
    "Answer",
    "Question",
    "answer",
    "busy",
    "in_time",
    "ranged",
    "spread_in_words",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """`sentence` has slots: `wait`, what it costs whatever the design; `needs`, what designs need
    between two steps; `partitions`."""

    sentence: str
    since: str = ""  # a step; or else the fault
    until: str


_KNOWS = "until every broker knows who leads"
QUESTIONS: Mapping[str, Question] = {
    "broker-crash": Question(
        sentence=f"A crash {{wait}}; then {{needs}} {_KNOWS}", since="detected", until="applied"
    ),
    "controller-failover": Question(
        sentence="A controller's death {wait}; then {needs} until the next one is ready",
        since="detected",
        until="ready",
    ),
    "broker-pause": Question(
        sentence=f"A broker that stands still {{wait}}; then {{needs}} {_KNOWS}",
        since="detected",
        until="applied",
    ),
    "controlled-shutdown": Question(
        sentence="To stop a broker in good order, {needs}", until="stopped"
    ),
    "topic-creation": Question(
        sentence="To create {partitions} partitions, {needs} until each takes records",
        until="first write",
    ),
    "isr-change": Question(
        sentence="A follower is back: {needs} until every ISR has it",
        since="resumed",
        until="grown",
    ),
    "reassignment": Question(sentence="To move {partitions} replicas, {needs}", until="moved"),
    "zookeeper-leader": Question(
        sentence="ZooKeeper's leader dies: {needs} until a new topic has a leader",
        until="first change",
    ),
    "rolling-restart": Question(sentence="To restart three brokers in turn, {needs}", until="done"),
    "crash-in-a-flood": Question(
        sentence=f"A crash in a flood {{wait}}; then {{needs}} {_KNOWS}",
        since="detected",
        until="applied",
    ),
    "broker-bounce": Question(
        sentence="A broker is back before anybody looks: {needs} until every partition takes "
        "records",
        since="resumed",
        until="first write",
    ),
}

_CLOSE = 2.0  # one run each: so much may be the machine's doing
_CLOSE_IF_BUSY = 3.0  # docs/compare.md: beside other work, times were two to three times as long
_FLOOR_MS = 1.0
_BUSY = 0.5  # load a processor, before the first cell
_LIKE_THE_TIME_OUT = (0.5, 1.25)  # a peer was heard of some time before it died


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    claim: str
    reservations: Sequence[str]  # without which the claim would say too much
    caveats: Sequence[str]  # what else is good to know, a sentence each
    timeouts: str  # the setting and the size that it is about
    partitions: int
    question: Question
    shown: Sequence[Runs]  # at that size

    @property
    def title(self) -> str:
        """All that must be read together."""
        return "; ".join((self.claim, *self.reservations))


def busy(results: Results) -> str:
    """A warning, if the machine had other things to do; else nothing."""
    load, processors = (results.machine.get(name) for name in ("load_average", "processors"))
    if not isinstance(load, int | float) or not isinstance(processors, int) or processors < 1:
        return ""
    if load <= _BUSY * processors:
        return ""
    return (
        f"The machine was busy, with a load of {load:g} on {processors} processors before: times "
        "are longer than they need be"
    )


def answer(cells: Iterable[Cell], *, is_busy: bool) -> Answer:
    """`cells` are of one experiment, at least one."""
    groups: dict[tuple[str, int], list[Runs]] = {}
    for runs in runs_of(cells):
        groups.setdefault((runs.cells[0].timeouts, runs.cells[0].partitions), []).append(runs)
    experiment = next(iter(groups.values()))[0].cells[0].experiment
    question = QUESTIONS[experiment]
    timeouts, partitions = max(groups, key=lambda key: _tells(key, groups[key], question))
    shown = groups[timeouts, partitions]
    needs = _needs(shown, question)
    named = _named(needs)
    subjects = {runs.subject for group in groups.values() for runs in group}
    return Answer(
        claim=_sentence(shown, needs, named, question),
        reservations=list(_reservations(shown, needs, named, is_busy)),
        caveats=list(_caveats(shown, needs, named, subjects)),
        timeouts=timeouts,
        partitions=partitions,
        question=question,
        shown=shown,
    )


def in_time(ms: float) -> str:
    """A duration in two or three digits."""
    if ms < 1:
        return "less than 1 ms"
    if ms >= 100_000:
        return f"{ms / 1000:,.0f} s"
    if ms >= 999.5:
        return f"{ms / 1000:.1f} s".replace(".0 s", " s")
    return f"{ms:.0f} ms"


def ranged(spread: Spread) -> str:
    """The middle of several runs, and between which they lie."""
    if spread.half is None or spread.least is None or spread.most is None:
        return "not seen to end"
    if spread.count == 1:
        return in_time(spread.half)
    never = f", {spread.never} not seen to end" if spread.never else ""
    least, most = in_time(spread.least), in_time(spread.most)
    apart = f"all {least}" if least == most else f"{least} to {most}"
    return f"{in_time(spread.half)} ({spread.count} runs: {apart}{never})"


def spread_in_words(runs: Runs, question: Question) -> str:
    """What the answer is about, of several runs; empty of one."""
    if len(runs.measured) < 2:
        return ""
    return f"to {question.until}: {ranged(runs.between(question.since, question.until))}"


# --- the sentence -----------------------------------------------------------------------------


def _tells(
    key: tuple[str, int], group: Sequence[Runs], question: Question
) -> tuple[bool, bool, bool, bool, int]:
    """Ranks a size and setting by how much it can be compared."""
    timeouts, partitions = key
    needs = _needs(group, question)
    is_compared = len(needs) > 1
    return (
        timeouts == "equal",
        is_compared and QUORUM in needs,
        is_compared,
        bool(needs),
        partitions,
    )


def _needs(group: Sequence[Runs], question: Question) -> dict[str, Spread]:
    found = {runs.subject: runs.between(question.since, question.until) for runs in group}
    return {subject: spread for subject, spread in found.items() if spread.half is not None}


def _half(spread: Spread) -> float:
    assert spread.half is not None
    return spread.half


def _named(needs: Mapping[str, Spread]) -> list[str]:
    """The subjects that the sentence names. Another engine of the quorum is no other design."""
    first = [QUORUM] if QUORUM in needs else []
    rest = sorted((name for name in needs if name not in first), key=lambda n: _half(needs[n]))
    others = [name for name in rest if not first or subject_named(name).design != QUORUM] or rest
    return [*first, *dict.fromkeys((*others[:1], *others[-1:]))]


def _sentence(
    shown: Sequence[Runs], needs: Mapping[str, Spread], named: Sequence[str], question: Question
) -> str:
    experiment = EXPERIMENTS[shown[0].cells[0].experiment]
    if not named:
        return f"{experiment.title}: {experiment.what}"
    told = [f"{name} {in_time(_half(needs[name]))}" for name in named]
    told[0] = told[0].replace(" ", " needs ", 1) if " without " not in named[0] else told[0]
    return question.sentence.format(
        wait=_wait([runs for runs in shown if runs.subject in needs]) if question.since else "",
        needs=", ".join(told),
        partitions=f"{shown[0].cells[0].partitions:,}",
    )


def _wait(shown: Sequence[Runs]) -> str:
    """What it costs before any design can act."""
    cells = [cell for runs in shown for cell in runs.measured]
    silences = {cell.silence_ms for cell in cells}
    noticed = [ms for cell in cells if (ms := cell.done_ms("detected")) is not None]
    if not noticed:
        return "is noticed"
    least, most = in_time(min(noticed)), in_time(max(noticed))
    if len(silences) == 1:
        (silence,) = silences
        low, high = (silence * part for part in _LIKE_THE_TIME_OUT)
        if all(low <= ms <= high for ms in noticed):
            return f"costs the time-out of {in_time(silence)}"
    return f"is noticed after {least}" + (f" to {most}" if least != most else "")


def _reservations(
    shown: Sequence[Runs], needs: Mapping[str, Spread], named: Sequence[str], is_busy: bool
) -> Iterable[str]:
    """What must not be missing where the title is read alone."""
    for one, other in combinations(named, 2):
        yield from _not_apart(one, other, needs[one], needs[other], is_busy)
    for name in named:
        if never := needs[name].never:
            yield f"{name} was not seen to end in {never} of {needs[name].count} runs"
    for outcome, verb in ((GAVE_UP, "gave up"), (FAILED, "failed")):
        names = [told for runs in shown if (told := _ended_so(runs, outcome))]
        if names:
            yield f"{_listed(names)} {verb}"
    lost = [
        f"{runs.subject} {count:,}"
        for runs in shown
        if (count := sum(cell.records.lost for cell in runs.measured))
    ]
    if lost:
        yield f"acknowledged records were lost: {_listed(lost)}"


def _ended_so(runs: Runs, outcome: str) -> str:
    """The subject, if any of its runs ended so."""
    count = sum(cell.outcome == outcome for cell in runs.cells)
    if not count:
        return ""
    some = f" in {count} of {len(runs.cells)} runs" if count < len(runs.cells) else ""
    return runs.subject + some


def _not_apart(name: str, other: str, one: Spread, two: Spread, is_busy: bool) -> Iterable[str]:
    if one.count > 1 and two.count > 1:
        if _begin(one) <= _end(two) and _begin(two) <= _end(one):
            yield f"the runs of {name} and {other} overlap"
        return
    low, high = sorted(max(_half(each), _FLOOR_MS) for each in (one, two))
    if high < low * (_CLOSE_IF_BUSY if is_busy else _CLOSE):
        yield f"{name} and {other} are too close for one run each"


def _begin(spread: Spread) -> float:
    assert spread.least is not None
    return spread.least


def _end(spread: Spread) -> float:
    """A run that never ended lies beyond all others."""
    assert spread.most is not None
    return inf if spread.never else spread.most


def _listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]


def _caveats(
    shown: Sequence[Runs],
    needs: Mapping[str, Spread],
    named: Sequence[str],
    subjects: AbstractSet[str],
) -> Iterable[str]:
    if rest := [name for name in needs if name not in named]:
        told = [f"{name} {in_time(_half(needs[name]))}" for name in rest]
        yield f"The others: {_listed(told)}"
    if named and QUORUM not in needs and not any(runs.subject == QUORUM for runs in shown):
        yield f"{QUORUM} is not among what was measured here"
    if len(needs) == 1:
        yield "No other time is known here"
    for runs in shown:
        if runs.measured and runs.subject not in needs:
            yield f"{runs.subject} was not seen to end"
    here = {runs.subject for runs in shown}
    if missing := sorted(subjects - here, key=as_shown):
        yield f"Not measured at this size: {_listed(missing)}"
    counts = {spread.count for spread in needs.values()}
    if counts == {1}:
        yield "One run each: how far runs lie apart is not known"
