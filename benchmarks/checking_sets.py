"""A set of millions of operations as a table: adds, and some lists of all that has been added."""

from pathlib import Path

import msgspec
import numpy as np
import pyarrow.parquet as pq

from spark.schema import SCHEMA, filled
from spark.table_files import seal

__all__ = ["write_set"]

_CLIENTS = 10  # that add at once
_LISTS = 20
_GROUP_ROWS = 1_000_000


def write_set(operations: int, path: Path) -> None:
    """One element is lost between the last two lists."""
    rounds = operations // _CLIENTS
    turn, client = (each.ravel() for each in np.indices((rounds, _CLIENTS)))
    call = 2 * _CLIENTS * turn + client
    ret = call + _CLIENTS
    element = turn * _CLIENTS + client
    every = rounds // _LISTS
    is_list = (client == 0) & (turn % every == every - 1)
    encode = msgspec.msgpack.Encoder().encode
    added = element[~is_list]
    seen = np.searchsorted(ret[~is_list], call[is_list])
    results = {
        at: encode(added[1 if at == _LISTS - 1 else 0 : count].tolist())
        for at, count in enumerate(seen.tolist())
    }
    with pq.ParquetWriter(path, SCHEMA) as writer:
        for begin in range(0, len(call), _GROUP_ROWS):
            part = slice(begin, begin + _GROUP_ROWS)
            lists = is_list[part]
            first = int(is_list[:begin].sum())
            number = iter(range(first, _LISTS + 1))
            columns = {
                "run": "set",
                "workload": "set",
                "options": "{}",
                "object": "",
                "what": "operation",
                "process": client[part].astype(str),
                "f": np.where(lists, "read", "add"),
                "kind": "ok",
                "step": 0,
                **dict.fromkeys(("call", "call_ns", "invoked"), call[part]),
                **dict.fromkeys(("ret", "ret_ns", "completed"), ret[part]),
                "argument": [
                    None if is_read else encode(int(each))
                    for each, is_read in zip(element[part], lists, strict=True)
                ],
                "result": [results.get(next(number)) if is_read else None for is_read in lists],
            }
            count = len(lists)
            table = filled(SCHEMA, count, columns)
            writer.write_table(table, row_group_size=count)
    seal(path)
