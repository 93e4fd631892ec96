"""Planted bugs that clients can see are found by the judge of their history, and by nothing else.

Invariants look on and say nothing here. Each is found within so many seeds, about three times what
it took. What needs a schedule of its own is left to the museum and to `test_harm.py`, what only
invariants can see to `test_catches.py`. docs/planted-bugs.md says of every bug which it
is, and why.
"""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from jepsen_like.museum.item import ITEMS
from jepsen_like.planted.every_bug import BUGS, EVERY_PLANT
from jepsen_like.scenarios.schedules import HARM
from jepsen_like.sim.chaos.plan import Plan
from jepsen_like.sim.chaos.shrinking import ddmin, rules_of, shrink
from jepsen_like.sim.chaos.workload_run import run_plan

PAGE = Path(__file__).parents[2] / "docs" / "planted-bugs.md"
LOG = Plan(seed=0, workload="log", faults=("kill", "partition", "pause"), seconds=12)
TRANSACTIONS = replace(LOG, workload="transactions")
BANK = replace(LOG, workload="bank")
ALL_DOWN = replace(LOG, faults=("kill:brokers",), pause_ms=30, seconds=5)
REGISTER = Plan(seed=0, workload="register", faults=("kill",), seconds=6)
STORM = Plan(
    seed=0,
    workload="cas-register",
    faults=(
        "power-loss",
        "kill",
        "partition",
        "partition-one-way",
        "pause",
        "isolate-controller",
    ),
    storm=True,
    seconds=8,
    unit_ms=60,
    sync_us=8_000,
    pause_ms=10,
    processes=5,
    controllers=5,
)
POWER = replace(
    STORM,
    faults=("power-loss:all", "power-loss:majority", "power-loss", "isolate-controller", "kill"),
    controllers=3,
    seconds=6,
)
OUTAGES = replace(POWER, faults=("power-loss:all", "power-loss:majority"), processes=10)
HARMFUL = {name for entry in HARM.values() for name in entry.finds}
# One bug a plan; what schedules find within a moment need not be found at random every time.
EVERY_TIME = {"acknowledges_at_once", "answers_without_doing", "truncates_to_the_high_watermark"}
# The plan, within how many seeds it is found, and one of the rules that the judge names.
TABLE = {
    "acknowledges_at_once": (LOG, 3, "lost-write"),
    "shows_consumers_the_end": (LOG, 3, "inconsistent-offsets"),
    "takes_repetitions": (LOG, 3, "duplicate"),
    "tells_no_epoch": (LOG, 3, "inconsistent-offsets"),
    "truncates_to_the_high_watermark": (ALL_DOWN, 3, "lost-write"),
    "writes_in_the_epoch_before": (LOG, 3, "inconsistent-offsets"),
    "shows_open_transactions": (TRANSACTIONS, 3, "vanished"),
    "tells_no_aborted_transactions": (TRANSACTIONS, 3, "G1a"),
    "tells_one_aborted_transaction": (TRANSACTIONS, 3, "G1a"),
    "writes_every_marker_as_abort": (TRANSACTIONS, 3, "unseen"),
    "commits_what_is_to_be_aborted": (BANK, 3, "wrong-total"),
    "answers_without_doing": (REGISTER, 2, "not-linearizable"),
    "forgets_the_epoch_of_who_waits": (STORM, 3, "not-linearizable"),
    "acknowledges_before_sync": (POWER, 9, "not-linearizable"),
    "counts_before_own_sync": (OUTAGES, 9, "not-linearizable"),
    "resumes_leadership": (POWER, 4, "not-linearizable"),
}


