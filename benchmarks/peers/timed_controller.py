"""A controller node that says when it decides, and when what it decided is committed.

    python -m benchmarks.peers.timed_controller --config FILE --format-as CLUSTER-ID

One JSON line for each, with the time on the clock that all processes of a machine share, and the
processor time that this one has had since the decision began. Only
decisions of many records that nobody asked for: the failure of a broker. And one for each stop of
the event loop that is the longest so far while a snapshot is written.
"""

import argparse
import asyncio
import json
import os
import sys
import time
from pathlib import Path

from controller.controller import Controller
from quorum.core.application import Application
from quorum.log.files.file_storage import FileStorage
from quorum.node.directories import DataDirectories
from quorumlab.config import load
from quorumlab.node import Node
from quorumlab.settings import controller_config
from quorumlab.verbs.format import format_node

_RECORDS_MIN = 100
_LOOK_SECONDS = 0.001


class TimedController(Controller):
    _decided: int | None = None  # the end of the log after the last large decision
    _began_processor_ns = 0

    def tick(self, now_ms: int) -> None:
        before = self._accumulator.end_offset
        began_ns, began_processor_ns = time.time_ns(), time.process_time_ns()
        super().tick(now_ms)
        records = self._accumulator.end_offset - before
        if records >= _RECORDS_MIN:
            self._decided = self._accumulator.end_offset
            self._began_processor_ns = began_processor_ns
            self._say_of(began_ns=began_ns, decided_ns=time.time_ns(), records=records)

    def committed(self, batches: bytes, next_offset: int, now_ms: int) -> None:
        if self._decided is not None and (self._log.high_watermark or 0) >= self._decided:
            self._say_of(committed_ns=time.time_ns())
            self._decided = None
        super().committed(batches, next_offset, now_ms)

    def _say_of(self, **fields: object) -> None:
        processor_ns = time.process_time_ns() - self._began_processor_ns
        _say(processor_ns=processor_ns, end=self._decided, **fields)


class TimedNode(Node):
    def _applications(
        self, directories: DataDirectories, storage: FileStorage
    ) -> dict[str, Application]:
        applications = super()._applications(directories, storage)
        self.controller = applications["controller"] = TimedController(
            controller_config(self.config, cluster_id=directories.cluster_id, random=self._random),
            self.raft,
            self._random,
            self.driver.now_ms(),
        )
        return applications


async def _watch(node: TimedNode) -> None:
    """How late a timer is, at worst, while a snapshot is written."""
    longest = 0.0
    while True:
        was_saving = node.raft.is_saving_snapshot
        began = time.perf_counter()
        await asyncio.sleep(_LOOK_SECONDS)
        late = time.perf_counter() - began - _LOOK_SECONDS
        if was_saving and node.raft.is_saving_snapshot and late > longest:
            longest = late
            _say(stop_ms=round(late * 1e3, 1))


def _say(**fields: object) -> None:
    os.write(sys.stdout.fileno(), (json.dumps(fields) + "\n").encode())


async def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--format-as", required=True)
    args = parser.parse_args()
    config = load(args.config, os.environ)
    format_node(config, args.format_as, ignore_formatted=True)
    async with TimedNode(config, lambda line: print(f"{time.time():.3f} {line}")) as node:
        watch = asyncio.create_task(_watch(node))
        stop = await node.run()
        watch.cancel()
    return stop.exit_code


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
