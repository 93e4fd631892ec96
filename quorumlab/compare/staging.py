"""The cluster of one experiment, from its first process to its last file.

Nothing on it is to be kept, so that it is ended by SIGKILL; only where an experiment gave up or
failed, what nodes printed stays.
"""

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from jepsen_like.real.layout import ClusterError
from jepsen_like.real.local_cluster import LocalCluster
from quorumlab.compare.experiments import BROKERS, CONTROLLERS, Experiment
from quorumlab.compare.stage import GaveUp, Stage
from quorumlab.compare.subjects import Subject
from quorumlab.interrupts import uninterrupted

__all__ = ["staged"]


@contextmanager
def staged(
    subject: Subject,
    experiment: Experiment,
    *,
    partitions: int,
    settings: Mapping[str, str],
    zookeeper_delay_ms: int,
    directory: Path,
    seconds: float,
    say: Callable[[str], None],
) -> Iterator[Stage]:
    """A new cluster, ready; ended when left. What its nodes said stays if it was given up."""
    cluster = _created(subject, experiment, directory, zookeeper_delay_ms)
    stage = Stage(cluster, subject, experiment, partitions, seconds, say)
    # Not those of `up`, which has time-outs of its own.
    cluster.settings = {**settings, "quorumlab.broker.dataless": str(not stage.has_data).lower()}
    try:
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
    subject: Subject, experiment: Experiment, directory: Path, zookeeper_delay_ms: int
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
        directory, controllers=CONTROLLERS, brokers=BROKERS, engine=subject.engine
    )


def _end(stage: Stage) -> None:
    """All at once: nobody has time to say anything more. Who is in a hurry waits for this."""
    with uninterrupted():
        _kill(stage)


def _kill(stage: Stage) -> None:
    if stage.client is not None:
        stage.client.stop()
    cluster = stage.cluster
    for node_id in cluster.running():
        cluster.kill(node_id)
    zookeeper = cluster.zookeeper
    if zookeeper is not None:
        for server in zookeeper.servers:
            if zookeeper.process(server) is not None:
                zookeeper.kill(server.id)
    if cluster.delay_line is not None:
        cluster.delay_line.stop()
