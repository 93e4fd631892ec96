"""A broker without data: registered, told of everything, and nothing on its disk."""

from controller.milestones import MILESTONE
from tests.broker.brokers import Brokers


def applied(brokers: Brokers) -> list[tuple[int, object]]:
    return [
        (node_id, dict(trace.fields)["count"])
        for node_id, trace in brokers.traces
        if trace.event == MILESTONE and dict(trace.fields)["step"] == "applied"
    ]


def test_it_applies_what_the_log_says_and_opens_no_log() -> None:
    brokers = Brokers(3, is_dataless=True).start()
    topic_id = brokers.create_topic("t", (1, 2, 3), (2, 3, 1))
    assert applied(brokers) == [(1, 2), (2, 2), (3, 2)]
    for node_id, broker in brokers.brokers.items():
        assert len(broker.cluster.image.partitions) == 2
        assert broker.cluster.image.partition(topic_id, 0) is not None
        assert len(broker.replicas) == 0
        assert not brokers.disks[node_id].found
        assert broker.serves_clients


def test_it_begins_with_what_was_there() -> None:
    brokers = Brokers(3, is_dataless=True).start(1, 2)
    brokers.create_topic("t", (1, 2, 3))
    brokers.start(3)
    assert brokers.brokers[3].serves_clients
    assert len(brokers.brokers[3].replicas) == 0


def test_broker_with_data_tells_the_same_milestone() -> None:
    brokers = Brokers(3).start()
    brokers.create_topic("t", (1, 2, 3), (2, 3, 1))
    assert applied(brokers) == [(1, 2), (2, 2), (3, 2)]
    end = brokers.brokers[1].cluster.image.at.offset
    told = [dict(trace.fields) for _, trace in brokers.traces if trace.event == MILESTONE]
    assert [each["offset"] for each in told if each["step"] == "applied"] == [end - 1] * 3
    assert all(len(broker.replicas) == 2 for broker in brokers.brokers.values())
