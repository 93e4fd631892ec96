"""Bugs to plant in the quorum, in clusters and in checkers: each a one-line change of a rule.

A simulator is only worth something if it finds what is known to be wrong. Each plant replaces one
named function by a version that forgets one clause; tests/sim/test_catches.py
demands that it is found within `seeds_max` seeds, a bound of twice what it took, or more, on
several sets of seeds. Bugs of clusters that need a rare schedule have it in
`jepsen_like/scenarios/schedules`. Several may be planted together, since some designs of
old lacked two rules. What another rule guards too cannot be found alone; of the quorum such are:

- `judges_candidates_of_any_epoch`: a vote needs a log and an epoch that win, too
- `serves_fetches_of_any_epoch`: the position of a fetch is compared with the log by epoch
- `truncates_what_is_committed`: no honest leader asks for it; only lost disks could
- `appends_whatever_comes`, `loads_whatever_it_is_offered`: no honest leader sends it
- `does_not_wait_for_truncation`: the next append is synced after it, in the same log
- `forgets_the_epoch_of_the_snapshot`: who diverges there is told of the snapshot at its next fetch
- `settles_after_a_change_of_role`: who leads no more is told so before anything is delivered, and
  no role counts for another
- `counts_with_the_voters_of_the_end`: voters change by one: a majority of either set will do
- `forgets_the_epoch_of_who_waits`: a node's clients see it, tests/sim/test_chaos_catches.py, and
  producers in tests/sim/test_epoch_of_who_waits.py
  These three are found turn by turn, in tests/quorum/test_turn_engines.py
- `appends_over_what_may_come_back`: a quorum's batches seldom have one size; found by storage
  alone, in tests/sim/test_shipped_disk.py
- `goes_on_with_another_leaders_bytes`: checksums of batches refuse the mixture, and it begins anew
- those of compaction, which the simulator does not have: in tests/quorum/storage/test_compaction.py
- `hears_last_of_its_disk`: seldom does anything wait when a disk fails; tests/sim/test_turns.py
- `halves_the_backoff`: a pause may be short (L-BO); found by tests/sim/test_exact_boundaries.py
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from jepsen_like.planted import (  # noqa: F401 (each enters its bugs)
    checker_bugs,
    controller_bugs,
    file_bugs,
    group_bugs,
    log_bugs,
    partition_bugs,
    setting_bugs,
    snapshot_bugs,
    transaction_bugs,
    turn_bugs,
    vote_bugs,
    voter_bugs,
)
from jepsen_like.planted.planting import BUGS, Plants, planted_in

__all__ = [
    "BUGS",
    "CLUSTER_PLANTS",
    "CLUSTER_SCHEDULED",
    "CLUSTER_SURVIVORS",
    "EVERY_PLANT",
    "PLANTS",
    "SURVIVORS",
    "in_words",
    "planted",
]


def _bugs_of(*groups: str) -> Plants:
    return {name: plant for group in groups for name, plant in BUGS[group].items()}


_QUORUM = _bugs_of("vote", "log", "snapshot", "voter", "file", "turn", "read")
_CLUSTER = _bugs_of(
    "controller",
    "partition",
    "setting",
    "group",
    "consumer",
    "directory",
    "partition_file",
    "transaction",
    "cluster_turn",
)
PLANTS: Plants = {name: plant for name, plant in _QUORUM.items() if plant.seeds_max}
SURVIVORS: Plants = {name: plant for name, plant in _QUORUM.items() if not plant.seeds_max}
CLUSTER_PLANTS: Plants = {name: plant for name, plant in _CLUSTER.items() if plant.seeds_max}
CLUSTER_SCHEDULED: Plants = {name: plant for name, plant in _CLUSTER.items() if not plant.seeds_max}
CLUSTER_SURVIVORS = _bugs_of("partition_survivors", "partition_file_survivors", "group_survivors")
EVERY_PLANT: Plants = {**_QUORUM, **_CLUSTER, **CLUSTER_SURVIVORS, **BUGS["checker"]}


def in_words(names: str) -> str:
    """What each of them breaks; `names` are joined by commas."""
    known = ((name, EVERY_PLANT.get(name)) for name in names.split(","))
    return "; ".join(
        name if plant is None else f"{name}, which breaks the rule that {plant.breaks}"
        for name, plant in known
    )


@contextmanager
def planted(names: str | None) -> Iterator[None]:
    """Run with the planted bugs `names`, joined by commas; None plants nothing."""
    with ExitStack() as stack:
        for name in names.split(",") if names else ():
            stack.enter_context(planted_in(EVERY_PLANT[name]))
        yield
