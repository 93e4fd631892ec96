"""The museum's schedules of who decides: unclean elections, a deposed controller, a late answer.

Two of them need no planted bug: a setting lets it happen, and Apache Kafka still has it.

Source: Jepsen on Kafka 0.8 (2013), KIP-106, KAFKA-7164, KAFKA-14154.
"""

from jepsen_like.sim.network import Message
from jepsen_like.sim.schedules.production import Production
from jepsen_like.sim.schedules.schedule_list import Schedules, schedule
from jepsen_like.sim.schedules.stage import Stage
from wire.messages.fetching import FetchResponse
from wire.messages.partitions import AlterPartitionRequest, AlterPartitionResponse

__all__ = ["LEADER_SCHEDULES"]

LEADER_SCHEDULES: Schedules = {}


# --- B16, B17: what is acknowledged by too few ----------------------------------------------


@schedule(LEADER_SCHEDULES)
def leader_alone(production: Production) -> None:
    """b and c are cut off from a, which is sent x, goes on alone, and dies; b and c live."""
    stage = production.cluster(session_timeout_ms=600, lag_time_max_ms=1_000)
    a, b, c = stage.cast()
    stage.stop_fetching(b, a)
    stage.stop_fetching(c, a)
    record = stage.produce(b"x", to=a)
    stage.until(lambda: stage.isr == {a}, "a is alone in the ISR")
    stage.until(lambda: record.is_answered, "x is answered")
    stage.kill(a)
    stage.wait(6_000)
    stage.finish()


# --- C4: an answer of a former leader -------------------------------------------------------


@schedule(LEADER_SCHEDULES, finds=("obeys_late_answers",))
def answer_of_a_former_leader(production: Production) -> None:
    """What a sends to c is held. b leads for a moment, a cuts back, and leads again.

    Then the answer arrives, with a record that nobody has any more.
    """
    stage = production.cluster()
    a, b, c = stage.cast()
    first = stage.produce(b"w", to=a)
    stage.until(lambda: first.is_acknowledged, "w is committed")
    late = stage.hold(FetchResponse, source=a, target=c)
    blocked = stage.stop_fetching(b, a)
    stage.produce(b"y", to=a)
    stage.until(lambda: bool(late.kept), "a has answered c")
    stage.elect(b)
    stage.until(lambda: stage.end_offset(a) == 1, "a has cut back to what b has")
    for rule in blocked:
        stage.drop(rule)
    stage.elect(a)
    stage.until(lambda: stage.epoch(c) == 2, "c follows a again")
    stage.let_go(late)
    stage.wait(100)
    stage.produce(b"z", to=a)
    stage.finish()


# --- D5: a controller that was deposed ------------------------------------------------------


@schedule(LEADER_SCHEDULES, finds=("answers_from_old_knowledge",))
def deposed_controller(production: Production) -> None:
    """The controller is cut off and paused, another is elected, and has b lead.

    Then a request of b arrives at the deposed one, on a connection of old. It wakes up, has not
    noticed yet, and knows nothing of b's epoch.
    """
    stage = Stage(production, controllers=3, fetch_timeout_ms=3_000)
    a, b, c = stage.cast()
    deposed = stage.controller
    catching_up = (*stage.stop_fetching(c, a), *stage.stop_fetching(c, b))
    stage.produce(b"w", to=a)
    stage.until(lambda: c not in stage.isr, "c has left the ISR")

    def is_cut(message: Message) -> bool:
        is_astray = isinstance(message.body, AlterPartitionRequest | AlterPartitionResponse)
        return deposed in (message.source, message.target) and not is_astray

    cut = stage.messages.hold(is_cut)
    production.note("the controller is cut off from everybody")
    stage.pause(deposed)
    stage.until(lambda: stage.controller != deposed, "another controller is active")
    stage.until(lambda: stage.follows(b, stage.controller), "b hears of the other controller")
    stage.elect(b)
    stage.until(lambda: stage.epoch(b) == 1, "b knows that it leads")
    active = stage.controller
    astray = stage.divert(AlterPartitionRequest, source=b, target=active, to=deposed)
    stage.let_go(*catching_up)
    stage.until(lambda: bool(astray.kept), "b asks for c to join")
    astray.drop()
    stage.resume(deposed)
    stage.wait(100)
    stage.drop(cut)
    stage.finish()


@schedule(LEADER_SCHEDULES, finds=("answers_whatever_was_read",))
def read_during_an_election(production: Production) -> None:
    """c asks a for w and x, and a reads them slowly. b is elected without x, which a cuts off and
    puts y in its place; only then has it read. c still follows a: to be told of x, and of a high
    watermark above it, would be of y."""
    stage = Stage(production)
    a, b, c = stage.cast()
    rules = stage.stop_fetching(c, a)
    stage.produce(b"w", to=a)
    stage.until(lambda: c not in stage.isr, "c has left the ISR")
    stage.until(lambda: stage.high_watermark(b) == 1, "b has heard that w is committed")
    stage.stop_fetching(b, a)
    stage.produce(b"x", to=a)
    stage.wait(50)
    stage.hold_reads(a)
    for rule in rules:
        stage.drop(rule)
    stage.until(lambda: stage.has_held_reads(a), "a reads for c")
    stage.hold(FetchResponse, source=stage.controller, target=c)
    stage.elect(b)
    stage.until(lambda: stage.epoch(b) > stage.epoch(c), "b has heard of it")
    record = stage.produce(b"y", to=b)
    stage.until(lambda: record.is_acknowledged, "y is committed")
    stage.produce(b"z", to=b)
    stage.until(lambda: stage.high_watermark(a) >= 2, "a has y, and knows that it is committed")
    stage.let_reads_go(a)
    stage.wait(50)
    stage.finish()
