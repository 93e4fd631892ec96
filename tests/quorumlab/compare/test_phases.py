"""When a step is done: counted from milestones, for every broker that lives, never guessed."""

from quorumlab.compare.node_measurements import Milestone, milestone_of, phases_of

MS = 1_000_000


def at(ms: int, step: str, count: int = 0, *, node: int = 101, **about: object) -> Milestone:
    return Milestone(node=node, at_ns=ms * MS, step=step, count=count, about=about)


def test_step_is_done_when_all_partitions_are_counted() -> None:
    told = [at(30, "decided", 2), at(20, "decided", 4), at(40, "decided", 4), at(50, "decided", 9)]
    phase = phases_of(told, fault_ns=10 * MS, partitions=10, brokers=[])["decided"]
    assert (phase.first_ms, phase.done_ms, phase.count) == (10.0, 30.0, 19)


def test_step_that_has_not_counted_to_the_end_has_no_time() -> None:
    phase = phases_of([at(20, "persisted", 4)], fault_ns=0, partitions=5, brokers=[])["persisted"]
    assert (phase.first_ms, phase.done_ms) == (20.0, None)


def test_what_was_before_the_fault_is_not_its_consequence() -> None:
    told = [at(5, "decided", 7), at(20, "decided", 7)]
    phases = phases_of(told, fault_ns=10 * MS, partitions=7, brokers=[])
    assert phases["decided"].done_ms == 10.0


def test_step_without_milestones_is_not_there() -> None:
    assert phases_of([], fault_ns=0, partitions=1, brokers=[1]) == {}


def test_milestones_of_another_cause_are_about_something_else() -> None:
    told = [
        at(2, "detected", what="isr"),
        at(3, "detected", what="broker-failed"),
        at(4, "decided", 5, what="isr"),
        at(5, "decided", 5, what="broker-failed"),
        at(6, "applied", 5, node=1, broker=1),
    ]
    phases = phases_of(told, fault_ns=0, partitions=5, brokers=[1], causes=("broker-failed",))
    assert {step: phase.done_ms for step, phase in phases.items()} == {
        "detected": 3.0,
        "decided": 5.0,
        "applied": 6.0,
    }


def test_applied_is_done_when_every_living_broker_has_applied_all() -> None:
    told = [
        at(10, "applied", 5, node=1, broker=1),
        at(11, "applied", 2, node=2, broker=2),
        at(15, "applied", 3, node=2, broker=2),
        at(90, "applied", 5, node=3, broker=3),
    ]
    phases = phases_of(told, fault_ns=0, partitions=5, brokers=[1, 2])
    assert phases["applied"].done_ms == 15.0


def test_applied_is_not_done_while_one_broker_has_said_nothing() -> None:
    told = [at(10, "applied", 5, node=1, broker=1)]
    assert phases_of(told, fault_ns=0, partitions=5, brokers=[1, 2])["applied"].done_ms is None


def test_failure_of_another_broker_is_another_failure() -> None:
    told = [
        at(3, "detected", what="broker-failed", id=2),
        at(5, "decided", 9, what="broker-failed", id=3),
    ]
    phases = phases_of(told, fault_ns=0, partitions=5, brokers=[], failed_nodes=[3])
    assert phases.keys() == {"decided"}


def test_nothing_is_applied_before_something_is_decided() -> None:
    told = [at(2, "applied", 5, node=1), at(5, "decided", 5), at(7, "applied", 5, node=1)]
    assert phases_of(told, fault_ns=0, partitions=5, brokers=[1])["applied"].done_ms == 7.0


def test_command_that_spreads_the_word_makes_no_leader() -> None:
    told = [
        at(2, "applied", 5, node=1, command="UpdateMetadata"),
        at(7, "applied", 5, node=1, command="LeaderAndIsr"),
    ]
    assert phases_of(told, fault_ns=0, partitions=5, brokers=[1])["applied"].done_ms == 7.0


def test_last_one_ends_a_step_that_has_counted_less_but_enough() -> None:
    told = [at(2, "decided", 3), at(7, "decided", 1)]
    for at_least, done_ms in ((4, 7.0), (5, None)):
        phases = phases_of(told, fault_ns=0, partitions=9, brokers=[], at_least=at_least)
        assert phases["decided"].done_ms == done_ms


def test_log_tells_all_brokers_at_once() -> None:
    phases = phases_of([at(9, "told", 5)], fault_ns=0, partitions=5, brokers=[1, 2])
    assert phases["told"].done_ms == 9.0


def test_milestone_is_read_as_the_page_has_it() -> None:
    told = {"at_ns": 7, "step": "told", "count": 3, "about": {"broker": 2}}
    assert milestone_of(1, told) == Milestone(
        node=1, at_ns=7, step="told", count=3, about={"broker": 2}
    )


def test_who_detects_it_later_has_not_detected_it() -> None:
    told = [at(9, "detected", node=102), at(3, "detected", node=101)]
    assert phases_of(told, fault_ns=0, partitions=5, brokers=[])["detected"].done_ms == 3.0


def test_told_is_done_when_the_controller_has_told_every_living_broker() -> None:
    told = [at(4, "told", 5, broker=1), at(6, "told", 5, broker=3), at(8, "told", 5, broker=2)]
    for brokers, done_ms in (([1, 3], 6.0), ([1, 2], 8.0), ([1, 4], None)):
        phases = phases_of(told, fault_ns=0, partitions=5, brokers=brokers)
        assert phases["told"].done_ms == done_ms
