"""The state of a replica of the metadata log that outlives its roles."""

from dataclasses import dataclass, field
from random import Random

from quorum.core.effects import Append, Durability, ResetLog, Send, SnapshotFile, Trim, Truncate
from quorum.core.types import Endpoint, ReplicaKey
from quorum.raft.config import QuorumConfig
from quorum.raft.log import QuorumLog
from quorum.raft.peers import Peers
from quorum.raft.raft_outbox import HoldingOutbox
from quorum.raft.roles import Download
from quorum.raft.voter_history import VoterHistory
from quorum.raft.voters import VoterSet
from wire.errors import ErrorCode

__all__ = ["FETCH_CHANNEL", "VOTE_CHANNEL", "Replica"]

# A parked fetch must not delay a vote to the same node: each kind has a connection of its own.
FETCH_CHANNEL = "metadata-fetch"
VOTE_CHANNEL = "quorum"


@dataclass(slots=True, kw_only=True)
class Replica:
    config: QuorumConfig
    history: VoterHistory
    log: QuorumLog
    outbox: HoldingOutbox
    random: Random
    peers: Peers = field(default_factory=Peers)
    download: Download | None = None
    node_id: int = field(init=False)
    key: ReplicaKey = field(init=False)
    durability: Durability = field(init=False)  # of what is appended
    # A replica that does not sync is no voter, even if the voters' record names it.
    is_voter: bool = field(init=False)
    # Where others find this node: a voter, at the address in the voters' record.
    endpoint: Endpoint | None = field(init=False)

    def __post_init__(self) -> None:
        self.node_id, self.key = self.config.node_id, self.config.key
        self.durability = Durability.SYNCED if self.config.syncs else Durability.WRITTEN
        self._adopt_membership()

    @property
    def voters(self) -> VoterSet:
        """The voters in force: those of the last voters' record, committed or not."""
        return self.history.latest.voters

    @property
    def kraft_version(self) -> int:
        return self.history.latest.kraft_version

    @property
    def may_campaign(self) -> bool:
        """Is it a voter, or was it one before a change that may not be committed?

        Until its removal is committed, a voter may be the only one whose log is complete enough to
        lead: if it did not campaign, nobody could (thesis 4.2.2).
        """
        if self.is_voter:
            return True
        latest = self.history.latest
        if latest.voters_offset < self.log.committed_offset:
            return False
        before = self.history.at(latest.voters_offset).voters
        return self.config.syncs and before.contains(self.key)

    @property
    def is_sole_voter(self) -> bool:
        return self.is_voter and len(self.voters) == 1

    def check_cluster(self, cluster_id: str | None) -> ErrorCode:
        """A peer that names no cluster is taken for one of ours."""
        if cluster_id is None or cluster_id == self.config.cluster_id:
            return ErrorCode.NONE
        return ErrorCode.INCONSISTENT_CLUSTER_ID

    def election_timeout_ms(self) -> int:
        """Random, between once and twice the setting, so that candidates seldom meet (3.4)."""
        timeout_ms = self.config.election_timeout_ms
        return timeout_ms + self.random.randrange(timeout_ms)

    def election_deadline_ms(self, now_ms: int) -> int | None:
        """When to campaign if nothing happens until then; None: never."""
        return now_ms + self.election_timeout_ms() if self.may_campaign else None

    def fetch_timeout_ms(self) -> int:
        """Kafka's is fixed. A fifth of it at random keeps the followers of a dead leader, whose
        last answers came at the same moment, from campaigning at the same moment."""
        timeout_ms = self.config.fetch_timeout_ms
        return timeout_ms + self.random.randrange(timeout_ms // 5 + 1)

    def other_voters(self) -> tuple[Endpoint, ...]:
        return tuple(voter.endpoint for voter in self.voters.others(self.node_id))

    @property
    def discovery_servers(self) -> tuple[Endpoint, ...]:
        """Who is asked for the leader: the bootstrap servers, and the voters that are known.

        Kafka asks the former only; they may have left the quorum since.
        """
        return (*self.config.bootstrap_servers, *self.other_voters())

    def ask(self, to: Endpoint, channel: str, body: object) -> int:
        """Send a request; returns the number of the token that its answer will carry."""
        token = self.outbox.token()
        self.peers.asked(token.number, to)
        self.outbox.send(
            Send(
                token=token,
                to=to,
                channel=channel,
                body=body,
                timeout_ms=self.config.request_timeout_ms,
            )
        )
        return token.number

    def append(self, records: bytes) -> int | None:
        """Queue the write; returns the token to wait for, None if this replica does not sync."""
        number = self.outbox.on_log(Append, records=records, durability=self.durability)
        return number if self.config.syncs else None

    def truncate(self, end_offset: int) -> None:
        number = self.outbox.on_log(Truncate, end_offset=end_offset, durability=self.durability)
        self.log.truncate(end_offset, syncing=number if self.config.syncs else None)
        if self.history.truncate(end_offset):
            self.voters_changed()

    def reset(self, file: SnapshotFile) -> None:
        """Put the snapshot of another node in the place of the whole log."""
        self.outbox.trace(
            "snapshot_adopted",
            offset=file.id.offset,
            epoch=file.id.epoch,
            bytes=file.size_bytes,
            from_=self.log.end_offset,
        )
        number = self.outbox.on_log(ResetLog, start=file.id)
        # The snapshots before it go, too.
        self.outbox.on_log(Trim, start_offset=file.id.offset)
        self.log.reset(file, syncing=number)
        if self.history.restart(file):
            self.voters_changed()

    def voters_changed(self) -> None:
        """Other voters are in force: by an append, a truncation or an adopted snapshot."""
        self._adopt_membership()
        latest = self.history.latest
        self.outbox.trace(
            "voters",
            ids=",".join(map(str, latest.voters.ids)),
            offset=latest.voters_offset,
            kraft_version=latest.kraft_version,
        )

    def _adopt_membership(self) -> None:
        voters = self.history.latest.voters
        self.is_voter = self.config.syncs and voters.contains(self.key)
        known = voters.endpoint_of(self.node_id) if self.is_voter else None
        self.endpoint = known or self.config.endpoint
