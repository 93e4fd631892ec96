"""A whole cluster in one process, and the example that shows it."""

import asyncio
import importlib.util
from pathlib import Path

import pytest

from quorum.core.effects import Stop
from quorumlab.in_process import InProcessCluster

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


@pytest.mark.parametrize("combined", [False, True])
def test_nodes_stop_and_start_again(tmp_path: Path, combined: bool) -> None:
    async def test() -> list[Stop]:
        stops = []
        async with InProcessCluster(
            tmp_path, controllers=3, brokers=3, combined=combined
        ) as cluster:
            for node_id in (1, cluster.layout.controllers[-1].id):
                stops.append(await cluster.stop(node_id))
                assert node_id not in cluster.nodes
                await cluster.start(node_id)
        return stops

    stops = asyncio.run(asyncio.wait_for(test(), 60))
    assert [stop.exit_code for stop in stops] == [0, 0]


def test_orderly_stop_is_told_to_the_controller_with_the_next_registration(tmp_path: Path) -> None:
    """Without it, the controller takes the log for shorter than it was (KIP-966)."""

    async def test() -> list[int]:
        epochs = []
        async with InProcessCluster(tmp_path, controllers=1, brokers=1) as cluster:
            for _ in range(2):
                broker = cluster.nodes[1].broker
                assert broker is not None
                epochs += [broker.config.previous_broker_epoch, broker.broker_epoch]
                await cluster.stop(1)
                await cluster.start(1)
        return epochs

    before, first, second, _ = asyncio.run(asyncio.wait_for(test(), 60))
    assert (before, second) == (-1, first)


def test_the_example_runs() -> None:
    spec = importlib.util.spec_from_file_location("example", EXAMPLES / "in_one_process.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert asyncio.run(asyncio.wait_for(module.main(), 60)) == 10
