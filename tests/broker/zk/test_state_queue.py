"""State-change queues: what a full one keeps, and what its broker does with the rest."""

from broker.zk.by_replicas.state_queue import (
    FollowerStateChangeQueueFull,
    delete_request,
    ensure_queue,
    read_request,
    requests_in,
    retained,
    send_state_change,
)
from tests.broker.zk.trees import ZooKeeper
from wire.zk import paths
from wire.zk.session import Create
from wire.zk.znodes import StateChange, StateChangeKind

START, CLOSE = StateChangeKind.START_REPLICA, StateChangeKind.CLOSE_REPLICA


def request(kind: StateChangeKind, epoch: int, partition: int = 0) -> StateChange:
    return StateChange(kind=kind, topic="t", partition=partition, leader_epoch=epoch)


class Queue(ZooKeeper):
    """The queue of broker 7."""

    def send(self, change: StateChange, *, queue_max: int = 3) -> object:
        return self.run(send_state_change(7, change, queue_max=queue_max))

    def take(self) -> list[StateChange]:
        taken = []
        for name in self.run(requests_in(7)):
            taken.append(self.run(read_request(7, name)))
            self.run(delete_request(7, name))
        return [change for change in taken if change is not None]


def test_full_queue_keeps_the_close_replica_with_the_latest_epoch_of_each_partition() -> None:
    requests = {
        "0": request(CLOSE, 1),
        "1": request(START, 2),
        "2": request(CLOSE, 3),
        "3": request(CLOSE, 2),
        "4": request(CLOSE, 1, partition=1),
        "5": None,
    }
    assert retained(requests) == {"2", "4"}


def test_broker_obeys_in_the_order_in_which_leaders_have_asked() -> None:
    zookeeper = Queue()
    changes = [request(START, 4), request(CLOSE, 5), request(START, 6)]
    for change in changes:
        assert zookeeper.send(change) is None
    assert zookeeper.take() == changes
    assert zookeeper.take() == []


def test_queue_of_a_broker_that_was_never_here_is_made() -> None:
    zookeeper = Queue()
    assert zookeeper.send(request(CLOSE, 1)) is None
    assert zookeeper.take() == [request(CLOSE, 1)]


def test_full_queue_makes_room_for_what_must_not_be_forgotten() -> None:
    zookeeper = Queue()
    for change in (request(START, 1), request(CLOSE, 1), request(START, 2)):
        zookeeper.send(change)
    assert zookeeper.send(request(CLOSE, 2)) is None
    assert zookeeper.take() == [request(CLOSE, 1), request(CLOSE, 2)]


def test_queue_that_stays_full_refuses() -> None:
    zookeeper = Queue()
    for partition in range(3):
        zookeeper.send(request(CLOSE, 1, partition))
    full = zookeeper.send(request(CLOSE, 1, partition=3))
    assert full == FollowerStateChangeQueueFull(7)
    assert len(zookeeper.take()) == 3


def test_request_that_cannot_be_read_does_not_hold_up_the_others() -> None:
    zookeeper = Queue()
    zookeeper.run(ensure_queue(7))
    zookeeper.do(Create(path=paths.state_queue_prefix(7), data=b"poison", is_sequential=True))
    zookeeper.send(request(CLOSE, 1))
    assert zookeeper.take() == [request(CLOSE, 1)]
