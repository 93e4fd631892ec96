"""What a run is like, drawn from its seed: swarm testing.

Each seed enables its own mix of faults with its own rates, so that one seed is calm but slow and
another loses every third message: a single average mix would reach neither. Everything is a
multiple of the election timeout, drawn first, so that short timeouts make short and busy runs.

Source: Groce et al., "Swarm testing" (2012); TigerBeetle's VOPR for the ranges.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from random import Random

from jepsen_like.sim.counts import CHANCES, QUORUM_CHANCES, SNAPSHOT_CHANCES
from jepsen_like.sim.disks.node_disk import DiskFaults
from jepsen_like.sim.disks.shipped_disk import FileOptions
from jepsen_like.sim.time.pace import TURNS_US
from jepsen_like.sim.world.network import LinkFaults
from quorum.raft.config import SnapshotSettings

__all__ = ["FIRING_KINDS", "Options", "draw_options", "draw_storage", "scaled"]

# Faults that happen at moments of their own, in the order in which they are drawn; those of links
# and disks are chances per message or per sync.
NEMESIS_KINDS = (
    "partition-one-way",
    "partition",
    "bit-flip",
    "isolate-controller",
    "kill",
    "pause",
    "power-loss",
    "resign",
    "stop",
    "wipe",
)
FIRING_KINDS = tuple(sorted((*NEMESIS_KINDS, *CHANCES, *SNAPSHOT_CHANCES, *QUORUM_CHANCES)))
_LOSSES = ("bit-flip", "wipe")  # which take long to repair
_SELDOM = (5.0, 20.0, 50.0)
_SHIPPED_STORAGE = 1 / 8  # the share of seeds in which the shipped storage runs


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Everything that a run draws before it begins."""

    voters: int = 3
    observers: int = 0
    kraft_version: int = 0  # 1: the log names the voters, which change
    codecs: bool = False  # pass every message through the wire's codecs

    election_timeout_ms: int = 200
    fetch_timeout_ms: int = 400
    fetch_max_wait_ms: int = 100
    election_backoff_max_ms: int = 200
    request_timeout_ms: int = 400
    retry_backoff_ms: int = 10
    shutdown_timeout_ms: int = 200
    propose_interval_ms: int = 40  # on average
    burst_max: int = 1  # batches that are proposed at once: makes logs of very different length
    read_interval_ms: int = 0  # between two reads by a sure leader, on average; 0: none
    observers_sync: bool = True
    bytes_max: int = 8 << 20  # of one Fetch: small ones make a catch-up take many
    snapshots: SnapshotSettings = field(default_factory=SnapshotSettings)

    safety_ms: int = 10_000  # how long faults are injected
    links: LinkFaults = field(default_factory=LinkFaults)
    disks: DiskFaults = field(default_factory=DiskFaults)
    files: FileOptions | None = None  # the shipped storage runs on them; None: the model disk
    turns_us: tuple[int, ...] = TURNS_US
    drift_ppm_max: int = 0
    clock_jump: float = 0.0  # chance that a node's clock shows something else after a restart
    nemesis_ms: dict[str, int] = field(default_factory=dict)  # by kind: the mean time between two
    down_ms: int = 200  # how long a crashed process stays down, on average
    cut_ms: int = 800
    pause_ms: int = 400
    ambush: float = 0.0  # chance that a node loses power just after it asked its disk for something

    @property
    def controllers(self) -> tuple[int, ...]:
        return tuple(range(1, self.voters + 1))

    @property
    def brokers(self) -> tuple[int, ...]:
        first = self.voters + 1
        return tuple(range(first, first + self.observers))

    @property
    def election_bound_ms(self) -> int:
        """L-EL: a healed quorum has a leader within this.

        Time for the old one to be given up and another to stand, and for who was leaving when
        the quorum healed to come back.
        """
        standing_ms = 2 * self.election_timeout_ms + self.election_backoff_max_ms
        return self.fetch_timeout_ms + standing_ms + self.shutdown_timeout_ms

    @property
    def catch_up_bound_ms(self) -> int:
        """L-HW: in a quiet healed quorum all ends and high watermarks agree within this."""
        return self.fetch_timeout_ms + self.request_timeout_ms + 4 * self.fetch_max_wait_ms


def draw_options(random: Random) -> Options:
    """The options of one seed."""
    voters = random.choice((1, 2, 3, 3, 3, 4, 4, 5, 5, 5))
    kraft_version = random.choice((0, 1))
    timeout_ms = random.choice((50, 100, 200, 500))
    fetch_timeout_ms = scaled(random, timeout_ms, (1.0, 2.0, 3.0))
    burst_max = random.choice((1, 1, 4, 16))
    density = random.choice((0.2, 0.5, 0.8))  # how many kinds of faults meet
    if kraft_version and random.random() < 0.5:
        density = 0.1  # voters change most where little else happens
    # Nobody may wait longer for an answer than the leader may wait with it.
    request_timeout_ms = scaled(random, fetch_timeout_ms, (0.5, 1.0))
    return Options(
        voters=voters,
        observers=random.choice((0, 0, 1, 2) if kraft_version == 0 else (0, 1, 2)),
        kraft_version=kraft_version,
        codecs=random.random() < 0.5,
        election_timeout_ms=timeout_ms,
        fetch_timeout_ms=fetch_timeout_ms,
        fetch_max_wait_ms=scaled(random, request_timeout_ms, (0.1, 0.25, 0.5)),
        election_backoff_max_ms=scaled(random, timeout_ms, (0.5, 1.0)),
        request_timeout_ms=request_timeout_ms,
        retry_backoff_ms=random.choice((1, 5, 20)),
        shutdown_timeout_ms=scaled(random, timeout_ms, (0.5, 2.0)),
        propose_interval_ms=burst_max * scaled(random, timeout_ms, (0.1, 0.25, 0.5)),
        burst_max=burst_max,
        observers_sync=random.random() < 0.5,
        bytes_max=random.choice((8 << 20, 2000, 300)),
        snapshots=_draw_snapshots(random, timeout_ms),
        safety_ms=timeout_ms * random.randint(20, 60),
        links=_draw_links(random, timeout_ms),
        disks=_draw_disks(random, timeout_ms),
        drift_ppm_max=random.choice((0, 0, 1_000, 50_000)),
        clock_jump=random.choice((0.0, 0.0, 0.2)),
        nemesis_ms=_draw_nemesis(random, timeout_ms, density)
        | _draw_changes(random, timeout_ms, kraft_version),
        down_ms=scaled(random, timeout_ms, (0.05, 0.3, 1.0, 3.0)),
        cut_ms=scaled(random, timeout_ms, (0.5, 2.0, 6.0, 20.0)),
        pause_ms=scaled(random, timeout_ms, (0.5, 2.0, 5.0)),
        ambush=random.choice((0.0, 0.0, 0.01, 0.05)),
        read_interval_ms=random.choice((0, 0, scaled(random, timeout_ms, (0.02, 0.1)))),
    )


