"""A stream whose job is killed again and again says what it says undisturbed, once."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow.parquet as pq
import pytest

from jepsen_like.histories.interchange import jsonl_lines
from jepsen_like.real.local_cluster import LocalCluster
from tests.spark.histories import random_history, random_log
from tests.spark.killed.processes import in_session, kill
from tests.spark.on_spark.test_streaming import content_of, expected
from tests.spark.stores.conftest import defaults, fetched
from tests.spark.test_standalone import ROOT, SECONDS, environment_of, until
from tests.started import started

pytestmark = pytest.mark.long

HISTORIES = {f"{seed}.msgpack": random_log(seed) for seed in range(8)} | {
    f"{seed}.jsonl": random_history(seed) for seed in range(11, 17)
}
# When it is killed: once a batch is planned, once what is remembered after it is written, and once
# its verdicts are, although none of it is known to be done.
MOMENTS = ("checkpoint/offsets/*", "checkpoint/state/0/*/*.delta", "verdicts/_spark_metadata/*")
SHARES = (0.2, 0.4, 0.6, 0.8, 1.0)

Write = Callable[[float], None]


def test_growing_files_of_a_killed_job_are_judged_once(tmp_path: Path) -> None:
    """Files are cut anywhere."""
    runs = tmp_path / "runs"
    runs.mkdir()
    contents = {name: content_of(name, history) for name, history in HISTORIES.items()}

    def write(share: float) -> None:
        for name, content in contents.items():
            with (runs / name).open("ab") as file:
                file.write(content[file.tell() : int(len(content) * share)])

    killed_and_undisturbed_agree(tmp_path, ["files", str(runs)], write)


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with started(
        LocalCluster.create(tmp_path_factory.mktemp("cluster"), controllers=1, brokers=1)
    ) as cluster:
        yield cluster.layout.bootstrap_servers


@pytest.mark.parametrize("by", ["kafka", "topic"])
def test_topic_of_a_killed_job_is_judged_once(by: str, servers: str, tmp_path: Path) -> None:
    """By Spark's own connector, and by our source: lines of all runs in two partitions."""
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.cimpl import NewTopic

    jars = fetched("kafka") / "jars" if by == "kafka" else tmp_path
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(by, 2, 1)])[by].result(15)
    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True})
    lines = {name: list(jsonl_lines(history)) for name, history in HISTORIES.items()}
    sent = Counter[str]()

    def write(share: float) -> None:
        for name, mine in lines.items():
            for line in mine[sent[name] : int(len(mine) * share)]:
                producer.produce(by, line, name)
                sent[name] += 1
        assert producer.flush(30) == 0

    options = {"kafka.bootstrap.servers": servers, "subscribe": by, "startingOffsets": "earliest"}
    source = ["kafka", *chain(*options.items())] if by == "kafka" else ["topic", servers, by]
    with defaults(tmp_path, {"spark.jars": ",".join(map(str, jars.glob("*.jar")))}):
        killed_and_undisturbed_agree(tmp_path, source, write)


def killed_and_undisturbed_agree(directory: Path, source: Sequence[str], write: Write) -> None:
    killed = watched(directory / "killed", source, write, MOMENTS)
    undisturbed = watched(directory / "undisturbed", source, write, ())
    certain = Counter(map(_verdict, filter(_is_verdict, killed)))
    assert certain == Counter(map(_verdict, filter(_is_verdict, undisturbed)))
    assert max(certain.values()) == 1, certain
    for name, history in HISTORIES.items():
        mine = [row for row in killed if Path(row["run"]).name == name]
        told = [(row["object"], *_outcome(row)) for row in mine if _is_verdict(row)]
        assert sorted(told, key=repr) == sorted(expected(history), key=repr), name
        upto = [row["upto"] for row in mine if not _is_verdict(row)]
        assert len(set(upto)) == len(upto) > 1, name
        assert max(upto) == history.ops[-1].index, name
        counts = {tuple(sorted(_last(rows, name)["counts"])) for rows in (killed, undisturbed)}
        assert len(counts) == 1, counts


def _is_verdict(row: Mapping[str, Any]) -> bool:
    return row["counts"] is None


def _outcome(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return row["outcome"], row["rule"], row["operations"]


def _verdict(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """But for how far it was looked at, which is a question of batches."""
    told = (row["object"], row["model"], row["outcome"], row["rule"], row["detail"], row["reason"])
    return Path(row["run"]).name, *told, tuple(row["operations"])


def _last(rows: Sequence[Mapping[str, Any]], name: str) -> Mapping[str, Any]:
    mine = (row for row in rows if Path(row["run"]).name == name and not _is_verdict(row))
    return max(mine, key=lambda row: row["upto"])


def has_more(directory: Path, moment: str, before: set[Path]) -> bool:
    return not files(directory, moment) <= before


def watched(
    directory: Path, source: Sequence[str], write: Write, moments: Sequence[str]
) -> list[dict[str, Any]]:
    """What a job tells that is killed at these moments while more and more is written."""
    directory.mkdir()
    write(SHARES[0])
    for moment, share in zip(moments, SHARES[1:], strict=False):
        with watching(directory, *source) as process:
            until(partial(is_up_to_date, directory, process), "nothing is judged")
            before = files(directory, moment)
            write(share)
            until(partial(has_more, directory, moment, before), f"no {moment}")
    write(1.0)
    (directory / "whole").touch()
    with watching(directory, *source) as process:
        assert process.wait(SECONDS) == 0, end_of_log(directory)
    return verdicts_of(directory / "verdicts")


@contextmanager
def watching(directory: Path, *source: str) -> "Iterator[subprocess.Popen[bytes]]":
    """A job, killed at the end with all that it has started."""
    with (directory / "log").open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.spark.killed.watching", str(directory), *source],
            cwd=ROOT,
            env=environment_of(directory / "java"),
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        kill(in_session(process.pid))
        process.wait()


def end_of_log(directory: Path) -> str:
    return (directory / "log").read_text()[-3000:]


def is_up_to_date(directory: Path, process: "subprocess.Popen[bytes]") -> bool:
    assert process.poll() is None, end_of_log(directory)
    planned, done = (files(directory, f"checkpoint/{what}/*") for what in ("offsets", "commits"))
    return 0 < len(planned) == len(done)


def files(directory: Path, pattern: str) -> set[Path]:
    """But for those that are still being written."""
    return {path for path in directory.glob(pattern) if path.name[0] != "."}


def verdicts_of(table: Path) -> list[dict[str, Any]]:
    """As Spark reads it: files of batches that were done, told in a log of the table's own."""
    told = [line for log in files(table, "_spark_metadata/*") for line in log.read_text().split()]
    paths = {json.loads(line)["path"] for line in told if line.startswith("{")}
    return [
        row
        for path in sorted(paths)
        for row in pq.read_table(unquote(urlsplit(path).path)).to_pylist()
    ]
