"""Bugs to plant: each a one-line change of a shipped rule.

A simulator is only worth something if it finds what is known to be wrong. Each plant replaces one
named function of `quorum` by a version that forgets one clause; tests/sim/test_catches.py demands
that it is found within `seeds_max` seeds, a bound of twice what it took, or more, on several sets
of seeds. What another rule guards too cannot be found alone; the survivors are such:

- `judges_candidates_of_any_epoch`: a vote needs a log and an epoch that win, too
- `serves_fetches_of_any_epoch`: the position of a fetch is compared with the log by epoch
- `truncates_what_is_committed`: no honest leader asks for it; only lost disks could
- `appends_whatever_comes`, `loads_whatever_it_is_offered`: no honest leader sends it
- `does_not_wait_for_truncation`: the next append is synced after it, in the same log
- `forgets_the_epoch_of_the_snapshot`: who diverges there is told of the snapshot at its next fetch
- `settles_after_a_change_of_role`: who leads no more is told so before anything is delivered, and
  no role counts for another
- `counts_with_the_voters_of_the_end`: voters change by one: a majority of either set will do
- `forgets_the_epoch_of_who_waits`: a node's clients see it, tests/sim/test_chaos_catches.py
  These three are found turn by turn, in tests/quorum/test_turn_engines.py
- `appends_over_what_may_come_back`: a quorum's batches seldom have one size; found by storage
  alone, in tests/sim/test_shipped_disk.py
- `goes_on_with_another_leaders_bytes`: checksums of batches refuse the mixture, and it begins anew
"""

from contextlib import AbstractContextManager, nullcontext

from jepsen_like.planted.file_bugs import FILE_PLANTS, FILE_SURVIVORS
from jepsen_like.planted.log_bugs import LOG_PLANTS, LOG_SURVIVORS
from jepsen_like.planted.planting import Plants, planted_in
from jepsen_like.planted.read_bugs import READ_SCHEDULED
from jepsen_like.planted.snapshot_bugs import SNAPSHOT_PLANTS, SNAPSHOT_SURVIVORS
from jepsen_like.planted.turn_bugs import TURN_SURVIVORS
from jepsen_like.planted.vote_bugs import VOTE_PLANTS, VOTE_SURVIVORS
from jepsen_like.planted.voter_bugs import VOTER_PLANTS, VOTER_SURVIVORS

__all__ = ["PLANTS", "SURVIVORS", "planted"]

PLANTS: Plants = {
    **VOTE_PLANTS,
    **LOG_PLANTS,
    **SNAPSHOT_PLANTS,
    **VOTER_PLANTS,
    **FILE_PLANTS,
}
SURVIVORS: Plants = {
    **VOTE_SURVIVORS,
    **LOG_SURVIVORS,
    **SNAPSHOT_SURVIVORS,
    **VOTER_SURVIVORS,
    **TURN_SURVIVORS,
    **FILE_SURVIVORS,
    **READ_SCHEDULED,  # found by their schedule
}


def planted(name: str | None) -> AbstractContextManager[None]:
    """Run with the planted bug `name`; None plants nothing."""
    if name is None:
        return nullcontext()
    return planted_in(PLANTS.get(name) or SURVIVORS[name])
