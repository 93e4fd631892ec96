"""The plan: the most telling first, nothing twice, and what a budget leaves out is said."""

from quorumlab.compare.comparison import CELL_SECONDS, estimate_seconds, planned, repeated, within
from quorumlab.compare.experiments import EXPERIMENTS, QUICK, placement
from quorumlab.compare.results import CellKey
from quorumlab.compare.subjects import ALL_DESIGNS, Subject, subject_named, subjects

NATIVE_ONLY = ("native",)
ALL = list(subjects(ALL_DESIGNS, NATIVE_ONLY))


def test_engine_is_a_choice_of_the_quorum_alone() -> None:
    names = [each.name for each in subjects(("quorum", "zk-v3"), ("native", "raftos"))]
    assert names == ["zk-v3", "quorum", "quorum/raftos"]
    assert subject_named("quorum/raftos") == Subject(design="quorum", engine="raftos")
    assert [subject_named(name).name for name in names] == names


def test_failures_at_quick_sizes_come_first() -> None:
    keys = planned(ALL, list(EXPERIMENTS), [1000, 10_000, 100], ("equal", "defaults"))
    first = keys[: 4 * len(ALL)]
    assert {key.experiment for key in first} == set(QUICK)
    assert [key.partitions for key in first] == sorted([100, 1000] * 2 * len(ALL))
    assert {key.timeouts for key in first} == {"equal"}
    assert len(set(keys)) == len(keys)


def test_defaults_are_measured_once_for_each_subject_and_experiment() -> None:
    keys = planned(ALL, ["broker-crash"], [10, 100, 1000], ("equal", "defaults"))
    of_defaults = [key for key in keys if key.timeouts == "defaults"]
    assert {key.partitions for key in of_defaults} == {100}
    assert len(of_defaults) == len(ALL)


def test_cells_are_repeated_only_once_all_are_there() -> None:
    keys = planned(ALL, ["broker-crash"], [100], ("equal",))
    thrice = repeated(keys, 3)
    assert thrice[: len(keys)] == keys
    assert [key.run for key in thrice] == [run for run in (1, 2, 3) for _ in keys]
    assert len({key.file_name for key in thrice}) == len(set(thrice)) == 3 * len(keys)


def test_isr_change_has_no_defaults() -> None:
    assert planned(ALL, ["isr-change"], [100], ("defaults",)) == []


def test_budget_leaves_out_the_last_and_says_so() -> None:
    keys = planned(ALL, ["broker-crash"], [100, 1000], ("equal",))
    plan = within(keys, sum(map(estimate_seconds, keys[:4])), ())
    assert list(plan.cells) == keys[:4]
    assert list(plan.left_out) == keys[4:]
    assert plan.seconds == sum(map(estimate_seconds, keys[:4]))


def test_what_was_measured_is_not_measured_again() -> None:
    keys = planned(ALL, ["broker-crash"], [100], ("equal",))
    plan = within(keys, None, set(keys[:2]))
    assert list(plan.cells) == keys[2:]
    assert plan.left_out == []


def test_design_that_cannot_take_part_costs_nothing() -> None:
    key = CellKey(
        subject="zk-v1", experiment="controller-failover", partitions=100, timeouts="equal"
    )
    assert estimate_seconds(key) == 0.0
    assert "replicas elect" in EXPERIMENTS[key.experiment].why_not(subject_named("zk-v1"))
    assert "no ZooKeeper" in EXPERIMENTS["zookeeper-leader"].why_not(subject_named("quorum"))


def test_no_cell_takes_longer_than_its_limit() -> None:
    key = CellKey(
        subject="quorum", experiment="broker-crash", partitions=1_000_000, timeouts="equal"
    )
    assert estimate_seconds(key) == CELL_SECONDS


def test_leaders_and_followers_are_spread_evenly() -> None:
    placed = placement(EXPERIMENTS["broker-crash"], 9)
    assert [replicas[0] for replicas in placed] == [1, 2, 3] * 3
    assert [sum(replicas[1] == broker for replicas in placed) for broker in (1, 2, 3)] == [3, 3, 3]
    assert all(sorted(replicas) == [1, 2, 3] for replicas in placed)


def test_spared_broker_holds_replicas_and_leads_none() -> None:
    placed = placement(EXPERIMENTS["isr-change"], 10)
    assert {replicas[0] for replicas in placed} == {1, 2}
    assert all(3 in replicas for replicas in placed)
