"""Run every benchmark of this folder, or those that are named: one JSON line a figure on stdout.

Each runs in a process of its own, so that none inherits another's memory or imports. Progress, and
what was skipped and why, go to stderr. A benchmark that fails does not stop the others, but the
exit code.

    python benchmarks/run.py
    python benchmarks/run.py commit failover > figures.jsonl
    python benchmarks/run.py broker-failure --partitions 100000 --format json
"""

import argparse
import ast
import json
import subprocess
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parent
sys.path.insert(0, str(ROOT))  # as a script, only this folder would be found

from benchmarks.figures import measured_on, progress  # noqa: E402
from jepsen_like.python_children import python_command  # noqa: E402
from quorumlab.children import child  # noqa: E402


def benchmarks() -> dict[str, str]:
    """Name -> the first line of its docstring."""
    found = {}
    for path in sorted(FOLDER.glob("*.py")):
        text = path.read_text()
        if "\ndef main()" in text and path.stem != "run":
            found[path.stem] = (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0]
    return found


def run(name: str) -> bool:
    """Run one benchmark and pass its figures on. False if it failed."""
    progress(f"--- {name}")
    with _benchmark(name, output=subprocess.PIPE) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(json.dumps(_complete(json.loads(line))), flush=True)
    if process.returncode != 0:
        progress(f"FAILED {name}: exit code {process.returncode}")
    return process.returncode == 0


def _run_with(name: str, options: Sequence[str]) -> int:
    """One benchmark with options of its own, and what it prints as it is."""
    with _benchmark(name, *options) as process:
        pass
    return process.returncode


def _benchmark(
    name: str, *options: str, output: int | None = None
) -> AbstractContextManager[subprocess.Popen[str]]:
    command = python_command("benchmarks", name, *options)
    return child(command, output=output, directory=ROOT)


def _complete(line: dict[str, Any]) -> dict[str, Any]:
    """The common form, for a script that prints no more than a name, a value and a unit."""
    own = ("name", "value", "unit", "parameters", "measured_on")
    loose = {key: value for key, value in line.items() if key not in own}
    return {
        "name": line["name"],
        "value": line["value"],
        "unit": line["unit"],
        "parameters": line.get("parameters", {}) | loose,
        "measured_on": line.get("measured_on") or measured_on(),
    }


def main() -> int:
    known = benchmarks()
    parser = argparse.ArgumentParser(description="Run benchmarks; one JSON line a figure.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="which (default: all)")
    parser.add_argument("--list", action="store_true", help="name them, and run none")
    args, options = parser.parse_known_args()
    if args.list:
        for name, what in known.items():
            print(f"{name:12} {what}")
        return 0
    names = [name.replace("-", "_") for name in args.names]
    unknown = [name for name in names if name not in known]
    if unknown:
        return _refuse(f"no benchmark {unknown[0]!r}; there are {', '.join(known)}")
    if options:
        if len(names) != 1:
            return _refuse(f"{options[0]} is for one benchmark, which must be named")
        return _run_with(names[0], options)
    done = [run(name) for name in names or known]
    return 0 if all(done) else 1


def _refuse(told: str) -> int:
    """`quorumlab bench` passes on what it is told: one line, as of any verb."""
    print(f"quorumlab: {told}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
