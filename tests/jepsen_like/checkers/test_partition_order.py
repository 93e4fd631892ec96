"""The verdict on a partition agrees with the truth, on small random logs of every kind."""

from collections.abc import Sequence
from random import Random

import pytest

from jepsen_like.checkers.kafka_log import linearizability
from jepsen_like.checkers.log_columns import LogColumns
from jepsen_like.checkers.operations import Operation, operations
from jepsen_like.history import Kind
from jepsen_like.verdict import Outcome
from tests.jepsen_like.checkers.oracle import is_linearizable
from tests.jepsen_like.play import Play

KEY = "log-0"
HISTORIES = 150
Log = tuple[int, ...]


def dense_step(log: Log, operation: Operation) -> Sequence[Log]:
    """An append-only log without holes: appends, and reads of its records or its end."""
    if operation.f == "send":
        value = operation.argument[0][2]
        if operation.kind is Kind.OK and operation.result[0][2][0] != len(log):
            return []
        return [(*log, value)]
    end = operation.extra.get("ends", {}).get(KEY, len(log))
    records = operation.result[0][1].get(KEY, [])
    is_true = all(at < len(log) and log[at] == value for at, value in records)
    return [log] if is_true and end == len(log) else []


def random_log(random: Random) -> Play:
    """A log that is served well, then perhaps spoilt: at least half of them are linearizable."""
    play = Play()
    log: list[int] = []
    free = list(range(3))
    pending: dict[int, int | None] = {}  # what is sent; None: a poll
    new_process = 10
    late: list[int] = []  # appends of unknown end that are still on their way
    for number in range(random.randint(6, 18)):
        if free and random.random() < 0.55:
            process = free.pop(random.randrange(len(free)))
            if random.random() < 0.6:
                play.invoke(process, "send", [["send", KEY, number]])
                pending[process] = number
            else:
                play.invoke(process, "poll", [["poll"]])
                pending[process] = None
        elif late and random.random() < 0.2:
            log.append(late.pop())
        elif pending:
            process = random.choice(sorted(pending))
            value = pending.pop(process)
            end_of(play, random, log, process, value)
            if play.ops[-1].kind is Kind.INFO and value is not None:
                late += [value] * (value not in log)
            free.append(process if play.ops[-1].kind is not Kind.INFO else new_process)
            new_process += 1
    return play


def end_of(play: Play, random: Random, log: list[int], process: int, value: int | None) -> None:
    lie = random.choice([-1, 1]) if random.random() < 0.3 else 0
    if value is None:
        read_end(play, random, log, process, lie)
    elif random.random() < 0.2:
        if random.random() < 0.5:
            log.append(value)
        play.info(process)
    elif random.random() < 0.1:
        play.fail(process)
    else:
        log.append(value)
        play.ok(process, [["send", KEY, [max(0, len(log) - 1 + lie), value]]])


def read_end(play: Play, random: Random, log: list[int], process: int, lie: int) -> None:
    if random.random() < 0.5:
        play.ok(process, [["poll", {}]], ends={KEY: max(0, len(log) + lie)})
    else:
        begin = random.randrange(len(log) + 1)
        records = [[at, log[at]] for at in range(begin, len(log))]
        if lie and records:
            records[-1][0] += 1
        play.ok(process, [["poll", {KEY: records}]])


@pytest.mark.parametrize("seed", range(4))
def test_dense_log_is_judged_as_by_trying_all_orders(seed: int) -> None:
    outcomes = {Outcome.VALID: 0, Outcome.VIOLATED: 0}
    for number in range(HISTORIES):
        play = random_log(Random(f"{seed}-{number}"))
        paired = operations(play.ops)
        verdict = linearizability(LogColumns.of(paired), dense=True)
        able = [each for each in paired if each.kind is not Kind.FAIL and not is_blind(each)]
        expected = is_linearizable(able, (), dense_step)
        assert (verdict.outcome is Outcome.VALID) == expected, (seed, number, verdict, play.ops)
        outcomes[verdict.outcome] += 1
    assert min(outcomes.values()) > HISTORIES // 10, outcomes


def is_blind(operation: Operation) -> bool:
    return operation.kind is Kind.INFO and operation.f == "poll"


def test_reader_behind_an_acknowledged_offset_sees_no_earlier_end() -> None:
    play = Play()
    play.send(0, KEY, 1, 0)
    play.poll(1, {}, ends={KEY: 0})
    assert linearizability(LogColumns.of(operations(play.ops))).outcome is Outcome.VIOLATED


def test_hole_must_be_filled_only_where_there_can_be_none() -> None:
    play = Play()
    play.send(0, KEY, 1, 1)
    log = LogColumns.of(operations(play.ops))
    assert linearizability(log).outcome is Outcome.VALID
    assert linearizability(log, dense=True).outcome is Outcome.VIOLATED


def test_acknowledgement_without_offset_leaves_a_dense_log_undecided() -> None:
    play = Play()
    play.send(0, KEY, 1, None)
    log = LogColumns.of(operations(play.ops))
    assert linearizability(log, dense=True).outcome is Outcome.UNDECIDED