def _draw_nemesis(random: Random, timeout_ms: int, density: float) -> dict[str, int]:
    """Logs that part ways are worth having beside everything else.

    The more kinds meet, the rarer each is: a quorum that never commits anything proves nothing.
    """
    drawn = {kind for kind in NEMESIS_KINDS if random.random() < density}
    if random.random() < 0.4:
        drawn.add("isolate-controller")
    unit_ms = timeout_ms * max(3, len(drawn)) // 3
    return {
        kind: scaled(random, unit_ms, _SELDOM if kind in _LOSSES else (2.0, 5.0, 10.0, 20.0))
        for kind in NEMESIS_KINDS
        if kind in drawn
    }


def _draw_changes(random: Random, timeout_ms: int, kraft_version: int) -> dict[str, int]:
    """Most moments are bad ones for another voter, so there are many."""
    if kraft_version == 0 or random.random() < 0.1:
        return {}
    return {"voters": scaled(random, timeout_ms, (0.1, 0.3, 1.0))}


def _draw_links(random: Random, timeout_ms: int) -> LinkFaults:
    return LinkFaults(
        delay_us_min=random.choice((10, 100)),
        delay_us_mean=scaled(random, timeout_ms * 1000, (0.002, 0.01, 0.05, 0.1, 0.3)),
        loss=random.choice((0.0, 0.0, 0.01, 0.1, 0.3)),
        duplication=random.choice((0.0, 0.0, 0.05, 0.3)),
        reordering=random.choice((0.0, 0.0, 0.05, 0.3)),
        slow=random.choice((0.0, 0.0, 0.02, 0.1)),
        slow_us=scaled(random, timeout_ms * 1000, (1.0, 3.0)),
    )


def _draw_snapshots(random: Random, timeout_ms: int) -> SnapshotSettings:
    """Batches have some hundred bytes, so that a run takes none, a few, or very many."""
    return SnapshotSettings(
        bytes_between=random.choice((20 << 20, 5_000, 1_000, 200, 200)),
        interval_ms=scaled(random, timeout_ms, (0.0, 5.0, 1_000.0)) - 1,
        retention_bytes=random.choice((-1, 20_000, 3_000, 500, 500)),
        retention_ms=random.choice((-1, 20 * timeout_ms, 5 * timeout_ms)),
        fetch_max_bytes=random.choice((1 << 20, 500, 100)),
    )


def _draw_disks(random: Random, timeout_ms: int) -> DiskFaults:
    return DiskFaults(
        inline_syncs=True,
        sync_us_min=50,
        sync_us_mean=scaled(random, timeout_ms * 1000, (0.002, 0.01, 0.05, 0.2)),
        write_failure=random.choice((0.0, 0.0, 0.0, 0.001, 0.005)),
        fsync_failure=random.choice((0.0, 0.0, 0.0, 0.001, 0.01)),
        torn_write=random.choice((0.0, 0.5, 1.0)),
        short_read=random.choice((0.0, 0.5)),
        segment_batches=random.choice((1, 5, 20)),
        snapshot_syncs=random.choice((1, 10, 50)),
    )


def draw_storage(options: Options, random: Random, *, is_wanted: bool = False) -> Options:
    """Perhaps let the shipped storage run, surely if it is wanted.

    `random` is a stream of its own.
    """
    if random.random() >= _SHIPPED_STORAGE and not is_wanted:
        return options
    mean_us = options.disks.sync_us_mean
    static = range(1, options.voters + 1) if options.kraft_version == 0 else ()
    files = FileOptions(
        segment_bytes=random.choice((500, 2_000, 10_000)),
        preallocate_bytes=random.choice((0, 1_024, 4_096)),
        descriptors_max=random.choice((3, 100)),
        inline_sync_us=random.choice((0, mean_us, 4 * mean_us)),
        dies_at_start=random.choice((0.0, 0.3)),
        flips=0.3,
        voters=tuple(static),
    )
    disks = replace(
        options.disks,
        fsync_failure=random.choice((0.0, 0.002, 0.02)),
        read_failure=random.choice((0.0, 0.0005, 0.005)),
    )
    return replace(options, files=files, disks=disks)


def scaled(random: Random, unit: int, factors: Sequence[float]) -> int:
    """One of these multiples."""
    return max(1, round(unit * random.choice(factors)))
