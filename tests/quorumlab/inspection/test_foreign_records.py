"""Records of a later release: shown with their bytes, skipped by the state, and told."""

from pathlib import Path
from uuid import UUID

from quorum.core.storage import METADATA_LOG
from quorumlab.inspection.entries import TopicNames, Unknown, as_text
from quorumlab.inspection.states import Moment, replay
from quorumlab.inspection.stream import whole_entries
from quorumlab.inspection.target import Target, find_target
from wire.batch import assign, data_batch
from wire.metadata_records import FeatureLevelRecord, TopicRecord, encode_record

UNKNOWN = bytes.fromhex("01 28 00 01 61 00")  # key 40
LEVEL = encode_record(FeatureLevelRecord(name="metadata.version", feature_level=33))
TOPIC = encode_record(TopicRecord(name="t", topic_id=UUID(int=7 << 64)))
EXTENDED = TOPIC[:-1] + bytes.fromhex("01 63 01 ff")  # with a tagged field of number 99


def log_of(path: Path, *values: bytes) -> Target:
    batch = assign(data_batch(values, timestamp_ms=1), base_offset=0, leader_epoch=1)
    log = path / METADATA_LOG
    log.mkdir()
    (log / "00000000000000000000.log").write_bytes(batch)
    target = find_target(str(log))
    assert isinstance(target, Target)
    return target


def test_what_is_not_known_is_shown_with_its_bytes(tmp_path: Path) -> None:
    target = log_of(tmp_path, LEVEL, UNKNOWN, EXTENDED)
    _, unknown, extended = whole_entries(tmp_path / METADATA_LOG)
    assert isinstance(unknown.content, Unknown)
    assert (unknown.content.key, unknown.content.value) == (40, UNKNOWN)
    assert isinstance(extended.content, Unknown)
    assert (extended.content.key, extended.content.value) == (2, EXTENDED)
    assert "a tagged field of TopicRecord that is not known" in extended.content.reason
    assert EXTENDED.hex() in as_text(extended, TopicNames())
    state = replay(target, Moment())
    assert state.image.at.offset == 3
    assert any("unknown key 40" in problem for problem in state.problems.told)


def test_state_has_what_is_known_of_a_record_with_more_in_it(tmp_path: Path) -> None:
    state = replay(log_of(tmp_path, LEVEL, EXTENDED), Moment())
    assert state.image.topic("t") is not None
    (problem,) = state.problems.told
    assert problem == "offset 1 is known in part: a tagged field of TopicRecord that is not known"
