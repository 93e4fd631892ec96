"""python -m tests.spark.killed.watching DIRECTORY SOURCE OPTION...: a job, until it is ended.

It judges a stream of lines into the table DIRECTORY/verdicts. SOURCE is `files` PATH, `topic`
SERVERS TOPIC, or `kafka` with options. Once there is DIRECTORY/whole it judges what is left, and
ends.
"""

import sys
import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from quorumlab import growing_files, topic_lines, watch
from spark.session import Settings, session

_SETTINGS = Settings(master="local[2]", driver_mb=1024)


def main(directory: str, source: str, *options: str) -> None:
    with session(_SETTINGS) as spark:
        spark.conf.set("spark.sql.shuffle.partitions", "2")
        verdicts = watch(_lines(spark, source, *options)).coalesce(1)
        writer = verdicts.writeStream.format("parquet").option("path", f"{directory}/verdicts")
        query = writer.option("checkpointLocation", f"{directory}/checkpoint").start()
        while not Path(directory, "whole").exists():
            if (error := query.exception()) is not None:
                raise error
            time.sleep(0.1)
        query.processAllAvailable()
        query.stop()


def _lines(spark: SparkSession, source: str, *options: str) -> DataFrame:
    if source == "files":
        return growing_files(spark, *options)
    if source == "topic":
        servers, topic = options
        return topic_lines(spark, servers, topic)
    named = dict(zip(options[::2], options[1::2], strict=True))
    records = spark.readStream.format(source).options(**named).load()
    return records.selectExpr("cast(key as string) as run", "value as line")


if __name__ == "__main__":
    main(*sys.argv[1:])
