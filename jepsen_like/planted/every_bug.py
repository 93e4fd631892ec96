"""Bugs to plant in the quorum, in clusters and in checkers: each a one-line change of a rule.

A simulator is only worth something if it finds what is known to be wrong. Each plant replaces one
named function by a version that forgets one clause; tests/sim/test_catches.py and
test_cluster_catches.py demand that it is found within `seeds_max` seeds, a bound of twice what it
took, or more, on several sets of seeds. Bugs of clusters that need a rare schedule have it in
`jepsen_like/scenarios/schedules/partition`. Several may be planted together, since some designs of
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
- `hears_last_of_its_disk`: seldom does anything wait when a disk fails; tests/sim/test_turns.py
- `halves_the_backoff`: a pause may be short (L-BO); found by tests/sim/test_exact_boundaries.py
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from jepsen_like.planted.checker_bugs import CHECKER_PLANTS
from jepsen_like.planted.controller_bugs import CONTROLLER_PLANTS
from jepsen_like.planted.directory_bugs import DIRECTORY_PLANTS
from jepsen_like.planted.file_bugs import FILE_PLANTS
from jepsen_like.planted.log_bugs import LOG_PLANTS
from jepsen_like.planted.partition_bugs import PARTITION_PLANTS, PARTITION_SURVIVORS
from jepsen_like.planted.partition_file_bugs import PARTITION_FILE_PLANTS, PARTITION_FILE_SURVIVORS
from jepsen_like.planted.planting import Plants, planted_in
from jepsen_like.planted.read_bugs import READ_SCHEDULED
from jepsen_like.planted.setting_bugs import SETTING_PLANTS
from jepsen_like.planted.snapshot_bugs import SNAPSHOT_PLANTS
from jepsen_like.planted.turn_bugs import CLUSTER_TURN_PLANTS, TURN_PLANTS
from jepsen_like.planted.vote_bugs import VOTE_PLANTS
from jepsen_like.planted.voter_bugs import VOTER_PLANTS

__all__ = [
    "CLUSTER_PLANTS",
    "CLUSTER_SCHEDULED",
    "CLUSTER_SURVIVORS",
    "EVERY_PLANT",
    "PLANTS",
    "SURVIVORS",
    "planted",
]

_QUORUM: Plants = {
    **VOTE_PLANTS,
    **LOG_PLANTS,
    **SNAPSHOT_PLANTS,
    **VOTER_PLANTS,
    **FILE_PLANTS,
    **TURN_PLANTS,
    **READ_SCHEDULED,
}
_CLUSTER: Plants = {
    **CONTROLLER_PLANTS,
    **PARTITION_PLANTS,
    **SETTING_PLANTS,
    **DIRECTORY_PLANTS,
    **PARTITION_FILE_PLANTS,
    **CLUSTER_TURN_PLANTS,
}
PLANTS: Plants = {name: plant for name, plant in _QUORUM.items() if plant.seeds_max}
SURVIVORS: Plants = {name: plant for name, plant in _QUORUM.items() if not plant.seeds_max}
CLUSTER_PLANTS: Plants = {name: plant for name, plant in _CLUSTER.items() if plant.seeds_max}
CLUSTER_SCHEDULED: Plants = {name: plant for name, plant in _CLUSTER.items() if not plant.seeds_max}
CLUSTER_SURVIVORS: Plants = {
    **PARTITION_SURVIVORS,
    **PARTITION_FILE_SURVIVORS,
}
EVERY_PLANT: Plants = {**_QUORUM, **_CLUSTER, **CLUSTER_SURVIVORS, **CHECKER_PLANTS}


@contextmanager
def planted(names: str | None) -> Iterator[None]:
    """Run with the planted bugs `names`, joined by commas; None plants nothing."""
    with ExitStack() as stack:
        for name in names.split(",") if names else ():
            stack.enter_context(planted_in(EVERY_PLANT[name]))
        yield
