"""What runs went through is counted, and comes back from other processes."""

import pickle

from jepsen_like.sim.assemblies.quorum.simulation import run
from jepsen_like.sim.runs.sweep import run_all
from jepsen_like.sim.world.coverage import MEETINGS, TRANSITIONS


def test_what_was_seen_and_what_never_was_make_up_all_that_can_be() -> None:
    covered = pickle.loads(pickle.dumps(run_all(run, None, [1, 2]))).coverage
    assert covered.meetings["leader < FetchRequest"] > covered.meetings["candidate < FetchRequest"]
    assert set(covered.meetings) <= set(MEETINGS)
    assert {*covered.never_met(), *covered.meetings} == set(MEETINGS)
    assert {*covered.never_seen(), *covered.transitions} >= set(TRANSITIONS)
