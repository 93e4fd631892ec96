"""A design without one of its improvements, or without all of them, still does its work."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.sim.zookeeper import Administrator, begin, of
from wire.zk import paths
from wire.zk.designs import DESIGNS, Design, Layout
from wire.zk.session import Create
from wire.zk.switches import SWITCHES, without


def switched() -> Iterator[Any]:
    """Each switch of each design with a controller, and all of them together."""
    for design in DESIGNS.values():
        names = [name for name, each in SWITCHES.items() if getattr(design, each.field)]
        for text in dict.fromkeys([*names, ",".join(names)]):
            if design.has_controller and text:
                yield pytest.param(without(design, text), id=f"{design.name}-{text}")


@pytest.mark.parametrize("design", list(switched()))
def test_topic_is_created_fails_over_recovers_and_is_deleted(design: Design) -> None:
    cluster = begin(design)
    admin = Administrator(cluster)
    dies, rest = cluster.one_and_rest()
    replicas = (dies, *rest)
    admin.create_topic("t", {0: replicas, 1: (rest[0], rest[1], dies)})
    cluster.run_until(lambda: cluster.leaders() == [dies])
    cluster.crash(dies)
    cluster.run_until(lambda: cluster.leaders() == [rest[0]])
    cluster.restart(dies)

    def is_whole() -> bool:
        states = [cluster.state(of("t", partition)) for partition in (0, 1)]
        return all(set(state.isr) == {1, 2, 3} for state in states)

    cluster.run_until(is_whole)
    cluster.shut_down(rest[0])
    cluster.run_until(lambda: not cluster.hosts[rest[0]].is_up)
    cluster.run_until(lambda: len(cluster.leaders()) == 1)
    cluster.restart(rest[0])
    cluster.run_until(is_whole)
    if design.layout is Layout.KAFKA:
        admin.do(Create(path=f"{paths.DELETE_TOPICS}/t"))
        cluster.run_until(lambda: admin.data(paths.topic("t")) is None)
