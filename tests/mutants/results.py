"""The results, one line for each mutant, and the page that sums them up."""

import json
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

__all__ = ["EQUIVALENT", "RESULTS", "STAGES", "Result", "page", "read", "reasons", "share", "write"]

RESULTS = Path(__file__).with_name("results.jsonl")
EQUIVALENT = Path(__file__).with_name("equivalent.toml")
STAGES = ("unit", "invariant", "history")
_COUNTED = ("judged", "unit test", "invariant", "history", "equivalent", "lives")
_HEADS = ("group", *_COUNTED, "killed", "when, and at which commits")


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """`killed_by`: a stage, or nothing. `commit`: of the code that judged it.

    `detail`: what killed it; of one that lives, what it has not been run on yet.
    """

    group: str
    name: str
    what: str
    killed_by: str
    detail: str
    commit: str
    date: str


def read(path: Path = RESULTS) -> dict[str, Result]:
    lines = path.read_text().splitlines() if path.exists() else []
    return {result.name: result for result in (Result(**json.loads(line)) for line in lines)}


def write(results: Mapping[str, Result], path: Path = RESULTS) -> None:
    lines = sorted(json.dumps(asdict(result)) + "\n" for result in results.values())
    path.write_text("".join(lines))


def reasons(path: Path = EQUIVALENT) -> dict[str, str]:
    """By the name of a mutant: why nobody can tell it from the shipped code."""
    return {name: str(why) for name, why in tomllib.loads(path.read_text()).items()}


def share(results: Iterable[Result], equivalent: Mapping[str, str]) -> float:
    """Killed, of those not shown equivalent."""
    able = [each for each in results if each.killed_by or each.name not in equivalent]
    return sum(bool(each.killed_by) for each in able) / len(able) if able else 1.0


def page(
    titles: Mapping[str, str], results: Sequence[Result], equivalent: Mapping[str, str]
) -> Iterator[str]:
    """A row a group, then those who live."""
    yield f"| {' | '.join(_HEADS)} |"
    yield f"|{'---|' * len(_HEADS)}"
    for name, title in titles.items():
        mine = [each for each in results if each.group == name]
        if not mine:
            yield f"| {title} | not run | | | | | | | |"
            continue
        by = Counter(each.killed_by for each in mine)
        shown = sum(not each.killed_by and each.name in equivalent for each in mine)
        commits = ", ".join(sorted({each.commit for each in mine}))
        last = max(each.date for each in mine)
        killed = f"{share(mine, equivalent):.1%}"
        counts = [len(mine), *(by[stage] for stage in STAGES), shown, by[""] - shown]
        yield f"| {title} | {' | '.join(map(str, counts))} | {killed} | {last}, {commits} |"
    living = [each for each in results if not each.killed_by]
    for heading, group in (
        ("Survivors", [each for each in living if each.name not in equivalent]),
        ("Equivalent", [each for each in living if each.name in equivalent]),
    ):
        if group:
            yield ""
            yield f"## {heading}"
            yield ""
        for each in group:
            why = equivalent.get(each.name) or each.detail
            yield f"- {each.what}" + (f": {why}" if why else "")
