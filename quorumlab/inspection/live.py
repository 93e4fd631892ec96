"""The metadata log of a live quorum, ours or Kafka's: asked for as an observer that nobody counts.

DescribeQuorum says who leads, Fetch gives the committed records, FetchSnapshot what came before
them. Nothing is promised to the leader, and it keeps nothing for us.

Source: KIP-595 (Fetch without a replica id), KIP-630 (FetchSnapshot), KIP-836 (DescribeQuorum).
"""

import io
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from jepsen_like.real.kafka_client import Client, NoAnswer
from jepsen_like.real.layout import ClusterError
from quorum.core.storage import METADATA_LOG
from quorum.core.types import OffsetAndEpoch
from quorum.raft.voters import KRAFT_VERSION
from quorumlab.inspection.batches import Batch, batches_in
from quorumlab.inspection.target import Address, Target
from wire.errors import ErrorCode
from wire.messages.fetching import (
    FetchedPartition,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    FetchTopic,
    PartitionSnapshot,
    PartitionSnapshotResult,
    SnapshotId,
    TopicSnapshot,
)
from wire.messages.metadata import DescribeClusterRequest, DescribeClusterResponse
from wire.messages.voters import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    QuorumPartition,
    QuorumTopic,
)
from wire.primitives import METADATA_TOPIC, METADATA_TOPIC_ID

__all__ = [
    "DESCRIBE_QUORUM",
    "LiveLog",
    "NoQuorum",
    "client_of",
    "cluster_id_of",
    "describe_quorum_of",
    "has_dynamic_voters",
    "mirrored",
]

_BROKERS, _CONTROLLERS = 1, 2  # endpoint types of DescribeCluster
_PIECE_BYTES = 8 << 20
_WAIT_MS = 500
_LIMIT_SECONDS = 10.0
_PATIENCE_SECONDS = 15.0  # without a leader
_LOOK_AGAIN_SECONDS = 0.2
_HOPS_MAX = 3  # from one that says who leads to the next


class _Moved(ClusterError):
    """Another node leads now, or this one has another epoch."""


class NoQuorum(ClusterError):
    """The cluster keeps its metadata in ZooKeeper."""


