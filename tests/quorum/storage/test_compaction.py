"""Compaction of a log on files, held against a dictionary, whatever happens meanwhile."""

from collections.abc import Callable
from functools import partial
from random import Random

import pytest

from jepsen_like.planted.every_bug import planted
from jepsen_like.sim.disks.virtual_files import Died, VirtualFiles
from quorum.core.cleaning import Cleaned
from quorum.core.effects import (
    DeleteLog,
    FindTimestamp,
    ResetLog,
    TimestampFound,
    Token,
    Trim,
    Truncate,
)
from quorum.core.storage import StorageEffect, StorageError
from quorum.core.types import OffsetAndEpoch
from quorum.log.files.disk import Disk
from quorum.log.files.swapping import finish_swaps
from tests.quorum.keyed_batches import Keyed, keyed_batch, read_records, values_of
from tests.quorum.storage.compacted_node import LOG, Node
from wire.batch import Compression, headers, verify

TOKEN = Token("broker", 0)
HOUR_MS = 3_600_000


def some_records(random: Random) -> list[Keyed]:
    return [
        (b"key-%d" % random.randrange(12), random.choice([None, b"x", b"y" * 60]))
        for _ in range(random.randint(1, 5))
    ]


def filled(seed: int = 0, count: int = 40, *, producers: int = 0) -> Node:
    node = Node(seed)
    for number in range(count):
        node.append(
            some_records(node.random),
            codec=node.random.choice(list(Compression)),
            producer_id=number % producers if producers else -1,
        )
    node.settle()
    return node


def check(node: Node) -> None:
    """Compaction removes, and never changes; of each key the last record is there."""
    batches = node.batches()
    found = {record.offset: record for record in read_records(batches)}
    for header in verify(batches):
        assert node.ends[header.base_offset] == header.last_offset
    assert found == {offset: node.written[offset] for offset in found}
    written = [node.written[offset] for offset in sorted(node.written)]
    assert values_of(found.values()) == values_of(written)
    for record in written:
        if record.value is not None or record.offset >= node.end_offset:
            continue
        later = any(each.key == record.key and each.offset > record.offset for each in written)
        hidden = any(
            each.key == record.key and each.offset < record.offset for each in found.values()
        )
        assert later or not hidden or record.offset in found, f"{record} has gone too early"


def segment_of(node: Node, offset: int) -> str:
    return next(each for each in reversed(node.names()) if int(each[:20]) <= offset)


# --- what is left -----------------------------------------------------------------------------


def test_below_the_active_segment_each_key_is_there_once() -> None:
    node = filled()
    active = int(node.names()[-1][:20])
    cleaned = node.clean()
    check(node)
    clean = [each for each in node.records() if each.offset < active]
    assert len({each.key for each in clean}) == len(clean)
    assert cleaned.size_bytes == len(node.batches())
    assert node.checkpoint() == f"0\n1\nt 0 {active}\n"
    rolled = node.names()[:-1]
    for suffix in ("index", "timeindex"):
        assert node.names(f".{suffix}") == [each.replace("log", suffix) for each in rolled]
    assert len(node.names("")) == 3 * len(rolled) + 3, "and partition.metadata, and epochs"
    assert node.clean().next_ms is None, "nothing is dirty any more"


def test_small_segments_become_one() -> None:
    node = filled()
    node.clean()
    before = node.names()
    for _ in range(8):
        node.append(some_records(node.random))
    node.clean()
    check(node)
    assert len(node.names()) < len(before)


def test_it_is_the_same_after_an_orderly_stop_and_after_a_kill() -> None:
    node = filled()
    node.clean()
    batches = node.batches()
    assert node.copy().batches() == batches
    node.stop()
    opened = node.start()
    assert node.batches() == batches
    assert opened.state.size_bytes == len(batches)
    check(node)


def test_tombstones_go_after_their_time() -> None:
    node = filled()
    active = int(node.names()[-1][:20])
    node.clean(delete_retention_ms=HOUR_MS)
    assert any(each.value is None for each in node.records() if each.offset < active)
    node.now_ms += HOUR_MS
    for _ in range(20):
        node.append([(b"other", b"z" * 50)])
    node.clean(delete_retention_ms=HOUR_MS)
    check(node)
    assert all(each.value is not None for each in node.records() if each.offset < active)


