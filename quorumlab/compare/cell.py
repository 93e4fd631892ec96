"""One cell of the comparison: a cluster, one thing that is done to it, and all that came of it."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

from jepsen_like.real.layout import ClusterError
from quorumlab.compare.client import MeasuringClient
from quorumlab.compare.experiments import EXPERIMENTS
from quorumlab.compare.ledger import difference
from quorumlab.compare.phases import phases_of
from quorumlab.compare.reading import read_back
from quorumlab.compare.results import (
    FAILED,
    GAVE_UP,
    MEASURED,
    NOT_THERE,
    Cell,
    CellKey,
    Records,
    spread_of,
)
from quorumlab.compare.scenarios import SCENARIOS, Trial
from quorumlab.compare.stage import GaveUp, Stage
from quorumlab.compare.staging import staged
from quorumlab.compare.subjects import Subject, subject_named
from quorumlab.compare.timeouts import Timeouts, settings_of, silence_ms

__all__ = ["measure"]

_TRAILING_SECONDS = 0.3  # milestones come behind the first writes


def measure(
    key: CellKey,
    *,
    directory: Path,
    seconds: float,
    seed: int,
    zookeeper_delay_ms: int,
    say: Callable[[str], None],
) -> Cell:
    """`directory` is for the cluster, and stays only if it failed or gave up."""
    subject, experiment = subject_named(key.subject), EXPERIMENTS[key.experiment]
    timeouts: Timeouts = "equal" if key.timeouts == "equal" else "defaults"
    settings = settings_of(subject, timeouts, experiment.settings)
    cell = replace(_empty(key), silence_ms=silence_ms(subject, settings), limit_seconds=seconds)
    why_not = experiment.why_not(subject)
    if why_not:
        return replace(cell, outcome=NOT_THERE, why=why_not)
    began = time.monotonic()
    try:
        with staged(
            subject,
            experiment,
            partitions=key.partitions,
            settings=settings,
            zookeeper_delay_ms=zookeeper_delay_ms,
            directory=directory,
            seconds=seconds,
            say=say,
        ) as stage:
            trial = SCENARIOS[key.experiment](stage, Random(seed))
            cell = _collected(cell, stage, trial, subject)
    except GaveUp as error:
        cell = replace(cell, outcome=GAVE_UP, why=str(error))
    except ClusterError as error:
        cell = replace(cell, outcome=FAILED, why=str(error))
    return replace(cell, seconds=round(time.monotonic() - began, 1))


def _empty(key: CellKey) -> Cell:
    return Cell(
        subject=key.subject,
        experiment=key.experiment,
        partitions=key.partitions,
        timeouts=key.timeouts,
        outcome=MEASURED,
    )


def _collected(cell: Cell, stage: Stage, trial: Trial, subject: Subject) -> Cell:
    time.sleep(_TRAILING_SECONDS)
    cell = replace(
        cell,
        affected=len(trial.affected),
        phases=phases_of(
            stage.milestones(),
            fault_ns=trial.fault_ns,
            partitions=trial.counted,
            brokers=[node.id for node in stage.brokers if node.id not in trial.struck],
            causes=stage.experiment.causes,
            struck=trial.struck,
            at_least=len(trial.affected) or trial.counted,
        ),
        seen=trial.seen,
        ledger=difference(
            trial.before, stage.counts(), roles=stage.roles(), restarted=trial.restarted
        ),
    )
    if stage.client is None:
        return cell
    return _with_client(cell, stage, stage.client, trial.affected, subject)


def _with_client(
    cell: Cell, stage: Stage, client: MeasuringClient, affected: Sequence[int], subject: Subject
) -> Cell:
    silences = client.silences(affected)
    client.stop()
    read = read_back(stage.brokers, stage.topics, client.acknowledged, client.leader, stage.check)
    return replace(
        cell,
        client={
            "first_ms": spread_of(silences.first_ms),
            "others_ms": spread_of(silences.others_ms),
            "longest_ms": spread_of(silences.longest_ms),
        },
        errors=silences.errors,
        records=Records(
            acknowledged=read.acknowledged,
            lost=len(read.lost),
            unread=read.unread,
            admitted=subject.admits_loss if read.lost else "",
        ),
    )
