"""One node of PySyncObj, told what to do line by line: the load runs inside the leader.

PySyncObj is a library, whose user calls a method of an object in the same process: no connection
is between the load and the leader, which spares it what the other systems pay.

    python -m benchmarks.peers.pysyncobj_node JOURNAL OWN-ADDRESS OTHER-ADDRESS…
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from pysyncobj import SyncObj, SyncObjConf, replicated

from benchmarks.peers.load import REQUESTS_PREPARED, Load, drive, puts

_TIMEOUT_SECONDS = 15.0


class Store(SyncObj):  # type: ignore[misc]  # a library without types
    def __init__(self, journal: Path, own: str, others: Sequence[str]) -> None:
        self.values: dict[str, str] = {}
        self.applied = 0
        # Its defaults send entries every 0.1 s, which is then the latency of a put. These are the
        # fastest settings that we found.
        settings = SyncObjConf(
            journalFile=str(journal), autoTickPeriod=0.001, appendEntriesUseBatch=False
        )
        super().__init__(own, list(others), settings)

    @replicated  # type: ignore[untyped-decorator]  # as above
    def put(self, pairs: Sequence[tuple[str, str]]) -> None:
        self.values.update(pairs)
        self.applied += 1


class LocalCalls:
    """The Client of `drive`: calls of a replicated method, answered on the library's thread."""

    def __init__(self, store: Store, load: Load) -> None:
        self._store = store
        self._requests = [puts(load, number) for number in range(REQUESTS_PREPARED)]
        self._answers: SimpleQueue[tuple[int, int]] = SimpleQueue()

    def send(self, number: int) -> None:
        def answered(_: object, reason: int) -> None:
            self._answers.put((number, reason))

        self._store.put(self._requests[number % REQUESTS_PREPARED], callback=answered)

    def receive(self) -> Sequence[int]:
        answers = [self._answers.get(timeout=_TIMEOUT_SECONDS)]
        try:
            while True:
                answers.append(self._answers.get_nowait())
        except Empty:
            pass
        for _, reason in answers:
            assert reason == 0, f"not committed, reason {reason}"
        return [number for number, _ in answers]

    def close(self) -> None:
        return None


def answer(store: Store, order: dict[str, Any]) -> object:
    if order["do"] == "status":
        status = store.getStatus()
        leader = status["leader"]
        ready = bool(leader) and store.isReady()
        return {"leads": ready and leader == store.selfNode, "ready": ready}
    if order["do"] == "applied":
        return store.applied
    load = Load(**order["load"])
    return asdict(drive(LocalCalls(store, load), load))


def main() -> int:
    journal, own, *others = sys.argv[1:]
    store = Store(Path(journal), own, others)
    for line in sys.stdin:
        print(json.dumps(answer(store, json.loads(line))), flush=True)
    store.destroy()
    return 0


if __name__ == "__main__":
    sys.exit(main())
