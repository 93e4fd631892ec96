"""Every rule that a checker breaks has its sentence, here and in the handbook."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from jepsen_like.checkers.anomalies import ANOMALIES, anomaly_of, markdown

ROOT = Path(__file__).parents[2]
# Who makes findings, and the call or the keyword that names the rule.
MAKERS = {"report", "_finding", "Finding"}

# What a finding is, and what is wrong with a recorder rather than with a system.
NO_JUDGES = {"verdict", "lint"}


def rules_in(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Call) or getattr(node.func, "id", "") not in MAKERS:
            continue
        named = [each.value for each in node.keywords if each.arg == "rule"]
        for each in named or node.args[:1]:
            for part in ast.walk(each):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield part.value


def sources() -> list[Path]:
    folder = ROOT / "jepsen_like"
    checkers = (folder / "checkers").glob("*.py")
    judges = [path for path in checkers if path.stem not in NO_JUDGES]
    return [*sorted(judges), folder / "real/runs/phases.py"]


@pytest.mark.parametrize("path", sources(), ids=lambda path: path.stem)
def test_rule_has_a_sentence(path: Path) -> None:
    assert [rule for rule in rules_in(path) if rule not in ANOMALIES] == []


def test_rules_are_found_in_the_checkers() -> None:
    found = {rule for path in sources() for rule in rules_in(path)}
    assert {"lost-write", "not-linearizable", "two-leaders", "lost-element", "G1a"} <= found


def test_nothing_is_said_of_a_rule_that_nobody_named() -> None:
    assert anomaly_of("made-up").says == ""


def test_handbook_has_the_table() -> None:
    assert markdown() in (ROOT / "docs/checking.md").read_text()
