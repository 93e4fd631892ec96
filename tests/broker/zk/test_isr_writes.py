"""A leader that writes its ISR itself: which of its wishes is written in the end."""

from dataclasses import replace

from broker.isr import PendingShrink
from broker.outbox import Outbox
from broker.partition import LeaderOf
from broker.zk.isr_writes import IsrWrites
from jepsen_like.sim.schedules.simulated import simulated
from jepsen_like.sim.schedules.zk_stage import ZkStage
from quorum.zk_effects import ZkRequest
from quorum.zk_procedures import Procedures
from wire.zk.designs import ZK_V3
from wire.zk.session import Session, SessionChanged, SessionState, SetData
from wire.zk.znodes import PartitionState


def test_change_that_waits_for_zookeeper_is_that_of_the_epoch_of_the_day() -> None:
    """What is wanted in a new epoch is not queued again: the procedure that waits is its own."""
    stage = ZkStage(simulated(), design="zk-v3")
    a, b, _ = stage.create(*stage.brokers)
    partition = stage.partition(a)
    assert partition is not None
    assert isinstance(partition.role, LeaderOf)
    outbox, session = Outbox("broker"), Session()
    procedures = Procedures(outbox, session)
    writes = IsrWrites(
        design=ZK_V3,
        node_id=a,
        outbox=outbox,
        procedures=procedures,
        controller_epoch=lambda: 1,
        settled=lambda _partition: None,
        changed=lambda _of: None,
    )
    for leader_epoch in (5, 6):
        shrink = PendingShrink(members=(a, b), leaving=(b,))
        partition.role = replace(partition.role, leader_epoch=leader_epoch, isr=shrink)
        writes.want(partition, partition.role, 0)
    session.become(SessionChanged(state=SessionState.CONNECTING, session_id=0, timeout_ms=1), 0)
    session.become(SessionChanged(state=SessionState.CONNECTED, session_id=1, timeout_ms=1), 0)
    procedures.session_changed()
    asked = [each.operation for each in outbox.take() if isinstance(each, ZkRequest)]
    (written,) = asked
    assert isinstance(written, SetData)
    state = PartitionState.decode(written.data)
    assert (state.leader_epoch, state.isr) == (6, (a,))
