"""Elections and writes of leaders: which of them hold, in zk-v2 and in zk-v1."""

import pytest

from broker.zk.by_replicas.held import Held
from broker.zk.by_replicas.partition_nodes import FoundIsr, PartitionNodes
from tests.broker.zk.trees import ZooKeeper
from wire.zk import paths
from wire.zk.control_rpc import TopicPartition
from wire.zk.designs import ZK_V1, ZK_V2, Design
from wire.zk.session import Create, Data, Delete, GetData
from wire.zk.znodes import PartitionIsr, TopicAssignment

T = TopicPartition("t", 0)
BOTH = pytest.mark.parametrize(
    ("design", "holds"), [(ZK_V1, True), (ZK_V2, False)], ids=["zk-v1", "zk-v2"]
)


class Partition(ZooKeeper):
    """t-0 of brokers 1 and 2."""

    def __init__(self, design: Design) -> None:
        super().__init__()
        self.nodes = PartitionNodes(design)
        data = TopicAssignment(partitions={0: (1, 2)}).encode()
        self.do(Create(path=paths.topic("t"), data=data))
        assert self.run(self.nodes.replicas(T)) == (1, 2)

    def elect(self, node_id: int, isr: tuple[int, ...], found: FoundIsr) -> Held | None:
        held = Held(of=T)
        if not self.run(self.nodes.elect(held, node_id, isr, found)):
            return None
        now = self.run(self.nodes.isr(T))
        held.isr, held.isr_version, held.leader_epoch = now.isr, now.version, now.leader_epoch
        return held

    def isr(self) -> PartitionIsr:
        found = self.do(GetData(path=paths.partition_isr("t", 0)))
        assert isinstance(found, Data)
        return PartitionIsr.decode(found.data)

    def lose_leader(self) -> None:
        self.do(Delete(path=paths.partition_leader("t", 0)))


def test_epoch_goes_up_with_each_election() -> None:
    partition = Partition(ZK_V2)
    assert partition.elect(1, (1, 2), partition.run(partition.nodes.isr(T))) is not None
    assert partition.isr() == PartitionIsr(isr=(1, 2), leader_epoch=0)
    partition.lose_leader()
    assert partition.elect(2, (1, 2), partition.run(partition.nodes.isr(T))) is not None
    assert partition.isr() == PartitionIsr(isr=(1, 2), leader_epoch=1)


@pytest.mark.parametrize("design", [ZK_V1, ZK_V2], ids=["zk-v1", "zk-v2"])
def test_one_of_two_candidates_wins(design: Design) -> None:
    partition = Partition(design)
    found = partition.run(partition.nodes.isr(T))
    assert partition.elect(1, (1, 2), found) is not None
    assert partition.elect(2, (1, 2), found) is None
    leader = partition.run(partition.nodes.leader(T))
    assert leader is not None
    assert leader.leader == 1


@BOTH
def test_candidate_that_has_read_an_isr_that_is_no_more(design: Design, holds: bool) -> None:
    """A3 of the museum: it was in sync when it looked, and is not when it wins."""
    partition = Partition(design)
    held = partition.elect(1, (1, 2), FoundIsr())
    assert held is not None
    found = partition.run(partition.nodes.isr(T))
    assert partition.run(partition.nodes.write_isr(held, (1,)))
    partition.lose_leader()
    assert (partition.elect(2, found.isr, found) is not None) is holds


@BOTH
def test_isr_write_of_a_leader_that_was_followed_by_another(design: Design, holds: bool) -> None:
    partition = Partition(design)
    old = partition.elect(1, (1, 2), FoundIsr())
    assert old is not None
    partition.lose_leader()
    assert partition.elect(2, (1, 2), partition.run(partition.nodes.isr(T))) is not None
    assert partition.run(partition.nodes.write_isr(old, (1,))) is holds
    assert partition.isr().isr == ((1,) if holds else (1, 2))


@BOTH
def test_leader_of_old_deletes_the_node_of_its_successor(design: Design, holds: bool) -> None:
    partition = Partition(design)
    old = partition.elect(1, (1, 2), FoundIsr())
    assert old is not None
    partition.lose_leader()
    assert partition.elect(2, (1, 2), partition.run(partition.nodes.isr(T))) is not None
    assert partition.run(partition.nodes.resign(old)) is holds
    assert (partition.run(partition.nodes.leader(T)) is None) is holds


def test_isr_write_whose_answer_was_lost_is_found_in_the_node() -> None:
    partition = Partition(ZK_V2)
    held = partition.elect(1, (1, 2), FoundIsr())
    assert held is not None
    version = held.isr_version
    assert partition.run(partition.nodes.write_isr(held, (1,)))
    held.isr_version = version  # it has not heard
    assert partition.run(partition.nodes.write_isr(held, (1,)))
    assert held.isr_version == version + 1


def test_partition_that_its_topic_has_not_is_not_made() -> None:
    partition = Partition(ZK_V2)
    assert partition.run(partition.nodes.replicas(TopicPartition("t", 1))) == ()
    assert paths.parent(paths.partition_leader("t", 1)) not in partition.tree.paths()


def test_removed_partition_takes_all_its_nodes_along() -> None:
    partition = Partition(ZK_V2)
    held = partition.elect(1, (1, 2), FoundIsr())
    assert held is not None
    assert partition.run(partition.nodes.remove(held))
    assert [path for path in partition.tree.paths() if path.startswith("/brokers/topics/t/")] == []
