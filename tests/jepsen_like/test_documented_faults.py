"""docs/chaos.md lists every kind of fault, every role and every workload."""

import re
from pathlib import Path

from jepsen_like.faults import Role
from jepsen_like.schedule import KINDS
from jepsen_like.workloads.registry import WORKLOADS

PAGE = (Path(__file__).parents[2] / "docs" / "chaos.md").read_text()


def first_cells(section: str) -> set[str]:
    """What stands as code in the first column of a section's table."""
    text = PAGE.split(f"## {section}\n")[1].split("\n## ")[0]
    cells = re.findall(r"^\|([^|]+)\|", text, re.MULTILINE)
    return {name for cell in cells[1:] for name in re.findall(r"`([^`]+)`", cell)}


def test_the_page_lists_every_kind_of_fault() -> None:
    assert first_cells("Faults") == set(KINDS)


def test_the_page_lists_every_workload() -> None:
    assert first_cells("Workloads") == set(WORKLOADS)


def test_the_page_names_every_role() -> None:
    assert [role.value for role in Role if role.value not in PAGE] == []
