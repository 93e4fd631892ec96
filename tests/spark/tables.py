"""Tables of small histories, made at once: many runs in one file."""

from collections.abc import Mapping
from itertools import count
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from jepsen_like.histories.history import History, Lines
from spark.rows import tables, with_run
from spark.schema import ORDER, SCHEMA
from spark.table_files import seal

__all__ = ["table_of", "write_table"]

GROUP_ROWS = 2000


def table_of(history: History, run: str) -> pa.Table:
    found = pa.concat_tables(tables(history.header, [Lines.of(history.ops)]))
    table = with_run(found, history.header, run)
    return table.sort_by([(name, "ascending") for name in ORDER])


def write_table(histories: Mapping[str, History], path: Path) -> None:
    """Runs by their names; each is in one group of rows."""
    waiting: list[pa.Table] = []
    with pq.ParquetWriter(path, SCHEMA) as writer:
        for run, left in zip(histories, count(len(histories) - 1, -1), strict=False):
            waiting.append(table_of(histories[run], run))
            held = sum(map(len, waiting))
            if held >= GROUP_ROWS or not left:
                writer.write_table(pa.concat_tables(waiting), row_group_size=max(1, held))
                waiting.clear()
    seal(path)
