"""Every sync is needed: without it, a run in which nothing but the power fails turns red.

What loses its power loses what is not synced. Each rule says what must be synced before what; the
plant forgets it.
"""

from dataclasses import replace

import pytest

from jepsen_like.sim.assemblies.quorum.quorum_options import Options, draw_options
from jepsen_like.sim.assemblies.quorum.simulation import Outcome, run
from jepsen_like.sim.time.virtual_time import VirtualTime
from jepsen_like.sim.world.network import LinkFaults

SEEDS = 6
# What is synced, and before what; who forgets it; the invariant that is broken.
TABLE = [
    ("the vote, before it is told", "answers_before_saving", "R-VD"),
    ("the vote of the last election, not of one before", "waits_for_the_first_under_way", "R-VD"),
    ("the vote, by a sync that began after it", "releases_all_that_is_held", "R-VD"),
    ("that there is a vote at all", "forgets_its_vote", "R-VD"),
    ("the epoch that is led, before anything is said in it", "holds_back_only_votes", "R-VD"),
    ("the leader's own append, before it counts", "counts_before_own_sync", "R-HW"),
    ("a follower's append, before it is fetched behind", "acknowledges_before_sync", "R-HW"),
    (
        "an append, by a sync that began after it",
        "counts_what_was_written_during_a_sync",
        "R-HW",
    ),
]


def only_the_power_fails(seed: int) -> Options:
    drawn = draw_options(VirtualTime(seed).fork("options"))
    return replace(
        drawn,
        voters=max(drawn.voters, 3),
        nemesis_ms={"power-loss": 4 * drawn.election_timeout_ms},
        ambush=0.05,
        links=LinkFaults(),
        drift_ppm_max=0,
        clock_jump=0.0,
        disks=replace(drawn.disks, write_failure=0.0, fsync_failure=0.0, inline_syncs=False),
    )


def played(seed: int, plant: str | None) -> Outcome:
    return run(seed, options=only_the_power_fails(seed), plant=plant)


def test_shipped_rules_bear_it() -> None:
    outcomes = [played(seed, None) for seed in range(3)]
    assert [outcome.kind for outcome in outcomes] == ["ok"] * 3
    assert all(outcome.faults["lost_tail"] for outcome in outcomes)


@pytest.mark.parametrize(("synced", "plant", "rule"), TABLE)
def test_without_this_sync_it_turns_red(synced: str, plant: str, rule: str) -> None:
    rules = (played(seed, plant).rule for seed in range(SEEDS))
    assert next(filter(None, rules), None) == rule, synced
