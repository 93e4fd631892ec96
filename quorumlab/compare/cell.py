"""One cell of the comparison: a cluster, one experiment on it, and the result.

SIGKILL ends the cluster, for nothing on it is to be kept. Only if the experiment gave up or failed,
the nodes' output stays.
"""

import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random

from jepsen_like.real.layout import ClusterError
from jepsen_like.real.local_cluster import LocalCluster
from quorumlab.compare.client import MeasuringClient
from quorumlab.compare.experiments import BROKERS, CONTROLLERS, EXPERIMENTS, Experiment
from quorumlab.compare.node_measurements import difference, phases_of
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
from quorumlab.compare.subjects import Subject, Timeouts, settings_of, silence_ms, subject_named
from quorumlab.interrupts import uninterrupted

__all__ = ["Secure", "measure"]

Secure = Callable[[LocalCluster], object]  # makes what a secured one needs before it starts
_TRAILING_SECONDS = 0.3  # milestones come behind the first writes


@contextmanager
def staged(
    subject: Subject,
    experiment: Experiment,
    *,
    partitions: int,
    settings: Mapping[str, str],
    zookeeper_delay_ms: int,
    security: str,
    secure: Secure,
    directory: Path,
    seconds: float,
    say: Callable[[str], None],
) -> Iterator[Stage]:
    """A new cluster, ready; ended when left. What its nodes said stays if it was given up."""
    cluster = _created(subject, experiment, directory, zookeeper_delay_ms, security)
    stage = Stage(cluster, subject, experiment, partitions, seconds, say)
    # Not those of `up`, which has time-outs of its own.
    cluster.settings = {**settings, "quorumlab.broker.dataless": str(not stage.has_data).lower()}
    try:
        secure(cluster)
        cluster.start_all()
        cluster.wait_ready(seconds, progress=stage.check)
        yield stage
    except (GaveUp, ClusterError):
        _end(stage)
        for node in cluster.layout.nodes:
            shutil.rmtree(node.data, ignore_errors=True)
        raise
    except BaseException:
        _end(stage)
        shutil.rmtree(directory, ignore_errors=True)
        raise
    _end(stage)
    shutil.rmtree(directory, ignore_errors=True)


def _created(
    subject: Subject,
    experiment: Experiment,
    directory: Path,
    zookeeper_delay_ms: int,
    security: str,
) -> LocalCluster:
    shutil.rmtree(directory, ignore_errors=True)
    if subject.has_zookeeper:
        return LocalCluster.create(
            directory,
            brokers=BROKERS,
            design=subject.design,
            zookeepers=experiment.zookeepers,
            zookeeper_delay_ms=zookeeper_delay_ms,
        )
    return LocalCluster.create(
        directory,
        controllers=CONTROLLERS,
        brokers=BROKERS,
        engine=subject.engine,
        security=security,
    )


def _end(stage: Stage) -> None:
    """Ends all at once: no node has time to say anything more. An interrupt waits for this."""
    with uninterrupted():
        if stage.client is not None:
            stage.client.stop()
        stage.cluster.kill_all()


def measure(
    key: CellKey,
    *,
    directory: Path,
    seconds: float,
    seed: int,
    zookeeper_delay_ms: int,
    security: str,
    secure: Secure,
    say: Callable[[str], None],
) -> Cell:
    """`directory` is for the cluster, and stays only if it failed or gave up."""
    subject, experiment = subject_named(key.subject), EXPERIMENTS[key.experiment]
    timeouts: Timeouts = "equal" if key.timeouts == "equal" else "defaults"
    settings = settings_of(subject, timeouts, experiment.settings)
    cell = Cell(
        subject=key.subject,
        experiment=key.experiment,
        partitions=key.partitions,
        timeouts=key.timeouts,
        run=key.run,
        outcome=MEASURED,
        silence_ms=silence_ms(subject, settings),
        limit_seconds=seconds,
    )
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
            security=security,
            secure=secure,
            directory=directory,
            seconds=seconds,
            say=say,
        ) as stage:
            trial = SCENARIOS[key.experiment](stage, Random(seed + key.run - 1))
            cell = _collected(cell, stage, trial, subject)
    except GaveUp as error:
        cell = replace(cell, outcome=GAVE_UP, why=str(error))
    except ClusterError as error:
        cell = replace(cell, outcome=FAILED, why=str(error))
    return replace(cell, seconds=round(time.monotonic() - began, 1))


def _collected(cell: Cell, stage: Stage, trial: Trial, subject: Subject) -> Cell:
    time.sleep(_TRAILING_SECONDS)
    cell = replace(
        cell,
        affected=len(trial.affected),
        phases=phases_of(
            stage.milestones(),
            fault_ns=trial.fault_ns,
            partitions=trial.counted,
            brokers=[node.id for node in stage.brokers if node.id not in trial.failed_nodes],
            causes=stage.experiment.causes,
            failed_nodes=trial.failed_nodes,
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
    read = read_back(
        stage.brokers,
        stage.topics,
        client.acknowledged,
        client.leader,
        stage.check,
        settings=stage.settings,
    )
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
