"""One commit of three voters, killed at every moment at which a process can die.

An undisturbed run says how many moments there are (`crash_points.py`); then the
commit is run again for each of them. There a voter dies, or all lose their power. Two voters go on
with what their disks kept; then the third comes back. Nothing acknowledged may be missing anywhere,
and no process may have shown what others do not have.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product

import pytest

from jepsen_like.planted.every_bug import planted
from jepsen_like.sim.assemblies.quorum.counting import ApplicationListener
from jepsen_like.sim.assemblies.quorum.quorum_options import Options
from jepsen_like.sim.assemblies.quorum.simulated_quorum import SimulatedQuorum
from jepsen_like.sim.disks.node_disk import DiskFaults
from jepsen_like.sim.time.pace import AT_ONCE
from jepsen_like.sim.violation import Crash, Stuck, Violation
from jepsen_like.sim.world.host import Host
from quorum.core.effects import Effect, Trace
from quorum.core.storage import METADATA_LOG
from tests.sim.crash_points import KINDS, CrashPoint, CrashPoints, Death
from tests.sim.watching import looking
from wire.batch import headers, records_of

EVENTS_MAX = 100_000
WAIT_MS = 2_000
OPTIONS = Options(
    election_timeout_ms=100,
    fetch_timeout_ms=200,
    fetch_max_wait_ms=50,
    election_backoff_max_ms=100,
    request_timeout_ms=100,
    propose_interval_ms=0,
)


def syncing(ms: int) -> DiskFaults:
    return DiskFaults(sync_us_min=ms * 1000, sync_us_mean=1)


@dataclass(frozen=True)
class Setting:
    """How fast the three disks sync while one record is committed, and how long events wait for a
    turn."""

    name: str
    disks: tuple[DiskFaults, DiskFaults, DiskFaults]  # the leader's comes first
    seed: int = 0  # which also draws what share of syncs is inline, and how events share turns
    turns_us: tuple[int, ...] = AT_ONCE
    left_to: str = ""  # "extra" or "long", instead of `make test`


INLINE = DiskFaults(inline_syncs=True)
SEVERAL = (10_000,)  # what comes in within 10 ms may be of one turn
SETTINGS = (
    Setting(
        "the leader's sync is the last",
        (syncing(20), syncing(1), syncing(10)),
        left_to="extra",
    ),
    Setting(
        "the leader's sync is the first", (syncing(1), syncing(10), syncing(20)), left_to="long"
    ),
    Setting("every sync is inline", (INLINE,) * 3, seed=1),
    Setting("some syncs are inline", (INLINE,) * 3, seed=3, left_to="long"),
    Setting(
        "turns have several events", (syncing(1),) * 3, seed=1, turns_us=SEVERAL, left_to="long"
    ),
)


MARKS = {"": [], "extra": [pytest.mark.extra], "long": [pytest.mark.long]}
each_setting = pytest.mark.parametrize(
    "setting",
    [
        pytest.param(
            setting,
            id=setting.name,
            marks=MARKS[setting.left_to],
        )
        for setting in SETTINGS
    ],
)


class Lost(AssertionError):
    """Something acknowledged is missing, or something was shown that others do not have."""


class Commit(ApplicationListener):
    """A quorum at rest, to which one record is proposed, and what its clients know."""

    def __init__(self, setting: Setting, *, dies_at: int | None = None, judged: bool = True):
        self.points = CrashPoints(dies_at)
        self.effects = 0  # in turns that ended since the commit began
        self.acknowledged: list[bytes] = []
        self.shown: dict[tuple[int, int], list[bytes]] = {}  # by node and incarnation
        self._proposed: dict[bytes, tuple[int, int, int]] = {}  # node, incarnation, epoch
        options = replace(OPTIONS, turns_us=setting.turns_us)
        self.quorum = quorum = SimulatedQuorum(setting.seed, options, self.points, is_judged=judged)
        quorum.clients = self
        quorum.world.observe(looking(settled=self._settled))
        quorum.start()
        self.leader = self._commit_one()
        self.others = [host for host in quorum.hosts if host is not self.leader]
        for host, disk in zip((self.leader, *self.others), setting.disks, strict=True):
            host.disk.faults = disk

    def play(self) -> None:
        """One more record, until all have it; raises `Death` where that was asked for."""
        self.effects = 0
        self.points.begin(self.quorum)
        self._commit_one()
        self.points.end()

    # --- what its clients know ----------------------------------------------------------

    def proposes(self, host: Host, values: list[bytes], last_offset: int) -> None:
        epoch = self.quorum.nodes[host.node_id].leader.epoch
        for value in values:
            self._proposed[value] = host.node_id, host.incarnation, epoch

    def applies(self, host: Host, batches: bytes, next_offset: int) -> None:
        """A process acknowledges what it proposed in an epoch that it still leads."""
        process = host.node_id, host.incarnation
        epoch = self.quorum.nodes[host.node_id].application.leads_epoch
        for value in values_in(batches):
            self.shown.setdefault(process, []).append(value)
            if self._proposed[value] == (*process, epoch):
                self.acknowledged.append(value)

    def _settled(self, _host: Host, effects: list[Effect]) -> None:
        self.effects += sum(not isinstance(effect, Trace) for effect in effects)

    # --- steps --------------------------------------------------------------------------

    def _commit_one(self) -> Host:
        """Propose a record and run until all that are up have it on disk and have applied it.

        Returns the leader.
        """
        quorum = self.quorum
        self._reach("L-EL", lambda: quorum.leader() is not None)
        leader = quorum.leading_host()
        before = len(self._proposed)
        quorum.propose()
        value = list(self._proposed)[before]
        self._reach("L-HW", lambda: all(self._has(host, value) for host in quorum.up()))
        return leader

    def _reach(self, bound: str, condition: Callable[[], bool]) -> None:
        if not self.quorum.world.reaches(condition, WAIT_MS, EVENTS_MAX):
            raise Stuck(bound, self.quorum.summary())

    def _has(self, host: Host, value: bytes) -> bool:
        shown = self.shown.get((host.node_id, host.incarnation), [])
        return value in shown and value in self._log_of(host)

    def survive(self, dead: list[Host], away: Host, *, power_loss: bool) -> None:
        """`dead` die now; all but `away` go on at once, and it comes back when they have."""
        for host in dead:
            host.disk.faults = DiskFaults(keeps_unsynced=False)
            host.crash(power_loss=power_loss)
        for host in dead:
            if host is not away:
                host.start()
        self._commit_one()
        away.start()
        self._commit_one()
        self._check()

    def _check(self) -> None:
        logs = [self._log_of(host) for host in self.quorum.hosts]
        if not logs[0] == logs[1] == logs[2]:
            raise Lost("the logs differ")
        missing = [value for value in self.acknowledged if value not in logs[0]]
        if missing:
            raise Lost(f"{len(missing)} of {len(self.acknowledged)} acknowledged records")
        for process, values in self.shown.items():
            if values != logs[0][: len(values)]:
                raise Lost(f"what process {process} has shown")

    def _log_of(self, host: Host) -> list[bytes]:
        """The values that would survive a power failure."""
        entries = host.disk.log(METADATA_LOG).durable.entries
        return values_in(b"".join(entry.records for entry in entries))


def values_in(batches: bytes) -> list[bytes]:
    return [
        record.value
        for position, header in headers(batches)
        if not header.is_control
        for record in records_of(batches[position : position + header.size_bytes])
        if record.value is not None
    ]


@dataclass(frozen=True)
class Outage:
    """What a crash point kills: the process that is at it, unless `away` says that all die."""

    name: str
    power_loss: bool = True
    away: int | None = None  # all die, and this one comes back last: the leader (0) or another


OUTAGES = (
    Outage("its process is killed", power_loss=False),
    Outage("its power fails"),
    *(Outage(f"all lose their power, {place} for longer", away=place) for place in range(3)),
)


def die(setting: Setting, at: int, outage: Outage, *, judged: bool = True) -> None:
    """Let a commit die at crash point number `at`; raises if the quorum does not survive it."""
    commit = Commit(setting, dies_at=at, judged=judged)
    with pytest.raises(Death) as death:
        commit.play()
    hosts = [commit.leader, *commit.others]
    owner = commit.quorum.hosts[death.value.point.node - 1]
    commit.survive(
        [owner] if outage.away is None else hosts,
        owner if outage.away is None else hosts[outage.away],
        power_loss=outage.power_loss,
    )


def deaths(commit: Commit) -> Iterator[tuple[int, Outage]]:
    """Every outage at every crash point of the commit."""
    return product(range(len(commit.points.passed)), OUTAGES)


@each_setting
def test_every_moment_of_a_commit_is_counted(setting: Setting) -> None:
    commit = Commit(setting)
    commit.play()
    points = commit.points.passed
    counts = Counter(point.kind for point in points)
    print(f"{setting.name}: {len(points)} crash points:", dict(counts))
    assert counts["write"] + counts["tell"] == commit.effects
    assert {(point.node, point.kind) for point in points} == set(product((1, 2, 3), KINDS))
    for kind, what in (("write", "Append"), ("begun", ""), ("due", ""), ("done", "")):
        at = sorted(point.node for point in points if (point.kind, point.what) == (kind, what))
        assert at == [1, 2, 3], f"each voter writes and syncs the record once: {kind}"
    told = Counter(point.what for point in points if point.kind in ("given", "tell"))
    assert told["Stored"] == 3
    fetches = 2 * 2  # each follower asks for what comes after the record, and after it is committed
    assert told["Send"] == told["Reply"] == told["Response"] == fetches
    assert told["Request"] >= fetches
    assert (largest_turn(points) > 1) == (setting.turns_us != AT_ONCE)


def largest_turn(points: Iterable[CrashPoint]) -> int:
    """The most events that one turn of a node has."""
    given: Counter[int] = Counter()  # by node, in the turn that it has not settled yet
    largest = 0
    for point in points:
        if point.kind == "given":
            given[point.node] += 1
            largest = max(largest, given[point.node])
        elif point.kind == "settled":
            given[point.node] = 0
    return largest


@each_setting
def test_a_commit_survives_a_death_at_any_moment(setting: Setting) -> None:
    commit = Commit(setting)
    commit.play()
    for at, outage in deaths(commit):
        try:
            die(setting, at, outage)
        except (Violation, Stuck, Crash, Lost) as error:
            pytest.fail(f"{outage.name} at {at}, {commit.points.passed[at]}: {error!r}")


@pytest.mark.parametrize(
    ("plant", "setting"),
    [("acknowledges_before_sync", SETTINGS[1]), ("counts_before_own_sync", SETTINGS[0])],
)
def test_without_its_sync_a_death_loses_what_was_acknowledged(plant: str, setting: Setting) -> None:
    """The undisturbed run loses nothing, whatever is planted: only a death shows it."""
    with planted(plant):
        commit = Commit(setting, judged=False)
        commit.play()
        found = next((death for death in deaths(commit) if loses(setting, *death)), None)
    assert found is not None
    print(f"{plant}: {found[1].name} at {found[0]}, {commit.points.passed[found[0]]}")


def loses(setting: Setting, at: int, outage: Outage) -> bool:
    try:
        die(setting, at, outage, judged=False)
    except Lost:
        return True
    return False