class LiveLog:
    """Reads from whoever leads, from `position` on; looks for the leader again when it changes."""

    def __init__(self, address: Address, *, limit_seconds: float = _LIMIT_SECONDS) -> None:
        self._address = address
        self._limit_seconds = limit_seconds  # for one answer
        self._others: tuple[Address, ...] = ()  # who may be asked if that one is gone
        self._leader: Address | None = None
        self._epoch = -1
        self.high_watermark = -1
        self.position = OffsetAndEpoch(offset=0, epoch=-1)  # of the next record to be read

    def discover(self) -> None:
        """Raises ClusterError if no leader is found in time, or nobody is where one asks first."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while True:
            for address in (self._address, *self._others):
                try:
                    self._learn(describe_quorum_of(address, limit_seconds=self._limit_seconds))
                except NoQuorum:
                    raise  # there is no leader to be waited for
                except NoAnswer:
                    if not self._others or time.monotonic() > deadline:
                        raise
                except ClusterError:
                    if time.monotonic() > deadline:
                        raise
                else:
                    return
            time.sleep(_LOOK_AGAIN_SECONDS)

    def batches(self) -> Iterator[Batch]:
        """Yields what is committed behind `position`, and ends when nothing came for a while.

        Raises ClusterError if the log no longer goes back so far: `save_snapshot` brings the rest.
        """
        if self._leader is None:
            self.discover()
        try:
            yield from self._fetched()
        except (_Moved, NoAnswer):
            self._leader = None
            time.sleep(_LOOK_AGAIN_SECONDS)

    def _learn(self, described: DescribeQuorumResponse) -> None:
        partition = described.topics[0].partitions[0]
        self._epoch, self.high_watermark = partition.leader_epoch, partition.high_watermark
        voters = {
            node.node_id: replace(
                self._address, host=node.listeners[0].host, port=node.listeners[0].port
            )
            for node in described.nodes
            if node.listeners
        }
        self._others = tuple(voters.values())
        if partition.leader_id in voters:
            self._leader = voters[partition.leader_id]
            return
        raise ClusterError(f"nobody says where the leader, node {partition.leader_id}, is")

    def _fetched(self) -> Iterator[Batch]:
        assert self._leader is not None
        with client_of(self._leader, self._limit_seconds) as client:
            while True:
                answer = self._fetch(client)
                if answer.snapshot_id.end_offset >= 0:
                    raise ClusterError(
                        f"the log begins behind offset {self.position.offset}: a snapshot up to "
                        f"{answer.snapshot_id.end_offset} has what came before"
                    )
                self.high_watermark = answer.high_watermark
                before = self.position
                yield from self._committed(answer.records or b"")
                if self.position == before:
                    return

    def _fetch(self, client: Client) -> FetchedPartition:
        partition = FetchPartition(
            partition=0,
            current_leader_epoch=self._epoch,
            fetch_offset=self.position.offset,
            last_fetched_epoch=max(self.position.epoch, 0),
            partition_max_bytes=_PIECE_BYTES,
        )
        topic = FetchTopic(
            topic=METADATA_TOPIC, topic_id=METADATA_TOPIC_ID, partitions=(partition,)
        )
        request = FetchRequest(max_wait_ms=_WAIT_MS, max_bytes=_PIECE_BYTES, topics=(topic,))
        answer = client.ask(request, FetchResponse)
        if answer.error_code is not ErrorCode.NONE:
            raise ClusterError(f"the leader refuses to be read: {answer.error_code.name}")
        found = answer.responses[0].partitions[0]
        if found.error_code is not ErrorCode.NONE:
            raise _Moved(f"the leader of the quorum has changed: {found.error_code.name}")
        if found.diverging_epoch.epoch >= 0:
            raise ClusterError(
                f"what was committed before offset {self.position.offset} is no longer in the log:"
                " was the cluster made anew?"
            )
        return found

    def _committed(self, records: bytes) -> Iterator[Batch]:
        """Whole batches below the high watermark, the first one also if `position` is inside it.

        What is above the high watermark may be gone tomorrow.
        """
        for found in batches_in(io.BytesIO(records), Path(str(self._address))):
            if not isinstance(found, Batch) or found.header.next_offset > self.high_watermark:
                return
            if found.header.next_offset > self.position.offset:
                self.position = OffsetAndEpoch(found.header.next_offset, found.header.leader_epoch)
                yield found

    def newest_snapshot(self) -> OffsetAndEpoch | None:
        """The snapshot that the leader names to a reader from before its log; None if none."""
        assert self._leader is not None
        with client_of(self._leader, self._limit_seconds) as client:
            found = self._fetch(client).snapshot_id
        return OffsetAndEpoch(found.end_offset, found.epoch) if found.end_offset >= 0 else None

    def save_snapshot(self, snapshot: OffsetAndEpoch, path: Path) -> None:
        assert self._leader is not None
        with client_of(self._leader, self._limit_seconds) as client, path.open("wb") as file:
            size = 1
            while file.tell() < size:
                piece = self._snapshot_piece(client, snapshot, file.tell())
                size = piece.size
                file.write(piece.unaligned_records)
                if not piece.unaligned_records:
                    raise ClusterError(f"the snapshot ends at {file.tell()} of {size} bytes")
        self.position = snapshot

    def _snapshot_piece(
        self, client: Client, snapshot: OffsetAndEpoch, position: int
    ) -> PartitionSnapshotResult:
        partition = PartitionSnapshot(
            partition=0,
            current_leader_epoch=self._epoch,
            snapshot_id=SnapshotId(end_offset=snapshot.offset, epoch=snapshot.epoch),
            position=position,
        )
        topic = TopicSnapshot(name=METADATA_TOPIC, partitions=(partition,))
        request = FetchSnapshotRequest(max_bytes=_PIECE_BYTES, topics=(topic,))
        answer = client.ask(request, FetchSnapshotResponse)
        error = answer.error_code
        if error is ErrorCode.NONE and answer.topics:
            found = answer.topics[0].partitions[0]
            if found.error_code is ErrorCode.NONE:
                return found
            error = found.error_code
        raise ClusterError(f"the snapshot cannot be fetched: {error.name}")


def client_of(address: Address, limit_seconds: float = _LIMIT_SECONDS) -> Client:
    return Client([(address.host, address.port)], limit_seconds, settings=address.settings)


def cluster_id_of(address: Address) -> str | None:
    """Asks for brokers, then for controllers: a node answers for its own kind."""
    with client_of(address) as client:
        for kind in (_BROKERS, _CONTROLLERS):
            asked = DescribeClusterRequest(endpoint_type=kind)
            answer = client.ask(asked, DescribeClusterResponse)
            if answer.error_code is ErrorCode.NONE:
                return answer.cluster_id
    return None


def has_dynamic_voters(address: Address) -> bool:
    """Raises ClusterError."""
    with client_of(address) as client:
        return client.finalized.get(KRAFT_VERSION, 0) > 0


def describe_quorum_of(
    address: Address, *, limit_seconds: float = _LIMIT_SECONDS
) -> DescribeQuorumResponse:
    """Asks the leader, to which a standby controller points. Raises ClusterError."""
    asked: Address | None = address
    for _ in range(_HOPS_MAX):
        found = None if asked is None else _described(asked, limit_seconds)
        if isinstance(found, DescribeQuorumResponse):
            return found
        asked = None if found == asked else found
    raise ClusterError(f"{address} knows no leader of the quorum: is a majority of it up?")


def _described(address: Address, limit_seconds: float) -> DescribeQuorumResponse | Address | None:
    """The description, or who may have it, if anybody is known."""
    with client_of(address, limit_seconds) as client:
        described = client.ask(DESCRIBE_QUORUM, DescribeQuorumResponse)
        if described.error_code is ErrorCode.NONE:
            return described
        if described.error_code is ErrorCode.UNSUPPORTED_VERSION:
            raise NoQuorum(f"{address} keeps its metadata in ZooKeeper: there is no log to look at")
        asked = DescribeClusterRequest(endpoint_type=_CONTROLLERS)
        cluster = client.ask(asked, DescribeClusterResponse)
    for node in cluster.brokers:
        if node.broker_id == cluster.controller_id:
            return replace(address, host=node.host, port=node.port)
    return None


DESCRIBE_QUORUM = DescribeQuorumRequest(
    topics=(
        QuorumTopic(topic_name=METADATA_TOPIC, partitions=(QuorumPartition(partition_index=0),)),
    )
)


def mirrored(address: Address, scratch: Path, *, limit_seconds: float = _LIMIT_SECONDS) -> Target:
    """The newest snapshot and the log behind it up to the high watermark, as files in `scratch`."""
    directory = scratch / METADATA_LOG
    directory.mkdir()
    live = LiveLog(address, limit_seconds=limit_seconds)
    live.discover()
    snapshot = live.newest_snapshot()
    snapshots: tuple[Path, ...] = ()
    if snapshot is not None:
        path = directory / f"{snapshot.offset:020}-{snapshot.epoch:010}.checkpoint"
        live.save_snapshot(snapshot, path)
        snapshots = (path,)
    segment = directory / f"{live.position.offset:020}.log"
    end = live.high_watermark
    with segment.open("wb") as file:
        while live.position.offset < end:
            for batch in live.batches():
                file.write(batch.content)
                if live.position.offset >= end:
                    break  # the next answer would take as long as there is nothing new
    return Target(
        path=Path(str(address)),
        segments=(segment,),
        snapshots=snapshots,
        high_watermark=live.position.offset,  # it may be higher by now
        cluster_id=cluster_id_of(address),
    )
