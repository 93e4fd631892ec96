"""Which lines of the cores no simulated run has reached: what random runs cannot have judged.

    python -m tests.unrun_lines --seeds 40 --page docs/unrun-lines.md

Runs seeds of the quorum, of whole clusters and of each ZooKeeper design in this process, traced by
coverage.py, and names the lines that none of them ran, by module and function. Such a line needs
another fault, workload or schedule, or a reason why no run comes there; unit tests may run it all
the same.
"""

import argparse
import ast
import sys
import warnings
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import coverage

from jepsen_like.sim.assemblies.cluster.cluster_run import run_cluster
from jepsen_like.sim.assemblies.quorum.simulation import run
from jepsen_like.sim.chaos.plan import Plan
from jepsen_like.sim.chaos.workload_run import run_plan
from jepsen_like.sim.runs.sweep import commit_of_code, run_seed
from wire.zk.designs import DESIGNS

ROOT = Path(__file__).resolve().parent.parent
CORES = (
    "quorum/core/*.py",
    "quorum/raft/*.py",
    "quorum/log/*.py",
    "quorum/node/member.py",
    "quorum/node/delivery.py",
    "quorum/zookeeper/*.py",
    "controller/**/*.py",
    "broker/**/*.py",
)
FAULTS = ("kill", "pause", "kill-zookeeper", "cut-zookeeper")


class Unrun(NamedTuple):
    """Count the statements of a module's functions, and name those that never ran, by function."""

    statements: int
    lines: dict[str, list[int]]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.unrun_lines")
    parser.add_argument("--seeds", type=int, default=40, help="of the quorum, and of clusters")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--page", type=Path, help="write what was found there")
    args = parser.parse_args(arguments)
    seeds = range(args.first, args.first + args.seeds)
    text = page(unrun(seeds), seeds)
    if args.page is None:
        print(text)
    else:
        args.page.write_text(text)
    return 0


def unrun(seeds: range) -> dict[str, Unrun]:
    """By file, from the root of the repository."""
    files = [path for pattern in CORES for path in sorted(ROOT.glob(pattern))]
    tracer = coverage.Coverage(data_file=None, include=list(map(str, files)), config_file=False)
    tracer.start()
    for seed in seeds:
        print(f"seed {seed}", file=sys.stderr, flush=True)
        run_seed(run, seed)
        run_seed(run_cluster, seed)
    for design in DESIGNS:
        for seed in seeds[: max(1, len(seeds) // 10)]:
            print(f"{design} {seed}", file=sys.stderr, flush=True)
            run_plan(Plan(seed=seed, design=design, faults=FAULTS, judges_invariants=True))
    tracer.stop()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a module was imported before it was traced
        return {str(file.relative_to(ROOT)): _unrun_of(tracer, file) for file in files}


def _unrun_of(tracer: coverage.Coverage, file: Path) -> Unrun:
    """Only of functions: all other lines ran when the module was imported, before the tracer."""
    _, statements, _, missing, _ = tracer.analysis2(str(file))
    functions = {line: name for name, lines in _functions(file) for line in lines}
    never: dict[str, list[int]] = {}
    for line in missing:
        if line in functions:
            never.setdefault(functions[line], []).append(line)
    return Unrun(len([line for line in statements if line in functions]), never)


def _functions(file: Path) -> Iterator[tuple[str, range]]:
    """The name and the lines of the body of each function; inner ones after those they are in."""
    waiting: list[tuple[str, ast.AST]] = [("", ast.parse(file.read_text()))]
    while waiting:
        outer, node = waiting.pop()
        for child in ast.iter_child_nodes(node):
            name = outer
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                name = f"{outer}.{child.name}".lstrip(".")
            if isinstance(child, ast.FunctionDef):
                assert child.end_lineno is not None, child
                yield name, range(child.body[0].lineno, child.end_lineno + 1)
            waiting.append((name, child))


def page(found: dict[str, Unrun], seeds: range) -> str:
    told = [
        "# Lines of the cores that no simulated run has reached",
        "",
        f"`python -m tests.unrun_lines --seeds {len(seeds)} --first {seeds.start}` at"
        f" {commit_of_code()}: so many seeds of the quorum and of clusters, and a tenth of that of"
        " each ZooKeeper design. Unit tests may run these lines all the same.",
        "",
        "| folder | statements in functions | never run |",
        "|---|---|---|",
    ]
    by_folder = sorted(found, key=_folder)
    for folder, files in groupby(by_folder, key=_folder):
        each = [found[file] for file in files]
        statements = sum(of.statements for of in each)
        never = sum(len(lines) for of in each for lines in of.lines.values())
        told.append(
            f"| `{folder}` | {statements:,} | {never:,} ({never / max(statements, 1):.0%}) |"
        )
    for file, of in found.items():
        if of.lines:
            told += ["", f"**`{file}`**", ""]
            told += [f"- `{name}`: {_ranges(lines)}" for name, lines in of.lines.items()]
    return "\n".join(told) + "\n"


def _folder(file: str) -> str:
    return str(Path(file).parent)


def _ranges(lines: Sequence[int]) -> str:
    """`12, 20-25`: neighbours in the list are joined as far as their numbers follow each other."""
    runs = groupby(enumerate(lines), key=lambda each: each[1] - each[0])
    spans = [[line for _, line in run] for _, run in runs]
    return ", ".join(str(span[0]) if len(span) == 1 else f"{span[0]}-{span[-1]}" for span in spans)


if __name__ == "__main__":
    sys.exit(main())
