"""Offsets in transactions, against Kafka's rule: the last record in the log wins."""

from dataclasses import dataclass, field

from hypothesis import example, given, settings
from hypothesis import strategies as st

from broker.groups.contents import Contents, Offsets
from broker.groups.pending import Pending
from broker.groups.records import CommittedOffset, OffsetChange, encode_change
from wire.batch import BatchHeader, assign, build_batch, read_header
from wire.transaction_markers import Marker, build_marker

_PRODUCERS = (1, 2)
_PLACES = (0, 1)

Step = tuple[str, int, int]  # (what, producer, partition)

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["ordinary", "tombstone", "pending", "pending", "commit", "abort"]),
        st.sampled_from(_PRODUCERS),
        st.sampled_from(_PLACES),
    ),
    max_size=14,
)

COMES_LAST_AGAIN: list[Step] = [
    ("pending", 1, 0),
    ("pending", 2, 0),
    ("pending", 1, 0),
    ("commit", 2, 0),
    ("commit", 1, 0),
]


@dataclass
class ByRecordOffset:
    """Kafka's OffsetMetadataManager: each offset has that of its record, and a later one stays."""

    counts: dict[int, int] = field(default_factory=dict)
    waiting: dict[int, dict[int, int]] = field(default_factory=dict)

    def replay(self, at: int, what: str, producer: int, place: int) -> None:
        match what:
            case "ordinary":
                self.counts[place] = at
            case "tombstone":
                self.counts.pop(place, None)
                for of_producer in self.waiting.values():
                    of_producer.pop(place, None)
            case "pending":
                self.waiting.setdefault(producer, {})[place] = at
            case _:
                for ended, offset in self.waiting.pop(producer, {}).items():
                    if what == "commit" and offset > self.counts.get(ended, -1):
                        self.counts[ended] = offset

    @property
    def unstable(self) -> set[tuple[str, int]]:
        return {("t", place) for of_producer in self.waiting.values() for place in of_producer}


def change_at(at: int, what: str, place: int) -> OffsetChange:
    committed = CommittedOffset(offset=at, commit_timestamp_ms=0)
    return OffsetChange(
        group_id="g",
        topic="t",
        partition=place,
        committed=None if what == "tombstone" else committed,
    )


def batch_at(at: int, what: str, producer: int, place: int) -> bytes:
    if what in ("commit", "abort"):
        batch = build_marker(Marker(producer, 0, what == "commit", 0), timestamp_ms=0)
    else:
        is_pending = what == "pending"
        batch = build_batch(
            [encode_change(change_at(at, what, place))],
            timestamp_ms=0,
            is_transactional=is_pending,
            producer_id=producer if is_pending else -1,
            producer_epoch=0 if is_pending else -1,
        )
    return assign(batch, base_offset=at, leader_epoch=0)


def apply(offsets: Offsets, at: int, what: str, producer: int, place: int) -> None:
    if what == "pending":
        offsets.pending.add(Pending(producer, change_at(at, what, place)))
    elif what in ("commit", "abort"):
        offsets.end(Marker(producer, 0, what == "commit", 0))
    else:
        offsets.apply(change_at(at, what, place))


def shown(offsets: Offsets) -> tuple[dict[int, int], set[tuple[str, int]]]:
    known = offsets.committed.get("g", {})
    counts = {place: committed.offset for (_, place), committed in known.items()}
    return counts, set(offsets.pending.places("g"))


@settings(max_examples=60, deadline=None)
@example(steps=COMES_LAST_AGAIN, cuts=set())
@given(steps=STEPS, cuts=st.sets(st.integers(0, 14)))
def test_what_was_written_and_what_is_loaded_are_what_kafka_has(
    steps: list[Step], cuts: set[int]
) -> None:
    model, written, loaded = ByRecordOffset(), Offsets(), Contents()
    piece: list[tuple[BatchHeader, bytes]] = []
    for at, step in enumerate(steps):
        model.replay(at, *step)
        apply(written, at, *step)
        batch = batch_at(at, *step)
        piece.append((read_header(batch), batch))
        if at in cuts or at == len(steps) - 1:
            loaded.take(piece)
            piece = []
        assert shown(written) == (model.counts, model.unstable)
    assert shown(loaded.offsets) == (model.counts, model.unstable)
    for producer in _PRODUCERS:
        loaded.offsets.end(Marker(producer, 0, False, 0))
    assert list(loaded.offsets.pending) == [], "nothing is left behind"
    assert loaded.offsets.pending._by_producer == {}
