"""Fuzz the parsers that meet bytes of nobody: `python -m tests.fuzz [TARGET ...] --seconds N`.

With atheris (`pip install atheris`), which is guided by coverage. It keeps inputs that reach
something new in `.cache/fuzz/TARGET`, and goes on from there the next time. One line a target:
runs, edges and features reached, inputs kept. A defect ends the target: its input is in a file
beside.
"""

import argparse
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.fuzz.targets import SEEDS, TARGETS

ROOT = Path(__file__).resolve().parent.parent.parent
INPUTS = ROOT / ".cache" / "fuzz"
_STATUS = re.compile(r"^#(\d+)\s.*cov: (\d+) ft: (\d+) corp: (\d+)", re.MULTILINE)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(TARGETS)}")
    parser.add_argument("--seconds", type=int, default=60, help="for each target (default: 60)")
    parser.add_argument("--processes", type=int, default=2)
    args = parser.parse_args()
    unknown = sorted(set(args.targets) - set(TARGETS))
    if unknown:
        parser.error(f"no target {unknown[0]}: one of {', '.join(TARGETS)}")
    wanted = args.targets or list(TARGETS)
    with ThreadPoolExecutor(args.processes) as pool:
        results = list(pool.map(lambda name: fuzz(name, args.seconds), wanted))
    return int(not all(results))


def fuzz(name: str, seconds: int) -> bool:
    """Returns whether nothing was found."""
    inputs = INPUTS / name
    inputs.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(SEEDS.get(name, ())):
        (inputs / f"seed-{number}").write_bytes(seed)
    limits = [f"-max_total_time={seconds}", "-max_len=4096", "-timeout=10", "-rss_limit_mb=2048"]
    limits.append(f"-artifact_prefix={inputs}-")
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.one", name, str(inputs), *limits],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    runs, edges, features, kept = (_STATUS.findall(done.stderr) or [("0",) * 4])[-1]
    print(f"{name}: {runs} runs, {edges} edges, {features} features, {kept} inputs", flush=True)
    if done.returncode != 0:
        print(done.stdout, done.stderr[-3000:], flush=True)
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
