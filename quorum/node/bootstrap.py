"""The records that `format` leaves for the first start of a node, in the form of snapshots.

    bootstrap.checkpoint                    the first records of a cluster; the first active
                                            controller of an empty log reads it
    __cluster_metadata-0/0…0-0…0.checkpoint the first voters, where they are to live in the log
                                            (KIP-853); the first leader writes them there. Since
                                            4.4, Kafka leaves the first records there, too

The records come as three batches, offsets from 0, epoch 0: a control batch with the snapshot
header, the records, and a control batch with the footer, without which the file is not whole.

Source: KIP-630, KIP-853, KIP-1170; Kafka's BootstrapDirectory, BatchFileWriter and Formatter.
"""

from collections.abc import Sequence

from quorum.core.types import OffsetAndEpoch
from quorum.log.files.checkpoints import CorruptFile
from quorum.log.snapshots import SnapshotLoad, snapshot_content, snapshot_head
from quorum.raft.voter_history import Membership
from quorum.raft.voters import VoterSet
from wire.batch import Record, data_batch, headers, records_of
from wire.varint import Malformed

__all__ = ["BOOTSTRAP", "format_bootstrap", "format_first_voters", "parse_bootstrap"]

BOOTSTRAP = "bootstrap.checkpoint"


def format_first_voters(voters: VoterSet, *, timestamp_ms: int) -> bytes:
    """The snapshot that ends at offset 0: nothing but kraft.version 1 and the voters."""
    membership = Membership(voters=voters, kraft_version=1)
    head = snapshot_head(timestamp_ms, membership.head_records())
    return b"".join(snapshot_content(head, (), epoch=0, last_timestamp_ms=timestamp_ms))


def format_bootstrap(values: Sequence[bytes]) -> bytes:
    """`values` are framed metadata records (`wire.metadata_records.encode_record`).

    They come from no log, so that the header says 0 for the time of the last one.
    """
    batches = [data_batch(values, timestamp_ms=0)]
    return b"".join(snapshot_content(snapshot_head(0, ()), batches, epoch=0, last_timestamp_ms=0))


def parse_bootstrap(content: bytes, path: str) -> tuple[bytes, ...]:
    """The framed metadata records."""
    try:
        batches = SnapshotLoad(OffsetAndEpoch(0, 0)).take(content, len(content))
        return tuple(
            _value(record)
            for position, header in headers(batches)
            if not header.is_control
            for record in records_of(batches[position : position + header.size_bytes])
        )
    except Malformed as error:
        raise CorruptFile(path, None, f"no whole snapshot: {error}") from error


def _value(record: Record) -> bytes:
    if record.value is None:
        raise Malformed("a metadata record without a value")
    return record.value
