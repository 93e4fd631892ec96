"""docs/zookeeper-mode.md maps every statement of the seeds: what it names must be there."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
KINDS = {"done", "erratum", "rejected", "later"}
DOCUMENT = (ROOT / "docs/zookeeper-mode.md").read_text()


def rows() -> list[list[str]]:
    map_ = DOCUMENT.partition("## The map")[2].partition("\n## ")[0]
    lines = [line for line in map_.splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in cells if row[0] != "statement"]


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0])
def test_statement_has_its_kind_and_says_where(row: list[str]) -> None:
    statement, kind, where, *test = row
    assert kind in KINDS
    assert statement
    assert where
    if kind == "done":
        assert test, statement
        assert test[0], statement


@pytest.mark.parametrize("named", sorted({row[3] for row in rows() if len(row) > 3 and row[3]}))
def test_named_test_exists(named: str) -> None:
    path, _, name = named.partition("::")
    tree = ast.parse((ROOT / path).read_text())
    assert name in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize(
    "path", sorted(set(re.findall(r"`((?:[a-z_]+/)+[a-z_0-9]+\.py)`", DOCUMENT)))
)
def test_named_file_exists(path: str) -> None:
    assert (ROOT / path).exists()
