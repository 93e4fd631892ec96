"""Where new replicas go: striped over racks and brokers, from a random start.

Each partition takes its replicas from successive racks and, inside a rack, from successive
brokers; the next partition begins one rack and one broker further on. Fenced brokers are used only
where a rack has no other left, and never for the first replica. Brokers in controlled shutdown
get nothing, nor do those whose directories are all cordoned. A broker without a rack is in the rack
of those without one.

Source: Kafka's StripedReplicaPlacer; KIP-631, KIP-1066.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice
from math import lcm
from random import Random
from uuid import UUID

from controller.metadata.image import BrokerImage, MetadataImage
from wire.primitives import DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED

__all__ = ["NoPlacement", "directory_on", "place_replicas", "usable_brokers"]


class NoPlacement(Exception):
    """The brokers cannot hold so many replicas; the text says why, to the client."""


def usable_brokers(image: MetadataImage) -> tuple[BrokerImage, ...]:
    """Brokers that may get replicas, in order of id; fenced ones among them."""
    return tuple(
        broker
        for _, broker in sorted(image.brokers.items())
        if not broker.in_controlled_shutdown and broker.takes_replicas
    )


def directory_on(broker: BrokerImage | None) -> UUID:
    """The directory of a new replica: the only one there is, or for the broker to choose."""
    if broker is None or len(broker.log_dirs) > 1:
        return DIRECTORY_UNASSIGNED
    return broker.log_dirs[0] if broker.log_dirs else DIRECTORY_MIGRATING


def place_replicas(
    brokers: Sequence[BrokerImage], *, partition_count: int, replication_factor: int, random: Random
) -> tuple[tuple[int, ...], ...]:
    """The replicas of each partition, the preferred leader first. Raises NoPlacement."""
    assert replication_factor > 0, replication_factor
    if replication_factor > len(brokers):
        raise NoPlacement(
            f"A replication factor of {replication_factor} needs as many brokers, and only "
            f"{len(brokers)} can take replicas. Start more brokers, or ask for fewer replicas."
        )
    if all(broker.fenced for broker in brokers):
        raise NoPlacement(
            f"All {len(brokers)} brokers are fenced, so no replica could lead. "
            f"Wait until a broker has come up, and try again."
        )
    racks = _Racks.of(brokers, random)
    different = min(partition_count, racks.period)
    found = [racks.next_partition(replication_factor) for _ in range(different)]
    return tuple(islice(cycle(found), partition_count))


@dataclass(slots=True)
class _Ring:
    """Brokers taken in turn: each at most once a partition, the start one further each time."""

    brokers: list[int]
    start: int
    taken: int = 0

    def next_partition(self) -> None:
        self.taken = 0
        if self.brokers:
            self.start = (self.start + 1) % len(self.brokers)

    def take(self) -> int | None:
        if self.taken == len(self.brokers):
            return None
        self.taken += 1
        return self.brokers[(self.start + self.taken - 1) % len(self.brokers)]


@dataclass(slots=True)
class _Rack:
    unfenced: _Ring
    fenced: _Ring

    @classmethod
    def of(cls, brokers: Iterable[BrokerImage], random: Random) -> "_Rack":
        unfenced = sorted(broker.id for broker in brokers if not broker.fenced)
        fenced = sorted(broker.id for broker in brokers if broker.fenced)
        return cls(_ring(unfenced, random), _ring(fenced, random))

    def next_partition(self) -> None:
        self.unfenced.next_partition()
        self.fenced.next_partition()

    def take(self) -> int | None:
        broker = self.unfenced.take()
        return self.fenced.take() if broker is None else broker


def _ring(brokers: list[int], random: Random) -> _Ring:
    return _Ring(brokers, random.randrange(len(brokers)) if brokers else 0)


@dataclass(slots=True)
class _Racks:
    racks: list[_Rack]
    start: int
    placed: int = field(default=0)

    @classmethod
    def of(cls, brokers: Sequence[BrokerImage], random: Random) -> "_Racks":
        by_rack: dict[str | None, list[BrokerImage]] = {}
        for broker in brokers:
            by_rack.setdefault(broker.rack, []).append(broker)
        names = sorted(by_rack, key=lambda name: (name is not None, name or ""))
        racks = [_Rack.of(by_rack[name], random) for name in names]
        return cls(racks, random.randrange(len(racks)))

    @property
    def period(self) -> int:
        """After so many partitions all starting points are where they were."""
        rings = (ring for rack in self.racks for ring in (rack.unfenced, rack.fenced))
        return lcm(len(self.racks), *(len(ring.brokers) or 1 for ring in rings))

    def next_partition(self, replication_factor: int) -> tuple[int, ...]:
        for rack in self.racks:
            rack.next_partition()
        at = self.start
        self.start = (self.start + 1) % len(self.racks)
        replicas: list[int] = []
        while not replicas:  # some rack has an unfenced broker: the caller has checked
            first = self.racks[at].unfenced.take()
            replicas = [] if first is None else [first]
            at = (at + 1) % len(self.racks)
        while len(replicas) < replication_factor:
            broker = self.racks[at].take()
            if broker is not None:
                replicas.append(broker)
            at = (at + 1) % len(self.racks)
        return tuple(replicas)
