"""Histories made for the benchmark are what they claim to be: right, or with one lie in them."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from benchmarks.checking_histories import Shape, write
from jepsen_like.checkers.verdict import Outcome
from spark.judging import Limits, judged

ANY = Limits(mb=4096)


@pytest.mark.parametrize("workload", ["log", "queue", "register"])
@pytest.mark.parametrize("keys", [1, 3])
@pytest.mark.parametrize("is_violated", [False, True])
def test_history_is_judged_as_it_was_made(
    workload: str, keys: int, is_violated: bool, tmp_path: Path
) -> None:
    shape = Shape(
        workload=workload,
        operations=3000,
        clients=5,
        keys=keys,
        unknown=0.02,
        is_violated=is_violated,
    )
    write(shape, tmp_path / "table")
    verdict = judged(pq.read_table(tmp_path / "table"), ANY)
    assert verdict.outcome is (Outcome.VIOLATED if is_violated else Outcome.VALID)
    broken = [name for name, outcome in verdict.objects.items() if outcome is not Outcome.VALID]
    assert len(broken) == is_violated
