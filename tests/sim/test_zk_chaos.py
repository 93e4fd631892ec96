"""Workloads on virtual time in ZooKeeper mode: what each design promises holds under its faults."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import cast

import pytest

from jepsen_like.histories.history import Value
from jepsen_like.planted.every_bug import planted
from jepsen_like.real.runs.outcome import why_admitted
from jepsen_like.scenarios.schedules import carry_out
from jepsen_like.scenarios.stage.story import Production
from jepsen_like.scenarios.zookeeper.directed_zookeeper import DirectedZooKeeper
from jepsen_like.sim.assemblies.designs.zk_invariants import ZkInvariants
from jepsen_like.sim.chaos.plan import ChaosOutcome, Plan, plan_as_json, plan_from_json
from jepsen_like.sim.chaos.workload_run import run_plan
from jepsen_like.sim.violation import Violation
from jepsen_like.workloads.workload import comparable
from tests.sim.zookeeper import Administrator, Scene, begin, of
from wire.zk import paths
from wire.zk.designs import DESIGNS, ZK_KIP497, ZK_V1, ZK_V2, ZK_V3, Design
from wire.zk.session import SetData
from wire.zk.znodes import PartitionState, encode_epoch

SHORT = 5  # seconds of faults
FAULTS = ("kill", "pause", "kill-zookeeper", "cut-zookeeper")


def admitted(outcome: ChaosOutcome) -> bool:
    """Valid, or violated as the design's document says."""
    assert not outcome.broken
    return all(why_admitted(outcome.plan.design, each) for each in outcome.verdict.findings)


@pytest.mark.parametrize(
    ("design", "faults"),
    [
        ("zk-v1", ("kill",)),
        ("zk-v2", ("cut-zookeeper",)),
        ("zk-v3", ("kill-zookeeper", "kill")),
        ("zk-redesign", ("pause",)),
        ("zk-kip497", ("cut-zookeeper",)),
    ],
)
def test_promises_of_each_design_hold_under_faults(design: str, faults: tuple[str, ...]) -> None:
    outcome = run_plan(
        Plan(seed=1, design=design, faults=faults, seconds=SHORT, judges_invariants=True)
    )
    assert admitted(outcome), outcome.verdict
    assert any(each.proof.bit for each in outcome.fault_outcomes)


@pytest.mark.parametrize(
    ("plant", "rule", "seed"),
    [
        ("tells_no_epoch", "D-DIV", 84),
        ("truncates_to_the_high_watermark", "D-THW", 1),
        ("writes_in_the_epoch_before", "D-ONE", 1),
    ],
)
def test_logs_of_all_brokers_are_compared(plant: str, rule: str, seed: int) -> None:
    outcome = run_plan(
        Plan(
            seed=seed,
            design="zk-kip497",
            faults=("kill", "pause", "partition", "cut-zookeeper"),
            seconds=8,
            warm_up_seconds=1,
            judges_invariants=True,
            plants=plant,
        )
    )
    assert outcome.broken.startswith(f"{rule}: ")


LOGS_OF_ONE_LENGTH = """
    a, b = the replicas of orders on all
    commit x at a
    hold fetch answers from a to b
    produce y at a
    deliver until the log of a ends at 2
    crash a
    lose
    deliver until b leads
    commit z at b
    restart a
    deliver until a is in sync
    run 100 ms
"""


def play_judged(story: str, design: str) -> None:
    directed = DirectedZooKeeper(Production(), design=design)
    directed.cluster.world.observe(ZkInvariants(directed.cluster))
    for command in story.strip().splitlines():
        carry_out(directed, "zookeeper", command.strip())


@pytest.mark.parametrize("design", ["zk-redesign", "zk-kip497"])
def test_log_that_is_long_enough_must_hold_what_was_exposed(design: str) -> None:
    """a comes back with y where b has z, and is in sync only once it has z."""
    play_judged(LOGS_OF_ONE_LENGTH, design)
    bug = planted("takes_equal_length_for_equal_content")
    with bug, pytest.raises(Violation, match=r"^D-THW: .* in sync, and ends at 2 in \[1,2\)@0"):
        play_judged(LOGS_OF_ONE_LENGTH, design)


@pytest.mark.extra
@pytest.mark.parametrize("seed", [20380, 20398])
def test_replicas_that_elect_a_leader_are_all_in_sync_again(seed: int) -> None:
    """20380: who leads had not registered when the followers looked for it. 20398: who led before
    wrote the ISR once more."""
    outcome = run_plan(Plan(seed=seed, design="zk-v1", faults=FAULTS, judges_invariants=True))
    assert not outcome.verdict.findings, outcome.verdict
    assert not outcome.broken


@pytest.mark.extra
def test_isr_is_judged_by_what_zookeeper_has_applied() -> None:
    """The judge looked between a commit and its application, and kept the ISR of before."""
    outcome = run_plan(
        Plan(seed=130000015, design="zk-redesign", faults=FAULTS, judges_invariants=True)
    )
    assert not outcome.broken


