"""Whole clusters whose metadata logs lie on the shipped storage: what goes where, what is found."""

import pytest

from jepsen_like.planted.every_bug import BUGS
from jepsen_like.planted.planting import planted_in
from jepsen_like.sim.assemblies.cluster.cluster_options import draw_run
from jepsen_like.sim.assemblies.cluster.cluster_run import run_cluster
from jepsen_like.sim.time.virtual_time import VirtualTime

# A seed that finds each bug of files in a whole cluster, and what breaks then.
FOUND_AT = {
    "forgets_the_name_of_a_new_segment": (27, "S-DU"),
    "publishes_without_a_sync": (27, "S-UP"),
    "replaces_without_a_sync": (39, "S-UP"),
    "tolerates_one_lost_record": (27, "S-BF"),
}


def test_one_seed_of_eight_runs_the_shipped_storage() -> None:
    files = [draw_run(VirtualTime(seed)).quorum.files for seed in range(400)]
    drawn = [each is not None and not each.holds_partitions for each in files]
    assert 30 <= sum(drawn) <= 70


@pytest.mark.parametrize("name", FOUND_AT)
def test_bug_of_files_is_found_in_a_whole_cluster(name: str) -> None:
    seed, rule = FOUND_AT[name]
    with planted_in(BUGS["file"][name]):
        outcome = run_cluster(seed)
    assert (outcome.kind, outcome.rule) == ("safety", rule)


def test_rules_hold_on_the_shipped_storage() -> None:
    outcome = run_cluster(20)
    assert outcome.kind == "ok", outcome.detail
    assert outcome.faults["shipped_storage"] > 0
