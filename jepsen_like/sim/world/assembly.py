"""The base of all assemblies: nodes in a world, as injectors of faults and chaos runs see them."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

from broker.broker import Broker
from controller.metadata.image import MetadataImage
from jepsen_like.faults.fault import Injector
from jepsen_like.sim.world.host import Host
from jepsen_like.sim.world.world import Digest, World

__all__ = ["AnyAssembly", "Assembly", "Running"]


class Running(Protocol):
    """A running process."""

    def shut_down(self, now_ms: int) -> None:
        """Begin an orderly stop, as SIGTERM asks for."""

    def resign(self, now_ms: int) -> None:
        """Give up leading."""


Node = TypeVar("Node", bound=Running)


class Assembly(Generic[Node]):
    """`nodes`: the process that each node has run last. A node without the role that is asked for
    yields None, 0 or ()."""

    controllers: Sequence[int] = ()
    brokers: Sequence[int] = ()
    zookeepers: Sequence[int] = ()  # servers of ZooKeeper, as faults name them
    keeps_power: Collection[int] = ()  # nodes that a power failure kills: what is unsynced stays
    injectors: Mapping[str, Injector] = {}  # of kinds that it treats, or refuses, by itself

    def __init__(self, world: World, state_of: Callable[[Host], tuple[int, ...]]) -> None:
        """`state_of`: see `Digest`."""
        self.world = world
        self.counts, self.network = world.counts, world.network
        self.nodes: dict[int, Node] = {}
        self.digest = Digest(world, state_of)
        world.observe(self.digest)

    def node_of(self, host: Host) -> Node:
        return self.nodes[host.node_id]

    def shut_down(self, node: int) -> None:
        """Ask a process to stop in good order."""
        self.world.nodes[node].command(self.nodes[node].shut_down)

    def resign(self, node: int) -> None:
        """Make a leader resign."""
        self.world.nodes[node].command(self.nodes[node].resign)

    def wipe(self, node: int) -> None:
        """Take away what a node that is down has stored."""
        self.world.nodes[node].disk.wipe()

    # --- state ----------------------------------------------------------------------------

    def missing(self) -> str:
        """What is not whole yet, for people; "" if nothing is missing. Only stages tell."""
        raise NotImplementedError

    @property
    def active_controller(self) -> int | None:
        return None

    @property
    def epoch(self) -> int:
        """The newest epoch of the controllers that a running node knows."""
        return 0

    def broker(self, node: int) -> Broker | None:
        """The broker that runs on this node; None while it is down."""
        return None

    def image(self, node: int) -> MetadataImage | None:
        """What the node knows to be committed; None if it cannot say so."""
        broker = self.broker(node)
        return None if broker is None else broker.cluster.image

    def partition_leaders(self) -> set[int]:
        """The brokers that take themselves for the leader of some partition."""
        running = {node: self.broker(node) for node in self.brokers}
        return {node for node, broker in running.items() if broker and len(broker.leaders)}


AnyAssembly = Assembly[Any]  # whatever its nodes are
