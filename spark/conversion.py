"""Files of histories become rows of the table where Spark reads them: on its workers.

    from quorumlab import convert

    convert(session, ["hdfs:///runs/*/history.msgpack"]).write.parquet("…")

The session may be a classic one or one of Spark Connect. Paths are Spark's, of any store, and may
be patterns: see `places`. Spark reads the files and hands them to the workers: no worker opens a
path. A file is read as a whole, which is 2 GB at most, and converted in blocks. The rows come as
they are read, not sorted; the run is the file's path.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from io import BytesIO
from pathlib import PurePosixPath

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from jepsen_like.histories.history import MalformedHistory, Value
from jepsen_like.histories.interchange import stream_as
from spark.library import selected
from spark.places import HISTORY, is_directory, is_file, is_table
from spark.rows import tables, with_run
from spark.schema import SCHEMA, ddl_of
from spark.shipping import ship

__all__ = ["convert", "files", "united"]


def convert(
    session: SparkSession,
    paths: Sequence[str],
    model: str | None = None,
    options: Mapping[str, Value] | None = None,
) -> DataFrame:
    """The histories in these files, as a table that is made when it is used.

    `model`: what the histories shall be judged as, whatever they say; `options`: what holds for
    them beside what they say, such as `{"isolation": "serializable"}`, `{"initial": [0]}` or
    `{"trust_failures": True}`. A file that is damaged, or no history, fails the job and is named.
    Raises `WrongSchema` for a table of something else.
    """
    made = [path for path in paths if is_table(path)]
    named = [path for path in paths if is_file(path)]
    below = [path for path in paths if is_directory(path)]
    found = [_tables(session, made)] if made else []
    if named or below:
        ship(session)
    if named:
        found.append(_rows(session.read.format("binaryFile").load(named), model, options))
    if below:
        found.append(_rows(files(session, below, HISTORY), model, options))
    return united(found)


def united(tables: Sequence[DataFrame]) -> DataFrame:
    """A column that only some of them have is null in the others."""
    return reduce(lambda one, other: one.unionByName(other, True), tables)


def files(
    session: SparkSession, directories: Sequence[str], name: str, *, is_deep: bool = True
) -> DataFrame:
    """Those of this name in the directories, and below. Only what is selected of them is read."""
    options = {"recursiveFileLookup": str(is_deep).lower(), "pathGlobFilter": name}
    return session.read.format("binaryFile").options(**options).load(list(directories))


def _tables(session: SparkSession, paths: Sequence[str]) -> DataFrame:
    """A page that is not what its checksum says fails the job. Raises `WrongSchema`."""
    checked = session.read.option("parquet.page.verify-checksum.enabled", "true")
    return selected(checked.parquet(*paths))


def _rows(content: DataFrame, model: str | None, options: Mapping[str, Value] | None) -> DataFrame:
    wanted = content.select("path", "content")
    return wanted.mapInArrow(_converting(model, options or {}), ddl_of(SCHEMA))


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
