"""zk-v2: a leader waits until the replicas that it told to close have closed, but not silently."""

from dataclasses import replace

from jepsen_like.sim.assemblies.designs.zk_cluster import PATIENCE
from tests.sim.zookeeper import Administrator, Scene, begin
from wire.zk import paths
from wire.zk.designs import ZK_V2
from wire.zk.session import Data, GetData
from wire.zk.znodes import ReplicaList, StateChange, StateChangeKind

CLOSE = StateChange(kind=StateChangeKind.CLOSE_REPLICA, topic="t", partition=0, leader_epoch=0)


def queued(admin: Administrator, broker_id: int) -> list[StateChange]:
    queue = paths.state_queue(broker_id)
    found = [admin.do(GetData(path=f"{queue}/{each}")) for each in admin.children(queue)]
    return [StateChange.decode(each.data) for each in found if isinstance(each, Data)]


def errors(cluster: Scene) -> list[tuple[int, dict[str, object]]]:
    return [
        (ms, dict(trace.fields))
        for ms, _, trace in cluster.traces
        if trace.event == "replicas-not-closed"
    ]


def test_leader_that_waits_too_long_for_replicas_to_close_says_so_and_tells_them_again() -> None:
    """ "Wait until the replicas are closed or probably timeout and raise error"."""
    settings = replace(PATIENCE, keep_in_sync_ms=9000, close_wait_ms=2000)
    cluster = begin(ZK_V2, of_replicas=settings, session_timeout_ms=30_000)
    admin = Administrator(cluster)
    admin.create_topic("t", {0: (1, 2)})
    cluster.run_until(lambda: cluster.leaders() == [1])
    cluster.run(500)
    cluster.crash(2)  # its session lives on, and it obeys nothing
    admin.ask_under(paths.V2_PARTITIONS_REASSIGNED, 0, (1, 3))
    began_ms = cluster.world.now_ms
    cluster.run_until(lambda: queued(admin, 2) == [CLOSE])
    assert errors(cluster) == [], "it waits first"
    cluster.run_until(lambda: len(errors(cluster)) == 2)
    (first_ms, error), (second_ms, _) = errors(cluster)
    assert error == {"partition": "t-0", "brokers": [2]}
    assert 2000 < first_ms - began_ms < 3500
    assert 2000 < second_ms - first_ms < 2500
    assert queued(admin, 2) == [CLOSE] * 3
    assert admin.children(paths.V2_PARTITIONS_REASSIGNED) == ("t",), "and nothing is given up"
    replicas = paths.partition_replicas("t", 0)
    moved = ReplicaList(replicas=(1, 3)).encode()
    cluster.run_until(lambda: admin.data(replicas) == moved)  # it is out of the ISR by then
