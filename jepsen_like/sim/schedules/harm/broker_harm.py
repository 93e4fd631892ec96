"""Records that clients lose by broken rules of brokers and of the controller.

In every schedule `a` leads at first. What the rule costs is in the history of the clients: of the
log, and in one schedule of a register, which is a topic's config.

Source: KIP-101, KIP-380, KIP-455, KIP-497, KIP-841, KIP-966; KAFKA-7164, KAFKA-15583.
"""

from jepsen_like.sim.interception import Rule
from jepsen_like.sim.schedules.harm.visiting_clients import Visitors
from jepsen_like.sim.schedules.production import Production
from jepsen_like.sim.schedules.schedule_list import Schedules, schedule
from jepsen_like.sim.schedules.stage import Stage
from wire.messages.fetching import FetchRequest, FetchResponse
from wire.messages.partitions import AlterPartitionRequest

__all__ = ["BROKERS"]

BROKERS: Schedules = {}

_SHORT = {"session_timeout_ms": 600, "lag_time_max_ms": 1_000}  # soon over


# --- whom the controller elects -------------------------------------------------------------


@schedule(BROKERS, finds=("elects_whoever_is_first",))
def first_of_the_list_has_nothing(production: Production) -> None:
    """a, the first of the replicas, loses its disk and comes back when it has left the ISR.

    b and c have all that was acknowledged; a must not lead before it has fetched that.
    """
    stage = Stage(production, min_insync_replicas=2, **_SHORT)
    a, _, _ = stage.cast()
    _commit(stage, b"x", to=a)
    _wipe(stage, a)
    _start(stage, a)
    stage.finish()


@schedule(BROKERS, finds=("takes_in_the_fenced",))
def fenced_replica_is_the_last(production: Production) -> None:
    """a asks for c to join; before that arrives, c loses its disk and is fenced. b and a die.

    If c were in the ISR it would be the last of it, and lead with nothing when it comes back.
    """
    stage = Stage(production, **_SHORT)
    a, b, c = stage.cast()
    _commit(stage, b"x", to=a)
    asked = _asks_for(stage, c, a)
    _wipe(stage, c)
    stage.let_go(asked)
    stage.hold(AlterPartitionRequest, source=a, target=stage.controller)
    stage.wait(50)
    _kill(stage, b, a)
    _start(stage, c)
    stage.finish()


@schedule(BROKERS, finds=("registers_under_the_old_epoch",))
def another_life_under_the_old_epoch(production: Production) -> None:
    """a asks for c to join. Before that arrives, c loses its disk and is registered anew.

    Were its epoch the one of before, c would join with nothing. Then b and a die.
    """
    stage = Stage(production, **_SHORT)
    a, b, c = stage.cast()
    _commit(stage, b"x", to=a)
    asked = _asks_for(stage, c, a)
    _wipe(stage, c)
    stage.stop_fetching(c, a)
    _start(stage, c)
    stage.let_go(asked)
    stage.wait(50)
    _kill(stage, b, a)
    stage.finish()


@schedule(BROKERS, finds=("keeps_in_sync_who_has_left",))
def replica_comes_back(production: Production) -> None:
    """The replicas move from a and b to b and c, and then a is one more of them. b and c die.

    a has deleted what it had: it is not in sync before it has fetched everything again.
    """
    stage = Stage(production, replicas=2, **_SHORT)
    visitors = Visitors(production, stage)
    a, b = stage.cast()
    (c,) = set(stage.cluster.options.brokers) - {a, b}
    _commit(stage, b"x", to=a)
    visitors.reassign(b, c)
    stage.until(lambda: stage.end_offset(a) == 0, "a is no replica any more")
    stage.stop_fetching(a, b)
    stage.stop_fetching(a, c)
    visitors.reassign(b, c, a)
    stage.until(lambda: a in _replicas(stage), "a is a replica again")
    stage.wait(100)
    _kill(stage, b, c)
    stage.finish()


@schedule(BROKERS, finds=("shows_what_is_not_committed",))
def told_and_taken_back(production: Production) -> None:
    """The controller is told to write 2, and the other voters do not hear of it. It dies.

    Who asks it before must not be told 2: the next controller knows nothing of it.
    """
    stage = Stage(production, controllers=3, fetch_timeout_ms=1_000)
    visitors = Visitors(production, stage)
    stage.cast()
    first = stage.controller
    visitors.write(1, to=first)
    for voter in set(stage.cluster.options.controllers) - {first}:
        stage.hold(FetchResponse, source=first, target=voter)
    end_offset = stage.cluster.nodes[first].end_offset
    visitors.begin_write(2, to=first)
    stage.until(lambda: stage.cluster.nodes[first].end_offset > end_offset, "it has 2 in its log")
    visitors.look_up(first)
    stage.kill(first)
    stage.until(lambda: stage.cluster.active_controller() is not None, "another one is active")
    visitors.look_up(stage.controller)
    stage.finish()


# --- what a leader counts on ----------------------------------------------------------------


@schedule(BROKERS, finds=("is_content_with_any_isr",))
def acknowledged_by_too_few(production: Production) -> None:
    """b and c are cut off from a, which stays alone in the ISR, is sent x, and dies.

    b or c may lead then, as eligible replicas: while too few were in sync nothing was committed.
    """
    stage = Stage(production, min_insync_replicas=2, elr=True, **_SHORT)
    a, b, c = stage.cast()
    _commit(stage, b"w", to=a)
    stage.stop_fetching(b, a)
    stage.stop_fetching(c, a)
    stage.produce(b"y", to=a)
    stage.until(lambda: stage.isr == {a}, "a is alone in the ISR")
    stage.wait(100)
    record = stage.produce(b"x", to=a)
    stage.until(lambda: record.is_answered, "x is answered")
    _kill(stage, a)
    stage.finish()


