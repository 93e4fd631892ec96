"""Every workload: what it wishes depends on the seed and the answers, on nothing else."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from jepsen_like.histories.history import Kind, Op, Value
from jepsen_like.workloads.registry import WORKLOADS
from jepsen_like.workloads.workload import (
    UNTIL_CAUGHT_UP,
    Wish,
    Workload,
    WorkloadOptions,
    is_to_be_repeated,
)

OPTIONS = WorkloadOptions(seed=7)
ROUNDS = 400
Answer = Callable[[Wish], tuple[Kind, Value]]


def ok(wish: Wish) -> tuple[Kind, Value]:
    return Kind.OK, wish.value


class Log:
    """Each poll tells one record more of a key."""

    def __init__(self) -> None:
        self.polls = 0

    def answer(self, wish: Wish) -> tuple[Kind, Value]:
        if wish.f != "poll":
            return Kind.OK, wish.value
        self.polls += 1
        return Kind.OK, [["poll", {f"chaos-{self.polls % OPTIONS.partitions}": [[self.polls, 0]]}]]


def played(workload: Workload, answer: Answer = ok) -> Iterator[tuple[int, Wish]]:
    """All processes in turn, one operation each, on a clock that never waits."""
    index = 0
    for now_ms in range(0, ROUNDS * 1000, 1000):
        for process in range(workload.processes):
            wish = workload.next(process, now_ms)
            if wish is None:
                continue
            yield process, wish
            kind, value = answer(wish)
            index += 1
            workload.completed(
                Op(
                    index=index,
                    time_ns=index,
                    kind=kind,
                    process=process,
                    f=wish.f,
                    value=value,
                    extra=wish.extra,
                )
            )


@pytest.mark.parametrize("name", WORKLOADS)
def test_same_seed_and_same_answers_give_the_same_wishes(name: str) -> None:
    first, second = (list(played(WORKLOADS[name](OPTIONS))) for _ in range(2))
    assert first == second
    other = list(played(WORKLOADS[name](replace(OPTIONS, seed=8))))
    assert first != other


@pytest.mark.parametrize("name", WORKLOADS)
def test_processes_draw_differently(name: str) -> None:
    wishes: dict[int, list[str]] = {}
    for process, wish in played(WORKLOADS[name](OPTIONS)):
        key = wish.value[0] if wish.f == "write" else None
        wishes.setdefault(process, []).append(f"{wish.f} {key}")
    assert len({tuple(each) for each in wishes.values()}) == len(wishes)


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_process_pauses_between_its_operations(name: str) -> None:
    workload = WORKLOADS[name](OPTIONS)
    asked = [workload.next(0, now_ms) for now_ms in range(0, 20_000, 1)]
    wishes = [wish for wish in asked if wish is not None]
    assert 5 < len(wishes) < 20_000 / OPTIONS.pause_ms * 1.5


@pytest.mark.parametrize(
    ("name", "functions"),
    [
        ("log", {"assign", "send", "poll"}),
        ("observe", {"assign", "send", "poll"}),
        ("kafka", {"assign", "send", "poll", "join", "commit", "committed-stale"}),
        ("register", {"write", "read", "read-stale"}),
        ("cas-register", {"write", "read", "cas"}),
        ("set", {"add", "remove", "read-stale"}),
        ("partition-epoch", {"write"}),
        (
            "admin",
            {"assign", "send", "poll", "reassign", "elect", "remove-voter", "add-voter"},
        ),
    ],
)
def test_every_operation_of_a_workload_is_wished_for(name: str, functions: set[str]) -> None:
    counted = Counter(wish.f for _, wish in played(WORKLOADS[name](OPTIONS), Log().answer))
    assert set(counted) == functions


@pytest.mark.parametrize("name", ["log", "register", "cas-register", "partition-epoch"])
def test_a_value_is_written_once(name: str) -> None:
    written = []
    for _, wish in played(WORKLOADS[name](OPTIONS)):
        match wish:
            case Wish(f="send", value=[["send", _, value]]):
                written.append(value)
            case Wish(f="write", value=[_, value]) | Wish(f="cas", value=[_, [_, value]]):
                written.append(value)
    assert len(written) > ROUNDS
    assert len(set(written)) == len(written)


def test_a_process_of_the_log_is_assigned_before_anything_else() -> None:
    first: dict[int, str] = {}
    for process, wish in played(WORKLOADS["log"](OPTIONS)):
        first.setdefault(process, wish.f)
    assert set(first.values()) == {"assign"}


def test_fresh_processes_read_all_of_the_log_from_zero_until_they_caught_up() -> None:
    log = WORKLOADS["log"](OPTIONS)
    finals = [log.final(process) for process in range(12, 12 + log.processes)]
    reading = [wishes for wishes in finals if wishes]
    assert len(reading) == 2
    for assign, poll in reading:
        assert assign.value == [f"chaos-{partition}" for partition in range(OPTIONS.partitions)]
        assert assign.extra == {"seek": "beginning"}
        assert poll.extra == UNTIL_CAUGHT_UP


@pytest.mark.parametrize(
    ("kind", "extra", "again"),
    [
        (Kind.OK, {}, True),
        (Kind.OK, {"caught_up": False}, True),
        (Kind.OK, {"caught_up": True}, False),
        (Kind.FAIL, {"caught_up": True}, True),
    ],
)
def test_a_final_poll_is_repeated_until_it_has_caught_up(
    kind: Kind, extra: dict[str, Value], again: bool
) -> None:
    wish = Wish(f="poll", value=[["poll"]], extra=UNTIL_CAUGHT_UP)
    ended = Op(index=1, time_ns=1, kind=kind, process=0, f="poll", extra=extra)
    assert is_to_be_repeated(wish, ended) is again
    assert not is_to_be_repeated(Wish(f="poll"), ended)


def test_a_compare_and_set_expects_what_was_seen_last() -> None:
    registers = WORKLOADS["cas-register"](OPTIONS)
    seen = Op(
        index=1, time_ns=1, kind=Kind.FAIL, process=0, f="cas", value=["x", [3, 4]],
        extra={"seen": 99},
    )  # fmt: skip
    registers.completed(seen)
    expected = [
        wish.value[1][0]
        for _, wish in played(registers, lambda wish: (Kind.INFO, wish.value))
        if wish.f == "cas" and wish.value[0] == "x"
    ]
    assert set(expected) == {99}


def test_a_topic_is_removed_once_and_only_if_it_was_surely_added() -> None:
    def added_or_not(wish: Wish) -> tuple[Kind, Value]:
        number = int(wish.value.rpartition("-")[2]) if isinstance(wish.value, str) else 0
        return (Kind.OK if number % 2 else Kind.INFO), wish.value

    wishes = list(played(WORKLOADS["set"](OPTIONS), added_or_not))
    removed = [wish.value for _, wish in wishes if wish.f == "remove"]
    assert removed
    assert len(set(removed)) == len(removed)
    assert all(int(name.rpartition("-")[2]) % 2 for name in removed)


def test_stale_reads_ask_one_node_a_process() -> None:
    asked: dict[int, set[int]] = {}
    for process, wish in played(WORKLOADS["register"](OPTIONS)):
        if wish.f == "read-stale":
            asked.setdefault(process, set()).add(wish.extra["node"])
    assert all(len(nodes) == 1 for nodes in asked.values())
    assert set().union(*asked.values()) == set(OPTIONS.brokers)


def test_the_planted_mistake_calls_ordinary_reads_linearizable() -> None:
    planted = WORKLOADS["register"](replace(OPTIONS, stale_reads_as_reads=True))
    reads = [wish for _, wish in played(planted) if wish.f != "write"]
    assert {wish.f for wish in reads} == {"read"}
    assert all("node" in wish.extra for wish in reads)


def test_an_operator_removes_a_voter_only_when_the_last_one_is_back() -> None:
    changes = [
        (wish.f, wish.value)
        for _, wish in played(WORKLOADS["admin"](OPTIONS))
        if wish.f.endswith("voter")
    ]
    assert len(changes) > 10
    for (before, node), (after, other) in itertools.pairwise(changes):
        if before == "remove-voter":
            assert (after, other) == ("add-voter", node)
        else:
            assert after == "remove-voter"


def test_with_few_replicas_partitions_can_move() -> None:
    [topic] = WORKLOADS["admin"](OPTIONS).topics
    assert topic.replication_factor == 2
    assert topic.configs == {"min.insync.replicas": "1"}


def test_no_offset_is_committed_twice_or_below_another_of_its_group() -> None:
    last: dict[tuple[str, str], int] = {}
    owners: dict[tuple[str, str], set[int]] = {}
    for process, wish in played(WORKLOADS["kafka"](OPTIONS), Log().answer):
        for key, offset in wish.value.items() if wish.f == "commit" else ():
            place = wish.extra["group"], key
            assert offset > last.get(place, 0)
            last[place] = offset
            owners.setdefault(place, set()).add(process)
    assert len(last) == 2 * OPTIONS.partitions
    assert all(len(each) == 1 for each in owners.values())


def test_member_that_could_not_commit_joins_again() -> None:
    log = Log()

    def answer(wish: Wish) -> tuple[Kind, Value]:
        return (Kind.FAIL, wish.value) if wish.f == "commit" else log.answer(wish)

    wishes: dict[int, list[str]] = {}
    for process, wish in played(WORKLOADS["kafka"](OPTIONS), answer):
        if "group" in wish.extra:
            wishes.setdefault(process, []).append(wish.f)
    for own in wishes.values():
        assert own[0] == "join"
        assert all(
            after == "join" for before, after in itertools.pairwise(own) if before == "commit"
        )


def test_only_keys_of_which_something_is_committed_are_resumed_at_the_end() -> None:
    kafka = WORKLOADS["kafka"](OPTIONS)
    assert [wish.f for wish in kafka.final(12)] == ["committed", "assign", "poll"]
    list(played(kafka, Log().answer))
    looked, resumed, polled, *_ = kafka.final(12)
    assert (looked.f, resumed.extra["seek"], polled.extra) == (
        "committed",
        "committed",
        UNTIL_CAUGHT_UP,
    )
    assert len(resumed.value) == OPTIONS.partitions
