"""Which engine a cluster can have, and which of its nodes are told."""

from itertools import count
from pathlib import Path

import pytest

from jepsen_like.real.layout import ClusterLayout
from jepsen_like.real.shape import Shape, why_no_engine


def why(engine: str = "raftos", design: str = "quorum", controllers: int = 3) -> str | None:
    return why_no_engine(engine, design=design, controllers=controllers, dynamic=False)


def laid_out(engine: str, *, combined: bool = False) -> ClusterLayout:
    return Shape(engine=engine, combined=combined).lay_out(Path("/cluster"), count(7000))


def told(layout: ClusterLayout) -> list[int]:
    """The nodes whose configuration names an engine."""
    return [
        node.id
        for node in layout.nodes
        if "quorumlab.engine=raftos\n" in layout.properties(node, {})
    ]


@pytest.mark.parametrize("controllers", [1, 2, 3])
def test_own_engine_is_always_there(controllers: int) -> None:
    assert why("native", controllers=controllers) is None
    assert why("native", design="zk-v3", controllers=0) is None


@pytest.mark.parametrize("controllers", [1, 2, 4, 6])
def test_raftos_is_refused_where_it_counts_wrong(controllers: int) -> None:
    assert f"not for {controllers}" in (why(controllers=controllers) or "")


def test_raftos_is_refused_where_nothing_is_for_it_to_do() -> None:
    assert "in ZooKeeper" in (why(design="zk-v3") or "")
    refused = why_no_engine("raftos", design="quorum", controllers=3, dynamic=True)
    assert "cannot live in the log" in (refused or "")


def test_engine_that_nobody_knows_is_refused() -> None:
    assert why("paxos") == "one of native, raftos"


def test_controllers_are_told_and_brokers_are_not() -> None:
    assert told(laid_out("raftos")) == [101, 102, 103]
    assert told(laid_out("raftos", combined=True)) == [1, 2, 3]
    assert told(laid_out("native")) == []
