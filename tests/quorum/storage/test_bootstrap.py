"""What a formatted directory holds, beside what Kafka's tool writes."""

import shutil
from pathlib import Path
from random import Random

import pytest

from quorum.core.effects import Append, LogState, Stored, Token
from quorum.core.storage import METADATA_LOG
from quorum.core.types import ElectionState, Endpoint
from quorum.log.files.file_storage import FileStorage
from quorum.node.bootstrap import format_first_voters
from quorum.raft.config import QuorumConfig
from quorum.raft.raft_node import RaftNode
from quorum.raft.voter_history import NOT_IN_THE_LOG, VoterHistory, control_records, voters_of
from quorum.raft.voters import VoterSet
from tests.quorum.turns import give
from wire.batch import read_header
from wire.control_records import Voters
from wire.primitives import METADATA_TOPIC_ID

GOLDEN = Path(__file__).parents[2] / "golden" / "standalone"
CHECKPOINT = f"{METADATA_LOG}/00000000000000000000-0000000000.checkpoint"


def voters_in(content: bytes) -> VoterSet:
    found = [record for _, record in control_records(content) if isinstance(record, Voters)]
    return voters_of(found[-1], "CONTROLLER")


def loaded(tmp_path: Path, name: str) -> LogState:
    directory = tmp_path / name
    shutil.copytree(GOLDEN / name, directory)
    storage = FileStorage(str(directory))
    state = storage.load(METADATA_LOG, METADATA_TOPIC_ID).state
    storage.close(broker_epoch=None)
    return state


def recovered(tmp_path: Path, name: str) -> VoterHistory:
    return VoterHistory.recovered(VoterSet(), "CONTROLLER", loaded(tmp_path, name))


@pytest.mark.parametrize("name", ["after-format", "initial-controllers"])
def test_first_voters_are_written_as_kafka_writes_them(name: str) -> None:
    theirs = (GOLDEN / name / CHECKPOINT).read_bytes()
    ours = format_first_voters(voters_in(theirs), timestamp_ms=1)
    assert len(ours) == len(theirs)
    header, *rest = control_records(theirs)
    own_header, *own_rest = control_records(ours)
    assert own_rest == rest
    assert type(own_header[1]) is type(header[1])


@pytest.mark.parametrize(
    ("name", "ids"), [("after-format", (1,)), ("initial-controllers", (1, 2, 3))]
)
def test_first_voters_that_kafka_wrote_are_known(
    name: str, ids: tuple[int, ...], tmp_path: Path
) -> None:
    history = recovered(tmp_path, name)
    assert history.latest.voters.ids == ids
    assert (history.latest.kraft_version, history.latest.voters_offset) == (1, NOT_IN_THE_LOG)


def test_voters_of_a_log_that_kafka_wrote_are_known(tmp_path: Path) -> None:
    history = recovered(tmp_path, "after-restart")
    assert history.latest.voters_offset == 2
    assert history.at(0).voters == history.latest.voters


def test_first_leader_writes_the_batch_that_kafka_writes(tmp_path: Path) -> None:
    log = (GOLDEN / "after-restart" / METADATA_LOG / "00000000000000000000.log").read_bytes()
    header = read_header(log)
    theirs = log[: header.size_bytes]
    (voter,) = voters_in(theirs)
    config = QuorumConfig(
        node_id=1,
        directory_id=voter.key.directory_id,
        cluster_id="any",
        voters=VoterSet(),
        bootstrap_servers=(Endpoint(-2, "somewhere", 1),),
        listeners=voter.listeners,
    )
    state = loaded(tmp_path, "after-format")
    node = RaftNode(config, state, ElectionState(), Random(1), header.base_timestamp_ms)
    give(node, Stored(log=METADATA_LOG, token=Token("raft", 1)), header.base_timestamp_ms)
    (append,) = [effect for effect in node.take_effects() if isinstance(effect, Append)]
    assert append.records == theirs
