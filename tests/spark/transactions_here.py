"""Transactions in pieces, by what is shipped, with rows that move in this process."""

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from jepsen_like.checkers.isolation_levels import STRICT
from jepsen_like.checkers.verdict import Verdict
from jepsen_like.histories.history import History
from spark.distributed_transactions import Transactions
from spark.transaction_keys import OPERATIONS, KeyJudge
from spark.transaction_ties import TIES_MAX
from tests.spark.moved_here import Here
from tests.spark.tables import table_of

__all__ = ["MB", "in_pieces", "runs_in_pieces"]

MB = 1 << 20  # no limit
_IN_SPAN = 1_000_000


def in_pieces(history: History, size: int, in_span: int = _IN_SPAN) -> Verdict:
    return runs_in_pieces({"run": history}, size, in_span)["run"]


def runs_in_pieces(
    histories: Mapping[str, History], size: int, in_span: int = _IN_SPAN, ties: int = TIES_MAX
) -> dict[str, Verdict]:
    """By runs, of one workload and level."""
    header = next(iter(histories.values())).header
    level = str(header.options.get("isolation", STRICT))
    table = pa.concat_tables([table_of(history, run) for run, history in histories.items()])
    done = table.filter(pc.equal(table.column("what"), "operation")).select(OPERATIONS)
    keys = KeyJudge(workload=header.workload, level=level, mb=MB)
    judge = Transactions(keys=keys, moves=Here(size=size), in_span=in_span, ties=ties)
    return judge.verdicts([done])
