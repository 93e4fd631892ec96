"""The museum's schedules of ZooKeeper mode: each is played on the design that has the weakness,
which its document admits or its successor names, and on the one that mends it.

In every schedule `a` leads at first. The numbers are those of the museum. Schedules that ask the
production for their stage can be played on processes, too.

Source: the issues named; seeds 000, 001 and 003, with their sections of motivation.
"""

from jepsen_like.sim.schedules.production import Production
from jepsen_like.sim.schedules.schedule_list import Schedules, schedule
from jepsen_like.sim.schedules.stages import Held, ZooKeeperStage
from jepsen_like.sim.schedules.zk_stage import ZkStage
from wire.messages.fetching import FetchResponse
from wire.zk import paths
from wire.zk.control_rpc import (
    ControlledShutdownResponse,
    LeaderAndIsrRequest,
    StopReplicaRequest,
)
from wire.zk.session import Delete, GetData, Operation

__all__ = ["ZK_SCHEDULES"]

ZK_SCHEDULES: Schedules = {}


def _stage(production: Production, design: str, **wanted: object) -> ZkStage:
    """In the simulator; on `design`, unless the production says otherwise."""
    return ZkStage(production, **{"design": design, **wanted, **production.settings})


def _looks_who_lives(operation: Operation) -> bool:
    """The controller knows which brokers there are, and asks for what each has registered."""
    return isinstance(operation, GetData) and paths.parent(operation.path) == paths.BROKER_IDS


def _leaves_the_isr(stage: ZooKeeperStage, node: int, leader: int) -> tuple[Held, Held]:
    """It stops fetching until the leader has taken it out of the ISR."""
    blocked = stage.stop_fetching(node, leader)
    stage.produce(b"w", to=leader)
    stage.until(lambda: node not in stage.isr, f"{stage.name(node)} has left the ISR")
    return blocked


# --- A1: the herd -----------------------------------------------------------------------------


@schedule(ZK_SCHEDULES)
def herd(production: Production) -> None:
    """a dies, and its replicas hear of that: one is to stand for the election, and is enough."""
    stage = _stage(production, "zk-v2", brokers=5)
    a, *rest = stage.create(*stage.brokers)
    stood = stage.candidacies(rest)
    stage.kill(a)
    stage.until(lambda: any(stage.leads(each) for each in rest), "another replica leads")
    stage.wait(300)
    candidates = stage.candidacies(rest) - stood
    production.note(f"{candidates} have stood")
    told = f"{candidates} of {len(rest)} replicas stood for one partition"
    stage.must(candidates < len(rest), "Z-HERD", told)
    stage.finish()


# --- A2: two leaders --------------------------------------------------------------------------


@schedule(ZK_SCHEDULES)
def split_brain(production: Production) -> None:
    """a finds no way to ZooKeeper, another replica is elected, and both are written to.

    Nobody fetches from a any more: it wants an ISR of itself alone. When ZooKeeper is back it asks
    for that before it hears what has become of it.
    """
    stage = production.zookeeper(design="zk-v2")
    a, *rest = stage.create(*stage.brokers)
    stage.cut_session(a)
    stage.until(lambda: any(stage.leads(each) for each in rest), "another replica leads")
    (new,) = (each for each in rest if stage.leads(each))
    stage.wait(200)
    of_a = stage.produce(b"x", to=a)
    stage.wait(8_000)
    of_new = stage.produce(b"y", to=new)
    stage.wait(100)
    stage.heal_session(a)
    stage.until(lambda: of_a.is_answered and of_new.is_answered, "both clients have an answer")
    stage.finish()


# --- A4: a queue that is full -----------------------------------------------------------------


@schedule(ZK_SCHEDULES)
def state_queue_is_full(production: Production) -> None:
    """c is away, and of the topics that it has replicas of one more is deleted than its queue
    holds. The last of them has nothing to do with the others."""
    stage = production.zookeeper(design="zk-v3", queue_max=2)
    *_, c = stage.others(stage.controller)
    a, b = stage.others(c)
    stage.create(a, b)
    topics = ("first", "second", "third")
    for topic in topics:
        stage.create(a, c, topic=topic)
    stage.kill(c)
    stage.until(lambda: all(stage.leads(a, each) for each in topics), "a leads all of them")
    for topic in topics:
        stage.delete(topic)
    are_gone = "the topics are gone, although c is away"
    stage.until(
        lambda: not any(map(stage.has_topic, topics)), are_gone, bound="Z-QUEUE", within_ms=10_000
    )
    stage.finish()


