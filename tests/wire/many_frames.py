"""`make frames`: 10,000 damaged frames of every API and version, their time and their memory.

    python -m tests.wire.many_frames                       # all of them
    python -m tests.wire.many_frames Fetch Vote --count 500 --kio 500

The frames are those of `test_mutated_frames`, which takes the first few of each: they follow from
the seed and the name of the version. Each is read by our reader: a value or `Malformed`, within its
time and its memory. The first `--kio` of each are also compared with a slow reader of the layout
and, where their lengths fit, with kio (other frames abort the process that asks kio).

Then come crafted frames (`tests.wire.crafted_frames`): each array of each version, filled with what
takes the most memory for its bytes.

A frame that is late is read up to eight times more: if one of these is in time, the first was
interrupted, and the summary counts it. A frame that takes too much memory is read once more: the
table of ids that are kept for later frames grows now and then. The first failure of a version is
printed with its bytes and ends that version; the others go on, and the exit code is 1.
"""

import argparse
import gc
import sys
import tracemalloc
from collections import Counter
from time import monotonic, process_time
from typing import Any

from tests.wire.crafted_frames import FILLINGS, crafted_frames, factor_allowed
from tests.wire.test_mutated_frames import (
    EVERY_VERSION,
    SEED,
    Judge,
    bytes_allowed,
    factor,
    frames,
    outcome,
)

COUNT, KIO = 10_000, 1_000
CRAFTED_BYTES = 20_000
TRIES = 8  # after the first


def seconds_allowed(frame: bytes) -> float:
    return 50e-6 + 1e-6 * len(frame)


class Failed(AssertionError):
    """A frame broke a rule."""


class Run:
    """Reads frames of one version after the other, and keeps what the summary says."""

    def __init__(self, count: int, kio: int) -> None:
        self._count = count
        self._kio = kio
        self.counted: Counter[str] = Counter()
        self.slowest = (0.0, "")  # a share of the time allowed
        self.factors: dict[str, tuple[float, str]] = {}  # memory for a byte, by kind of element
        self.largest = {"whole": (0, ""), "refused": (0, "")}  # bytes beside four times the frame's

    def version(self, judge: Judge) -> None:
        sample = frames(judge, self._count)
        for number, frame in enumerate(sample):
            try:
                self._time(judge, frame)
                if number < self._kio:
                    judge.judge(frame)
            except Exception as error:
                raise Failed(f"frame {number}, {frame.hex()}: {error!r}") from error
        self.counted["frames"] += len(sample)
        self.counted["judged"] += min(self._kio, len(sample))
        self.counted["compared with kio"] += judge.accepted
        tracemalloc.start()
        try:
            for number, frame in enumerate(sample):
                self._weigh(judge, number, frame)
            self._craft(judge)
        finally:
            tracemalloc.stop()

    def _time(self, judge: Judge, frame: bytes) -> None:
        allowed = seconds_allowed(frame)
        taken = seconds(judge, frame)
        if taken > allowed:
            self.counted["late at first"] += 1
            taken = min(seconds(judge, frame) for _ in range(TRIES))
            if taken > allowed:
                raise Failed(f"{taken * 1e6:.0f} us, {allowed * 1e6:.0f} are allowed")
        self.slowest = max(self.slowest, (taken / allowed, judge.name))

    def _weigh(self, judge: Judge, number: int, frame: bytes) -> None:
        taken, value = weighed(judge, frame)
        kind = "refused" if value is None else "whole"
        self.counted[kind] += 1
        if taken > bytes_allowed(frame):
            self.counted["heavy at first"] += 1
            taken, _ = weighed(judge, frame)
            if taken > bytes_allowed(frame):
                raise Failed(f"frame {number}, {frame.hex()}: {taken} bytes of memory")
        self.largest[kind] = max(self.largest[kind], (taken - 4 * len(frame), judge.name))

    def _craft(self, judge: Judge) -> None:
        for path, field, frame in crafted_frames(judge.layout, CRAFTED_BYTES, FILLINGS):
            taken, said = factor(judge, frame), f"{judge.name}, {path}"
            self.counted["crafted"] += 1
            self.factors[field.kind] = max(self.factors.get(field.kind, (0.0, "")), (taken, said))
            if taken > factor_allowed(path, field):
                raise Failed(f"{taken:.1f} times its bytes for {said}, {frame[:40].hex()}")

    def summary(self) -> str:
        counted = ", ".join(f"{number:,} {what}" for what, number in self.counted.items())
        beside = ", ".join(
            f"{kind} {size:,} ({name})" for kind, (size, name) in self.largest.items()
        )
        factors = ", ".join(
            f"{kind} {taken:.1f} ({name})" for kind, (taken, name) in self.factors.items()
        )
        share, name = self.slowest
        return (
            f"{counted}\nslowest: {share:.0%} of the time allowed ({name})\n"
            f"memory beside four times the bytes of a frame, in bytes, at most: {beside}\n"
            f"memory for a byte of a crafted frame, by its elements, at most: {factors}"
        )


def seconds(judge: Judge, frame: bytes) -> float:
    started = process_time()
    outcome(judge, frame)
    return process_time() - started


def weighed(judge: Judge, frame: bytes) -> tuple[int, Any]:
    """The most memory that reading takes at a time, and what was read."""
    before, _ = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    value = outcome(judge, frame)
    return tracemalloc.get_traced_memory()[1] - before, value


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.wire.many_frames")
    parser.add_argument("titles", nargs="*", help="such as Fetch; all if none is given")
    parser.add_argument("--count", type=int, default=COUNT, help="frames of each version")
    parser.add_argument("--kio", type=int, default=KIO, help="how many are compared with kio")
    asked = parser.parse_args()
    rows = [row for row in EVERY_VERSION if not asked.titles or row[0].title in asked.titles]
    print(f"seed {SEED}, {asked.count} frames of each of {len(rows)} messages", flush=True)
    run, failed, started = Run(asked.count, asked.kio), 0, monotonic()
    gc.disable()  # a collection is no frame's own time
    for done, row in enumerate(rows, start=1):
        judge = Judge(*row)
        try:
            run.version(judge)
        except Failed as error:
            failed += 1
            print(f"\nFAILED {judge.name}: {error}", flush=True)
        gc.collect()
        left = (monotonic() - started) / done * (len(rows) - done)
        print(f"{done}/{len(rows)} {judge.name}, {left:.0f} s left", flush=True)
    print(f"seed {SEED}: {run.summary()}\n{failed} versions failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
