"""A table that is looked at several times and made once: on disk, or where somebody wants it.

Where that is, Spark knows: `table:NAME` is a table of a catalog, anything else a path of any store.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark import StorageLevel
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame

from spark.places import CATALOG, is_in_store
from spark.session import OutputExists

__all__ = ["kept"]


@contextmanager
def kept(table: DataFrame, path: str | None) -> Iterator[DataFrame]:
    """With a path the table is written there, as Parquet; in a catalog as what that makes of it.

    Raises `OutputExists`.
    """
    if path is not None:
        yield _written(table, path)
        return
    persisted = table.persist(StorageLevel.DISK_ONLY)
    try:
        yield persisted
    finally:
        persisted.unpersist()


def _written(table: DataFrame, path: str) -> DataFrame:
    session, name = table.sparkSession, path.removeprefix(CATALOG)
    try:
        if path.startswith(CATALOG):
            table.write.saveAsTable(name)
            return session.table(name)
        url = path if is_in_store(path) else Path(path).absolute().as_uri()
        table.write.parquet(url)
        return session.read.parquet(url)
    except AnalysisException as error:
        if "ALREADY_EXISTS" not in str(error):
            raise
        raise OutputExists(f"{path}: it is there already") from error
