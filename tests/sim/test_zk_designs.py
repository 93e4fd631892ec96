"""What the designs on ZooKeeper do alike, each in its own way."""

import pytest

from tests.sim.zookeeper import WITH_CONTROLLER, Administrator, begin
from wire.zk import paths
from wire.zk.designs import DESIGNS, Design
from wire.zk.session import Delete


@pytest.mark.parametrize("design", DESIGNS.values(), ids=lambda design: design.name)
def test_clients_lose_nothing_while_leaders_and_the_controller_die(design: Design) -> None:
    cluster = begin(design)
    told = cluster.write()
    controller = cluster.active_controller or 2
    leader = next(each for each in (1, 2, 3) if each != controller)
    for dead, ms in ((leader, 3000), (controller, 4000)):
        cluster.crash(dead)
        cluster.run(ms)
        cluster.restart(dead)
        cluster.run(3000)
    assert len(told.acknowledged) > 300
    cluster.run_until(lambda: len(told.unread) < 10)


@pytest.mark.parametrize("design", WITH_CONTROLLER, ids=lambda design: design.name)
def test_controllers_node_that_was_deleted_is_run_for_again(design: Design) -> None:
    cluster = begin(design)
    admin = Administrator(cluster)
    admin.do(Delete(path=paths.CONTROLLER))
    cluster.run(300)
    assert sum(node.controller.is_active for node in cluster.up) == 1
    assert admin.data(paths.CONTROLLER_EPOCH) == b"2"
