"""One replica and its roles, for tests of rules that need no cluster."""

from collections.abc import Iterable
from random import Random
from uuid import UUID

from quorum.core.effects import EpochStart, LogState, SnapshotFile
from quorum.core.storage import METADATA_LOG
from quorum.core.types import OffsetAndEpoch, ReplicaKey
from quorum.log.snapshots import snapshot_content, snapshot_head
from quorum.raft.log import QuorumLog
from quorum.raft.raft_outbox import HoldingOutbox
from quorum.raft.replica import Replica
from quorum.raft.roles import Follower, Unattached
from quorum.raft.voter_history import VoterHistory
from tests.quorum.disks import snapshot_file
from tests.quorum.ledger import batches_of
from tests.quorum.replicas import config, endpoint
from wire.control_records import KRaftVersion

__all__ = ["LAST", "US", "following", "replica", "snapshot", "waiting"]

US = ReplicaKey(1, UUID(int=1001))
LAST = OffsetAndEpoch(offset=10, epoch=4)


def replica(voters: Iterable[int] = (1, 2, 3), **settings: object) -> Replica:
    """Node 1; its log ends at 10 in epoch 4. `dynamic`: with kraft.version 1."""
    dynamic = settings.pop("dynamic", False)
    state = LogState(log=METADATA_LOG, end_offset=10, last_epoch=4, epochs=(EpochStart(4, 0),))
    settings_ = config(1, voters, **settings)
    history = VoterHistory(settings_.voters)
    if dynamic:
        history.observe([(9, KRaftVersion(kraft_version=1))])
    return Replica(
        config=settings_,
        history=history,
        log=QuorumLog(state),
        outbox=HoldingOutbox(METADATA_LOG),
        random=Random(1),
    )


def snapshot(
    offset: int, epoch: int, *, records: int = 4, timestamp_ms: int = 0
) -> tuple[bytes, SnapshotFile]:
    """A whole snapshot, and what the disk says of it."""
    snapshot_id = OffsetAndEpoch(offset, epoch)
    content = b"".join(
        snapshot_content(
            snapshot_head(timestamp_ms, ()),
            batches_of([b"%03d" % n for n in range(records)]),
            epoch=epoch,
            last_timestamp_ms=timestamp_ms,
        )
    )
    return content, snapshot_file(snapshot_id, content)


def waiting(epoch: int = 5, **known: object) -> Unattached:
    return Unattached(epoch=epoch, election_deadline_ms=700, **known)  # type: ignore[arg-type]


def following(epoch: int = 5, leader_id: int = 3) -> Follower:
    return Follower(
        epoch=epoch,
        leader_id=leader_id,
        leader_endpoint=endpoint(leader_id),
        fetch_deadline_ms=2000,
        has_fetched=True,
    )
