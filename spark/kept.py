"""Tables that are looked at several times and made once: on disk, or where somebody wants them.

Where that is, Spark knows: `table:NAME` is a table of a catalog, anything else a path of any store.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark import StorageLevel
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame

from spark.places import CATALOG, is_in_store
from spark.session import OutputExists

__all__ = ["Keep", "keeping", "kept"]

Keep = Callable[[DataFrame], DataFrame]


@contextmanager
def keeping() -> Iterator[Keep]:
    """Tables given to `keep` are on the workers' disks until this ends."""
    frames: list[DataFrame] = []

    def keep(frame: DataFrame) -> DataFrame:
        frames.append(frame.persist(StorageLevel.DISK_ONLY))
        return frames[-1]

    try:
        yield keep
    finally:
        for frame in frames:
            frame.unpersist()


@contextmanager
def kept(table: DataFrame, path: str | None) -> Iterator[DataFrame]:
    """With a path the table is written there, as Parquet; in a catalog as what that makes of it.

    Raises `OutputExists`.
    """
    if path is not None:
        yield _written(table, path)
        return
    with keeping() as keep:
        yield keep(table)


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
