"""Do the tests notice small bugs? Mutants of the modules that decide, drawn by a seed, and judged.

    python -m tests.mutants                             # what is not judged yet, of all groups
    python -m tests.mutants --group raft --again        # those of Raft that lived, once more
    python -m tests.mutants --units                     # the unit tests alone, which is fast
    python -m tests.mutants --fresh --page docs/mutants.md

Goes on where it was stopped. Exit code 1 if some group has mutants that are not judged, or if fewer
than 95 % of its mutants were killed.
"""

import argparse
import datetime
import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TextIO

from jepsen_like.sim.runs.sweep import commit_of_code
from tests.mutants import results as kept
from tests.mutants.forks import forked
from tests.mutants.groups import GROUPS, Group, drawn
from tests.mutants.judging import Judge, with_judge
from tests.mutants.operators import Mutant
from tests.mutants.results import STAGES, Result

SEED = 17
COUNT = 120
KILLED_MIN = 0.95
_GROUP_SECONDS_MAX = 6 * 3600.0
_UNITS_ONLY = "has seen unit tests only"
ABOUT = """# Do the tests notice small bugs?

`{command}` draws {count} mutants of each group by seed {seed}.
`tests/mutants/operators.py` says what a mutant is. Each is run on the unit tests that cover its
line. If they notice nothing, it is run on 30 seeds of the quorum (storage: on the shipped files,
and the storage alone) or 20 of whole clusters. If these notice nothing, its histories are judged
(of checkers: recorded ones, compared with the truth).

`judged` counts the mutants of the {count} that have been run so far. Each of the next three columns
counts what was the first to notice. `killed` is the share of those that are not shown to be
equivalent, one by one, below. An equivalent mutant is not run on seeds once its reason is written.

"""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--group", action="append", choices=list(GROUPS), help="default: all")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--count", type=int, default=COUNT, help="of each group")
    parser.add_argument(
        "--again", action="store_true", help="also those that lived and are not shown equivalent"
    )
    parser.add_argument("--fresh", action="store_true", help="also those that are judged already")
    parser.add_argument(
        "--units", action="store_true", help="unit tests alone; the rest is for later"
    )
    parser.add_argument("--tests", action="append", help="these alone, default: the group's")
    parser.add_argument("--tell", action="store_true", help="what is known; judge nothing")
    parser.add_argument("--page", type=Path, help="where the result is written")
    args = parser.parse_args()
    print(f"seed {args.seed}", flush=True)
    groups = [] if args.tell else [GROUPS[name] for name in args.group or GROUPS]
    ends = [forked(partial(_run, group, args), _GROUP_SECONDS_MAX) for group in groups]
    sample = {group.name: drawn(group, args.seed, args.count) for group in GROUPS.values()}
    return int(any([_tell(sample, args), *ends]))


def _run(group: Group, args: argparse.Namespace) -> int:
    """The exit code of the pytest that judges, 0 if there is nothing to judge."""
    judged, reasons = kept.read(), kept.reasons()
    wanted = [
        each
        for each in drawn(group, args.seed, args.count)
        if _is_wanted(judged.get(each.name), args, is_equivalent=each.name in reasons)
    ]
    if not wanted:
        return 0
    out = os.fdopen(os.dup(sys.stderr.fileno()), "w")
    tests = args.tests or group.tests
    return with_judge(group, tests, lambda judge: _judge(judge, wanted, out, units=args.units))


def _is_wanted(result: Result | None, args: argparse.Namespace, *, is_equivalent: bool) -> bool:
    if result is None or args.fresh:
        return True
    if args.again and not result.killed_by and not is_equivalent:
        return True
    return result.detail == _UNITS_ONLY and not args.units and not is_equivalent


def _judge(judge: Judge, mutants: Sequence[Mutant], out: TextIO, *, units: bool) -> None:
    group = judge.group.name
    stages = STAGES[:1] if units else STAGES
    unfit = judge.unfit(stages)
    if unfit:
        print(f"{group}: fails without a mutant: {unfit}", file=out, flush=True)
        raise SystemExit(1)
    commit = commit_of_code()
    for number, mutant in enumerate(mutants, 1):
        killed_by, detail = judge.judge(mutant, stages)
        told = f"{killed_by}: {detail}" if killed_by else "LIVES"
        print(f"{group} {number}/{len(mutants)} {mutant}: {told}", file=out, flush=True)
        results = kept.read()
        results[mutant.name] = Result(
            group=group,
            name=mutant.name,
            what=str(mutant).partition(" ")[2],
            killed_by=killed_by,
            detail=detail if killed_by or not units else _UNITS_ONLY,
            commit=commit,
            date=f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}",
        )
        kept.write(results)


def _tell(sample: dict[str, list[Mutant]], args: argparse.Namespace) -> int:
    judged, equivalent = kept.read(), kept.reasons()
    names = {mutant.name for mutants in sample.values() for mutant in mutants}
    mine = [result for name, result in judged.items() if name in names]
    titles = {group.name: group.title for group in GROUPS.values()}
    told = "\n".join(kept.page(titles, mine, equivalent)) + "\n"
    print(told)
    there = {mutant.name for group in GROUPS.values() for mutant in group.mutants}
    killed = {each.name for each in mine if each.killed_by}
    stale = sorted(set(equivalent) - there | set(equivalent) & killed)
    if stale:
        print(f"reasons for what is no survivor: {', '.join(stale)}")
    unjudged = [
        f"{name}: {left} of {len(sample[name])} mutants are not judged"
        for name in args.group or sample
        if (left := sum(mutant.name not in judged for mutant in sample[name]))
    ]
    for line in unjudged:
        print(line)
    if args.page is not None:
        command = f"python -m tests.mutants --seed {args.seed} --count {args.count}"
        about = ABOUT.format(command=command, count=args.count, seed=args.seed)
        args.page.write_text(about + told)
    few = [
        name
        for name in sample
        if kept.share((each for each in mine if each.group == name), equivalent) < KILLED_MIN
    ]
    return int(bool(few or stale or unjudged))


if __name__ == "__main__":
    sys.exit(main())
