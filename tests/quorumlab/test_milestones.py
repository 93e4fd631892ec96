"""When milestones were reached: the clock at the edge."""

from collections.abc import Callable
from typing import Any

from controller.milestones import Cause, Occasion, Step, instant, milestone
from quorum.core.effects import Trace
from quorumlab.node_parts import Milestones


def clocked() -> tuple[Milestones, Callable[..., None]]:
    """A turn begins 5 ns before the trace that is taken at 10, 20, 30 ..."""
    times = iter(range(10, 10_000_000, 10))
    now = [0]

    def tick() -> int:
        now[0] = next(times)
        return now[0]

    made = Milestones(turn_began_ns=lambda: now[0] + 5, now_ns=tick)

    def take(*traces: Trace) -> None:
        for trace in traces:
            made.take(trace)

    return made, take


def reached(made: Milestones) -> list[tuple[str, int]]:
    told: Any = made.describe()["milestones"]
    return [(each["step"], each["at_ns"]) for each in told]


def role(previous: str, role: str) -> Trace:
    fields = {"role": role, "epoch": 7, "leader": None, "node": 1, "previous": previous}
    return Trace(event="role", fields=tuple(fields.items()))


def test_what_is_detected_happened_when_the_turn_began() -> None:
    made, take = clocked()
    take(milestone(Step.DETECTED, Cause(Occasion.TOPIC, "t")), milestone(Step.DECIDED, count=3))
    ((_, detected_ns), (_, decided_ns)) = reached(made)
    assert detected_ns % 10 == 5
    assert decided_ns % 10 == 0


def test_what_was_noticed_before_is_dated_back_once() -> None:
    made, take = clocked()
    take(instant("brokers"))
    take(milestone(Step.APPLIED), milestone(Step.DETECTED, since="brokers"))
    take(milestone(Step.DETECTED, since="brokers"))
    steps = reached(made)
    assert steps[1][1] < steps[0][1], "by the instant"
    assert steps[2][1] > steps[0][1], "which is used up"


def test_milestones_are_described_with_what_they_are_about() -> None:
    made, take = clocked()
    take(milestone(Step.TOLD, count=4, broker=2))
    told: Any = made.describe()
    assert told["now_ns"] > told["milestones"][0]["at_ns"]
    assert told["milestones"] == [
        {"at_ns": 10, "step": "told", "count": 4, "about": {"broker": 2}},
    ]


def test_voter_that_misses_its_leader_has_detected_the_failure_of_the_controller() -> None:
    made, take = clocked()
    take(role("follower", "prospective"), role("prospective", "candidate"))
    take(role("candidate", "leader"), role("leader", "resigned"), role("follower", "unattached"))
    assert [step for step, _ in reached(made)] == ["detected", "elected"]


def test_only_milestones_are_kept_from_the_log() -> None:
    made, _ = clocked()
    assert made.take(milestone(Step.READY))
    assert made.take(instant("decided"))
    assert not made.take(role("candidate", "leader"))
    assert not made.take(Trace(event="fenced", fields=(("broker", 1), ("records", 4))))


def test_the_oldest_are_forgotten() -> None:
    made, take = clocked()
    for count in range(50_001):
        take(milestone(Step.APPLIED, count=count))
    told: Any = made.describe()["milestones"]
    assert [told[0]["count"], told[-1]["count"], len(told)] == [1, 50_000, 50_000]
