"""What a design's document admits is said beside a violation, and only there."""

from pathlib import Path

import pytest

from jepsen_like.checkers.anomalies import ANOMALIES
from jepsen_like.checkers.verdict import Finding
from jepsen_like.faults.fault import Role
from jepsen_like.real.runs.outcome import ADMITTED, admitted_by, whose_document, why_admitted
from jepsen_like.real.runs.run_options import RunOptions
from jepsen_like.sim.chaos.plan import Plan, schedule_of
from quorum.raftos.engines import ENGINES, NATIVE, RAFTOS
from wire.zk.designs import DESIGNS


def test_designs_and_rules_are_there() -> None:
    assert set(ADMITTED) <= {*DESIGNS, *ENGINES}
    assert {rule for rules in ADMITTED.values() for rule in rules} <= set(ANOMALIES)


def test_high_watermark_truncation_may_lose_what_leader_epochs_may_not() -> None:
    lost = Finding(rule="lost-write", object="chaos-0", detail="")
    assert "KAFKA-1211" in why_admitted("zk-v3", lost)
    assert why_admitted("zk-redesign", lost) == ""
    assert why_admitted("quorum", lost) == ""


def test_another_engine_has_a_document_of_its_own() -> None:
    lost = Finding(rule="lost-write", object="chaos-0", detail="")
    assert whose_document("quorum", NATIVE) == "quorum"
    assert "votes" in why_admitted(whose_document("quorum", RAFTOS), lost)


def test_each_broken_rule_is_named_once() -> None:
    findings = [Finding(rule="lost-write", object=f"chaos-{n}", detail="") for n in range(2)]
    unknown = Finding(rule="poll-skip", object="chaos-0", detail="")
    assert list(admitted_by("zk-v3", [*findings, unknown])) == ["lost-write"]


@pytest.mark.parametrize("design", DESIGNS)
def test_where_nobody_is_the_controller_a_leader_is_meant(design: str, tmp_path: Path) -> None:
    faults = ("kill:active-controller", "kill-zookeeper")
    options = RunOptions(directory=tmp_path, design=design, faults=faults, seconds=30)
    plan = Plan(seed=0, design=design, faults=faults, seconds=30)
    for schedule in (options.schedule(), schedule_of(plan)):
        roles = {each.fault.role for each in schedule}
        assert Role.ONE_ZOOKEEPER in roles
        assert (Role.ACTIVE_CONTROLLER in roles) is DESIGNS[design].has_controller
