"""The museum's schedules of the data plane: ISR changes, elections, brokers that come and go.

Each is deterministic, holds under the shipped rules, and shows a planted bug that Apache Kafka had.
In every schedule `a` leads at first. The numbers are those of the museum.

Source: KIP-497, KIP-841, KIP-903, KIP-966 and the issues named.
"""

from jepsen_like.sim.schedules.lagging import LAG_SCHEDULES
from jepsen_like.sim.schedules.leaders import LEADER_SCHEDULES
from jepsen_like.sim.schedules.moves import MOVE_SCHEDULES
from jepsen_like.sim.schedules.production import Production
from jepsen_like.sim.schedules.schedule_list import Schedules, schedule
from jepsen_like.sim.schedules.stages import ClusterStage, Held
from jepsen_like.sim.schedules.topics import TOPIC_SCHEDULES
from jepsen_like.sim.schedules.truncation import TRUNCATION_SCHEDULES
from wire.messages.fetching import FetchResponse
from wire.messages.partitions import AlterPartitionRequest, AlterPartitionResponse
from wire.messages.registration import BrokerHeartbeatRequest

__all__ = ["SCHEDULES"]

SCHEDULES: Schedules = {
    **TRUNCATION_SCHEDULES,
    **LEADER_SCHEDULES,
    **LAG_SCHEDULES,
    **TOPIC_SCHEDULES,
    **MOVE_SCHEDULES,
}


def _leaves_the_isr(stage: ClusterStage, node: int, leader: int) -> tuple[Held, Held]:
    """`node` stops fetching until the leader has had it taken out of the ISR, and longer."""
    rules = stage.stop_fetching(node, leader)
    stage.produce(b"w", to=leader)
    stage.until(lambda: node not in stage.isr, f"{stage.name(node)} has left the ISR")
    return rules


def _die(stage: ClusterStage, *nodes: int) -> None:
    """One after the other is killed, and the controller has noticed."""
    for node in nodes:
        stage.kill(node)
        stage.until(
            lambda node=node: node not in stage.isr or stage.leader < 0,  # type: ignore[misc]
            f"the controller has noticed that {stage.name(node)} is gone",
        )


# --- D1: who counts while an ISR change is under way ----------------------------------------


@schedule(SCHEDULES, finds=("counts_on_the_shrunk_isr",))
def shrink_under_way(production: Production) -> None:
    """b lags, and a asks for it to be taken out. Until that is done, b may be elected."""
    stage = production.cluster()
    a, b, _ = stage.cast()
    stage.stop_fetching(b, a)
    stage.produce(b"x", to=a)
    asked = stage.hold(AlterPartitionRequest, source=a, target=stage.controller)
    stage.until(lambda: bool(asked.kept), "a asks for b to leave")
    stage.wait(1_000)
    stage.kill(a)
    stage.drop(asked)
    stage.until(lambda: stage.leader == b, "b is elected")
    stage.finish()


@schedule(SCHEDULES, finds=("counts_on_the_committed_isr", "takes_silence_for_a_refusal"))
def expand_under_way(production: Production) -> None:
    """c has joined, and a has not heard so yet: what c does not have is not committed.

    b and a die, and c is the last of the ISR.
    """
    stage = production.cluster()
    a, b, c = stage.cast()
    rules = _leaves_the_isr(stage, c, a)
    stage.wait(100)
    stage.hold(AlterPartitionResponse, source=stage.controller, target=a)
    stage.hold(FetchResponse, source=stage.controller, target=a)
    stage.let_go(*rules)
    stage.until(lambda: c in stage.isr, "c has joined")
    stage.stop_fetching(c, a)
    stage.produce(b"x", to=a)
    stage.wait(4_000)
    _die(stage, b, a)
    stage.finish()


# --- D2 to D4: answers ----------------------------------------------------------------------


@schedule(SCHEDULES, finds=("does_not_look_after_an_answer",))
def shrink_commits(production: Production) -> None:
    """b lags for good, and nothing else moves: what waited for b is committed once b has left."""
    stage = production.cluster(lag_time_max_ms=8_000)
    a, b, _ = stage.cast()
    stage.stop_fetching(b, a)
    record = stage.produce(b"x", to=a)
    stage.until(lambda: b not in stage.isr, "b has left the ISR")
    stage.until(lambda: record.is_acknowledged, "x is acknowledged", bound="L-HW", within_ms=1_000)
    stage.finish()


