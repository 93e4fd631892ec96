"""Milestones and the ledger of every ZooKeeper design: a broker dies that is in all ISRs."""

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache

import pytest

from controller.milestones import MILESTONE
from tests.sim.zookeeper import WITH_CONTROLLER, Administrator, Scene, begin, of
from wire.zk.designs import DESIGNS, ZK_KIP497, ZK_REDESIGN, ZK_V3, Design

PARTITIONS = 10
Reached = tuple[int, int, str, int, dict[str, object]]  # when, where, step, count, about


def milestones(cluster: Scene, since: int = 0) -> Iterator[Reached]:
    for at_ms, node_id, trace in cluster.traces[since:]:
        if trace.event == MILESTONE:
            fields = dict(trace.fields)
            step, count, _ = (fields.pop(name) for name in ("step", "count", "since"))
            yield at_ms, node_id, str(step), int(str(count)), fields


def in_place(design: Design) -> tuple[Scene, int]:
    """A cluster where a broker that is not the controller leads all, and its id."""
    cluster = begin(design)
    admin = Administrator(cluster)
    dead, rest = cluster.one_and_rest()
    admin.create_topic("t", dict.fromkeys(range(PARTITIONS), (dead, *rest)))
    cluster.run_until(lambda: all(cluster.leaders(of("t", n)) for n in range(PARTITIONS)))
    cluster.run(2000)
    return cluster, dead


def led_by_others(cluster: Scene, dead: int) -> bool:
    return all(
        len(led := cluster.leaders(of("t", n))) == 1 and dead not in led for n in range(PARTITIONS)
    )


def crash(cluster: Scene, dead: int) -> tuple[list[Reached], Mapping[str, int]]:
    """What was reached, and what it cost those that are left."""
    since = len(cluster.traces)
    before = {
        node_id: Counter(cluster.clients[node_id].counts())
        for node_id in cluster.hosts
        if node_id != dead
    }
    cluster.crash(dead)
    cluster.run_until(lambda: led_by_others(cluster, dead), ms_max=60_000)
    cluster.run(1000)
    spent: Counter[str] = Counter()
    for node_id, earlier in before.items():
        spent.update(Counter(cluster.clients[node_id].counts()) - earlier)
    return list(milestones(cluster, since)), spent


@cache
def crashed(name: str) -> tuple[Scene, int, list[Reached], Mapping[str, int]]:
    """As in `crash`, once for all tests of a design."""
    cluster, dead = in_place(DESIGNS[name])
    return cluster, dead, *crash(cluster, dead)


def counted(reached: list[Reached], step: str) -> int:
    return sum(count for _, _, name, count, _ in reached if name == step)


@pytest.mark.parametrize("name", [design.name for design in WITH_CONTROLLER])
def test_controller_detects_decides_persists_and_tells_and_brokers_apply(name: str) -> None:
    cluster, dead, reached, _ = crashed(name)
    controller = cluster.active_controller
    of_controller = [
        (step, count, about.get("what"), about.get("id"))
        for _, node_id, step, count, about in reached
        if node_id == controller and step in ("detected", "decided", "persisted")
    ]
    assert of_controller == [
        ("detected", 0, "broker-failed", dead),
        ("decided", PARTITIONS, "broker-failed", dead),
        ("persisted", PARTITIONS, "broker-failed", dead),
    ]
    commands = ["LeaderAndIsr"] if name == ZK_V3.name else ["LeaderAndIsr", "UpdateMetadata"]
    rest = sorted({1, 2, 3} - {dead})
    told = [about for *_, step, count, about in reached if (step, count) == ("told", PARTITIONS)]
    applied = [
        about for *_, step, count, about in reached if (step, count) == ("applied", PARTITIONS)
    ]
    wanted = [{"broker": each, "command": command} for command in commands for each in rest]
    assert sorted(told, key=str) == sorted(applied, key=str) == sorted(wanted, key=str)


@pytest.mark.parametrize("name", ["zk-v1", "zk-v2"])
def test_replicas_do_all_of_it_themselves(name: str) -> None:
    _, dead, reached, _ = crashed(name)
    led = counted(reached, "persisted")
    assert {step for _, _, step, _, _ in reached} == {"detected", "decided", "persisted", "applied"}
    causes = {about["id"] for _, _, step, _, about in reached if step == "detected"}
    assert causes == {dead}
    if DESIGNS[name].has_leader_epochs:
        assert led == PARTITIONS
        assert counted(reached, "decided") == led, "one replica stands for each"
    else:
        assert counted(reached, "decided") == 2 * led, "all that are left stand for each"
    assert counted(reached, "applied") == 2 * led, "both that are left know the leader"
    assert {about["id"] for *_, step, _, about in reached if step == "applied"} == {dead}


@pytest.mark.parametrize("name", [design.name for design in WITH_CONTROLLER])
def test_steps_follow_each_other(name: str) -> None:
    *_, reached, _ = crashed(name)
    steps = [step for _, _, step, _, _ in reached]
    assert [*dict.fromkeys(steps)] == ["detected", "decided", "persisted", "told", "applied"]


# --- the ledger ---------------------------------------------------------------------------------