@schedule(BROKERS, finds=("follows_the_slowest",))
def new_replica_catches_up(production: Production) -> None:
    """A consumer has read x. c becomes a replica, and has nothing yet: the next one reads x too."""
    stage = Stage(production, replicas=2, **_SHORT)
    visitors = Visitors(production, stage)
    a, b = stage.cast()
    (c,) = set(stage.cluster.options.brokers) - {a, b}
    _commit(stage, b"x", to=a)
    visitors.read(a)
    stage.stop_fetching(c, a)
    visitors.reassign(a, b, c)
    stage.until(lambda: c in _replicas(stage), "c is a replica")
    stage.wait(500)
    visitors.read(a)
    stage.finish()


# --- what a follower obeys ------------------------------------------------------------------


@schedule(BROKERS, finds=("obeys_late_answers",))
def late_word_of_a_divergence(production: Production) -> None:
    """b leads for a moment, and tells c to cut back y. That is held, while a leads again.

    a still has y, and commits z behind it. b leads once more; then c hears what it was told, and b
    and a die.
    """
    stage = Stage(production, **_SHORT)
    a, b, c = stage.cast()
    _commit(stage, b"w", to=a)
    behind = stage.stop_fetching(b, a)
    stage.produce(b"y", to=a)
    _has(stage, c, 2)
    stage.stop_fetching(a, b)
    asked = stage.hold(FetchRequest, source=c, target=b)
    late = stage.hold(FetchResponse, source=b, target=c)
    _elect(stage, b)
    stage.until(lambda: bool(asked.kept), "c asks b")
    stage.let_go(asked)
    stage.until(lambda: bool(late.kept), "b has answered c")
    stage.let_go(*behind)
    _elect(stage, a)
    _commit(stage, b"z", to=a)
    _elect(stage, b)
    epoch = stage.epoch(b)
    stage.until(lambda: stage.epoch(c) == epoch, "c follows b again")
    stage.stop_fetching(c, b)
    stage.stop_fetching(c, a)
    stage.let_go(late)
    stage.wait(10)
    _kill(stage, b, a)
    stage.finish()


@schedule(BROKERS, finds=("remembers_empty_epochs",))
def epoch_that_wrote_nothing(production: Production) -> None:
    """b leads an epoch without a write, and then gets a record of the epoch before it.

    If b still had the empty epoch there, it would forget where that of the record began, and let a
    keep a record that nobody else has.
    """
    stage = Stage(production, **_SHORT)
    a, b, c = stage.cast()
    _commit(stage, b"w", to=a)
    for one, other in ((b, a), (c, a), (a, b), (a, c), (c, b)):
        stage.stop_fetching(one, other)
    stage.produce(b"j", to=a)
    _has(stage, a, 2)
    _elect(stage, c)
    stage.produce(b"z", to=c)
    _has(stage, b, 2)
    behind = stage.stop_fetching(b, c)
    stage.produce(b"y", to=c)
    _has(stage, c, 3)
    _elect(stage, b)
    stage.let_go(*behind)
    _elect(stage, c)
    _has(stage, b, 3)
    _elect(stage, b)
    stage.finish()


# --- steps ----------------------------------------------------------------------------------


def _commit(stage: Stage, value: bytes, to: int) -> None:
    record = stage.produce(value, to=to)
    stage.until(lambda: record.is_acknowledged, f"{value.decode()} is acknowledged")


def _has(stage: Stage, node: int, records: int) -> None:
    what = f"{stage.name(node)} has {records} records"
    stage.until(lambda: stage.end_offset(node) == records, what)


def _elect(stage: Stage, node: int) -> None:
    """It leads, and knows so."""
    stage.elect(node)
    epoch = stage.state.leader_epoch
    stage.until(lambda: stage.epoch(node) == epoch, f"{stage.name(node)} knows that it leads")


def _asks_for(stage: Stage, node: int, leader: int) -> Rule:
    """`node` has left the ISR, and fetches again: the leader's request for it to join is held."""
    rules = stage.stop_fetching(node, leader)
    stage.produce(b"w", to=leader)
    stage.until(lambda: node not in stage.isr, f"{stage.name(node)} has left the ISR")
    stage.wait(100)
    asked = stage.hold(AlterPartitionRequest, source=leader, target=stage.controller)
    stage.let_go(*rules)
    stage.until(lambda: bool(asked.kept), f"{stage.name(leader)} asks for it to join")
    return asked


def _replicas(stage: Stage) -> tuple[int, ...]:
    """As it is committed, also where that breaks an invariant."""
    state = stage.cluster.metadata.image.partition(*stage.key)
    assert state is not None
    return state.replicas


# --- and the controller notices ---------------------------------------------------------------


def _kill(stage: Stage, *nodes: int) -> None:
    for node in nodes:
        stage.kill(node)
    for node in nodes:
        _until_fenced(stage, node)


def _wipe(stage: Stage, node: int) -> None:
    """It loses its disk, and is down."""
    stage.wipe(node)
    _until_fenced(stage, node)


def _start(stage: Stage, node: int) -> None:
    stage.start(node)
    stage.until(lambda: not stage.is_fenced(node), f"{stage.name(node)} is back")


def _until_fenced(stage: Stage, node: int) -> None:
    stage.until(lambda: stage.is_fenced(node), f"{stage.name(node)} is fenced")