@schedule(SCHEDULES, finds=("believes_only_answers",))
def answer_that_is_lost(production: Production) -> None:
    """c has left, the answer that says so is lost, and asking again is refused as outdated."""
    stage = production.cluster()
    a, _, c = stage.cast()
    lost = stage.hold(AlterPartitionResponse, source=stage.controller, target=a, times=1)
    rules = _leaves_the_isr(stage, c, a)
    stage.let_go(*rules)
    stage.drop(lost)
    stage.finish()


@schedule(SCHEDULES, finds=("asks_once",))
def question_that_is_lost(production: Production) -> None:
    """a asks for c to be taken out, and nobody hears it."""
    stage = production.cluster()
    a, _, c = stage.cast()
    lost = stage.hold(AlterPartitionRequest, source=a, target=stage.controller, times=1)
    rules = stage.stop_fetching(c, a)
    stage.produce(b"w", to=a)
    stage.until(lambda: bool(lost.kept), "a asks for c to leave")
    stage.drop(lost)
    stage.wait(4_000)
    stage.let_go(*rules)
    stage.finish()


# --- D6 to D8: who may join -----------------------------------------------------------------


@schedule(SCHEDULES, finds=("takes_in_the_fenced",))
def fenced_replica_catches_up(production: Production) -> None:
    """c is out of the ISR, fenced, and fetches on. a has not heard that it is fenced."""
    stage = production.cluster()
    a, _, c = stage.cast()
    rules = _leaves_the_isr(stage, c, a)
    stage.wait(100)
    stage.hold(FetchResponse, source=stage.controller, target=a)
    beats = stage.hold(BrokerHeartbeatRequest, source=c, target=stage.controller)
    stage.until(lambda: stage.is_fenced(c), "c is fenced")
    stage.let_go(*rules)
    stage.wait(1_000)
    stage.drop(beats)
    stage.finish()


@schedule(SCHEDULES, finds=("takes_in_other_lives",))
def replica_with_another_disk(production: Production) -> None:
    """a asks for c to join. Before that arrives, c loses what it had, and registers again.

    Then b and a die.
    """
    stage = production.cluster()
    a, b, c = stage.cast()
    first = stage.produce(b"x", to=a)
    stage.until(lambda: first.is_acknowledged, "x is committed")
    rules = _leaves_the_isr(stage, c, a)
    asked = stage.hold(AlterPartitionRequest, source=a, target=stage.controller)
    stage.let_go(*rules)
    stage.until(lambda: bool(asked.kept), "a asks for c to join")
    before = stage.broker_epoch(c)
    stage.wipe(c)
    stage.stop_fetching(c, a)
    stage.start(c)
    stage.until(lambda: stage.broker_epoch(c) > before and not stage.is_fenced(c), "c is back")
    stage.let_go(asked)
    stage.wait(500)
    _die(stage, b, a)
    stage.finish()


@schedule(SCHEDULES, finds=("waits_for_whoever_fetches",))
def replica_that_shuts_down(production: Production) -> None:
    """c is leaving, and may not join again: nobody waits for it, although it was in sync just now.

    b has not heard of it, which is why c may not stop yet.
    """
    stage = production.cluster(lag_time_max_ms=10_000)
    a, b, c = stage.cast()
    news = stage.hold(FetchResponse, source=stage.controller, target=b)
    stage.shut_down(c)
    stage.until(lambda: c not in stage.isr, "c has left the ISR")
    stage.wait(100)
    record = stage.produce(b"x", to=a)
    stage.until(lambda: record.is_acknowledged, "x is acknowledged", bound="L-WR", within_ms=2_000)
    stage.let_go(news)
    stage.finish()