# --- B2, B8, B3: controllers that have been overtaken -----------------------------------------


@schedule(ZK_SCHEDULES)
def controller_sleeps_past_its_session(production: Production) -> None:
    """a dies, and the controller that sees so sleeps, while a comes back and another takes over.

    Then it goes on with what it knew: that a is dead.
    """
    stage = _stage(production, "zk-kip497")
    controller = stage.controller
    assert controller is not None
    a, b = stage.others(controller)
    stage.create(a, b)
    stage.kill(a)
    stage.pause_at(controller, _looks_who_lives, "the controller knows that a is gone")
    stage.start(a)
    stage.until(lambda: stage.controller not in (None, controller), "another controller is active")
    stage.until(lambda: stage.leads(a), "a leads again")
    stage.wait(500)
    stage.resume(controller)
    stage.wait(1_500)
    stage.finish()


@schedule(ZK_SCHEDULES)
def office_ends_behind_the_queue(production: Production) -> None:
    """a dies, and comes back while the controller decides what that means.

    An administrator has deleted /controller meanwhile. The news waits behind what is being done.
    """
    stage = _stage(production, "zk-kip497", session_timeout_ms=3_000)
    controller = stage.controller
    assert controller is not None
    a, b = stage.others(controller)
    stage.create(a, b)
    stage.kill(a)
    stage.pause_at(controller, _looks_who_lives, "the controller knows that a is gone")
    stage.start(a)
    stage.until(lambda: stage.is_registered(a), "a is registered again")
    stage.ask_zookeeper(Delete(path=paths.CONTROLLER))
    stage.until(lambda: stage.controller not in (None, controller), "another controller is active")
    stage.until(lambda: stage.leads(a), "a leads again")
    stage.wait(200)
    stage.resume(controller)
    stage.wait(1_500)
    stage.finish()


@schedule(ZK_SCHEDULES)
def command_of_a_former_controller(production: Production) -> None:
    """What a new controller tells b stays on its way. A topic is created, and the next takes over.

    Then the message arrives. b has x, and a dies.
    """
    stage = _stage(production, "zk-redesign")
    a, b, _ = stage.brokers
    stage.create(a, b, topic="first")
    late = stage.hold(LeaderAndIsrRequest, target=b, times=1)
    stage.ask_zookeeper(Delete(path=paths.CONTROLLER))
    stage.until(lambda: bool(late.kept), "the next controller tells b what is b's")
    stage.create(a, b)
    record = stage.produce(b"x", to=a)
    stage.until(lambda: record.is_acknowledged, "x is committed")
    stage.ask_zookeeper(Delete(path=paths.CONTROLLER))
    stage.wait(1_000)
    asleep = stage.stop_fetching(b, a)
    stage.let_go(late)
    stage.wait(50)
    stage.kill(a)
    stage.until(lambda: stage.leader == b, "b is elected")
    stage.drop(*asleep)
    stage.finish()


# --- B4, B9: commands that are lost -----------------------------------------------------------


@schedule(ZK_SCHEDULES)
def command_is_lost(production: Production) -> None:
    """a dies, b is elected, and what the controller tells b is lost."""
    stage = production.zookeeper(design="zk-redesign")
    controller = stage.controller
    assert controller is not None
    a, b = stage.others(controller)
    stage.create(a, b)
    lost = stage.hold(LeaderAndIsrRequest, target=b, times=1)
    stage.kill(a)
    stage.until(lambda: stage.leader == b, "b is elected")
    stage.until(lambda: bool(lost.kept), "the controller tells b")
    stage.drop(lost)
    stage.until(lambda: stage.leads(b), "b leads", bound="L-PL", within_ms=10_000)
    stage.finish()


