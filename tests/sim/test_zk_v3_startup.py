"""zk-v3: what is decided between the reading of a broker that starts and its registration."""

from jepsen_like.scenarios.stage.story import Production
from jepsen_like.scenarios.zookeeper.directed_zookeeper import DirectedZooKeeper
from wire.zk.session import GetData, Operation


def _reads_settings(operation: Operation) -> bool:
    """Behind the states of partitions, before the registration."""
    return isinstance(operation, GetData) and operation.path.startswith("/config")


def test_broker_reads_again_once_it_is_registered() -> None:
    """b, whose session has ended, has read that epoch 1 is the last; c dies, and epoch 2 begins.

    The controller tells only those who live, and b is not one of them yet.
    """
    stage = DirectedZooKeeper(Production(), design="zk-v3", brokers=4)
    a, b, c = stage.create(*stage.others(stage.controller))
    stage.machines.pause(b)
    stage.until(lambda: b not in stage.isr, "b has left the ISR")
    stage.machines.crash(c)
    stage.machines.run(600)
    stage.machines.resume(b)
    stage.pause_at(b, _reads_settings, "b has read what it holds")
    stage.until(lambda: c not in stage.isr, "c has left the ISR")
    stage.machines.resume(b)
    stage.until(lambda: b in stage.isr, "b is in sync again")
    epochs = [found.leader_epoch for each in (a, b) if (found := stage.partition(each))]
    assert epochs == [2, 2]
    stage.finish()