def spent_on(name: str) -> dict[str, int]:
    *_, spent = crashed(name)
    return {each: count for each, count in spent.items() if count}


LOOK = {"zk.children": 1, "zk.watches_armed": 1, "zk.watches_fired": 1}  # who lives


def test_zk_v3_reads_and_writes_each_partition_once_conditionally() -> None:
    assert spent_on(ZK_V3.name) == {
        **LOOK,
        "zk.get": 2 + PARTITIONS,  # the two brokers that live
        "zk.set": PARTITIONS,
        "zk.set.versioned": PARTITIONS,
    }


def test_zk_redesign_asks_for_the_same_and_does_not_wait_between() -> None:
    assert spent_on(ZK_REDESIGN.name) == spent_on(ZK_V3.name)


def test_zk_kip497_reads_no_partition_and_writes_a_hundred_at_a_time_guarded() -> None:
    assert spent_on(ZK_KIP497.name) == {
        **LOOK,
        "zk.get": 2,
        "zk.multi": 1,
        "zk.check": 1,
        "zk.multi.set": PARTITIONS,
    }


def test_zk_v2_elects_with_one_transaction_a_partition() -> None:
    spent = spent_on("zk-v2")
    writes = {each: count for each, count in spent.items() if each.startswith("zk.multi")}
    assert writes == {
        "zk.multi": PARTITIONS,
        "zk.multi.set": PARTITIONS,
        "zk.multi.create": PARTITIONS,
    }
    assert "zk.set" not in spent
    assert "zk.create" not in spent
    assert spent["zk.watches_fired"] == 4 * PARTITIONS, "the old node went and a new one came"
    assert spent["zk.watches_armed"] == spent["zk.watches_fired"]


def test_zk_v1_tries_twice_for_each_partition_and_writes_the_isr_unconditionally() -> None:
    _, _, reached, _ = crashed("zk-v1")
    led, spent = counted(reached, "persisted"), spent_on("zk-v1")
    assert spent["zk.create"] == 2 * led, "one of them in vain"
    assert spent["zk.set"] == led
    assert "zk.set.versioned" not in spent


# --- other causes -------------------------------------------------------------------------------


@pytest.mark.parametrize("design", WITH_CONTROLLER, ids=lambda design: design.name)
def test_next_controller_is_elected_and_ready(design: Design) -> None:
    cluster = begin(design)
    first, since = cluster.active_controller, len(cluster.traces)
    assert first is not None
    cluster.crash(first)
    cluster.run_until(lambda: cluster.active_controller not in (None, first))
    cluster.run(500)
    reached = [
        (step, node_id, about.get("id", about.get("epoch")))
        for _, node_id, step, _, about in milestones(cluster, since)
        if step in ("detected", "elected", "ready")
    ]
    next_one = cluster.active_controller
    assert ("detected", next_one, first) in reached
    assert reached[-2:] == [("elected", next_one, 2), ("ready", next_one, 2)]


@pytest.mark.parametrize("design", WITH_CONTROLLER, ids=lambda design: design.name)
def test_topic_is_detected_and_persisted_by_its_name(design: Design) -> None:
    cluster = begin(design)
    since = len(cluster.traces)
    Administrator(cluster).create_topic("orders", {0: (1, 2), 1: (2, 3)})
    cluster.run(500)
    found = [
        (step, count, about["id"])
        for _, _, step, count, about in milestones(cluster, since)
        if about.get("what") == "topic"
    ]
    assert found == [
        ("detected", 0, "orders"),
        ("decided", 2, "orders"),
        ("persisted", 2, "orders"),
    ]


@pytest.mark.parametrize("name", [design.name for design in WITH_CONTROLLER])
def test_isr_that_grows_is_decided_and_persisted(name: str) -> None:
    """The broker that died comes back, and catches up. Without a controller it was never dropped:
    nobody wrote."""
    cluster, dead, _, _ = crashed(name)
    since = len(cluster.traces)
    cluster.restart(dead)
    cluster.run(5000)
    steps = {
        step for _, _, step, _, about in milestones(cluster, since) if about.get("what") == "isr"
    }
    assert {"detected", "decided", "persisted"} <= steps


# --- brokers without data -----------------------------------------------------------------------


@pytest.mark.parametrize("design", list(DESIGNS.values()), ids=lambda design: design.name)
def test_brokers_without_data_are_led_elected_and_told_like_others(design: Design) -> None:
    cluster = begin(design, is_dataless=True)
    admin = Administrator(cluster)
    dead, rest = cluster.one_and_rest()
    partitions = dict.fromkeys(range(PARTITIONS), (dead, *rest))
    admin.create_topic("t", partitions)
    cluster.run(2000)
    assert all(len(node.broker.replicas) == 0 for node in cluster.up)
    since = len(cluster.traces)
    cluster.crash(dead)
    cluster.run(5000)
    reached = [
        each
        for each in milestones(cluster, since)
        if each[2] in ("decided", "persisted") and each[4]["id"] == dead
    ]
    led = counted(reached, "persisted")
    assert led == PARTITIONS if design.name != "zk-v1" else led > 0
    stood = counted(reached, "decided")
    assert stood == (2 if design.name == "zk-v1" else 1) * led
