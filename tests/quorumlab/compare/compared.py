"""Results as a comparison leaves them, made up: for what only shows them."""

from dataclasses import replace
from pathlib import Path

from quorumlab.compare.experiments import EXPERIMENTS
from quorumlab.compare.node_measurements import Phase
from quorumlab.compare.results import Cell, Records, Results, spread_of
from quorumlab.compare.subjects import ALL_DESIGNS, Subject, subjects

__all__ = ["compared", "made_up"]

_SLOWNESS = dict(zip(ALL_DESIGNS, (9.0, 6.0, 4.0, 1.0, 0.4, 0.1), strict=True))


def made_up(subject: Subject, name: str, partitions: int, timeouts: str) -> Cell:
    """Detected after 2 s; then every step takes its share of a time that grows with partitions."""
    experiment = EXPERIMENTS[name]
    cell = Cell(
        subject=subject.name,
        experiment=name,
        partitions=partitions,
        timeouts=timeouts,
        outcome="measured",
    )
    why_not = experiment.why_not(subject)
    if why_not:
        return replace(cell, outcome="not there", why=why_not)
    if subject.design == "zk-v1" and partitions > 1000:
        return replace(cell, outcome="gave up", why="after 300 s: 7 of 9 led")
    reached = 2000.0 if timeouts == "equal" else 18_000.0
    phases, seen = {}, {}
    for step in experiment.steps:
        if step in ("first write", "first change", "resumed", "in sync", "moved", "done", "grown"):
            seen[step] = reached + 50
        else:
            phases[step] = Phase(first_ms=reached, done_ms=reached, count=partitions)
        reached += _SLOWNESS[subject.design] * partitions / len(experiment.steps)
    silences: list[float | None] = [reached + 10 * number for number in range(10)]
    writes = {} if subject.design == "quorum" else {"zk.set": partitions, "zk.watches_fired": 3}
    return replace(
        cell,
        silence_ms=2000 if timeouts == "equal" else 18_000,
        affected=partitions // 3,
        phases=phases,
        seen=seen,
        client={
            "first_ms": spread_of(silences),
            "others_ms": spread_of(silences[:3]),
            "longest_ms": spread_of(silences),
        },
        errors={"no answer": 120, "NOT_LEADER_OR_FOLLOWER": 77},
        records=Records(
            acknowledged=5000, lost=3 if subject.admits_loss else 0, admitted=subject.admits_loss
        ),
        ledger={
            "brokers": {"rpc.sent.LeaderAndIsr": 2, "rpc.sent.Fetch": 900, **writes},
            "controllers": {"log.records": partitions + 1, "fsyncs": 4},
        },
    )


def compared(directory: Path, sizes: tuple[int, ...] = (10, 100, 1000, 10_000)) -> Results:
    results = Results(
        directory / "results.json", {"date": "2026-11-21", "processors": 2, "commit": "0" * 7}, 1
    )
    for subject in subjects(ALL_DESIGNS, ("native", "raftos")):
        for name in EXPERIMENTS:
            for size in sizes:
                cell = made_up(subject, name, size, "equal")
                results.cells[cell.key] = cell
            cell = made_up(subject, name, 100, "defaults")
            results.cells[cell.key] = cell
    return results
