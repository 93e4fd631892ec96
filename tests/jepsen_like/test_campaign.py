"""Many runs: which ones are made, and what is told of them."""

from itertools import combinations
from typing import Any

from jepsen_like.campaign import (
    KINDS_A_RUN,
    plan_campaign,
    plan_zk_campaign,
    report,
    section,
    with_sections,
)
from jepsen_like.faults.kinds import KINDS, clash
from wire.zk.designs import DESIGNS

ALL = tuple(kind for kind in KINDS if kind != "rotate-certificates")  # of plain clusters


def test_same_seed_plans_the_same_runs() -> None:
    first, again, other = (plan_campaign(runs=30, kinds=ALL, seed=seed) for seed in (1, 1, 2))
    assert first == again
    assert [each.kinds for each in first] != [each.kinds for each in other]


def test_a_longer_campaign_begins_as_a_shorter_one() -> None:
    assert plan_campaign(runs=30, kinds=ALL, seed=1)[:10] == plan_campaign(
        runs=10, kinds=ALL, seed=1
    )


def test_thirty_runs_have_every_kind_and_hardly_a_pair_twice() -> None:
    planned = plan_campaign(runs=30, kinds=ALL, seed=1)
    assert {kind for each in planned for kind in each.kinds} == set(ALL)
    pairs = {pair for each in planned for pair in combinations(each.kinds, 2)}
    most = len(planned) * KINDS_A_RUN * (KINDS_A_RUN - 1) // 2
    assert len(pairs) > 0.9 * most
    assert [each for each in planned if clash(each.kinds)] == []
    assert len({each.seed for each in planned}) == len({each.directory for each in planned}) == 30


def test_workloads_get_only_faults_that_they_can_stand() -> None:
    for each in plan_campaign(runs=90, kinds=ALL, seed=1):
        if each.workload == "admin":
            assert "power-loss" not in each.kinds, "there one replica may have all that is promised"
        if each.workload == "cas-register":
            assert "full-disk" not in each.kinds


def test_few_kinds_are_enough_for_a_campaign() -> None:
    [only] = plan_campaign(runs=1, kinds=("kill", "pause"), seed=3)
    assert only.kinds == ("kill", "pause")


def told(summary: str, **changed: Any) -> dict[str, Any]:
    measured = {"seconds": 60.0, "ok": 900, "fail": 3, "info": 2, "ok_a_second": 15.0}
    return {
        "summary": summary,
        "void": ["kill never bit"] if summary == "void" else [],
        "workload": "log",
        "client": "aiokafka",
        "seed": 4,
        "command": "quorumlab chaos run --seed 4",
        "warm_up": measured | {"ok_a_second": 20.4},
        "safety": measured,
        "controller_elections": 2,
        "leader_elections": 7,
        "recovered_seconds": 1.25,
        "faults_planned": 3,
        "faults": [
            {"kind": "kill", "bit": True},
            {"kind": "pause", "bit": True},
            {"kind": "kill", "bit": False},
        ],
    } | changed


def test_page_has_a_row_a_run_and_counts_the_void_ones() -> None:
    page = report(
        [told("valid"), told("void", recovered_seconds=None)],
        commits=["abc123", "abc123"],
        command="quorumlab chaos report",
        left_out={"slow-disk": "needs root"},
        put_aside=("001-log.interrupted-1",),
    )
    assert "`quorumlab chaos report`: runs 1 to 2 at abc123. A run" in page
    assert "Came to no end, put aside and made anew: 001-log.interrupted-1." in page
    rows = [line for line in page.splitlines() if line.startswith(("| 1 |", "| 2 |"))]
    assert rows[0] == (
        "| 1 | log (aiokafka) | 4 | kill 1, pause 1 | 2 of 3 | 900 | 3 | 2 | 15 | 20 | 2 | 7 "
        "| 1.2 | valid |"
    )
    assert rows[1].endswith("| - | void: kill never bit |")
    text = " ".join(page.split())
    assert "succeeded in 2 runs, under 4 proven faults of 6: 1 valid, 1 void.** 2 minutes" in text
    assert "Not in these runs: slow-disk (needs root)." in page
    assert "kill 2, pause 2." in page
    assert "Of 1 pairs of these kinds that can meet, 1 bit in one run." in page
    assert "2. `quorumlab chaos run --seed 4`" in page


def test_page_says_which_runs_were_made_at_which_commit() -> None:
    runs = [told("valid")] * 4
    page = report(runs, commits=["a", "a", "b", "a"], command="quorumlab", left_out={})
    assert "runs 1 to 2 at a, 3 at b, 4 at a." in page


def test_designs_with_zookeeper_are_broken_alike_and_lose_it_and_their_sessions() -> None:
    planned = {design: plan_zk_campaign(design, runs=4, seed=1) for design in DESIGNS}
    alike = {tuple((each.seed, each.kinds) for each in runs) for runs in planned.values()}
    assert len(alike) == 1
    assert all({"kill-zookeeper", "pause"} < set(each.kinds) for each in planned["zk-v3"])
    assert len({kind for each in planned["zk-v3"] for kind in each.kinds}) == 9
    assert planned["zk-v1"][1].arguments == ("--design", "zk-v1", "--no-idempotence")


def test_section_of_a_design_says_what_its_document_admits() -> None:
    runs = [told("valid", admitted={}), told("violated", admitted={"lost-write": "it may"})]
    text = section("zk-v3", runs, commits=["a", "a"], command="again")
    assert "| violated; admitted: lost-write |" in text
    assert "Admitted by its document: lost-write; it may." in text


def test_page_keeps_the_sections_of_designs_and_takes_the_newest_of_each() -> None:
    def of(design: str, text: str) -> str:
        return f"## Design {design}\n\n{text}\n"

    page = with_sections("# Page\n", of("zk-v3", "old"), order=["zk-v2", "zk-v3"])
    page = with_sections(page, page, of("zk-v2", "two"), order=["zk-v2", "zk-v3"])
    page = with_sections("# Anew\n", page, of("zk-v3", "new"), order=["zk-v2", "zk-v3"])
    assert page == f"# Anew\n\n{of('zk-v2', 'two')}\n{of('zk-v3', 'new')}"
