"""docs/zookeeper-mode.md maps every statement of the seeds; what is done has a test that runs.

A row that is done names a test that every landing runs (`make test` or `make extra`), on the design
of its section: if the test is parametrised over designs, that one is among them, and if its module
knows of designs, of that one, too.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

from wire.zk.designs import DESIGNS, Design

ROOT = Path(__file__).parent.parent
KINDS = {"done", "differs", "beyond", "erratum", "rejected", "later"}
DOCUMENT = (ROOT / "docs/zookeeper-mode.md").read_text()
PACKAGES = (
    "benchmarks.zookeeper",
    "broker.zk",
    "controller.zk",
    "quorum.zookeeper",
    "wire.zk",
    "jepsen_like.sim.ensemble",
)


@dataclass(frozen=True, kw_only=True)
class Row:
    design: str  # of the section
    statement: str
    kind: str
    where: str
    test: str

    def __str__(self) -> str:
        return f"{self.design}: {self.statement}"


def sections() -> dict[str, list[str]]:
    """Lines by the heading of their section in the map."""
    map_ = DOCUMENT.partition("\n## The map\n")[2].partition("\n## ")[0]
    _, *parts = map_.split("\n### ")
    return {part.partition("\n")[0]: part.splitlines()[1:] for part in parts}


def rows() -> list[Row]:
    found = []
    for heading, lines in sections().items():
        (design,) = re.findall(r"`(zk-[a-z0-9]+)`", heading)
        for line in lines:
            if line.startswith("| ") and not line.startswith("| statement |"):
                cells = [each.strip() for each in re.split(r"(?<!\\)\|", line.strip("|"))]
                statement, kind, where, test = cells
                found.append(
                    Row(design=design, statement=statement, kind=kind, where=where, test=test)
                )
    return found


ROWS = rows()
TESTED = [row for row in ROWS if row.test]


class _Collector:
    def __init__(self) -> None:
        self.found: dict[str, list[pytest.Function]] = {}

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        for item in session.items:
            assert isinstance(item, pytest.Function)
            name = f"{item.path.relative_to(ROOT)}::{item.originalname}"
            self.found.setdefault(name, []).append(item)


@cache
def collected() -> Mapping[str, list[pytest.Function]]:
    """The tests of the files that are named, by file and name without parameters."""
    collector = _Collector()
    files = sorted({str(ROOT / row.test.partition("::")[0]) for row in TESTED})
    settings = ["--collect-only", "-q", "-p", "no:cacheprovider", "--rootdir", str(ROOT)]
    settings += ["-W", "ignore:Module already imported:pytest.PytestAssertRewriteWarning"]
    assert pytest.main([*settings, *files], plugins=[collector]) == 0
    return collector.found


def designs_in(item: pytest.Function) -> set[str]:
    """The designs that its parameters name."""
    parameters = item.name.partition("[")[2]
    return {name for name in DESIGNS if re.search(rf"\b{name}\b", parameters)}


def designs_of(module: ModuleType) -> set[str]:
    """The designs that the module has by name, or plays."""
    played = set(re.findall(r"\bdesign=\"(zk-\w+)\"", Path(str(module.__file__)).read_text()))
    return played | {each.name for each in vars(module).values() if isinstance(each, Design)}


def knows_zookeeper(module: ModuleType) -> bool:
    """Does it import a module of the designs, or anything from one?"""
    values = vars(module).values()
    names = (getattr(each, "__module__", None) or getattr(each, "__name__", "") for each in values)
    return any(str(name).startswith(PACKAGES) for name in names)


def test_statement_has_a_row_of_its_own() -> None:
    names = [str(row) for row in ROWS]
    assert sorted(names) == sorted(set(names))


def row_problem(row: Row) -> str | None:
    """What a row lacks."""
    if row.kind not in KINDS:
        return f"no kind: {row.kind}"
    if not row.statement or not row.where:
        return "an empty cell"
    return "no test" if row.kind in ("done", "beyond") and not row.test else None


def naming_problem(row: Row) -> str | None:
    """Why the test that a row names does not show its statement on every landing."""
    items = collected().get(row.test, [])
    if not items:
        return "no such test"
    running = [each for each in items if each.get_closest_marker("long") is None]
    if not running:
        return "in `make chaos` only"
    named = {name for each in items for name in designs_in(each)}
    ran = {name for each in running for name in designs_in(each)}
    if named and row.design not in ran:
        return f"not on {row.design}, but on {sorted(ran)}"
    known = designs_of(items[0].module)
    if not (known or ran or knows_zookeeper(items[0].module)):
        return "its module knows nothing of ZooKeeper"
    return (
        f"its module knows {sorted(known)} alone"
        if known and row.design not in known | ran
        else None
    )


# A loop each, since six hundred parameters cost more than what they test.
def test_every_statement_has_its_kind_and_says_where() -> None:
    assert {str(row): problem for row in ROWS if (problem := row_problem(row))} == {}


def test_every_named_test_runs_on_every_landing_on_its_design() -> None:
    assert {str(row): problem for row in TESTED if (problem := naming_problem(row))} == {}


def test_every_named_file_exists() -> None:
    named = set(re.findall(r"`((?:[a-z_]+/)+[a-z_0-9]+\.py)`", DOCUMENT))
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []
    assert named
