"""`spark.judge` on a classic session, which a program has started itself."""

import pytest
from pyspark.sql import SparkSession

from tests.spark.judged_tables import OnAnySession

pytestmark = [pytest.mark.slow, pytest.mark.extra]


class TestOnClassicSession(OnAnySession):
    @pytest.fixture
    def session(self, spark: SparkSession) -> SparkSession:
        return spark
