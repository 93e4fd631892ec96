"""A simulated world: virtual time, a network, disks and their logs, nodes, and who looks on.

A node is given a function that makes its core; a client is a node that no observer looks at. The
assemblies put nodes into a world: a quorum alone, whole clusters and the designs on ZooKeeper
(`jepsen_like.sim.assemblies`), and registers (`jepsen_like.sim.chaos.workload_stages`). The
injectors of `jepsen_like.sim.faults` break it.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from hashlib import blake2b
from struct import Struct

from jepsen_like.sim.disks.disk import Disk
from jepsen_like.sim.disks.node_disk import DiskFaults
from jepsen_like.sim.disks.shipped_disk import FileOptions, NodeDisk, ShippedDisk
from jepsen_like.sim.logs.logtree import LogTrees, Tolerance
from jepsen_like.sim.time.deadline_timer import Clock
from jepsen_like.sim.time.pace import TURNS_US
from jepsen_like.sim.time.virtual_time import Streams, VirtualTime
from jepsen_like.sim.world.codec import Codec
from jepsen_like.sim.world.host import Host
from jepsen_like.sim.world.network import LinkFaults, Message, Network
from jepsen_like.sim.world.observer import Observer, Observers, tolerated
from jepsen_like.sim.world.releases import Releases
from quorum.core.effects import Core, Effect

__all__ = ["Digest", "World"]

_POLL_US = 2_000  # how often `reaches` looks
_NOBODY = Observers()


class World(VirtualTime):
    def __init__(
        self,
        seed: int,
        *,
        links: LinkFaults | None = None,
        disks: DiskFaults | None = None,
        files: FileOptions | None = None,
        turns_us: tuple[int, ...] = TURNS_US,
        prioritises: bool = True,
        is_judged: bool = True,
        streams: Streams | None = None,
    ) -> None:
        """`files`: the shipped storage runs on them; None: all disks are models.

        `prioritises`: as in `Host`. Not judged: judges say nothing.
        """
        super().__init__(seed, streams)
        self.network = Network(
            world=self,
            random=self.fork("network"),
            faults=links or LinkFaults(),
            deliver=self.deliver,
        )
        self._speech: Codec | None = None
        self.nodes: dict[int, Host] = {}
        self.hosts: dict[int, Host] = {}  # those of clients, too
        self.tolerance = None if is_judged else Tolerance()
        self.delivers_elsewhere: dict[int, Callable[[Message], None]] = {}  # by address
        self._observers = Observers()
        self._trees = LogTrees(self.tolerance)
        self._disks = disks or DiskFaults()
        self._files = files
        self._turns_us = turns_us
        self._prioritises = prioritises

    # --- who is there -------------------------------------------------------------------

    def add(
        self,
        node_id: int,
        start: Callable[[Host], Core],
        *,
        clock: Clock | None = None,
        listener: str = "CONTROLLER",
    ) -> Host:
        """A node. `start`: a new process of it, on what its disk holds."""

        def start_observed(host: Host) -> Core:
            core = start(host)
            self._observers.started(host)
            return core

        host = self._host(node_id, start_observed, self._observers, clock or Clock(), listener)
        host.disk.saved = lambda _log, election: self._observers.saved(host, election)
        host.must_not_stop = self.tolerance is None
        self.nodes[node_id] = host
        return host

    def add_client(self, core: Core, listener: str = "CONTROLLER") -> Host:
        """A host that nobody judges: clients judge."""
        return self._host(max(self.hosts) + 1, lambda _host: core, _NOBODY, Clock(), listener)

    def _host(
        self,
        node_id: int,
        start: Callable[[Host], Core],
        watch: Observers,
        clock: Clock,
        listener: str,
    ) -> Host:
        host = self.hosts[node_id] = Host(
            node_id=node_id,
            world=self,
            network=self.network,
            disk=self._disk(node_id, has_storage=watch is not _NOBODY),
            clock=clock,
            speech=self._speech,
            watch=watch,
            start_core=start,
            listener=listener,
            turns_us=self._turns_us,
            prioritises=self._prioritises,
        )
        return host

    def _disk(self, node_id: int, *, has_storage: bool) -> NodeDisk:
        """A client stores nothing."""
        if self._files is None or not has_storage:
            return self._model_disk(node_id)
        return ShippedDisk(
            world=self,
            random=self.fork(f"files/{node_id}"),
            faults=self._disks,
            options=self._files,
            tree_of=self._trees.of,
            beside=self._model_disk(node_id),
        )

    def _model_disk(self, node_id: int) -> Disk:
        return Disk(
            world=self,
            random=self.fork(f"disk/{node_id}"),
            faults=self._disks,
            tree_of=self._trees.of,
        )

    def speak(self, codec: Codec, *, nodes: Sequence[int], kraft_version: int = 0) -> None:
        """Nodes that are added from now on send bytes, perhaps those of an older release."""
        self._speech = codec
        self.observe(Releases(codec, self, nodes=nodes, kraft_version=kraft_version))

    def deliver(self, message: Message) -> None:
        host = self.hosts.get(message.target)
        deliver = self.delivers_elsewhere[message.target] if host is None else host.deliver
        deliver(message)

    # --- who looks on -------------------------------------------------------------------

    def observe(self, observer: Observer) -> None:
        self._observers.add(observer)

    def ignore(self, observer: Observer) -> None:
        self._observers.remove(observer)

    def judge(self, observer: Observer) -> None:
        """What it raises ends the run, or nothing where the world is not judged."""
        self.observe(observer if self.tolerance is None else tolerated(observer, self.tolerance))

    @property
    def judging(self) -> AbstractContextManager[object]:
        """Within it, a judge is asked at another moment."""
        return nullcontext() if self.tolerance is None else self.tolerance

    # --- time ---------------------------------------------------------------------------

    def wait_for(
        self, missing: Callable[[], str], bound_ms: int, *, events_max: int, every_us: int
    ) -> str:
        """Run until nothing is missing, or the bound is over; returns what is missing then."""
        end_us = self.now_us + bound_ms * 1000
        while (why := missing()) and self.now_us < end_us:
            self.run_until(min(end_us, self.now_us + every_us), events_max=events_max)
        return why

    def reaches(self, condition: Callable[[], bool], bound_ms: int, events_max: int) -> bool:
        """Does it come to hold within the bound?"""

        def missing() -> str:
            return "" if condition() else "it"

        return not self.wait_for(missing, bound_ms, events_max=events_max, every_us=_POLL_US)


class Digest(Observer):
    """The digest of all that has happened: each turn, with some numbers of its node."""

    def __init__(self, world: World, state_of: Callable[[Host], tuple[int, ...]]) -> None:
        """`state_of`: as many numbers of 64 bits for each host."""
        self._world = world
        self._state_of = state_of
        self._hash = blake2b(digest_size=8)
        self._packed: Struct | None = None

    def settled(self, host: Host, effects: list[Effect]) -> None:
        state = self._state_of(host)
        if self._packed is None:
            self._packed = Struct(f">{2 + len(state)}q")
        turn = host.node_id << 32 | len(effects)
        self._hash.update(self._packed.pack(self._world.now_us, turn, *state))

    def __str__(self) -> str:
        return self._hash.hexdigest()
