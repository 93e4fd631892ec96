"""Transactions in pieces on Spark are judged as whole ones. Many: `test_transaction_pieces`."""

from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from jepsen_like.checkers import judge
from jepsen_like.checkers.isolation_levels import STRICT
from jepsen_like.checkers.micro_operations import WRITE_OF
from jepsen_like.checkers.verdict import Outcome
from spark.checks import read_table
from spark.distributed import Pieces
from spark.distributed_transactions import transactions_in_pieces
from spark.plan import Thresholds, plan
from spark.shipping import ship
from tests.agreement.transactions import played
from tests.spark.tables import write_table
from tests.spark.test_transaction_pieces import LIES, LONG

pytestmark = [pytest.mark.slow, pytest.mark.extra]

OF_EACH = 12
CUT = Pieces(count=4, mb=2048, is_idempotent=True)
SMALL = Thresholds(by_operation=0)


@pytest.mark.parametrize("workload", WRITE_OF)
def test_transactions_in_pieces_are_judged_as_whole_ones(
    spark: SparkSession, tmp_path: Path, workload: str
) -> None:
    """An order of a register that explains all is looked for in another way."""
    made = (played(workload, Random(f"on Spark {n}"), LONG, LIES) for n in range(OF_EACH))
    runs = {str(number): history for number, history in enumerate(made)}
    write_table(runs, tmp_path / "table")
    ship(spark)
    table = read_table(spark, [tmp_path / "table"])
    (alike,) = plan(table, SMALL).in_pieces()
    assert {(each.run, each.way, each.isolation) for each in alike} == {
        (run, "transactions", STRICT) for run in runs
    }
    outcomes = set()
    for run, verdict in transactions_in_pieces(table, workload, STRICT, CUT).items():
        expected = judge(runs[run])
        outcomes.add(verdict.outcome)
        if workload == "append" or Outcome.VIOLATED in (verdict.outcome, expected.outcome):
            assert verdict.outcome is expected.outcome, run
            assert set(verdict.findings) == set(expected.findings), run
    assert outcomes >= {Outcome.VALID, Outcome.VIOLATED}
