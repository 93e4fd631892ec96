"""Schedules of topics that are deleted and made again, beside the one of the stage."""

from jepsen_like.sim.cluster.client import Key
from jepsen_like.sim.schedules.production import Production
from jepsen_like.sim.schedules.schedule_list import Schedules, schedule
from jepsen_like.sim.schedules.stage import Stage
from wire.batch import data_batch, records_of
from wire.messages.fetching import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from wire.messages.producing import PartitionProduceData, ProduceRequest, TopicProduceData
from wire.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)

__all__ = ["TOPIC_SCHEDULES"]

TOPIC_SCHEDULES: Schedules = {}
_NAME = "again"
_BYTES = 1 << 20


@schedule(TOPIC_SCHEDULES, finds=("finds_whatever_has_the_name",))
def name_that_is_used_again(production: Production) -> None:
    """A topic with x is deleted, and another of its name has y. A reader that holds the id of the
    first must not be given y."""
    stage = Stage(production)
    a, *_ = stage.cast()
    first = _create(stage, a)
    _write(stage, first, b"x", to=a)
    _read(stage, first, of=a)
    stage.ask(stage.controller, DeleteTopicsRequest(topics=(DeleteTopicState(name=_NAME),)))
    second = _create(stage, a)
    _write(stage, second, b"y", to=a)
    _read(stage, first, of=a)
    _read(stage, second, of=a)
    stage.finish()


def _create(stage: Stage, on: int) -> Key:
    """A topic with one replica, there."""
    assignment = CreatableReplicaAssignment(partition_index=0, broker_ids=(on,))
    topic = CreatableTopic(name=_NAME, assignments=(assignment,))
    stage.ask(stage.controller, CreateTopicsRequest(topics=(topic,)))
    watched = stage.cluster.partitions.watched
    (key,) = (key for key, each in watched.items() if each.name == f"{_NAME}-0" and each.state)
    stage.until(lambda: stage.is_leading(on, key), "the topic can be written to")
    return key


def _write(stage: Stage, key: Key, value: bytes, *, to: int) -> None:
    data = PartitionProduceData(index=key[1], records=data_batch([value], timestamp_ms=0))
    topic = TopicProduceData(topic_id=key[0], partition_data=(data,))
    stage.ask(to, ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=(topic,)))


def _read(stage: Stage, key: Key, *, of: int) -> None:
    """By the id alone, from the beginning."""
    place = FetchPartition(partition=key[1], fetch_offset=0, partition_max_bytes=_BYTES)
    topic = FetchTopic(topic_id=key[0], partitions=(place,))
    answer = stage.ask(of, FetchRequest(max_wait_ms=0, topics=(topic,)))
    assert isinstance(answer, FetchResponse), answer
    batch = answer.responses[0].partitions[0].records
    for record in records_of(batch) if batch else ():
        stage.cluster.judge.has_read(key, record.offset, record.value or b"")
