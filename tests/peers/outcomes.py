"""How the tests of a suite have ended: lines of text, one a test, compared by server."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Outcome", "differences", "read", "settled", "summary", "write"]


@dataclass(frozen=True, slots=True, order=True)
class Outcome:
    test: str
    state: str  # passed, failed, or skipped
    reason: str = ""

    def line(self) -> str:
        return f"{self.state}\t{self.test}\t{self.reason}".rstrip()


def write(path: Path, outcomes: Iterable[Outcome]) -> None:
    path.write_text("".join(f"{outcome.line()}\n" for outcome in sorted(outcomes)))


def read(path: Path) -> dict[str, Outcome]:
    rows = (line.split("\t") for line in path.read_text().splitlines())
    return {test: Outcome(test, state, *reason) for state, test, *reason in rows}


def summary(outcomes: Iterable[Outcome]) -> str:
    counts = Counter(outcome.state for outcome in outcomes)
    return ", ".join(f"{counts[state]} {state}" for state in ("passed", "failed", "skipped"))


def settled(first: Mapping[str, Outcome], again: Mapping[str, Outcome]) -> Iterator[Outcome]:
    """How each test has ended, by its two runs; the second is told as such."""
    for test, outcome in first.items():
        second = again.get(test)
        if second is not None and second.state == "passed":
            yield Outcome(test, "passed", f"at the second time; before: {outcome.reason}")
        else:
            yield outcome


def differences(
    ours: Mapping[str, Outcome], kafka: Mapping[str, Outcome]
) -> list[tuple[Outcome, Outcome]]:
    """The tests that came out otherwise, of those that were run on both."""
    both = sorted(ours.keys() & kafka.keys())
    return [(ours[test], kafka[test]) for test in both if ours[test].state != kafka[test].state]
