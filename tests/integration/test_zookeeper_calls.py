"""The experiments of seed 001's appendix A, few calls of each, against a real ZooKeeper."""

import asyncio
from pathlib import Path

import pytest

from benchmarks import zookeeper
from jepsen_like.real.zookeeper import missing_reason
from tests.integration.real_zookeeper import started

NO_ZOOKEEPER = missing_reason()
pytestmark = [
    pytest.mark.extra,
    pytest.mark.skipif(NO_ZOOKEEPER is not None, reason=NO_ZOOKEEPER or ""),
]
TOO_MANY = 15_000  # of a batch: they are more than jute.maxbuffer


def test_every_experiment_has_its_rate_or_its_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zookeeper, "ZNODES_ALONE", 20)
    monkeypatch.setattr(zookeeper, "RECOVERY_S", 0.2)
    with started(tmp_path) as running:
        rates = asyncio.run(zookeeper.measure(running.connect, TOO_MANY, 1))
    found = {row.key: row.rate for row in zookeeper.rows(rates)}
    assert found.keys() >= zookeeper.PUBLISHED_MS.keys() | zookeeper.PUBLISHED_ERRORS.keys()
    errors = {key: rate for key, rate in found.items() if isinstance(rate, str)}
    assert errors == {
        ("multi-set-data-sync", 50_000): "connection loss",
        ("multi-check-and-set-data-async", 50_000): "connection loss",
    }
    told = zookeeper.page({1: zookeeper.rows(rates)}, TOO_MANY, 1)
    assert "| multi-set-data-sync | 50,000 | connection loss |  | connection loss |  |" in told
