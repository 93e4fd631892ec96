"""Every kind of fault on virtual time: it bites, it heals, or it says why it cannot be done."""

from random import Random

import pytest

from jepsen_like.faults.fault import Fault, Injector
from jepsen_like.faults.kinds import KINDS
from jepsen_like.faults.nemesis import Roles
from jepsen_like.sim.assemblies.quorum.quorum_options import Options
from jepsen_like.sim.assemblies.quorum.simulated_quorum import SimulatedQuorum
from jepsen_like.sim.chaos.plan import Plan
from jepsen_like.sim.chaos.workload_run import stage_of
from jepsen_like.sim.faults.virtual_injectors import injectors
from jepsen_like.sim.faults.virtual_processes import start_again
from jepsen_like.sim.world.assembly import AnyAssembly
from jepsen_like.sim.world.interception import Interception

PLANS = {
    "cluster": Plan(seed=1),
    "registers": Plan(seed=1, workload="cas-register"),
    "zk-v3": Plan(seed=1, design="zk-v3", zookeepers=3),
}
LASTS_MS = 2_000
BACK_MS = 45_000  # for a cluster to be whole again
EVENTS_MAX = 500_000


def known_on(stage: AnyAssembly) -> dict[str, Injector]:
    world = stage.world
    return dict(injectors(stage, Interception(world.network, world.deliver, Random(1))))


def becomes_whole(stage: AnyAssembly) -> bool:
    return stage.world.reaches(lambda: not stage.missing(), BACK_MS, EVENTS_MAX)


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("cluster", [kind for kind in KINDS if "zookeeper" not in kind]),
        ("zk-v3", [kind for kind in KINDS if "zookeeper" in kind]),
    ],
)
def test_every_kind_bites_and_heals_or_says_why_not(name: str, kinds: list[str]) -> None:
    stage = stage_of(PLANS[name])
    for host in stage.world.nodes.values():
        host.must_not_stop = False
        host.start()
    known = known_on(stage)
    assert known.keys() == KINDS.keys()
    roles = Roles(
        controllers=stage.controllers or stage.brokers,
        brokers=stage.brokers,
        active_controller=lambda: stage.active_controller,
        partition_leaders=stage.partition_leaders,
        random=Random(1),
        zookeepers=stage.zookeepers,
    )
    assert becomes_whole(stage), stage.missing()
    for kind in [kind for kind in kinds if not known[kind].why_not]:
        seen = []
        for role in 2 * KINDS[kind].roles:  # where nobody writes, not all nodes talk
            nodes = roles.nodes_of(role)
            in_force = known[kind].inject(Fault(kind=kind), nodes)
            stage.world.run_until(stage.world.now_us + LASTS_MS * 1000, events_max=EVENTS_MAX)
            in_force.heal()
            assert becomes_whole(stage), f"after {kind} on {nodes}: {stage.missing()}"
            seen.append(in_force.proof().bit)
            if seen[-1]:
                break
        assert seen[-1], f"{kind} never bit in {len(seen)} tries"


@pytest.mark.parametrize("kind", ["wipe", "bit-flip"])
def test_what_befalls_a_disk_outlasts_the_process(kind: str) -> None:
    quorum = SimulatedQuorum(1, Options(voters=3, kraft_version=1))
    quorum.start()
    known = injectors(quorum, Interception(quorum.network, quorum.world.deliver))
    in_force = known[kind].inject(Fault(kind=kind), [1])
    host = quorum.hosts[0]
    assert (host.disk.generation, host.disk.is_damaged) == ((1, False), (0, True))[
        kind == "bit-flip"
    ]
    start_again(host)
    assert host.is_up is (kind == "wipe")
    in_force.heal()
    assert host.is_up
    assert not host.disk.is_damaged


def test_what_no_stage_can_do_is_what_the_vocabulary_says() -> None:
    reasons = [
        {kind: each.why_not for kind, each in known_on(stage_of(plan)).items() if each.why_not}
        for plan in PLANS.values()
    ]
    nowhere = set.intersection(*(set(each) for each in reasons))
    assert {kind: reasons[0][kind] for kind in KINDS if kind in nowhere} == {
        kind: known.not_simulated for kind, known in KINDS.items() if known.not_simulated
    }
