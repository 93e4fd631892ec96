"""docs/chaos.md lists every kind of fault, every role and every workload."""

import re
from pathlib import Path

from jepsen_like.faults.fault import Role
from jepsen_like.faults.kinds import KINDS
from jepsen_like.workloads.registry import WORKLOADS

DOCS = Path(__file__).parents[2] / "docs"
PAGE, SIMULATED = (DOCS / "chaos.md").read_text(), (DOCS / "simulation.md").read_text()


def first_cells(section: str) -> set[str]:
    """What stands as code in the first column of a section's table."""
    text = PAGE.split(f"## {section}\n")[1].split("\n## ")[0]
    cells = re.findall(r"^\|([^|]+)\|", text, re.MULTILINE)
    return {name for cell in cells[1:] for name in re.findall(r"`([^`]+)`", cell)}


def test_the_page_lists_every_kind_of_fault() -> None:
    assert first_cells("Faults") == set(KINDS)


def test_the_page_tells_the_proof_of_every_kind_and_what_only_virtual_time_has() -> None:
    rows = [re.split(r" *\| *", row)[1:] for row in PAGE.split("\n") if row.startswith("| `")]
    told = {kind: row for row in rows for kind in re.findall(r"`([^`]+)`", row[0])}
    assert {kind: told[kind][2] for kind in KINDS} == {kind: KINDS[kind].proof for kind in KINDS}
    virtual = [kind for kind in KINDS if told[kind][3] == "virtual time"]
    assert virtual == [kind for kind in KINDS if KINDS[kind].not_on_processes]


def test_the_page_of_the_simulator_names_what_it_cannot_do() -> None:
    told = SIMULATED.split("These kinds are not simulated: ")[1].split(";")[0]
    assert set(re.findall(r"`([^`]+)`", told)) == {
        kind for kind in KINDS if KINDS[kind].not_simulated
    }


def test_the_page_lists_every_workload() -> None:
    assert first_cells("Workloads") == set(WORKLOADS)


def test_the_page_names_every_role() -> None:
    assert [role.value for role in Role if role.value not in PAGE] == []
