"""Every planted bug is found within its bound of seeds: the simulator can see.

The bounds were set on one set of seeds and confirmed on another; docs/simulation.md has the record.
Here the seed that found a bug before is tried first, so that all are found in seconds. What takes
many seeds all the same is left to `quorumlab chaos sim --catches`, which `make sim` runs.
"""

import pytest

from jepsen_like.planted.every_bug import PLANTS
from jepsen_like.sim.assemblies.quorum.simulation import run
from tests.sim.found_by import found_by, rule_broken

# A seed that finds each bug. Where the draws of a run have changed and it does so no more, the test
# goes through all seeds of the bound, and says which one to enter.
FOUND_AT = {
    "acknowledges_before_sync": 0,
    "answers_before_saving": 0,
    "changes_voters_before_a_commit": 26,
    "changes_voters_that_are_not_committed": 21,
    "cleans_beyond_the_newest": 1,
    "commits_earlier_epochs": 1,
    "compares_offsets_first": 51,
    "compares_offsets_only": 9,
    "counts_before_own_sync": 8,
    "counts_diverging_fetches": 18,
    "counts_itself_though_removed": 18,
    "counts_itself_twice": 0,
    "counts_observers": 3,
    "counts_one_loss_too_many": 3,
    "counts_voters_once_committed": 0,
    "counts_what_was_written_during_a_sync": 31,
    "delivers_on_from_the_record_after": 12,
    "does_not_stand_when_being_removed": 8,
    "fails_no_withheld_send": 15,
    "forgets_its_vote": 0,
    "forgets_the_name_of_a_new_segment": 1,
    "forgets_waiting_fetches": 8,
    "forgets_what_came_before_a_failure": 0,
    "goes_on_without_its_disk": 15,
    "grants_pre_votes_while_following": 1,
    "hangs_up_on_nobody": 15,
    "holds_back_only_votes": 1,
    "ignores_later_epochs": 1,
    "judges_the_far_behind_by_offset": 22,
    "keeps_last_epoch": 25,
    "keeps_the_epoch_at_the_cut": 30,
    "keeps_truncated_epochs": 25,
    "keeps_truncated_voters": 6,
    "keeps_what_was_cut_off": 3,
    "leads_on_though_removed": 8,
    "learns_one_epoch_a_fetch": 30,
    "loads_without_voters": 26,
    "names_snapshots_one_off": 1,
    "never_checks_quorum": 8,
    "publishes_without_a_sync": 1,
    "refuses_pre_votes_for_any_leader": 3,
    "releases_all_that_is_held": 3,
    "renames_without_a_sync": 1,
    "replaces_without_a_sync": 5,
    "resumes_leadership": 0,
    "says_the_latest_voters": 8,
    "serves_who_is_too_far_behind": 22,
    "stands_without_asking": 1,
    "takes_a_falling_epoch": 33,
    "takes_any_disk_for_the_voters": 66,
    "tells_before_it_writes": 0,
    "tells_though_a_write_failed": 15,
    "tolerates_one_lost_record": 4,
    "truncates_to_the_leaders_offset": 9,
    "truncates_too_far": 2,
    "trusts_what_a_failed_sync_left": 12,
    "uses_the_descriptor_of_another_file": 0,
    "votes_in_the_place_of_another_disk": 26,
    "votes_twice": 5,
    "waits_for_the_first_under_way": 3,
    "waits_for_the_sync_before": 31,
}


@pytest.mark.parametrize("name", PLANTS)
def test_planted_bug_is_found(name: str) -> None:
    bound = PLANTS[name].seeds_max
    seeds = (FOUND_AT[name], *range(bound))
    outcomes = ((seed, run(seed, plant=name)) for seed in seeds)
    found = next(((seed, each) for seed, each in outcomes if each.kind != "ok"), None)
    assert found is not None, f"quorumlab chaos sim --sweep {bound} --plant {name}"
    at, outcome = found
    assert at == FOUND_AT[name], f"found at {at} now: enter it in FOUND_AT"
    assert rule_broken(outcome) in found_by(name), "docs/planted-bugs.md says otherwise"
