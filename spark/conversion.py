"""Files of histories become rows of the table where Spark reads them: on its workers.

    from quorumlab import convert

    convert(session, ["hdfs:///runs/*/history.msgpack"]).write.parquet("…")

The session may be a classic one or one of Spark Connect. Paths are Spark's: of any store, with
patterns, or directories of nothing but histories. A file is read as a whole, which is 2 GB at most,
and converted in blocks. The rows come as they are read, not sorted; the run is the file's path.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import pyarrow as pa

from jepsen_like.histories.history import MalformedHistory, Value
from jepsen_like.histories.interchange import stream_as
from spark.rows import tables, with_run
from spark.schema import SCHEMA, struct_of
from spark.shipping import ship

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["convert"]

_TABLE = ".parquet"


def convert(
    session: "SparkSession",
    paths: Sequence[str],
    model: str | None = None,
    options: Mapping[str, Value] | None = None,
) -> "DataFrame":
    """The histories in these files, as a table that is made when it is used.

    A path that ends with ".parquet" is such a table already. `model`: what the histories shall be
    judged as, whatever they say; `options`: what holds for them beside what they say, such as
    `{"isolation": "serializable"}`, `{"initial": [0]}` or `{"trust_failures": True}`. A file that
    is damaged, or no history, fails the job and is named.
    """
    struct = struct_of(SCHEMA)
    made = [path for path in paths if path.endswith(_TABLE)]
    written = [path for path in paths if not path.endswith(_TABLE)]
    if not written:
        return session.read.schema(struct).parquet(*made)
    ship(session)
    files = session.read.format("binaryFile").load(written).select("path", "content")
    rows = files.mapInArrow(_converting(model, options or {}), struct)
    return rows.unionByName(session.read.schema(struct).parquet(*made)) if made else rows


def _converting(
    model: str | None, options: Mapping[str, Value]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def convert_files(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for file in range(len(batch)):
                path, content = (batch[name][file] for name in ("path", "content"))
                yield from _converted(path.as_py(), content.as_buffer(), model, options)

    return convert_files


def _converted(
    path: str, content: pa.Buffer, model: str | None, options: Mapping[str, Value]
) -> Iterator[pa.RecordBatch]:
    try:
        suffix = PurePosixPath(path).suffix
        header, blocks = stream_as(BytesIO(content), suffix, model)
        header = replace(header, options={**header.options, **options})
        for table in tables(header, blocks):
            yield from with_run(table, header, path).to_batches()
    except (MalformedHistory, OverflowError, RecursionError, UnicodeEncodeError) as error:
        raise MalformedHistory(f"{path}: {error}") from error
