"""Every bug that is planted in brokers or controllers is found within its bound of seeds.

Bounds were set on one set of seeds and confirmed on another by `quorumlab chaos sim --cluster
--catches`; docs/simulation.md has the record. Here the seed that found a bug before comes first.
"""

import pytest

from jepsen_like.planted.every_bug import CLUSTER_PLANTS
from jepsen_like.sim.assemblies.cluster.cluster_run import run_cluster
from tests.sim.found_by import found_by, rule_broken

# A seed that finds each bug: see `test_catches.py`.
FOUND_AT = {
    "creates_anew_what_is_offline": 9,
    "does_not_say_where_replicas_lie": 0,
    "elects_into_a_failed_directory": 0,
    "leaves_them_in_sync_where_a_directory_failed": 0,
    "reports_no_failed_directory": 0,
    "says_that_what_is_offline_lies_nowhere": 9,
    "acknowledges_at_once": 0,
    "answers_as_if_no_broker_had_changed": 0,
    "answers_as_if_no_partition_had_changed": 0,
    "answers_without_doing": 0,
    "counts_on_the_shrunk_isr": 0,
    "counts_the_joining_as_in_sync": 0,
    "decides_at_the_end_of_the_log": 0,
    "elects_who_is_shutting_down": 7,
    "deletes_all_that_is_exposed": 0,
    "deletes_what_is_not_exposed": 0,
    "elects_uncleanly_unasked": 0,
    "elects_whoever_is_first": 0,
    "follows_the_slowest": 5,
    "forgets_the_last_partition": 43,
    "goes_by_the_settings_of_before": 0,
    "goes_on_recovering": 2,
    "is_content_with_any_isr": 3,
    "keeps_in_sync_who_has_left": 21,
    "keeps_the_leader_epoch": 0,
    "keeps_whoever_lags": 0,
    "knows_the_last_batch_only": 24,
    "lets_go_of_what_is_not_exposed": 0,
    "loads_what_it_knows_to_be_committed": 18,
    "never_asks_again": 0,
    "obeys_late_answers": 5,
    "raises_the_recovery_point_without_a_sync": 2,
    "registers_under_the_old_epoch": 1,
    "shows_consumers_the_end": 32,
    "shows_what_is_not_committed": 0,
    "stops_without_an_epoch": 3,
    "takes_alterations_one_epoch_old": 29,
    "takes_batches_of_any_size": 9,
    "takes_the_boundary_for_lagging": 7,
    "takes_clients_first": 1,
    "takes_followers_for_clients": 1,
    "takes_repetitions": 7,
    "tells_errors_in_new_words": 29,
    "tells_before_it_is_rewritten": 0,
    "tells_no_epoch": 6,
    "tells_one_session": 11,
    "truncates_to_the_high_watermark": 9,
    "trusts_every_stop": 53,
    "writes_in_the_epoch_before": 0,
    "writes_log_by_log": 0,
}


@pytest.mark.parametrize("name", CLUSTER_PLANTS)
def test_planted_bug_is_found(name: str) -> None:
    bound = CLUSTER_PLANTS[name].seeds_max
    seeds = (FOUND_AT[name], *range(bound))
    outcomes = ((seed, run_cluster(seed, plant=name)) for seed in seeds)
    found = next(((seed, each) for seed, each in outcomes if each.kind != "ok"), None)
    assert found is not None, f"quorumlab chaos sim --cluster --sweep {bound} --plant {name}"
    at, outcome = found
    assert at == FOUND_AT[name], f"found at {at} now: enter it in FOUND_AT"
    assert rule_broken(outcome) in found_by(name), "docs/planted-bugs.md says otherwise"