@schedule(SCHEDULES, finds=("joins_at_the_high_watermark",))
def replica_behind_the_new_leader(production: Production) -> None:
    """b leads, and has not heard that x is committed. c has nothing, and must not join yet.

    Then a and b die.
    """
    stage = production.cluster()
    a, b, c = stage.cast()
    rules = stage.stop_fetching(c, a)
    record = stage.produce(b"x", to=a)
    stage.until(lambda: stage.end_offset(b) == 1, "b has x")
    stage.hold(FetchResponse, source=a, target=b)
    stage.until(lambda: record.is_acknowledged, "x is committed without c")
    stage.stop_fetching(a, b)
    answers = stage.hold(FetchResponse, source=b, target=c)
    stage.elect(b)
    stage.let_go(*rules)
    stage.until(lambda: bool(answers.kept), "c has fetched from b")
    stage.wait(500)
    stage.kill(a)
    stage.kill(b)
    stage.until(lambda: stage.leader not in (a, b), "the controller has noticed that b is gone")
    stage.finish()


# --- changes of leader that somebody misses --------------------------------------------------


@schedule(SCHEDULES, finds=("counts_on_earlier_epochs",))
def leads_again_without_knowing(production: Production) -> None:
    """c has x. b leads for a while, without x, and c cuts it off. Then a leads again, and has not
    heard that it did not: x is not committed before c has it again. Then a and b die."""
    stage = production.cluster()
    a, b, c = stage.cast()
    rules = stage.stop_fetching(b, a)
    stage.produce(b"x", to=a)
    stage.until(lambda: stage.end_offset(c) == 1, "c has x")
    stage.wait(50)
    news = stage.hold(FetchResponse, source=stage.controller, target=a)
    stage.elect(b)
    stage.until(lambda: stage.end_offset(c) == 0, "c has cut off x")
    stage.stop_fetching(c, a)
    stage.elect(a)
    stage.let_go(news)
    stage.until(lambda: stage.epoch(a) == 2, "a leads again")
    stage.let_go(*rules)
    stage.until(lambda: stage.end_offset(b) == 1, "b has x")
    stage.wait(100)
    stage.kill(a)
    stage.kill(b)
    stage.until(lambda: stage.leader == c, "c is elected")
    stage.finish()


@schedule(SCHEDULES, finds=("obeys_heartbeats_of_earlier_lives", "hears_earlier_lives"))
def heartbeat_of_an_earlier_life(production: Production) -> None:
    """A heartbeat of c is on its way for so long that c has died and registered again. It says
    nothing of the process that runs now."""
    stage = production.cluster()
    *_, c = stage.cast()
    before = stage.broker_epoch(c)
    late = stage.hold(BrokerHeartbeatRequest, source=c, target=stage.controller, times=1)
    stage.until(lambda: bool(late.kept), "c has sent a heartbeat")
    stage.kill(c)
    stage.until(lambda: stage.is_fenced(c), "c is fenced")
    stage.start(c)
    stage.until(lambda: stage.broker_epoch(c) > before, "c has registered again")
    stage.wait(50)
    stage.let_go(late)
    stage.finish()


# --- R10, R11 -------------------------------------------------------------------------------


@schedule(SCHEDULES, finds=("trusts_every_stop",))
def last_replica_standing(production: Production) -> None:
    """b and c are cut off from a and the controller, a stays alone, and then loses what it had.

    Whoever was in sync before must lead when they are heard of again, not a.
    """
    stage = production.cluster(min_insync_replicas=2, elr=True)
    a, b, c = stage.cast()
    record = stage.produce(b"x", to=a)
    stage.until(lambda: record.is_acknowledged, "x is committed")
    beats = [_is_cut_off(stage, node, a) for node in (b, c)]
    stage.wipe(a)
    stage.start(a)
    stage.wait(8_000)
    for held in beats:
        stage.drop(held)
    stage.finish()


def _is_cut_off(stage: ClusterStage, node: int, leader: int) -> Held:
    """Nothing of it gets to the controller until it is fenced, nor to the leader ever after."""
    stage.stop_fetching(node, leader)
    beats = stage.hold(BrokerHeartbeatRequest, source=node, target=stage.controller)
    stage.until(lambda: node not in stage.isr, f"{stage.name(node)} has left the ISR")
    return beats


@schedule(SCHEDULES, finds=("chases_the_end_of_the_log",))
def busy_metadata_log(production: Production) -> None:
    """The metadata log never rests: a broker that comes back has caught up all the same."""
    stage = production.cluster(
        idle_interval_ms=4, delay_us=5_000, session_timeout_ms=600, start_ms=1_000
    )
    _, _, c = stage.cast()
    stage.kill(c)
    stage.start(c)
    stage.finish()