@schedule(ZK_SCHEDULES)
def version_that_is_out_of_date(production: Production) -> None:
    """c dies and the controller takes it out of the ISR; what it tells a of that is lost.

    a knows an older version of its state. b lags: a wants to take it out, and x waits for that.
    """
    stage = production.zookeeper(design="zk-redesign", brokers=4)
    controller = stage.controller
    assert controller is not None
    a, b, c = stage.others(controller)
    stage.create(a, b, c)
    lost = stage.hold(LeaderAndIsrRequest, target=a, times=1)
    stage.kill(c)
    stage.until(lambda: c not in stage.isr, "c has left the ISR")
    stage.until(lambda: bool(lost.kept), "the controller tells a")
    stage.drop(lost)
    stage.wait(1_000)
    stage.stop_fetching(b, a)
    record = stage.produce(b"x", to=a)
    acknowledged = "x is acknowledged"
    stage.until(lambda: record.is_acknowledged, acknowledged, bound="L-WR", within_ms=10_000)
    stage.finish()


# --- B5: the high watermark of before ---------------------------------------------------------


@schedule(ZK_SCHEDULES)
def high_watermark_of_before(production: Production) -> None:
    """b has x, and not yet heard that it is committed, when both brokers are killed.

    b comes back first: it belongs to the ISR, and leads.
    """
    stage = production.zookeeper(design="zk-redesign", brokers=2)
    a, b = stage.create(*stage.brokers)
    record = stage.produce(b"x", to=a)
    stage.until(lambda: stage.end_offset(b) == 1, "b has x")
    stage.hold(FetchResponse, source=a, target=b)
    stage.until(lambda: record.is_acknowledged, "x is committed")
    stage.kill(a)
    stage.kill(b)
    stage.wait(3_000)
    stage.start(b)
    stage.until(lambda: stage.leader == b, "b is elected")
    stage.finish()


# --- B7: news of the ISR ----------------------------------------------------------------------


@schedule(ZK_SCHEDULES)
def isr_news_takes_its_time(production: Production) -> None:
    """b leaves the ISR, and joins, and leaves. What brokers tell of it is what it was before."""
    stage = production.zookeeper(design="zk-kip497")
    a, b, _ = stage.create(*stage.brokers)
    for _ in range(9):
        stage.let_go(*_leaves_the_isr(stage, b, a))
        stage.until(lambda: b in stage.isr, "b has joined")
        stage.wait(1_000)
    blocked = _leaves_the_isr(stage, b, a)
    is_told = "no broker tells that b is in sync"
    stage.until(
        lambda: all(b not in isr for isr in stage.told_isrs()),
        is_told,
        bound="L-ISR",
        within_ms=2_000,
    )
    stage.let_go(*blocked)
    stage.finish()


# --- B1, B13: lives of a broker ---------------------------------------------------------------


@schedule(ZK_SCHEDULES)
def bounce_that_nobody_sees(production: Production) -> None:
    """b stops and comes back while the controller is paused: the list of brokers is what it was."""
    stage = _stage(production, "zk-redesign", session_timeout_ms=3_000)
    controller = stage.controller
    assert controller is not None
    a, b = stage.others(controller)
    stage.create(a, b)
    answer = stage.hold(ControlledShutdownResponse, target=b)
    stage.shut_down(b)
    stage.wait(200)
    stage.let_go(answer)
    stage.until(lambda: not stage.cluster.hosts[b].is_up, "b has stopped")
    stage.pause(controller)
    stage.wait(100)
    stage.start(b)
    stage.until(lambda: stage.is_registered(b), "b is registered again")
    stage.resume(controller)
    stage.finish()


@schedule(ZK_SCHEDULES)
def stop_for_an_earlier_life(production: Production) -> None:
    """b stops in order; the StopReplica that belongs to that arrives when it is back."""
    stage = _stage(production, "zk-redesign")
    controller = stage.controller
    assert controller is not None
    a, b = stage.others(controller)
    stage.create(a, b)
    late = stage.hold(StopReplicaRequest, target=b)
    answer = stage.hold(ControlledShutdownResponse, target=b)
    stage.shut_down(b)
    stage.until(lambda: bool(late.kept), "the controller has told b to stop its replica")
    stage.let_go(answer)
    stage.until(lambda: not stage.cluster.hosts[b].is_up, "b has stopped")
    stage.start(b)
    stage.until(lambda: stage.is_registered(b), "b is registered again")
    stage.wait(500)
    stage.until(lambda: b in stage.isr, "b is in sync again")
    stage.let_go(late)
    stage.wait(3_000)
    stage.finish()