@pytest.mark.extra
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("design", sorted(DESIGNS))
def test_promises_hold_with_more_seeds(design: str, seed: int) -> None:
    outcome = run_plan(Plan(seed=seed, design=design, faults=FAULTS, judges_invariants=True))
    assert admitted(outcome), outcome.verdict


def test_groups_work_from_the_beginning_on() -> None:
    outcome = run_plan(
        Plan(seed=1, design="zk-kip497", workload="kafka", faults=("kill",), seconds=SHORT)
    )
    assert (outcome.verdict.findings, outcome.void) == ((), ())


@pytest.mark.extra
def test_topic_that_was_made_at_the_very_end_is_listed_by_all() -> None:
    """Its broker is told of it a moment later than the one that made it."""
    outcome = run_plan(Plan(seed=0, design="zk-kip497", workload="set", faults=FAULTS))
    assert (outcome.verdict.findings, outcome.void) == ((), ())


def test_same_plan_gives_the_same_run() -> None:
    plan = Plan(seed=4, design="zk-v3", faults=("kill",), seconds=2)
    again = run_plan(plan_from_json(plan_as_json(plan)))
    assert run_plan(plan).digest == again.digest


@pytest.mark.parametrize(
    ("design", "told"),
    [
        (ZK_V1, {}),
        (ZK_V2, {"t-0": [1, 5, -1, [1, 2], {}]}),
        (ZK_V3, {"t-0": [1, 5, 7, [1, 2], {}], "t-1": [-1, 5, 8, [1], {}]}),
    ],
    ids=lambda each: getattr(each, "name", ""),
)
def test_only_what_a_design_numbers_is_held_against_others(
    design: Design, told: Mapping[str, Value]
) -> None:
    states: dict[str, Value] = {"t-0": [1, 5, 7, [1, 2], {}], "t-1": [-1, 5, 8, [1], {}]}
    assert comparable(states, design) == told
    assert comparable(states, None) == states


def _state(leader: int, leader_epoch: int, isr: tuple[int, ...], controller_epoch: int) -> bytes:
    return PartitionState(
        leader=leader, leader_epoch=leader_epoch, isr=isr, controller_epoch=controller_epoch
    ).encode()


STATE = paths.partition_state("t", 0)


@pytest.mark.parametrize(
    ("rule", "path", "data"),
    [
        ("Z-CE", paths.CONTROLLER_EPOCH, encode_epoch(0)),
        ("Z-CE", STATE, _state(2, 6, (1, 2), controller_epoch=0)),
        ("M-LI", STATE, _state(3, 6, (1, 2), controller_epoch=1)),
        ("M-PE", STATE, _state(1, 4, (1, 2), controller_epoch=1)),
    ],
)
def test_what_no_controller_may_write_is_noticed(rule: str, path: str, data: bytes) -> None:
    cluster = begin(ZK_KIP497)
    administrator = Administrator(cluster)
    administrator.create_topic("t", {0: (1, 2)})
    cluster.run_until(lambda: cluster.leaders(of("t")) == [1])
    administrator.do(SetData(path=STATE, data=_state(1, 5, (1, 2), controller_epoch=1)))
    invariants = ZkInvariants(cluster)
    invariants.look()
    administrator.do(SetData(path=path, data=data))
    with pytest.raises(Violation, match=rule):
        invariants.look()


def test_what_is_committed_is_looked_at_when_it_has_been_applied() -> None:
    """Run zk-redesign 130000015: a look between the two saw the state of before, and no later."""
    ensemble = SimpleNamespace(committed=0, applied=0, tree=SimpleNamespace(read=lambda _: None))
    options = SimpleNamespace(design=ZK_KIP497)
    invariants = ZkInvariants(cast(Scene, SimpleNamespace(options=options, ensemble=ensemble)))

    def look(epoch: int, *, committed: int, applied: int) -> None:
        ensemble.data = lambda _path: encode_epoch(epoch)
        ensemble.committed, ensemble.applied = committed, applied
        invariants.look()

    look(0, committed=0, applied=0)
    look(0, committed=1, applied=0)
    look(2, committed=1, applied=1)
    with pytest.raises(Violation, match="1 after 2"):
        look(1, committed=2, applied=2)


@pytest.mark.extra
@pytest.mark.parametrize(("design", "seed"), [("zk-v1", 5), ("zk-v2", 4), ("zk-redesign", 2)])
def test_topics_that_were_removed_amid_faults_are_gone_for_all(design: str, seed: int) -> None:
    """A removal that a lost session cut in two; topics that are told of while they are deleted."""
    outcome = run_plan(Plan(seed=seed, design=design, workload="set", faults=FAULTS, seconds=10))
    assert (outcome.broken, outcome.verdict.findings) == ("", ())
