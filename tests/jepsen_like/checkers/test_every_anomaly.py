"""One table of all rules: each is planted somewhere, and found there by its name."""

from collections.abc import Callable, Sequence

import pytest

from jepsen_like.checkers import judge
from jepsen_like.checkers.anomalies import ANOMALIES
from jepsen_like.checkers.judges import JUDGED
from jepsen_like.checkers.verdict import Outcome
from jepsen_like.histories.history import Kind
from tests.jepsen_like.checkers import (
    test_accounts,
    test_consumer_groups,
    test_kafka_log,
    test_lint,
    test_observations,
    test_producer_sequences,
    test_queues,
    test_read_write_transactions,
    test_registers,
    test_sets,
    test_transactions,
)
from tests.jepsen_like.play import Play

CYCLES = ("G-nonadjacent", "G2-item")  # with an order: longer G-single, in what is planted
# Where a test plants each kind of violation, and looks for it.
TABLES: dict[str, Sequence[tuple[str, object]]] = {
    "logs": test_kafka_log.PLANTED,
    "transactions": [(rule, plant) for rule, _, plant in test_transactions.CYCLES],
    "reads and writes": [
        *test_read_write_transactions.PLANTED,
        *((f"{name}-{order}", None) for name in CYCLES for order in ("process", "realtime")),
    ],
    "accounts": [(rule, plant) for rule, _, plant in test_accounts.PLANTED],
    "producers": test_producer_sequences.PLANTED,
    "consumer groups": test_consumer_groups.PLANTED,
    "registers": [*test_registers.PLANTED, *test_registers.PLANTED_IN_VERSIONS],
    "queues": test_queues.PLANTED,
    "sets": test_sets.PLANTED,
    "nodes": test_observations.PLANTED,
    "histories": test_lint.PLANTED,
}
# The names of facts and of Jepsen's kafka workload; what is allowed is counted.
OF_JEPSEN = {
    *("duplicate", "inconsistent-offsets", "lost-write", "unseen", "G1a", "precommitted-read"),
    *("poll-skip", "nonmonotonic-poll", "nonmonotonic-send"),
    *("int-poll-skip", "int-nonmonotonic-poll", "int-nonmonotonic-send"),
    *(f"{name}{order}" for name in ("G0", "G1c") for order in ("", "-process", "-realtime")),
}
# Not by a checker: a run says so of itself.
ELSEWHERE = {"not-live-again", "not-readable"}


def test_every_rule_is_planted_and_every_planted_rule_has_a_sentence() -> None:
    planted = {rule for table in TABLES.values() for rule, _ in table}
    assert planted == set(ANOMALIES) - ELSEWHERE


def test_every_anomaly_of_jepsen_is_planted() -> None:
    logs = {rule for name in ("logs", "transactions") for rule, _ in TABLES[name]}
    assert logs >= OF_JEPSEN


def honest_log(play: Play) -> None:
    play.send(0, "k-0", 1, 0)
    play.invoke(1, "send", [["send", "k-0", 2]])
    play.info(1)
    play.read_all(9, {"k-0": [[0, 1], [1, 2]]})


def honest_names(play: Play) -> None:
    play.did(0, "add", "a", None)
    play.invoke(1, "remove", "a")
    play.info(1)
    play.did(2, "read", None, [])


def honest_register(play: Play) -> None:
    play.did(0, "write", ["k", 1], None)
    play.invoke(1, "write", ["k", 2])
    play.info(1)
    for value in (1, 2):
        play.did(2, "read", ["k", None], ["k", value])


def honest_strings(play: Play) -> None:
    play.did(0, "put", ["k", "a"], None)
    play.invoke(1, "append", ["k", "b"])
    play.info(1)
    for value in ("a", "ab"):
        play.did(2, "get", ["k", None], ["k", value])


def honest_queue(play: Play) -> None:
    play.did(0, "enqueue", ["k", 1], None)
    play.did(0, "enqueue", ["k", 2], None)
    play.invoke(1, "dequeue", ["k", None])
    play.info(1)
    play.did(2, "dequeue", ["k", None], ["k", 2])


def honest_transactions(write: str) -> Callable[[Play], None]:
    def play_them(play: Play) -> None:
        play.did(0, "txn", [[write, "x", 1]], [[write, "x", 1]])
        play.invoke(1, "txn", [[write, "x", 2]])
        play.info(1)
        for value in (1, 2):
            read = list(range(1, value + 1)) if write == "append" else value
            play.did(2, "txn", [["r", "x", None]], [["r", "x", read]])

    return play_them


def honest_bank(play: Play) -> None:
    play.did(0, "read", None, {"a": 5, "b": 0})
    play.invoke(1, "transfer", {"from": "a", "to": "b", "amount": 2})
    play.info(1)
    play.did(0, "read", None, {"a": 3, "b": 2})


def honest_counter(play: Play) -> None:
    play.did(0, "add", 3, None)
    play.invoke(1, "add", 2)
    play.info(1)
    for value in (3, 5):
        play.did(2, "read", None, value)


def honest_total_queue(play: Play) -> None:
    play.did(0, "enqueue", 1, None)
    play.invoke(1, "enqueue", 2)
    play.info(1)
    play.did(2, "dequeue", None, 2)
    play.did(2, "drain", None, [1])


def honest_nodes(play: Play) -> None:
    for node in ("node-1", "node-2"):
        play.line(Kind.OK, node, "observe", {"k-0": [1, 1, 1, [1, 2]]})


# Of each workload one that must pass, with an operation of unknown end where there are any.
HONEST: dict[str, Callable[[Play], None]] = {
    **dict.fromkeys(("admin", "kafka", "log", "transactions"), honest_log),
    **dict.fromkeys(("cas-register", "partition-epoch", "register"), honest_register),
    "kv": honest_strings,
    "observe": honest_nodes,
    "append": honest_transactions("append"),
    "bank": honest_bank,
    "counter": honest_counter,
    "rw-register": honest_transactions("w"),
    "total-queue": honest_total_queue,
    "queue": honest_queue,
    "set": honest_names,
}


@pytest.mark.parametrize("workload", sorted(JUDGED))
def test_honest_history_passes(workload: str) -> None:
    play = Play(workload=workload)
    HONEST[workload](play)
    assert judge(play.history).outcome is Outcome.VALID
