"""Bugs that differ from a rule at its exact boundary only: each is found there, by design.

Each case states the rule at the boundary. It holds on the shipped rules, and fails with the bug
planted.
"""

from collections.abc import Callable
from random import Random
from uuid import UUID

import pytest

from controller.metadata import alter_partition
from controller.metadata.partitions import RECOVERED, RECOVERING, PartitionState
from jepsen_like.checkers import judge
from jepsen_like.planted.every_bug import planted
from jepsen_like.sim.assemblies.cluster.cluster_run import run_cluster
from quorum.raft import electing
from tests.jepsen_like.play import Play
from wire.messages.partitions import BrokerState, IsrPartition

MAX_MS = 1_000


class Highest(Random):
    """Draws the highest number of each range."""

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        assert stop is None
        return start - 1


def test_bug_is_found_at_the_boundary_and_nothing_without_it() -> None:
    for name, holds in CASES.items():
        assert holds(), name
        with planted(name):
            assert not holds(), name


def _backoff_reaches_its_longest() -> bool:
    """200 ms after the first loss (100 ms, doubled), twice as much after each, up to the limit."""
    drawn = [electing.election_backoff_ms(Highest(), loss, MAX_MS) for loss in range(1, 6)]
    return drawn == [200, 400, 800, MAX_MS, MAX_MS]


def _recovering_leader_is_alone() -> bool:
    """It is refused for every ISR of up to three, and whatever the partition's own state."""
    return all(
        alter_partition.is_invalid_recovery(_state(was), _asked(size, wanted))
        == (wanted == RECOVERING and (size > 1 or was == RECOVERED))
        for size in (1, 2, 3)
        for was in (RECOVERED, RECOVERING)
        for wanted in (RECOVERED, RECOVERING)
    )


def _state(recovery: int) -> PartitionState:
    return PartitionState(
        replicas=(1, 2, 3),
        directories=(UUID(int=1),) * 3,
        isr=(1,),
        leader=1,
        leader_epoch=5,
        partition_epoch=7,
        leader_recovery_state=recovery,
    )


def _asked(size: int, recovery: int) -> IsrPartition:
    return IsrPartition(
        partition_index=0,
        leader_epoch=5,
        new_isr_with_epochs=tuple(BrokerState(broker_id=each) for each in range(1, size + 1)),
        leader_recovery_state=recovery,
        partition_epoch=7,
    )


def _what_lies_at_the_highest_offset_read_is_lost() -> bool:
    play = Play()
    for value in range(3):
        play.send(0, "chaos-0", value, value)
    play.send(0, "chaos-0", 7, 2)
    play.read_all(9, {"chaos-0": [[0, 0], [1, 1], [2, 7]]})
    return "lost-write" in {finding.rule for finding in judge(play.history).findings}


CASES: dict[str, Callable[[], bool]] = {
    "halves_the_backoff": _backoff_reaches_its_longest,
    "lets_two_recover": _recovering_leader_is_alone,
    "passes_only_what_lies_before": _what_lies_at_the_highest_offset_read_is_lost,
}
SEED = 2  # of a cluster in which a leader recovers, and asks for a second member of its ISR


@pytest.mark.parametrize(
    ("plants", "rule"),
    [(None, ""), ("lets_two_recover", ""), ("goes_on_recovering,lets_two_recover", "M-REC")],
)
def test_leader_that_recovers_in_company_is_seen_in_the_metadata(
    plants: str | None, rule: str
) -> None:
    assert run_cluster(SEED, plant=plants).rule == rule
