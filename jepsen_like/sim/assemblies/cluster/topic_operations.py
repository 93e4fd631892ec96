"""Operations on topics, in some runs, beside those of the cluster's administrator, and the software
of the clients.

Each kind is drawn from a random stream of its own, and works by one of its own.
"""

from dataclasses import dataclass

from jepsen_like.sim.time.virtual_time import VirtualTime
from jepsen_like.sim.world.client_releases import (
    KNOW_TOPIC_IDS,
    NEWEST,
    OLDER,
    ClientRelease,
    draw_release,
)

__all__ = ["OPERATION_KINDS", "Operations", "draw_operations"]

# As they are counted: what never took effect in a sweep makes it void.
OPERATION_KINDS = (
    "commit_shown",
    "commits_loaded",
    "decided_in_columns",
    "offset_committed",
    "older_client",
    "pipelined",
    "records_deleted",
    "retained",
    "sent_to_start",
    "setting_changed",
    "wide_created",
    "wide_deleted",
)
_COMMIT_SHARE = 0.4
_DELETION_SHARE = 0.3
_OLDER_SHARE = 0.25
_READER_SHARE = 0.5  # of the runs that commit offsets
# The last one takes no error of a group, and is drawn twice as often.
_READERS = (*OLDER, OLDER[-1])
_SETTING_SHARE = 0.25
_WIDE_SHARE = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Operations:
    """Milliseconds between two of a kind, on average; 0: none. And what the clients know."""

    commit_interval_ms: int = 0  # groups commit offsets
    deletion_interval_ms: int = 0  # records of the client are deleted
    setting_interval_ms: int = 0  # settings of the client's topic are changed
    retention_check_ms: int = 300_000  # log.retention.check.interval.ms
    in_flight_max: int = 1  # batches of an idempotent client in a partition
    wide_interval_ms: int = 0  # topics of 100 partitions and more come and go
    client_release: ClientRelease = NEWEST  # of the client that produces and reads
    reader_release: ClientRelease = NEWEST  # of one that asks for committed offsets, if it is older


def draw_operations(world: VirtualTime, unit_ms: int) -> Operations:
    commits = world.fork("operations/commits")
    deletion = world.fork("operations/deletion")
    settings = world.fork("operations/settings")
    changes_settings = settings.random() < _SETTING_SHARE
    in_flight = world.fork("operations/in flight")
    wide = world.fork("operations/wide")
    client, reader = world.fork("releases/client"), world.fork("releases/reader")
    return Operations(
        commit_interval_ms=(
            unit_ms // commits.choice((2, 5)) if commits.random() < _COMMIT_SHARE else 0
        ),
        deletion_interval_ms=(
            unit_ms * deletion.choice((1, 3)) if deletion.random() < _DELETION_SHARE else 0
        ),
        setting_interval_ms=unit_ms * settings.choice((1, 3)) if changes_settings else 0,
        retention_check_ms=unit_ms * settings.choice((1, 4)) if changes_settings else 300_000,
        in_flight_max=in_flight.choice((1, 5)),
        wide_interval_ms=unit_ms * wide.choice((1, 2)) if wide.random() < _WIDE_SHARE else 0,
        client_release=draw_release(client, _OLDER_SHARE, KNOW_TOPIC_IDS),
        reader_release=draw_release(reader, _READER_SHARE, _READERS),
    )
