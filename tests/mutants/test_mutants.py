"""The tool finds what a check kills and what lives, and counts both."""

import argparse
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.mutants import __main__ as command
from tests.mutants import results as kept
from tests.mutants.forks import Lost, forked, limit_processor_time
from tests.mutants.groups import Group
from tests.mutants.operators import Mutant, mutants_of
from tests.mutants.patching import Live
from tests.mutants.results import Result, page, read, share, write

SOURCE = '''
def majority(votes: int, voters: int) -> bool:
    """More than a half."""
    if voters < 1:
        return False
    return votes > voters // 2
'''


@pytest.fixture
def source(tmp_path: Path) -> Callable[[str], list[Mutant]]:
    def written(text: str) -> list[Mutant]:
        (tmp_path / "rules.py").write_text(text)
        return mutants_of(tmp_path, "rules.py")

    return written


@pytest.mark.parametrize(
    ("body", "changes"),
    [
        ("return a < b", ["comparison a <= b"]),
        ("return a is None", ["comparison a is not None"]),
        ("return a[b:]", ["off by one b + 1:"]),
        ("return 7", ["off by one 8"]),
        ("if a: return\nb()", ["guard a and False", "statement ", "statement "]),
        ("return 'x' if a else b", ["guard a or True"]),
        ("return [each for each in a if each]", ["guard each or True"]),
        ("return a or ()", []),
        ("return a or b", ["guard False or b", "guard a or False"]),
        ("match a:\n  case b if b: return a", ["guard b or True"]),
        ("a.b = b", ["statement "]),
        ("return f(a, b)", ["arguments f(b, a)"]),
        ("return f(a=a, b=b)", ["arguments f(a=b, b=a)"]),
        ("assert a < 1\n'text'\na = b\nraise ValueError(f'{a < 1}')", []),
        ("return a == f'{b < 1}'", ["comparison a != f'{b < 1}'"]),
    ],
)
def test_what_is_changed(
    body: str, changes: list[str], source: Callable[[str], list[Mutant]], tmp_path: Path
) -> None:
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    (tmp_path / "quorum").mkdir()
    (tmp_path / "quorum" / "called.py").write_text("def f(a: int, b: int) -> int: ...")
    found = source(f"def decide(a: int, b: int) -> None:\n{lines}\n")
    assert [f"{each.operator} {each.after}" for each in found] == changes


def test_arguments_of_different_types_are_left_to_the_types(
    source: Callable[[str], list[Mutant]], tmp_path: Path
) -> None:
    (tmp_path / "quorum").mkdir()
    (tmp_path / "quorum" / "called.py").write_text("def f(a: int, b: str) -> int: ...")
    assert source("def decide(a, b):\n    return f(a, b)\n") == []


def test_name_of_a_mutant_stays_where_the_rest_of_its_file_changes(
    source: Callable[[str], list[Mutant]],
) -> None:
    before = source(SOURCE)
    after = source(f"def other():\n    return 1 < 2\n{SOURCE}")
    assert {each.name for each in before} < {each.name for each in after}


def test_check_kills_what_it_sees_and_the_rest_lives(
    source: Callable[[str], list[Mutant]], tmp_path: Path
) -> None:
    mutants = source(SOURCE)
    module: dict[str, Callable[[int, int], bool]] = {}
    exec(compile(SOURCE, str(tmp_path / "rules.py"), "exec"), module)
    majority = module["majority"]
    live = Live(tmp_path, [majority])  # type: ignore[list-item]  # a function, as it is compiled here

    def survives(mutant: Mutant) -> bool:
        assert live.apply(mutant) == 1
        return majority(2, 3) and not majority(1, 2) and not majority(0, 0)

    lives = [each.after for each in mutants if forked(lambda: survives(each))]  # noqa: B023 - at once
    assert lives == ["voters < 1 and False", "voters <= 1", "2"]
    assert majority(2, 3), "the process that forks is as it was"


def test_fork_that_comes_back_without_a_result_is_lost() -> None:
    def endless() -> None:
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        limit_processor_time(0.01)
        while True:
            pass

    with pytest.raises(Lost):
        forked(endless)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        forked(lambda: 1 // 0)


def result(name: str, killed_by: str) -> Result:
    return Result(
        group="raft",
        name=name,
        what=f"what {name} is",
        killed_by=killed_by,
        detail="",
        commit="1234567",
        date="2026-11-24",
    )


def test_page_counts_and_tells_who_lives(tmp_path: Path) -> None:
    results = [result("a", "unit"), result("b", "history"), result("c", ""), result("d", "")]
    path = tmp_path / "results.jsonl"
    write({each.name: each for each in results}, path)
    assert list(read(path).values()) == results
    equivalent = {"c": "both say the same"}
    assert share(results, equivalent) == 2 / 3
    told = list(page({"raft": "Raft", "spark": "Spark"}, results, equivalent))
    assert "| Raft | 4 | 1 | 0 | 1 | 1 | 1 | 66.7% | 2026-11-24, 1234567 |" in told
    assert "| Spark | not run | | | | | | | |" in told
    assert told[told.index("## Survivors") + 2] == "- what d is"
    assert told[told.index("## Equivalent") + 2] == "- what c is: both say the same"


@pytest.mark.parametrize(
    ("judged", "asked", "told"),
    [
        (2, None, ""),
        (1, None, "raft: 1 of 2 mutants are not judged\n"),
        (0, ["raft"], "raft: 2 of 2 mutants are not judged\n"),
        (0, ["spark"], ""),
    ],
)
def test_a_sample_that_is_not_judged_in_full_is_told_and_fails(
    judged: int,
    asked: list[str] | None,
    told: str,
    source: Callable[[str], list[Mutant]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    raft = Group(name="raft", title="Raft", sources=(), tests=(), histories="")
    mutants = source(SOURCE)[:2]
    results = {mutant.name: result(mutant.name, "unit") for mutant in mutants[:judged]}
    monkeypatch.setattr(command, "GROUPS", {"raft": raft})
    monkeypatch.setattr(kept, "read", lambda: results)
    monkeypatch.setattr(kept, "reasons", dict)
    args = argparse.Namespace(group=asked, page=None)
    assert command._tell({"raft": mutants, "spark": []}, args) == bool(told)
    assert capsys.readouterr().out.endswith(told or "|\n\n")
