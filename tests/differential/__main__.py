"""Ours and Apache Kafka, asked the same: with a seed that is given, or a fresh one.

    python -m tests.differential --seed 7 --requests 2000

Exit code 1 if something differs that is not in known.toml.
"""

import argparse
import secrets
import signal
import sys
import tempfile
import time
from pathlib import Path

from tests.differential.exchanging import Run
from tests.differential.sides import both_sides


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.differential", description=__doc__)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1_000_000))
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--show", default="", help="a text: print both answers to what has it")
    parser.add_argument("--known", action="store_true", help="print how often each row was seen")
    args = parser.parse_args()
    begun = time.monotonic()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the nodes go with it
    print(f"--seed {args.seed} --requests {args.requests}", flush=True)
    wrong = asked = 0
    with tempfile.TemporaryDirectory() as directory, both_sides(Path(directory)) as sides:
        run = Run(args.seed, *sides)
        try:
            for exchange in run.exchanges(args.requests):
                if args.show and args.show in str(exchange):
                    print(f"{exchange}\n  ours  {exchange.ours}\n  Kafka {exchange.kafka}")
                asked += 1
                lines = run.judged(exchange)
                wrong += bool(lines)
                print("".join(f"{line}\n" for line in lines), end="", flush=True)
        except OSError:  # one of them has ended
            for side in sides:
                print(f"{side.name} printed last:", *side.log.splitlines()[-30:], sep="\n  ")
            raise
    if args.known:
        for row in run.explained.rows:
            print(f"{run.explained.counts.get(row, 0):5} {row}")
    print(f"{asked} requests, {wrong} unexplained, {time.monotonic() - begun:.0f} s")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