@pytest.mark.extra
def test_two_leaders_of_an_epoch_are_seen_by_clients_and_by_what_nodes_say() -> None:
    rules = rules_of(run_plan(replace(LOG, plants="keeps_the_leader_epoch")))
    assert rules >= {"two-leaders", "inconsistent-offsets"}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.long] * (name not in EVERY_TIME)) for name in TABLE],
)
def test_planted_bug_is_found_in_the_history(name: str) -> None:
    plan, bound, rule = TABLE[name]
    seeds = (replace(plan, seed=seed, plants=name) for seed in range(bound))
    found = next((rules for each in seeds if rule in (rules := rules_of(run_plan(each)))), None)
    assert found, f"chaos sim --workload {plan.workload} --plant {name} --seeds 0..{bound - 1}"


def test_the_page_tells_of_every_bug_what_clients_see_of_it() -> None:
    page = PAGE.read_text()
    rows = re.findall(r"^\| `(\w+)` \|.*\| ([^|]+) \|$", page, re.MULTILINE)
    seen_by = {name: cell for name, cell in rows if name in EVERY_PLANT}
    exhibits = [
        (item, name)
        for item, entry in ITEMS.items()
        for exhibit in entry.exhibits
        if exhibit.seen
        for name in exhibit.plants.split(",")
        if name
    ]
    at_random = {*TABLE, "keeps_the_leader_epoch"}
    in_museum = {name for _, name in exhibits} - at_random
    in_harm = (HARMFUL | BUGS["read"].keys()) - at_random
    reasons = re.findall(r"^\| ([a-z ]+) \| ", page.split("| no: | reason |\n")[1], re.MULTILINE)

    assert seen_by.keys() == EVERY_PLANT.keys()
    assert {name for name, cell in seen_by.items() if cell == "at random"} == at_random
    assert {name for name, cell in seen_by.items() if cell.startswith("museum ")} == in_museum
    for name in in_museum:
        assert (seen_by[name].removeprefix("museum "), name) in exhibits
    assert {name for name, cell in seen_by.items() if cell.startswith("`")} == in_harm
    for name in in_harm:
        schedule = seen_by[name].strip("`")
        assert name in (BUGS["read"] if schedule == "test_reads.py" else HARM[schedule].finds)
    unseen = {name: cell for name, cell in seen_by.items() if cell.startswith("no: ")}
    assert unseen.keys() == EVERY_PLANT.keys() - at_random - in_museum - in_harm
    assert {cell.removeprefix("no: ") for cell in unseen.values()} == set(reasons)
    assert f"{len(EVERY_PLANT) - len(unseen)} of the {len(EVERY_PLANT)} bugs" in page


@pytest.mark.long  # shorter runs of the shipped rules: see `test_chaos.py`
@pytest.mark.parametrize("plan", [LOG, TRANSACTIONS, BANK, ALL_DOWN, REGISTER, STORM, POWER])
def test_without_the_plant_nothing_is_found(plan: Plan) -> None:
    assert rules_of(run_plan(plan)) == frozenset()


def test_taking_stale_reads_for_linearizable_ones_is_found() -> None:
    """A mistake of who judges, not of the system: DescribeConfigs at a broker may be old."""
    plan = replace(
        REGISTER,
        faults=("partition:one-broker",),
        stale_reads_as_reads=True,
        pause_ms=30,
        seconds=3,
    )
    found = (rules_of(run_plan(replace(plan, seed=seed))) for seed in range(3))
    assert any("not-linearizable" in rules for rules in found)


@pytest.mark.extra
def test_failing_run_shrinks_to_what_it_needs() -> None:
    first = run_plan(replace(REGISTER, plants="answers_without_doing", seconds=1))
    told: list[str] = []
    smallest = shrink(first, progress=told.append)
    assert rules_of(smallest) & rules_of(first)
    assert smallest.schedule == (), "no fault is needed to see it"
    assert len(smallest.history.ops) < len(first.history.ops) / 4
    assert run_plan(smallest.plan).digest == smallest.digest
    assert told


@pytest.mark.parametrize("culprits", [{3}, {0, 9}, {2, 3, 7}, set()])
def test_ddmin_finds_what_cannot_be_spared(culprits: set[int]) -> None:
    assert set(ddmin(range(10), lambda part: culprits <= set(part))) == culprits
