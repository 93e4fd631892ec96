"""`spark.judge` on a classic session, which a program has started itself."""

from typing import TYPE_CHECKING

import pytest

from tests.spark.judged_tables import OnAnySession

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.extra]


class TestOnClassicSession(OnAnySession):
    @pytest.fixture
    def session(self, spark: "SparkSession") -> "SparkSession":
        return spark
