"""What Apache Kafka's own dump says of its files, record by record and field by field."""

import json
import re
from pathlib import Path

import pytest

from quorumlab.inspection.batches import Batch, read_batches
from quorumlab.inspection.entries import Entry, entries
from wire.explain import explain_batch

GOLDEN = Path(__file__).parents[2] / "golden"
DUMPED = re.compile(r"\| offset: (\d+) .*headerKeys: \[\] (payload|\w+):? (\{.*)$")


def dumps() -> list[Path]:
    found = [*GOLDEN.rglob("dump/*/__cluster_metadata-0/*.txt"), *GOLDEN.rglob("bootstrap*.txt")]
    return sorted(path for path in found if path.suffixes[0] in (".log", ".checkpoint"))


def dumped_file(dump: Path) -> Path:
    root = next(parent for parent in dump.parents if parent.name == "dump")
    return root.parent / dump.relative_to(root).with_suffix("")


def stored(path: Path) -> list[Batch]:
    return [found for found in read_batches(path) if isinstance(found, Batch)]


def told_by_kafka(line: str) -> tuple[int, str, object]:
    match = DUMPED.match(line)
    assert match is not None, line
    offset, kind, text = match.groups()
    value = json.loads(text)
    return (int(offset), value["type"], value) if kind == "payload" else (int(offset), kind, value)


def told_by_us(entry: Entry) -> tuple[int, str, object]:
    if entry.is_control:
        return entry.offset, entry.type, entry.data()
    value = {"type": entry.type, "version": entry.version, "data": entry.data()}
    return entry.offset, entry.type, value


@pytest.mark.parametrize("dump", dumps(), ids=lambda path: str(path.relative_to(GOLDEN)))
def test_every_field_is_told_as_kafka_tells_it(dump: Path) -> None:
    lines = [line for line in dump.read_text().splitlines() if line.startswith("| offset")]
    ours = [entry for batch in stored(dumped_file(dump)) for entry in entries(batch)]
    assert list(map(told_by_us, ours)) == list(map(told_by_kafka, lines))


def test_there_are_dumps() -> None:
    assert len(dumps()) >= 10


@pytest.mark.parametrize("dump", dumps(), ids=lambda path: str(path.relative_to(GOLDEN)))
def test_every_byte_is_explained(dump: Path) -> None:
    for batch in stored(dumped_file(dump)):
        position = 0
        for found in explain_batch(batch.content):
            assert found.start == position <= found.end
            assert found.name != "unknown", found
            position = found.end
        assert position == len(batch.content)
