"""A storage of a hundred logs with room for few open files: each log reads as it was written."""

import os
from pathlib import Path
from random import Random

from tests.quorum.storages import Storage
from wire.batch import headers

SEED = 16
LOGS = [f"topic-{number}" for number in range(100)]
DESCRIPTORS_MAX = 16


def open_files(path: Path) -> int:
    descriptors = Path("/proc/self/fd").iterdir()
    targets = [os.readlink(each) for each in descriptors if each.is_symlink()]
    return sum(target.startswith(str(path)) for target in targets)


def read_all(storage: Storage, log: str) -> bytes:
    """A read ends with its segment."""
    found, offset = b"", 0
    while records := storage.read(log, start_offset=offset):
        found += records
        offset = max(header.next_offset for _, header in headers(records))
    return found


def test_a_hundred_logs_take_turns_at_few_descriptors(tmp_path: Path) -> None:
    random = Random(SEED)
    print("seed", SEED)
    storage = Storage(tmp_path, descriptors_max=DESCRIPTORS_MAX)
    written: dict[str, list[bytes]] = {log: [] for log in LOGS}
    for log in LOGS:
        storage.open(log)
    for _ in range(12):
        appends = []
        for log in random.sample(LOGS, 30):
            offset, of_log = len(written[log]), {"size": 100, "timestamp_ms": LOGS.index(log)}
            is_synced = random.random() < 0.1
            appends.append(storage.append(offset, log, synced=is_synced, **of_log))
            written[log].append(appends[-1].records)
        storage.do(*appends)
        for log in random.sample(LOGS, 10):
            assert read_all(storage, log) == b"".join(written[log]), log
        assert open_files(tmp_path) <= DESCRIPTORS_MAX
    storage.close()

    again = Storage(tmp_path, descriptors_max=DESCRIPTORS_MAX)
    for log in LOGS:
        assert again.open(log).state.end_offset == len(written[log])
        assert read_all(again, log) == b"".join(written[log]), log
    again.close()
