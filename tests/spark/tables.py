"""Tables of small histories, made at once: many runs in one file."""

import json
from collections.abc import Mapping
from itertools import count
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from jepsen_like.histories.history import History
from spark.rows import rows
from spark.schema import ORDER, SCHEMA, Row
from spark.table_files import seal

__all__ = ["table_of", "write_table"]

GROUP_ROWS = 2000


def table_of(history: History, run: str) -> pa.Table:
    found = list(rows(history.header.workload, history.ops))
    columns = list(zip(*found, strict=True)) or [()] * len(Row._fields)
    told = [run, history.header.workload, json.dumps(dict(history.header.options), sort_keys=True)]
    arrays = [
        *(pa.repeat(pa.scalar(each), len(found)) for each in told),
        *(
            pa.array(column, SCHEMA.field(name).type)
            for name, column in zip(Row._fields, columns, strict=True)
        ),
    ]
    table = pa.Table.from_arrays(arrays, schema=SCHEMA)
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
