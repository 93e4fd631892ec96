"""results.json: what is written is what is read, and another's file is refused."""

import json
from pathlib import Path

import pytest

from quorumlab.compare.node_measurements import Phase
from quorumlab.compare.results import Cell, Records, Results, Spread, spread_of


def measured(subject: str = "zk-v3", partitions: int = 100, **others: object) -> Cell:
    values: dict[str, object] = {
        "outcome": "measured",
        "phases": {
            "detected": Phase(first_ms=2000.0, done_ms=2000.0, count=0),
            "decided": Phase(first_ms=2001.0, done_ms=2001.0 + partitions, count=partitions),
        },
        "client": {
            "first_ms": spread_of([2500.0, 2600.0]),
            "others_ms": spread_of([]),
            "longest_ms": spread_of([2500.0, 2600.0]),
        },
        "errors": {"no answer": 3},
        "records": Records(acknowledged=100, lost=0),
        "ledger": {"brokers": {"zk.set": partitions, "rpc.sent.LeaderAndIsr": 2}},
        **others,
    }
    return Cell(
        subject=subject,
        experiment="broker-crash",
        partitions=partitions,
        timeouts="equal",
        **values,  # type: ignore[arg-type]
    )


def test_results_are_read_as_they_were_written(tmp_path: Path) -> None:
    results = Results(tmp_path / "results.json", {"processors": 2}, 7, 4)
    results.add(measured())
    results.add(
        Cell(
            subject="zk-v1",
            experiment="isr-change",
            partitions=10,
            timeouts="equal",
            outcome="gave up",
            why="late",
        )
    )
    again = Results.load(results.path)
    assert again == results
    assert list(tmp_path.iterdir()) == [results.path]


def test_results_from_before_there_were_runs_have_one(tmp_path: Path) -> None:
    results = Results(tmp_path / "results.json", {}, 1)
    results.add(measured())
    stored = json.loads(results.path.read_text())
    del stored["cells"][0]["run"]
    results.path.write_text(json.dumps(stored))
    assert Results.load(results.path) == results


def test_cell_that_is_measured_again_takes_the_place_of_the_first(tmp_path: Path) -> None:
    results = Results(tmp_path / "results.json", {}, 1)
    results.add(measured(seconds=1.0))
    results.add(measured(seconds=2.0))
    assert [cell.seconds for cell in Results.load(results.path).cells.values()] == [2.0]


def test_what_failed_or_gave_up_sooner_is_tried_again() -> None:
    gave_up = measured(outcome="gave up", limit_seconds=120.0)
    assert [gave_up.is_final(seconds) for seconds in (120.0, 300.0)] == [True, False]
    assert not measured(outcome="failed").is_final(120.0)
    assert measured(limit_seconds=120.0).is_final(300.0)


def test_file_of_another_schema_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text(json.dumps({"schema": "quorumlab-compare/99", "cells": []}))
    with pytest.raises(ValueError, match="quorumlab-compare/99"):
        Results.load(path)


def test_spread_has_quantiles_and_counts_what_never_ended() -> None:
    assert spread_of([5.0, None, 1.0, 3.0]) == Spread(
        count=4, never=1, least=1.0, half=3.0, most_99=None, most=5.0
    )
    assert spread_of([None]) == Spread(count=1, never=1)
    assert spread_of([None, None, 1.0]).half is None
    hundred = spread_of([float(each) for each in range(1, 101)])
    assert (hundred.half, hundred.most_99, hundred.most) == (50.0, 99.0, 100.0)


def test_cells_of_several_commits_are_told_to_be_that(tmp_path: Path) -> None:
    results = Results(tmp_path / "results.json", {"commit": "aaa"}, 1)
    for commit in ("aaa", "bbb", "aaa", ""):
        results.adds_commit(commit)
    assert results.machine["commit"] == "aaa, bbb"


def test_first_write_is_done_when_every_partition_has_one() -> None:
    assert measured().done_ms("first write") == 2600.0
    client = {"first_ms": spread_of([2500.0, None]), "longest_ms": spread_of([])}
    assert measured(client=client).done_ms("first write") is None


def test_what_is_seen_from_outside_is_a_step_too() -> None:
    assert measured(seen={"stopped": 12.0}).done_ms("stopped") == 12.0
    assert measured().done_ms("applied") is None
