"""Partitions are counted through several topics, because one request has its limit."""

from quorumlab.compare.attempts import Acknowledged
from quorumlab.compare.experiments import EXPERIMENTS, PER_TOPIC, creation, place_of, topics_for
from quorumlab.compare.reading import lost
from quorumlab.compare.scenarios import SCENARIOS


def test_more_than_a_request_may_hold_become_several_topics() -> None:
    topics = list(topics_for([(1, 2)] * 20_000))
    assert [(topic.name, len(topic.placed), topic.first) for topic in topics] == [
        ("compared-0", 9000, 0),
        ("compared-1", 9000, 9000),
        ("compared-2", 2000, 18_000),
    ]
    assert place_of(topics, 8999) == (0, 8999)
    assert place_of(topics, 9000) == (1, 0)
    assert place_of(topics, 19_999) == (2, 1999)
    assert PER_TOPIC < 10_000, "a controller's records of one request"


def test_replicas_are_laid_out_by_hand() -> None:
    (topic,) = topics_for([(1, 2), (2, 3)])
    (created,) = creation(topic, 1000).topics
    assert [each.broker_ids for each in created.assignments] == [(1, 2), (2, 3)]
    assert (created.num_partitions, created.replication_factor) == (-1, -1)


def test_every_experiment_is_done_somehow() -> None:
    assert SCENARIOS.keys() == EXPERIMENTS.keys()


def test_lost_is_what_is_not_where_it_was_acknowledged() -> None:
    acknowledged = [
        Acknowledged(partition=0, offset=0, value=5),
        Acknowledged(partition=0, offset=1, value=6),
        Acknowledged(partition=1, offset=0, value=7),
    ]
    found = {0: {0: 5, 1: 99}}  # partition 1 was not read
    assert lost(acknowledged, found) == [acknowledged[1]]
