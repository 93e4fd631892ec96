"""`quorumlab bench`: it finds the benchmarks of the clone that it belongs to."""

from types import SimpleNamespace

import pytest

from quorumlab.verbs import bench


def test_list_names_the_benchmarks(capfd: pytest.CaptureFixture[str]) -> None:
    assert bench.run(SimpleNamespace(names=[], list=True, partitions=None, format=None)) == 0
    names = {line.split()[0] for line in capfd.readouterr().out.splitlines()}
    assert {"commit", "failover", "throughput"} <= names


def test_unknown_name_is_a_usage_error(capfd: pytest.CaptureFixture[str]) -> None:
    assert (
        bench.run(SimpleNamespace(names=["nonsense"], list=False, partitions=None, format=None))
        == 2
    )
    assert "no benchmark 'nonsense'" in capfd.readouterr().err
