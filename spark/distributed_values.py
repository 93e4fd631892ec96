"""Sets and total queues too large for one worker, judged in pieces: how the rows move.

    operations --by value--> judged, and of a set handed on:
        elements that came or went while a list was open, and all lists  --by run--> in order

A set is right if each of its elements is, and if its lists can be put in order: see `set_orders`.
The order is judged by one worker. A total queue has accounts, which add up on the driver.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import msgspec
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jepsen_like.checkers.search import Budget
from jepsen_like.checkers.total_queues import Accounts, verdict_on
from jepsen_like.checkers.verdict import Verdict, compose
from spark import value_pieces
from spark.distributed import Pieces
from spark.kept import keeping
from spark.schema import ddl_of
from spark.value_pieces import OPERATIONS, PIECED, TOLD_OF_PIECES
from spark.verdicts import decoded

__all__ = ["sets_in_pieces", "told_together", "total_queues_in_pieces"]

_accounts = msgspec.msgpack.Decoder(Accounts).decode
_TOGETHER = "tag in ('list', 'placed')"  # what is judged for all elements of a set at once
Told = tuple[str, bytes]


def sets_in_pieces(table: DataFrame, cut: Pieces, budget: Budget) -> dict[str, Verdict]:
    """By runs. `table` has all rows of these sets, and no others. Valid elements are not named."""
    with keeping() as keep:
        told = keep(_by_value(table, cut, value_pieces.of_set(budget, cut.mb)))
        together = told.filter(_TOGETHER).repartition(cut.count, "run")
        judge = value_pieces.of_orders(budget, cut.mb)
        ordered = together.sortWithinPartitions("run").mapInArrow(judge, ddl_of(TOLD_OF_PIECES))
        mine = _of_runs(told.filter(f"not {_TOGETHER}").union(ordered))
    return {run: told_together(each) for run, each in mine.items()}


def total_queues_in_pieces(table: DataFrame, cut: Pieces) -> dict[str, Verdict]:
    """By runs. `table` has all rows of these queues, and no others."""
    told = _of_runs(_by_value(table, cut, value_pieces.of_queue(cut.mb)))
    return {run: told_together(each) for run, each in told.items()}


def _by_value(table: DataFrame, cut: Pieces, judge: Callable[[Any], Iterator[Any]]) -> DataFrame:
    done = table.filter(F.col("what").isin("access", "operation")).select(*OPERATIONS)
    apart = done.mapInArrow(partial(value_pieces.cut, cut.count), ddl_of(PIECED))
    pieces = apart.repartition(cut.count, "run", "piece").sortWithinPartitions("run", "piece")
    return pieces.mapInArrow(judge, ddl_of(TOLD_OF_PIECES))


def _of_runs(told: DataFrame) -> dict[str, list[Told]]:
    of_runs = defaultdict(list)
    for row in told.collect():
        of_runs[row["run"]].append((row["tag"], bytes(row["told"])))
    return of_runs


def told_together(told: Sequence[Told]) -> Verdict:
    """What all pieces of a run say. Where one makes no sense, nothing is known of the run."""
    by_tag = defaultdict(list)
    for tag, each in told:
        by_tag[tag].append(each)
    if by_tag["nonsense"]:
        return Verdict.undecided(min(by_tag["nonsense"]).decode())
    verdicts = [decoded(each.decode()) for each in by_tag["verdict"]]
    if by_tag["accounts"] and not verdicts:
        verdicts = [verdict_on([_accounts(each) for each in by_tag["accounts"]])]
    return compose(verdicts)
