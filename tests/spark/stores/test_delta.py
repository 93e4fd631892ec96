"""Tables of Delta: rows that were deleted are in its files, and are not judged."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from jepsen_like.checkers.verdict import from_json
from tests.spark.agreement import judged_alone, same
from tests.spark.stores.any_store import RUNS, msgpack_of
from tests.spark.stores.conftest import fetched
from tests.spark.test_standalone import ROOT, environment_of
from tests.spark.told import verdict_in

pytestmark = pytest.mark.long

DELETED = "a/0"


def test_tables_of_delta_are_judged_and_written(tmp_path: Path) -> None:
    home = fetched("delta")
    for name, history in RUNS.items():
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name / "history.msgpack").write_bytes(msgpack_of(history))
    job = "tests.spark.stores.delta"
    command = [str(home / "venv/bin/python"), "-m", job, str(tmp_path), DELETED]
    environment = environment_of(tmp_path) | {"PYTHONPATH": str(ROOT)}
    environment |= {
        "DELTA_JARS": ",".join(map(str, (home / "jars").glob("*.jar"))),
        "PYSPARK_PYTHON": command[0],
    }
    environment.pop("SPARK_HOME")
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    print(done.stderr[-3000:], file=sys.stderr)
    told = json.loads(done.stdout.splitlines()[-1])
    runs = {f"file:{tmp_path}/runs/{name}/history.msgpack": each for name, each in RUNS.items()}
    here = judged_alone({run: each for run, each in runs.items() if f"/{DELETED}/" not in run})
    assert same(from_json(told["verdict"])) == same(here)
    assert told["format"] == "delta"
    assert same(verdict_in(told["rows"], single_run=False)) == same(here)
