"""What tests ask of nodes over HTTP: linearizable reads, and a register on the quorum."""

import asyncio
from pathlib import Path
from typing import Any

import aiohttp

from jepsen_like.real.layout import NodeLayout
from quorum.node.confirmed_leadership import ConfirmingMember
from quorumlab.in_process import InProcessCluster

SETTING = "delete.retention.ms"


def url(node: NodeLayout, path: str) -> str:
    return f"http://{node.host}:{node.http_port}/v1/agent/{path}"


def active(cluster: InProcessCluster) -> NodeLayout:
    leaders = {node.raft.leader.leader_id for node in cluster.nodes.values()}
    return next(node for node in cluster.layout.controllers if node.id in leaders)


def test_read_committed_comes_from_the_active_controller_alone(tmp_path: Path) -> None:
    async def test() -> None:
        settings = {"quorumlab.confirmed.reads.enable": "true"}
        async with (
            InProcessCluster(tmp_path, controllers=3, brokers=1, settings=settings) as cluster,
            aiohttp.ClientSession() as session,
        ):
            await asyncio.to_thread(create, cluster.bootstrap_servers)
            path = f"read-committed?topic=orders&config={SETTING}"
            leader = active(cluster)
            assert isinstance(cluster.nodes[leader.id].member, ConfirmingMember)
            async with session.get(url(leader, path)) as answer:
                told = await answer.json()
                assert (answer.status, told["value"]) == (200, "77")
                assert told["offset"] > 0
            standby = next(each for each in cluster.layout.controllers if each.id != leader.id)
            async with session.get(url(standby, path)) as answer:
                told = await answer.json()
                assert (answer.status, told["leader_id"]) == (409, leader.id)
            async with session.get(url(leader, "read-committed?topic=orders")) as answer:
                assert answer.status == 400
            (broker,) = cluster.layout.brokers
            async with session.get(url(broker, path)) as answer:
                assert answer.status == 404

    asyncio.run(asyncio.wait_for(test(), 60))


def create(bootstrap_servers: str) -> None:
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.cimpl import NewTopic

    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    topic = NewTopic("orders", 1, 1, config={SETTING: "77"})
    admin.create_topics([topic])["orders"].result(15)


def test_register_on_the_quorum_alone(tmp_path: Path) -> None:
    async def test() -> None:
        settings = {"quorumlab.application": "register"}
        async with (
            InProcessCluster(tmp_path, controllers=3, brokers=0, settings=settings) as cluster,
            aiohttp.ClientSession() as session,
        ):
            leader = active(cluster)
            applied = f"http://{leader.host}:{leader.http_port}/v1/applied?offsets=1"
            async with session.get(applied) as answer:
                assert answer.status == 404
                assert "holds registers" in (await answer.json())["error"]

            async def ask(node: NodeLayout, f: str, value: Any = None) -> Any:
                asked = {"f": f, "key": "x", "value": value}
                async with session.post(url(node, "register"), json=asked) as answer:
                    assert answer.status == 200, await answer.text()
                    return await answer.json()

            async with asyncio.timeout(20):
                while (await ask(leader, "write", 1))["outcome"] != "ok":
                    pass  # it leads when it has committed in its epoch
            assert await ask(leader, "read") == {"outcome": "ok", "value": 1}
            assert await ask(leader, "cas", [2, 3]) == {"outcome": "fail", "seen": 1}
            assert await ask(leader, "cas", [1, 3]) == {"outcome": "ok"}
            await cluster.stop(leader.id)
            others = [node for node in cluster.layout.controllers if node.id != leader.id]
            async with asyncio.timeout(20):
                told = {"outcome": "fail"}
                while told["outcome"] != "ok":  # who leads next is for the quorum to say
                    others.append(others.pop(0))
                    told = await ask(others[0], "read")
            assert told == {"outcome": "ok", "value": 3}

    asyncio.run(asyncio.wait_for(test(), 60))
