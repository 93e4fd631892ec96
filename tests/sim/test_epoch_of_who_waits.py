"""A producer that waits belongs to the leader epoch in which its record was accepted.

In a later epoch, even of the same leader, another record may lie at the offset that it waits for:
that the high watermark passes this offset says nothing of the first one.
"""

from jepsen_like.planted.every_bug import planted
from jepsen_like.scenarios.cluster.directed_cluster import DirectedCluster
from jepsen_like.scenarios.schedules import SIMULATED, carry_out
from jepsen_like.scenarios.settings import started
from jepsen_like.scenarios.stage.story import Production
from wire.errors import ErrorCode

# x is on a alone when b is elected. y takes its place on all three, then a leads again.
SCHEDULE = """
start cluster
hold fetches of b from a
hold fetches of c from a
produce x at a
deliver until the log of a ends at 1
elect b
deliver until the log of a ends at 0
produce y at b
deliver until y is acknowledged
release fetches of b from a
release fetches of c from a
elect a
deliver until a is in epoch 2
run 100 ms
"""


def told_of_x() -> ErrorCode | None:
    """What the producer of x is told, in the end."""
    start, *commands = SCHEDULE.strip().splitlines()
    kind, settings = started(start)
    cluster = SIMULATED[kind](Production(is_judged=False), **settings)
    assert isinstance(cluster, DirectedCluster)
    for command in commands:
        carry_out(cluster, kind, command)
    assert cluster.sent["y"].is_acknowledged
    return cluster.sent["x"].error


def test_a_later_epoch_of_the_same_leader_acknowledges_nothing_of_an_earlier_one() -> None:
    assert told_of_x() is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_waiter_without_its_epoch_is_found() -> None:
    """It is told of a record that nobody has."""
    with planted("forgets_the_epoch_of_who_waits"):
        assert told_of_x() is ErrorCode.NONE
