"""The moves of rows that judging in pieces needs, as a Protocol: tests move them in this process.

A frame is many rows, in pieces. `OnSpark` does it on any session, classic or Connect.
"""

from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark.kept import Keep
from spark.pieces import Mapped
from spark.schema import ddl_of

__all__ = ["Frame", "Moves", "OnSpark"]

Frame = TypeVar("Frame")


class Moves(Protocol[Frame]):
    def mapped(self, frame: Frame, judge: Mapped, schema: pa.Schema) -> Frame:
        """What `judge` makes of each piece."""

    def together(self, frame: Frame, *columns: str) -> Frame:
        """Rows that are equal in these columns in one piece; each piece is sorted by them."""

    def in_order(self, frame: Frame, *columns: str) -> Frame:
        """Pieces that follow one another by these columns; equal rows are in one of them."""

    def tagged(self, frame: Frame, *tags: str) -> Frame: ...

    def both(self, one: Frame, other: Frame) -> Frame: ...

    def kept(self, frame: Frame) -> Frame:
        """It is looked at several times, and made once."""

    def collected(self, frame: Frame) -> pa.Table: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class OnSpark:
    pieces: int
    keep: Keep

    def mapped(self, frame: DataFrame, judge: Mapped, schema: pa.Schema) -> DataFrame:
        return frame.mapInArrow(judge, ddl_of(schema))

    def together(self, frame: DataFrame, *columns: str) -> DataFrame:
        return frame.repartition(self.pieces, *columns).sortWithinPartitions(*columns)

    def in_order(self, frame: DataFrame, *columns: str) -> DataFrame:
        return frame.repartitionByRange(self.pieces, *columns)

    def tagged(self, frame: DataFrame, *tags: str) -> DataFrame:
        return frame.filter(F.col("tag").isin(*tags))

    def both(self, one: DataFrame, other: DataFrame) -> DataFrame:
        return one.union(other)

    def kept(self, frame: DataFrame) -> DataFrame:
        return self.keep(frame)

    def collected(self, frame: DataFrame) -> Any:
        return frame.toArrow()
