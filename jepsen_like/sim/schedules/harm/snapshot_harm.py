"""Snapshots and the logs that they replace: what clients miss, or are told twice.

All batches here have one record: then every offset is one at which a batch ends, and a log that is
cut or begins at a wrong one still looks whole.

Source: KIP-630; KAFKA-14618.
"""

from jepsen_like.sim.node_disk import DiskFaults
from jepsen_like.sim.schedules.harm.harm_steps import SNAPSHOTS_OFTEN, others, write
from jepsen_like.sim.schedules.production import Production
from jepsen_like.sim.schedules.scenario import Scenario
from jepsen_like.sim.schedules.schedule_list import Schedules, schedule

__all__ = ["SNAPSHOTS"]

SNAPSHOTS: Schedules = {}

_SLOW_READS = DiskFaults(read_us=400_000)


@schedule(SNAPSHOTS, finds=("names_snapshots_one_off",))
def snapshot_of_one_more(production: Production) -> None:
    """A voter is away until the log that it needs is cleaned, and begins with a snapshot.

    What it is given next must be the first record that the snapshot does not hold.
    """
    scenario, leader = _quorum(production)
    away = others(scenario, leader)[0]
    scenario.kill(away)
    _cleans_its_log(scenario, leader, beyond=scenario.committed)
    scenario.restart(away)
    _applies_all(scenario, away)
    scenario.finish()


@schedule(SNAPSHOTS, finds=("judges_the_far_behind_by_offset", "serves_who_is_too_far_behind"))
def tail_of_an_earlier_epoch_is_long(production: Production) -> None:
    """A leader is cut off and writes much that is never committed. Another commits less.

    When that one has cleaned its log, this begins in the midst of what the first one wrote, which
    must not keep its part.
    """
    scenario, first = _quorum(production)
    scenario.cut([first])
    write(scenario, first, 100)
    second = scenario.leader(others(scenario, first))
    _cleans_its_log(scenario, second, beyond=scenario.quorum.replicas[second].end_offset)
    scenario.heal()
    scenario.run(300)
    scenario.finish()


@schedule(SNAPSHOTS, finds=("delivers_on_from_the_record_after",))
def snapshot_is_read_slowly(production: Production) -> None:
    """A voter is started again and has to read its snapshot from a slow disk.

    By the time that it is loaded the leader has told what is committed after it, of which no record
    may be left out.
    """
    scenario, leader = _quorum(production)
    write(scenario, leader, 20)
    scenario.run(100)
    again = others(scenario, leader)[0]
    log = scenario.quorum.replicas[again].raft.replica.log
    scenario.until("L-HW", lambda: log.latest_snapshot is not None, f"{again} has a snapshot")
    scenario.kill(again)
    write(scenario, leader, 5)  # too little for another snapshot
    scenario.disk(again, _SLOW_READS)
    scenario.restart(again)
    _applies_all(scenario, again)
    scenario.finish()


# --- steps ----------------------------------------------------------------------------------


def _quorum(production: Production) -> tuple[Scenario, int]:
    """Three voters, to which nobody but the schedule gives anything, and their leader."""
    scenario = Scenario(production, voters=3, snapshots=SNAPSHOTS_OFTEN)
    scenario.quorum.stop_proposing()
    leader = scenario.leader()
    write(scenario, leader, 3)
    scenario.run(100)
    return scenario, leader


def _cleans_its_log(scenario: Scenario, leader: int, *, beyond: int) -> None:
    """It writes until its log begins behind this offset."""
    for _ in range(10):
        write(scenario, leader, 4)
        scenario.run(20)
    scenario.until("L-HW", lambda: scenario.log_start(leader) > beyond, "the log is cleaned")


def _applies_all(scenario: Scenario, node: int) -> None:
    application = scenario.quorum.replicas[node].application
    scenario.until(
        "L-HW",
        lambda: application.end_offset >= scenario.committed,
        f"{node} has applied all that is committed",
    )