def test_nothing_goes_that_is_not_committed_or_too_young() -> None:
    node = filled(count=15)
    middle = int(node.names()[len(node.names()) // 2][:20])
    node.high_watermark = middle + 1
    before = node.records()
    node.clean()
    after = node.records()
    assert [each for each in after if each.offset >= middle] == [
        each for each in before if each.offset >= middle
    ]
    assert after != before
    node.high_watermark = None
    cleaned = node.clean(lag_min_ms=HOUR_MS)
    assert node.records() == after
    assert cleaned.next_ms is not None
    assert node.now_ms < cleaned.next_ms <= node.now_ms + HOUR_MS + 10


def test_a_map_that_is_too_small_takes_several_rounds() -> None:
    node = filled()
    rounds = 0
    while node.clean(map_bytes_max=600).next_ms is not None:
        rounds += 1
        check(node)
    active = int(node.names()[-1][:20])
    assert rounds > 2
    clean = [each for each in node.records() if each.offset < active]
    assert len({each.key for each in clean}) == len(clean)


def test_an_offset_that_is_gone_is_read_from_the_next_one_on() -> None:
    node = filled()
    node.clean()
    batches = [header for _, header in headers(node.batches())]
    assert len(batches) < node.end_offset // 4, "most offsets are gone"
    for offset in range(node.end_offset):
        (_, first), *_ = headers(node.read(offset))
        assert first == next(each for each in batches if each.last_offset >= offset)


def test_a_time_is_found_among_what_is_left() -> None:
    node = filled()
    node.now_ms += 1000
    node.append([(b"new", b"1")])
    for _ in range(20):
        node.append([(b"key-%d" % n, b"2") for n in range(12)])
    node.clean()
    find = FindTimestamp(log=LOG, token=TOKEN, timestamp_ms=node.now_ms, end_offset=node.end_offset)
    (found,) = [each for each in node.do(find) if isinstance(each, TimestampFound)]
    first = next(each for each in node.records() if each.timestamp_ms >= node.now_ms)
    assert (found.offset, found.timestamp_ms) == (first.offset, first.timestamp_ms)


def test_producers_are_known_that_wrote_what_is_gone() -> None:
    node = Node()
    for number in range(30):
        node.append([(b"a", b"x" * 40), (b"b", b"y")], producer_id=number % 3)
    known = {each.producer_id: each.batches[-1] for each in node.producers.values()}
    node.clean()
    node.settle()
    state = node.copy().start().state
    assert {each.producer_id: each.batches[-1] for each in state.producers} == known


def test_epochs_outlive_their_records() -> None:
    node = Node()
    for epoch in range(1, 9):
        for _ in range(3):
            node.append([(b"a", b"x" * 50)], epoch=epoch)
    node.stop()
    epochs = node.start().state.epochs
    assert [each.epoch for each in epochs] == list(range(1, 9))
    node.clean()
    (again,) = [node.copy().start().state.epochs]
    assert again == epochs


def three_logs() -> tuple[Node, Node, Node]:
    """The second is dirty in part, the others are altogether."""
    first = Node()
    second, third = first.beside("u-0"), first.beside("v-0")
    for node in (second, first, third):
        for _ in range(20):
            node.append([(b"a", b"x" * 60)])
        if node is second:
            node.append([(b"b%d" % n, b"x" * 60) for n in range(40)])
            for _ in range(4):
                node.append([(b"a", b"x" * 60)])
            node.clean()
            for _ in range(10):
                node.append([(b"a", b"x" * 60)])
    return first, second, third


def test_one_log_is_cleaned_at_a_time_and_the_dirtiest_first() -> None:
    logs = three_logs()
    events = logs[0].do(*(node.order() for node in logs))
    assert [each.log for each in events if isinstance(each, Cleaned)] == ["t-0", "v-0", "u-0"]
    for node in logs:
        check(node)


def test_what_was_asked_before_a_truncation_does_not_count() -> None:
    """The high watermark was another."""
    first, _, third = three_logs()
    cut = Truncate(log="v-0", token=TOKEN, end_offset=10)
    before = [each for each in third.records() if each.offset < 10]
    first.do(first.order(), third.order(), cut)
    third.end_offset = 10
    assert third.records() == before
    assert third.clean().next_ms is not None


# --- what happens meanwhile -------------------------------------------------------------------


class Reader:
    """Reads a piece now and then, and stands in the midst of the log otherwise."""

    def __init__(self) -> None:
        self.offset = 0
        self.view: dict[bytes, bytes | None] = {}

    def step(self, node: Node, bytes_max: int) -> bool:
        if self.offset >= node.end_offset:
            return False
        piece = node.read(self.offset, bytes_max=bytes_max)
        if not piece:
            assert node.workers._waiting, self.offset
            return True
        for record in read_records(piece):
            if record.offset >= self.offset:
                assert record.key is not None
                self.view[record.key] = record.value
        *_, (_, last) = headers(piece)
        assert last.next_offset > self.offset
        self.offset = last.next_offset
        return True


def some_steps(node: Node, readers: tuple[Reader, ...]) -> None:
    for reader in readers:
        reader.step(node, node.random.choice([1, 300]))


@pytest.mark.parametrize("seed", range(12))
def test_readers_in_its_midst_end_with_the_last_values(seed: int) -> None:
    """Whatever is appended, cleaned, closed and killed meanwhile."""
    node = Node(seed)
    random = node.random
    readers: list[Reader] = []
    for _ in range(150):
        kind = random.random()
        if kind < 0.6:
            codec = random.choice(list(Compression))
            node.append(some_records(random), codec=codec, gap=random.choice([0, 0, 0, 3]))
        elif kind < 0.7:
            order = node.order(map_bytes_max=random.choice([500, 1 << 20]))
            node.workers.between = partial(some_steps, node, tuple(readers[:2]))
            node.do(order)
            check(node)
        elif kind < 0.75:
            node.stop()
            node.start()
        elif kind < 0.8:
            node.crash(power_loss=False)
        elif kind < 0.85:
            readers.append(Reader())
        elif readers:
            random.choice(readers).step(node, random.choice([1, 200, 1000]))
    check(node)
    expected = values_of(node.written[offset] for offset in sorted(node.written))
    for reader in readers:
        while reader.step(node, 300):
            pass
        found = {key: value for key, value in reader.view.items() if value is not None}
        assert found == expected


def crash_at_each_call(*, power_loss: bool) -> int:
    """That changes a file or a directory, in a round that makes one segment of several, and cleans
    another. Returns how many there are."""
    origin = Node()
    for number in range(14):
        origin.append([(b"key-%d" % (number % 3), b"x" * 80)])
    origin.clean()
    for _ in range(5):
        origin.append(some_records(origin.random))
    origin.stop()
    origin.files.make_durable()
    goal = origin.copy()
    goal.clean()
    records = goal.records()
    assert 2 <= len(goal.names()) < len(origin.names())
    calls = 0
    while True:
        node = origin.copy()
        node.files.make_durable()
        node.files._random = Random(calls)
        node.files.die_after(calls)
        try:
            node.clean()
            return calls
        except Died:
            pass
        node.crash(power_loss=power_loss)
        assert node.end_offset == origin.end_offset
        check(node)
        left = {name.rpartition(".")[2] for name in node.names("")}
        assert left <= {"log", "index", "timeindex", "metadata", "leader-epoch-checkpoint"}, left
        node.clean()
        assert node.records() == records
        calls += 1


@pytest.mark.parametrize("power_loss", [False, True])
def test_a_crash_at_any_call_of_it_loses_nothing(power_loss: bool) -> None:
    assert crash_at_each_call(power_loss=power_loss) > 40


FINDERS: dict[str, Callable[[], object]] = {
    "cleans_what_is_not_committed": lambda: test_nothing_goes_that_is_not_committed_or_too_young(),
    "closes_the_gaps_in_a_batch": lambda: (
        test_it_is_the_same_after_an_orderly_stop_and_after_a_kill()
    ),
    "removes_a_swap_that_is_decided": lambda: crash_at_each_call(power_loss=False),
    "swaps_without_a_sync": lambda: crash_at_each_call(power_loss=True),
}


@pytest.mark.parametrize("plant", FINDERS)
def test_a_planted_bug_is_found(plant: str) -> None:
    with planted(plant), pytest.raises((AssertionError, StorageError, StopIteration)):
        FINDERS[plant]()


ENDINGS: dict[str, Callable[[Node], StorageEffect]] = {
    "truncated": lambda node: Truncate(log=LOG, token=TOKEN, end_offset=node.boundary),
    "trimmed": lambda node: Trim(log=LOG, token=TOKEN, start_offset=node.end_offset - 1),
    "begun anew": lambda node: ResetLog(log=LOG, token=TOKEN, start=OffsetAndEpoch(7, 1)),
    "deleted": lambda node: DeleteLog(log=LOG, token=TOKEN),
}


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("after", range(6))
def test_a_log_that_is_rewritten_meanwhile_is_left_alone(ending: str, after: int) -> None:
    """Before any of the jobs of a round."""
    node = filled(count=30)
    node.boundary = node.read_end(30)
    jobs = 0

    def between() -> None:
        nonlocal jobs
        jobs += 1
        if jobs == after + 1:
            node.storage.perform(ENDINGS[ending](node))

    node.workers.between = between
    effect = node.order()
    events = node.do(effect)
    assert [each.token for each in events if isinstance(each, Cleaned)] == [effect.token]
    assert jobs > after, "it was over before"
    if ending == "deleted":
        assert LOG not in node.files.listdir("/data")
        return
    assert not [name for name in node.names("") if name.endswith((".cleaned", ".swap"))]
    (_, segments) = [None, node.names()]
    opened = node.copy()
    assert opened.names() == segments
    assert opened.said == []
    if ending == "begun anew":
        assert (opened.start_offset, opened.end_offset) == (7, 7)
    elif ending == "truncated":
        assert 0 < opened.end_offset <= 30
    else:
        assert opened.start_offset == node.end_offset - 1


def test_a_damaged_batch_ends_it_and_nothing_is_lost() -> None:
    node = filled()
    path = f"/data/{LOG}/{node.names()[2]}"
    node.files.flip(path, position=80, bit=1)
    before = {name: node.files.content(f"/data/{LOG}/{name}") for name in node.names("")}
    node.clean()
    assert {name: node.files.content(f"/data/{LOG}/{name}") for name in node.names("")} == before
    assert len(node.said) == 1
    assert "t-0 is not compacted any more until the next start: " in node.said[0]
    assert "checksum" in node.said[0]
    assert node.clean().next_ms is None
    node.append([(b"a", b"1")])
    assert node.read(node.end_offset - 1), "it goes on growing"


def test_a_stop_does_not_wait_for_it() -> None:
    node = filled()
    node.storage.perform(node.order())
    node.stop()
    node.start()
    check(node)
    assert not [name for name in node.names("") if name.endswith(".cleaned")]


# --- what a start makes of interrupted swaps ----------------------------------------------------


OLD, NEXT, NEW = "old", "next", "new"


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ({"0.log": OLD, "0.log.cleaned": NEW, "0.index.cleaned": b""}, {"0.log": OLD}),
        (
            {"0.log": OLD, "0.index.swap": b"", "0.log.cleaned": NEW},
            {"0.log": OLD},
        ),
        (
            {"0.log": OLD, "0.index": b"", "2.log": NEXT, "2.index": b"", "0.log.swap": NEW},
            {"0.log": NEW},
        ),
        (
            {"2.log": NEXT, "0.log.deleted": OLD, "0.log.swap": NEW, "0.index.swap": b""},
            {"0.log": NEW, "0.index": b"", "0.log.deleted": OLD},
        ),
        ({"0.log": NEW, "0.timeindex.swap": b""}, {"0.log": NEW, "0.timeindex": b""}),
        (
            {"0.log.swap": NEW, "4.log": NEXT, "9.log.cleaned": NEXT},
            {"0.log": NEW, "4.log": NEXT},
        ),
    ],
)
def test_a_swap_is_finished_if_it_was_decided(
    names: dict[str, str | bytes], expected: dict[str, str | bytes]
) -> None:
    contents: dict[str | bytes, bytes] = {
        OLD: keyed_batch(0, [(b"a", b"1"), (b"b", b"1")]),
        NEXT: keyed_batch(2, [(b"a", b"2"), (b"b", b"2")]),
        NEW: keyed_batch(0, [(b"a", b"1"), (b"b", b"1"), (b"a", b"2"), (b"b", b"2")]),
        b"": b"",
    }
    files = VirtualFiles(Random(0))
    files.mkdir("/t-0")
    disk = Disk(system=files)
    for name, content in names.items():
        disk.put(f"/t-0/{name.zfill(len(name) + 19)}", contents[content])
    for _ in range(2):
        found = finish_swaps(disk, "/t-0")
        assert found == sorted(files.listdir("/t-0"))
        assert {name[19:]: files.content(f"/t-0/{name}") for name in found} == {
            name: contents[content] for name, content in expected.items()
        }
