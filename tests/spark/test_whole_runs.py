"""What is judged run by run says the same from a table: transactions, banks, counters, accounts."""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from jepsen_like.checkers import judge
from jepsen_like.checkers.micro_operations import WRITE_OF
from jepsen_like.checkers.verdict import Outcome
from jepsen_like.histories.history import TRUST_FAILURES, Kind
from tests.agreement.transactions import played
from tests.jepsen_like.checkers import test_accounts, test_every_anomaly
from tests.jepsen_like.checkers import test_read_write_transactions as transactions
from tests.jepsen_like.play import Play
from tests.spark.agreement import same
from tests.spark.tables import table_of
from tests.spark.told import told

PLAYED: list[tuple[str, Callable[[Play], None], dict[str, Any]]] = [
    *(("append", plant, {}) for _, plant in transactions.PLANTED),
    *(("append", plant, {"isolation": "read-committed"}) for _, plant in transactions.PLANTED),
    *((workload, plant, test_accounts.BANK) for _, workload, plant in test_accounts.PLANTED),
    *(
        (workload, test_every_anomaly.HONEST[workload], {})
        for workload in ("append", "bank", "counter", "rw-register", "total-queue")
    ),
]


@pytest.mark.parametrize(("workload", "plant", "options"), PLAYED)
def test_a_table_is_judged_as_the_history(
    workload: str, plant: Callable[[Play], None], options: dict[str, Any]
) -> None:
    play = Play(workload=workload, options=dict(options))
    plant(play)
    assert same(told(table_of(play.history, "r"))) == same(judge(play.history))


@pytest.mark.parametrize("workload", WRITE_OF)
def test_transactions_are_judged_as_without_a_table(workload: str) -> None:
    for seed in range(15):
        history = played(workload, Random(seed))
        assert same(told(table_of(history, "r"))) == same(judge(history)), f"seed {seed}"


@pytest.mark.parametrize("trusts", [True, False])
def test_trusted_failures_are_counted_from_a_table(trusts: bool) -> None:
    play = Play(workload="register", options={TRUST_FAILURES: trusts})
    play.invoke(0, "write", ["k", 1])
    play.line(Kind.FAIL, 0, "write", ["k", 1], error="timed out")
    history = play.history
    assert judge(history).outcome is Outcome.UNDECIDED
    assert same(told(table_of(history, "r"))) == same(judge(history))
    play.did(1, "read", ["k", None], ["k", None])
    assert judge(history).outcome is (Outcome.VALID if trusts else Outcome.UNDECIDED)
    assert same(told(table_of(history, "r"))) == same(judge(history))
