"""Schedules for the truncation of logs: what KIP-101, KIP-279 and KIP-320 were written for.

Each is a schedule that loses or doubles records under the rules of old (see `planted_partitions`),
and not under ours. In every schedule `a` leads at first, and epochs are counted from its own.

Source: the KIPs; KAFKA-1211, KAFKA-6361, KAFKA-7395; the shortest schedules are those of an
exhaustive search over small models.
"""

from jepsen_like.sim.schedules.production import Production
from jepsen_like.sim.schedules.schedule_list import Schedules, schedule
from wire.messages.fetching import FetchResponse

__all__ = ["TRUNCATION_SCHEDULES"]

TRUNCATION_SCHEDULES: Schedules = {}


@schedule(TRUNCATION_SCHEDULES, finds=("truncates_to_the_high_watermark",))
def kip_101_loss(production: Production) -> None:
    """A follower that lags behind only in its high watermark must not cut back to it.

    b has the record, and not yet heard that it is committed. It leads for a moment, then follows
    again: whoever cuts back to the high watermark loses it there, and everywhere when a dies.
    """
    stage = production.cluster(brokers=2, replicas=2)
    a, b = stage.cast()
    record = stage.produce(b"x", to=a)
    stage.until(lambda: stage.end_offset(b) == 1, "b has the record")
    stage.hold(FetchResponse, source=a, target=b)
    stage.until(lambda: record.is_acknowledged, "a has heard so")
    stage.stop_fetching(a, b)
    stage.elect(b)
    stage.stop_fetching(b, a)
    stage.elect(a)
    stage.until(lambda: stage.epoch(b) == 2, "b follows again")
    stage.kill(a)
    stage.until(lambda: stage.leader == b, "b is elected")
    stage.finish()


@schedule(TRUNCATION_SCHEDULES, finds=("tells_no_epoch",))
def kip_101_divergence(production: Production) -> None:
    """Two leaders have written at the same offsets: the one that follows must not go on from there.

    a wrote y, which nobody got; b wrote z there and w behind it.
    """
    stage = production.cluster(brokers=2, replicas=2)
    a, b = stage.cast()
    first = stage.produce(b"x", to=a)
    stage.until(lambda: first.is_acknowledged, "x is committed")
    stage.stop_fetching(b, a)
    stage.stop_fetching(a, b)
    stage.produce(b"y", to=a)
    stage.until(lambda: stage.end_offset(a) == 2, "a has y")
    stage.elect(b)
    stage.until(lambda: stage.epoch(b) == 1, "b knows that it leads")
    stage.produce(b"z", to=b)
    stage.produce(b"w", to=b)
    stage.until(lambda: stage.end_offset(b) == 3, "b has z and w")
    stage.finish()


@schedule(TRUNCATION_SCHEDULES, finds=("answers_for_any_epoch", "truncates_where_the_leader_says"))
def kip_279(production: Production) -> None:
    """An epoch that never wrote on the leader says nothing of the follower's records.

    y of epoch 0 is on a alone, p of epoch 1 on b alone, at the same offset. a leads again and
    writes q. "Epoch 1 ends where epoch 2 begins" would let b keep p below q.
    """
    stage = production.cluster(brokers=2, replicas=2)
    a, b = stage.cast()
    first = stage.produce(b"x", to=a)
    stage.until(lambda: first.is_acknowledged, "x is committed")
    stage.stop_fetching(b, a)
    stage.stop_fetching(a, b)
    stage.produce(b"y", to=a)
    stage.until(lambda: stage.end_offset(a) == 2, "a has y")
    stage.elect(b)
    stage.until(lambda: stage.epoch(b) == 1, "b knows that it leads")
    stage.produce(b"p", to=b)
    stage.until(lambda: stage.end_offset(b) == 2, "b has p")
    stage.elect(a)
    stage.until(lambda: stage.epoch(a) == 2, "a knows that it leads again")
    stage.produce(b"q", to=a)
    stage.until(lambda: stage.end_offset(a) == 3, "a has q")
    stage.finish()


@schedule(TRUNCATION_SCHEDULES, finds=("serves_any_epoch,tells_no_epoch",))
def kip_320(production: Production) -> None:
    """A leader of old must not count where followers stand in the log of another.

    a leads and wrote y, which nobody got. It hears nothing of the metadata. b leads, writes z at
    the same offset, and c gets it. Then a is elected, and b and c fetch from it, at the end of
    theirs: to a, which still takes itself for the leader of its first epoch, that says "we have y".
    """
    stage = production.cluster()
    a, b, c = stage.cast()
    first = stage.produce(b"x", to=a)
    stage.until(lambda: first.is_acknowledged, "x is committed")
    fetches = (*stage.stop_fetching(b, a), *stage.stop_fetching(c, a))
    news = stage.hold(FetchResponse, source=stage.controller, target=a)
    stage.produce(b"y", to=a)
    stage.until(lambda: stage.end_offset(a) == 2, "a has y")
    stage.elect(b)
    stage.until(lambda: stage.epoch(b) == 1, "b knows that it leads")
    stage.produce(b"z", to=b)
    stage.until(lambda: stage.end_offset(c) == 2, "c has z")
    for rule in fetches:
        stage.drop(rule)
    stage.elect(a)
    stage.until(lambda: stage.epoch(c) == 2, "c follows a")
    stage.wait(500)
    stage.let_go(news)
    stage.finish()


@schedule(TRUNCATION_SCHEDULES, finds=("remembers_empty_epochs",))
def an_epoch_that_wrote_nothing(production: Production) -> None:
    """b leads an epoch without a write, and then gets a record of the epoch before it.

    If b remembered its own epoch as beginning there, it would take the record for one of its own.
    """
    stage = production.cluster(brokers=2, replicas=2)
    a, b = stage.cast()
    first = stage.produce(b"x", to=a)
    stage.until(lambda: first.is_acknowledged, "x is committed")
    stage.stop_fetching(b, a)
    stage.stop_fetching(a, b)
    stage.produce(b"y", to=a)
    stage.until(lambda: stage.end_offset(a) == 2, "a has y")
    stage.elect(b)
    stage.until(lambda: stage.epoch(b) == 1, "b knows that it leads")
    stage.elect(a)
    stage.until(lambda: stage.epoch(b) == 2, "b follows again")
    stage.finish()
