"""python -m tests.spark.stores.delta DIRECTORY DELETED: in a Python that has Delta's Spark.

Histories become a table of Delta; those of a run are deleted; the rest is judged, into another.
"""

import json
import os
import sys

from pyspark.sql import SparkSession

from jepsen_like.checkers.verdict import as_json
from quorumlab import convert
from spark.session import Settings
from spark.stored import check_stored

_CONFIGURATION = {
    "spark.jars": os.environ["DELTA_JARS"],
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.sources.default": "delta",
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def main(directory: str, deleted: str) -> None:
    builder = SparkSession.builder.master("local[2]")
    for name, value in _CONFIGURATION.items():
        builder = builder.config(name, value)
    session = builder.config("spark.sql.warehouse.dir", f"{directory}/tables").getOrCreate()
    convert(session, [f"file:{directory}/runs"]).write.saveAsTable("histories")
    session.sql(f"DELETE FROM histories WHERE run LIKE '%/{deleted}/%'")
    verdict = check_stored(session, ["table:histories"], Settings(), verdicts="table:verdicts")
    rows = session.table("verdicts").toArrow().to_pylist()
    form = session.sql("DESCRIBE DETAIL verdicts").collect()[0].format
    print(json.dumps({"verdict": as_json(verdict), "rows": rows, "format": form}))


if __name__ == "__main__":
    main(*sys.argv[1:])
