"""Reading a partition of `__consumer_offsets`: what is passed over, and what ends it."""

from collections.abc import Callable
from functools import partial

import pytest

from broker.config import OWNER
from broker.coordination.loading import Loading
from broker.groups.contents import Contents
from broker.groups.offsets_topic import OFFSETS_TOPIC
from broker.groups.records import CommittedOffset, OffsetChange, encode_change
from broker.partition.local_log import LocalLog
from controller.metadata.partitions import PartitionState
from quorum.core.effects import Event, Read, ReadDone, StorageFailed
from quorum.core.log_state import LogState
from quorum.core.outbox import Outbox
from tests.broker.partitions import partition_of
from wire.batch import assign, build_batch

NAME = f"{OFFSETS_TOPIC}-0"
CHANGE = OffsetChange(
    group_id="g",
    topic="t",
    partition=0,
    committed=CommittedOffset(offset=7, commit_timestamp_ms=0),
)


class Reader:
    """Reads a log, of which all is committed that is not said to be otherwise."""

    def __init__(self, *, end_offset: int = 1, high_watermark: int | None = None) -> None:
        self.loaded: list[Contents] = []
        self.failed: list[str] = []
        self.outbox = Outbox(OWNER)
        alone = PartitionState(replicas=(1,), isr=(1,), leader=1)
        partition = partition_of(OFFSETS_TOPIC, 0, alone)
        self.log = LocalLog(LogState(log=NAME, end_offset=end_offset), self.outbox)
        partition.opened(self.log, 0)
        if high_watermark is not None:
            self.log.high_watermark = high_watermark
        self.loading = Loading(partition, Contents(), bytes_max=1000)
        self.go_on()
        (read,) = (each for each in self.outbox.take() if isinstance(each, Read))
        self.token = read.token

    def go_on(self) -> None:
        contents = self.loading.go_on(self._answered)
        if contents is not None:
            self.loaded.append(contents)

    def _answered(self, event: Event, _now_ms: int) -> None:
        problem = self.loading.take(event)
        if problem is not None:
            self.failed.append(problem)
        self.go_on()

    def hear(self, event: Event) -> None:
        self.outbox.deliver(self.token, event, 0)


@pytest.mark.parametrize(
    ("fields", "offsets"),
    [
        ({}, {"g": {("t", 0): CHANGE.committed}}),
        ({"is_control": True}, {}),
        ({"is_transactional": True}, {}),
    ],
)
def test_what_belongs_to_transactions_is_passed_over(
    fields: dict[str, bool], offsets: object
) -> None:
    reader = Reader()
    batch = build_batch([encode_change(CHANGE)], timestamp_ms=0, **fields)
    reader.hear(ReadDone(token=reader.token, log=NAME, records=batch))
    assert [contents.offsets.committed for contents in reader.loaded] == [offsets]


@pytest.mark.parametrize(
    "refused", [partial(StorageFailed, reason="torn"), partial(ReadDone, records=b"")]
)
def test_log_that_cannot_be_read_is_given_up_once(refused: Callable[..., Event]) -> None:
    reader = Reader()
    reader.hear(refused(token=reader.token, log=NAME))
    reader.go_on()
    assert (reader.failed, reader.loaded) == (["offset 0 cannot be read"], [])


def test_what_lies_in_a_gap_of_a_compacted_log_is_waited_for() -> None:
    """The high watermark of a new leader may lie in the gap, and comes to its end later."""
    reader = Reader(end_offset=9, high_watermark=4)
    reader.hear(ReadDone(token=reader.token, log=NAME, records=b""))
    assert (reader.failed, reader.loaded) == ([], [])
    assert not [each for each in reader.outbox.take() if isinstance(each, Read)], "not at once"
    reader.log.high_watermark = 9
    reader.go_on()
    (read,) = (each for each in reader.outbox.take() if isinstance(each, Read))
    batch = assign(
        build_batch([encode_change(CHANGE)], timestamp_ms=0), base_offset=8, leader_epoch=0
    )
    reader.outbox.deliver(read.token, ReadDone(token=read.token, log=NAME, records=batch), 0)
    assert [contents.offsets.committed for contents in reader.loaded] == [
        {"g": {("t", 0): CHANGE.committed}}
    ]
