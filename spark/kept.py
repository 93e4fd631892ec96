"""A table that is looked at several times and made once: on disk, or where somebody wants it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark import StorageLevel
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame

from spark.session import OutputExists

__all__ = ["kept"]


@contextmanager
def kept(table: DataFrame, path: str | None) -> Iterator[DataFrame]:
    """With a path the table is written there, as Parquet. Raises `OutputExists`."""
    if path is not None:
        yield _written(table, path)
        return
    persisted = table.persist(StorageLevel.DISK_ONLY)
    try:
        yield persisted
    finally:
        persisted.unpersist()


def _written(table: DataFrame, path: str) -> DataFrame:
    url = path if "://" in path else Path(path).absolute().as_uri()
    try:
        table.write.parquet(url)
    except AnalysisException as error:
        if "PATH_ALREADY_EXISTS" not in str(error):
            raise
        raise OutputExists(f"{path}: it is there already") from error
    return table.sparkSession.read.parquet(url)
