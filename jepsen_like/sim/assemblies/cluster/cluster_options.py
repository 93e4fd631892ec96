"""The options of a run of a whole cluster, drawn from its seed.

The quorum's own options (`assemblies/quorum/quorum_options.py`) hold for all nodes: the voters are
the controllers, the observers the brokers. What is added here are the brokers' intervals, the
topic, the clients and the faults that only a cluster knows. All times are multiples of one, so that
a run with short timeouts is short.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from broker.transactions.transaction import EPOCH_BUMPS
from controller.metadata.metadata_version import NEWEST as NEWEST_LEVEL
from jepsen_like.sim.assemblies.quorum.quorum_options import Options, draw_storage, scaled
from jepsen_like.sim.counts import CHANCES
from jepsen_like.sim.disks.node_disk import DiskFaults
from jepsen_like.sim.time.virtual_time import VirtualTime
from jepsen_like.sim.world.client_releases import (
    KNOW_TOPIC_IDS,
    NEWEST,
    OLDER,
    ClientRelease,
    draw_release,
)
from jepsen_like.sim.world.network import LinkFaults
from quorum.raft.config import SnapshotSettings

__all__ = [
    "CLUSTER_FIRING_KINDS",
    "CLUSTER_NEMESIS_KINDS",
    "DIRECTORY_KINDS",
    "DRAWN_METADATA_VERSION",
    "EXTRAS",
    "OPERATION_KINDS",
    "ClusterOptions",
    "Operations",
    "draw_cluster_options",
    "draw_run",
]

# As they are counted: what never took effect in a sweep makes it void.
OPERATION_KINDS = (
    "commit_shown",
    "commit_fenced",
    "committed_read",
    "commits_loaded",
    "decided_in_columns",
    "group_assigned",
    "offset_committed",
    "offset_sent_to_transaction",
    "older_client",
    "pipelined",
    "records_deleted",
    "retained",
    "sent_to_start",
    "setting_changed",
    "transaction_aborted",
    "transaction_committed",
    "transaction_held_back",
    "transaction_refused",
    "transactions_initialized",
    "wide_created",
    "wide_deleted",
)
# That of Kafka 4.0. Records of another one have other sizes, and these are in the times of a run:
# every seed would be another run, and what is known of seeds lost.
DRAWN_METADATA_VERSION = 25
_NEWER_LEVELS = range(DRAWN_METADATA_VERSION + 1, NEWEST_LEVEL + 1)
_COMMIT_SHARE = 0.4
_DELETION_SHARE = 0.3
_OLDER_SHARE = 0.25
_READER_SHARE = 0.5  # of the runs that commit offsets
# The last one takes no error of a group, and is drawn twice as often.
_READERS = (*OLDER, OLDER[-1])
_SETTING_SHARE = 0.25
_WIDE_SHARE = 0.1
# Clocks go right here, and disks that cannot be written to are left to the quorum's own runs.
_NOT_DRAWN = ("skewed", "write_failed")
_QUORUM_KINDS = (
    "partition-one-way",
    "partition",
    "kill",
    "pause",
    "resign",
    "stop",
    "power-loss",
)
# Where a broker has several directories.
DIRECTORY_KINDS = ("directory_failed", "started_without_directory", "directory_repaired")
# Beside those of the quorum.
CLUSTER_NEMESIS_KINDS = ("cut-controllers", "hold-rpc", "wipe")
_STORAGE = ("shipped_storage", "lost_sectors", "died_at_start", "bit_flipped")
_KINDS = (
    *_QUORUM_KINDS,
    *CLUSTER_NEMESIS_KINDS,
    *CHANCES,
    *OPERATION_KINDS,
    *_STORAGE,
    *DIRECTORY_KINDS,
    "superseded",
)
CLUSTER_FIRING_KINDS = tuple(kind for kind in sorted(_KINDS) if kind not in _NOT_DRAWN)
_PACE = {"cut-controllers": (4.0, 8.0), "hold-rpc": (0.5, 1.0, 2.0), "wipe": (4.0, 8.0)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Operations:
    """Milliseconds between two of a kind, on average; 0: none. And what the clients know."""

    commit_interval_ms: int = 0  # groups commit offsets
    member_count: int = 0  # members of groups that rebalance
    member_interval_ms: int = 0  # between two requests of a member
    consumer_count: int = 0  # members of groups in which the coordinator assigns (KIP-848)
    consumer_interval_ms: int = 0  # between two requests of one
    transaction_producers: int = 0  # of three, two share a transactional id
    transaction_interval_ms: int = 0  # between two operations of one
    deletion_interval_ms: int = 0  # records of the client are deleted
    setting_interval_ms: int = 0  # settings of the client's topic are changed
    retention_check_ms: int = 300_000  # log.retention.check.interval.ms
    in_flight_max: int = 1  # batches of an idempotent client in a partition
    wide_interval_ms: int = 0  # topics of 100 partitions and more come and go
    client_release: ClientRelease = NEWEST  # of the client that produces and reads
    reader_release: ClientRelease = NEWEST  # of one that asks for committed offsets, if it is older


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterOptions:
    """Everything that a run draws before it begins."""

    quorum: Options = field(default_factory=lambda: Options(voters=1, observers=3))
    partitions: int = 1
    replication_factor: int = 3
    min_insync_replicas: int = 2
    elr: bool = False  # feature eligible.leader.replicas.version (KIP-966)
    unclean: bool = False  # the topic allows elections from outside the ISR

    heartbeat_interval_ms: int = 100
    session_timeout_ms: int = 600
    lag_time_max_ms: int = 600
    fetch_wait_ms: int = 200
    fetch_backoff_ms: int = 50
    checkpoint_interval_ms: int = 500
    controlled_shutdown_timeout_ms: int = 1000
    idle_interval_ms: int = 0  # between two NoOpRecords; 0: none
    balance_interval_ms: int = 300_000  # between two looks at which leaders are not preferred

    produce_interval_ms: int = 100  # between two batches to a partition, on average; 0: none
    client_timeout_ms: int = 800
    is_idempotent: bool = False
    calm_start: bool = True  # no faults before everything is up and in sync for the first time
    admin_interval_ms: int = 0  # between two operations; 0: none
    operations: Operations = field(default_factory=Operations)
    metadata_version: int = DRAWN_METADATA_VERSION
    transaction_version: int = 0  # 0: nobody looks at transactions
    verifies_transactions: bool = True  # transaction.partition.verification.enable

    directories: int = 1  # of each broker, for its partitions
    directory_failure_ms: int = 0  # between two failures of one, on average; 0: none
    brokers_lose_power: bool = False  # and with it what Kafka acknowledges without a sync
    nemesis_ms: dict[str, int] = field(default_factory=dict)  # by cluster kind: as in the quorum's

    @property
    def controllers(self) -> tuple[int, ...]:
        return self.quorum.controllers

    @property
    def brokers(self) -> tuple[int, ...]:
        return self.quorum.brokers

    @property
    def unfencing_bound_ms(self) -> int:
        """L-BR, after a controller is known: a killed broker waits for its former session to end,
        asks again after at most as long, and then needs a few heartbeats."""
        return 2 * self.session_timeout_ms + 4 * self.heartbeat_interval_ms + self.round_trip_ms

    @property
    def in_sync_bound_ms(self) -> int:
        """L-ISR: a fetch (after the longest pause of a fetcher), and one AlterPartition."""
        return self.fetch_backoff_ms + 2 * self.fetch_wait_ms + self.session_timeout_ms

    @property
    def group_bound_ms(self) -> int:
        """L-GRP: whoever is gone is missed, and two rebalances follow; each member looks for the
        coordinator on every broker before."""
        rounds = 2 * len(self.brokers) + 8
        operations = self.operations
        interval_ms = max(operations.member_interval_ms, operations.consumer_interval_ms)
        return 3 * self.client_timeout_ms + rounds * 2 * interval_ms

    @property
    def transactions_bound_ms(self) -> int:
        """L-TXN: what nobody ends is aborted when its time is up, and its markers are written."""
        return 6 * self.client_timeout_ms + self.in_sync_bound_ms

    @property
    def round_trip_ms(self) -> int:
        """The longest that a request to the controller goes unanswered before it is repeated."""
        return self.session_timeout_ms // 2 + self.quorum.request_timeout_ms


def draw_run(world: VirtualTime, *, wants: Collection[str] = ()) -> ClusterOptions:
    """All that a seed decides before its run begins, and surely what is wanted: `directories`,
    `members`, `transactions`, or `partition storage`; and what no seed has unless it is wanted:
    `newer metadata`, where the nodes know all features of today, at a level that Kafka 4.0 did not
    have, and `consumers`, groups of KIP-848.
    """
    options = draw_cluster_options(world.fork("options"))
    unit_ms = options.quorum.election_timeout_ms
    quorum = draw_storage(options.quorum, world.fork("storage"))
    options = replace(options, quorum=quorum, operations=_draw_operations(world, unit_ms))
    for what, (share, stream, draw) in EXTRAS.items():
        random = world.fork(stream)
        is_drawn = random.random() < share
        if (is_drawn or what in wants) and not (draw is _on_storage and "directories" in wants):
            options = draw(options, random)
    return options


def _on_storage(options: ClusterOptions, random: Random) -> ClusterOptions:
    """All logs of brokers lie on the shipped storage, and their power fails."""
    quorum = draw_storage(options.quorum, random, is_wanted=True)
    assert quorum.files is not None
    unit_ms = quorum.election_timeout_ms
    files = replace(
        quorum.files,
        holds_partitions=True,
        partition_segment_bytes=random.choice((300, 1_000, 10_000)),
    )
    disks = replace(quorum.disks, write_failure=random.choice((0.0, 0.0, 0.0005)))
    nemesis_ms = {"power-loss": unit_ms * random.choice((4, 8)), **quorum.nemesis_ms}
    return replace(
        options,
        quorum=replace(quorum, files=files, disks=disks, nemesis_ms=nemesis_ms),
        brokers_lose_power=True,
        directories=1,
        directory_failure_ms=0,
    )


def _with_members(options: ClusterOptions, random: Random) -> ClusterOptions:
    """Groups have members, while others commit offsets and the coordinator moves."""
    unit_ms = options.quorum.election_timeout_ms
    return _with_commits(
        options,
        member_count=random.choice((2, 3, 6)),
        member_interval_ms=unit_ms // random.choice((3, 6)),
    )


def _with_transactions(options: ClusterOptions, random: Random) -> ClusterOptions:
    """Transactional producers write, while groups commit offsets, too."""
    unit_ms = options.quorum.election_timeout_ms
    return _with_commits(
        replace(options, transaction_version=EPOCH_BUMPS),
        transaction_producers=random.choice((1, 2, 3)),
        transaction_interval_ms=unit_ms // random.choice((3, 6)),
    )


def _with_commits(options: ClusterOptions, **drawn: Any) -> ClusterOptions:
    interval_ms = options.operations.commit_interval_ms or options.quorum.election_timeout_ms // 2
    operations = replace(options.operations, commit_interval_ms=interval_ms, **drawn)
    return replace(options, operations=operations)


def _with_directories(options: ClusterOptions, random: Random) -> ClusterOptions:
    """Each broker has several data directories, of which one fails now and then."""
    return replace(
        options,
        directories=random.choice((2, 3)),
        directory_failure_ms=options.quorum.election_timeout_ms * random.choice((3, 6)),
    )


def _with_consumers(options: ClusterOptions, random: Random) -> ClusterOptions:
    """Groups in which the coordinator assigns, of a topic with enough partitions for that."""
    unit_ms = options.quorum.election_timeout_ms
    return _with_commits(
        replace(options, partitions=random.choice((2, 4))),
        consumer_count=random.choice((2, 3, 6)),
        consumer_interval_ms=unit_ms // random.choice((3, 6)),
    )


def _at_newer_level(options: ClusterOptions, random: Random) -> ClusterOptions:
    return replace(options, metadata_version=random.choice(_NEWER_LEVELS))


# What some runs have beside, in the order in which it is drawn: its share of the runs, the random
# stream, and how the options change.
EXTRAS: Mapping[str, tuple[float, str, Callable[[ClusterOptions, Random], ClusterOptions]]] = {
    "members": (1 / 8, "operations/consumers", _with_members),
    "transactions": (1 / 4, "operations/transactions", _with_transactions),
    "directories": (1 / 5, "directories", _with_directories),
    "partition storage": (1 / 12, "partition storage", _on_storage),
    "consumers": (0.0, "operations/consumer protocol", _with_consumers),
    "newer metadata": (0.0, "newer metadata", _at_newer_level),
}


def draw_cluster_options(random: Random) -> ClusterOptions:
    """The options of one seed."""
    unit_ms = random.choice((50, 100))
    brokers = random.choice((2, 3, 3, 3, 3, 4))
    session_timeout_ms = unit_ms * random.choice((4, 6))
    density = random.choice((0.3, 0.6, 0.9))  # how many kinds of faults meet
    loses_power = random.random() < 0.3
    replication_factor = min(brokers, random.choice((2, 3, 3, 3)))
    return ClusterOptions(
        quorum=_draw_quorum(random, unit_ms, brokers, density),
        partitions=random.choice((1, 1, 2)),
        replication_factor=replication_factor,
        min_insync_replicas=random.choice((1, 2, 2)),
        elr=random.random() < 0.3,
        unclean=random.random() < 0.1,
        heartbeat_interval_ms=session_timeout_ms // random.choice((3, 4)),
        session_timeout_ms=session_timeout_ms,
        lag_time_max_ms=unit_ms * random.choice((1, 2, 4)),
        fetch_wait_ms=unit_ms * random.choice((1, 2)),
        fetch_backoff_ms=scaled(random, unit_ms, (0.2, 0.5, 1.0)),
        checkpoint_interval_ms=unit_ms * random.choice((2, 10)),
        controlled_shutdown_timeout_ms=unit_ms * random.choice((4, 10)),
        idle_interval_ms=unit_ms * random.choice((0, 0, 5)),
        balance_interval_ms=unit_ms * random.choice((5, 6_000)),
        produce_interval_ms=scaled(random, unit_ms, (0.1, 0.3)),
        client_timeout_ms=unit_ms * random.choice((4, 8)),
        calm_start=random.random() < 0.8,
        is_idempotent=random.random() < 0.5,
        admin_interval_ms=unit_ms * random.choice((0, 1, 2, 4)),
        brokers_lose_power=loses_power,
        nemesis_ms={
            kind: scaled(random, unit_ms, _PACE[kind])
            for kind in CLUSTER_NEMESIS_KINDS
            if random.random() < density and (kind != "wipe" or loses_power)
        },
    )


def _draw_quorum(random: Random, unit_ms: int, brokers: int, density: float) -> Options:
    return Options(
        voters=random.choice((1, 1, 3)),
        observers=brokers,
        codecs=random.random() < 0.15,
        election_timeout_ms=unit_ms,
        fetch_timeout_ms=2 * unit_ms,
        fetch_max_wait_ms=unit_ms // 2,
        election_backoff_max_ms=unit_ms // 2,
        request_timeout_ms=2 * unit_ms,
        retry_backoff_ms=unit_ms // 4,
        shutdown_timeout_ms=unit_ms,
        observers_sync=False,
        safety_ms=unit_ms * random.randint(20, 40),
        links=_draw_links(random, unit_ms),
        disks=_draw_disks(random, unit_ms),
        nemesis_ms={
            kind: scaled(random, unit_ms, (4.0, 8.0, 16.0))
            for kind in _QUORUM_KINDS
            if random.random() < density
        },
        down_ms=scaled(random, unit_ms, (0.1, 1.0, 4.0)),
        cut_ms=scaled(random, unit_ms, (1.0, 4.0, 10.0)),
        pause_ms=scaled(random, unit_ms, (1.0, 4.0, 8.0)),
        snapshots=_draw_snapshots(random, unit_ms),
    )


def _draw_snapshots(random: Random, unit_ms: int) -> SnapshotSettings:
    """None in most runs. Else so often that who was away for a while needs one."""
    if random.random() < 0.6:
        return SnapshotSettings()
    return SnapshotSettings(
        bytes_between=random.choice((500, 2_000)),
        interval_ms=10 * unit_ms,
        retention_bytes=random.choice((-1, 4_000)),
        retention_ms=5 * unit_ms,
        fetch_max_bytes=random.choice((1 << 20, 300)),
    )


def _draw_links(random: Random, unit_ms: int) -> LinkFaults:
    return LinkFaults(
        delay_us_min=50,
        delay_us_mean=scaled(random, unit_ms * 1000, (0.005, 0.02, 0.1)),
        loss=random.choice((0.0, 0.0, 0.01, 0.05)),
        duplication=random.choice((0.0, 0.0, 0.05)),
        reordering=random.choice((0.0, 0.0, 0.05)),
        slow=random.choice((0.0, 0.0, 0.02)),
        slow_us=scaled(random, unit_ms * 1000, (1.0, 4.0)),
    )


def _draw_disks(random: Random, unit_ms: int) -> DiskFaults:
    return DiskFaults(
        inline_syncs=True,
        sync_us_min=50,
        sync_us_mean=scaled(random, unit_ms * 1000, (0.005, 0.02, 0.1)),
        fsync_failure=random.choice((0.0, 0.0, 0.005)),
        torn_write=random.choice((0.0, 0.5)),
    )


def _draw_operations(world: VirtualTime, unit_ms: int) -> Operations:
    """Each kind is drawn from a random stream of its own, and works by one of its own."""
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
