"""A metadata log in memory, and controllers on it: an engine's twin. For tests only.

Several controllers share one log of batches. Each has seen a prefix; one may lead. What the leader
appends is committed when the test says so, or lost when it is deposed.
"""

from dataclasses import dataclass, field
from random import Random

from controller.config import ControllerConfig
from controller.controller import Controller
from quorum.core.effects import Effect, Reply, Request, Send, Stop
from quorum.core.types import Endpoint, LeaderAndEpoch
from wire.batch import assign, read_header
from wire.control_records import (
    KRaftVersion,
    LeaderChange,
    LeaderChangeVoter,
    encode_control_batch,
)

NOW_MS = 1_700_000_000_000


@dataclass(slots=True)
class Seat:
    """One controller's view of the shared log: the `MetadataLog` it is given."""

    node_id: int
    quorum: "Quorum"
    delivered: int = 0  # batches
    kraft_version: int = 0

    @property
    def leader(self) -> LeaderAndEpoch:
        return LeaderAndEpoch(self.quorum.leader_id, self.quorum.epoch)

    @property
    def high_watermark(self) -> int | None:
        return self.quorum.end_offset(self.quorum.committed)

    @property
    def end_offset(self) -> int:
        return self.quorum.end_offset(len(self.quorum.batches))

    def endpoint_of(self, node_id: int) -> Endpoint | None:
        return Endpoint(node_id, "localhost", 9000 + node_id)

    def append(self, batch: bytes, now_ms: int) -> int:
        assert self.quorum.leader_id == self.node_id, "only the leader appends"
        return self.quorum.append(batch)

    def resign(self, now_ms: int) -> None:
        assert self.quorum.leader_id == self.node_id, "only the leader resigns"
        self.quorum.leader_id = None

    @property
    def voter_ids(self) -> tuple[int, ...]:
        return tuple(sorted(self.quorum.controllers))

    def raise_kraft_version(self, version: int, now_ms: int) -> str | None:
        if self.quorum.cannot_raise is not None:
            return self.quorum.cannot_raise
        self.quorum.append(
            encode_control_batch([KRaftVersion(kraft_version=version)], timestamp_ms=now_ms)
        )
        for seat in self.quorum.seats.values():
            seat.kraft_version = version
        return None


@dataclass(slots=True)
class Quorum:
    batches: list[bytes] = field(default_factory=list)
    committed: int = 0  # batches
    epoch: int = 0
    leader_id: int | None = None
    now_ms: int = NOW_MS
    controllers: dict[int, Controller] = field(default_factory=dict)
    seats: dict[int, Seat] = field(default_factory=dict)
    replies: dict[int, object] = field(default_factory=dict)
    effects: list[Effect] = field(default_factory=list)
    requests: int = 0
    cannot_raise: str | None = None  # why kraft.version stays

    def add(self, config: ControllerConfig, seed: int = 1) -> Controller:
        node_id = config.node_id
        self.seats[node_id] = Seat(node_id, self)
        controller = Controller(config, self.seats[node_id], Random(seed), self.now_ms)
        self.controllers[node_id] = controller
        return controller

    def end_offset(self, batches: int) -> int:
        return read_header(self.batches[batches - 1]).next_offset if batches else 0

    def append(self, batch: bytes) -> int:
        base = self.end_offset(len(self.batches))
        self.batches.append(assign(batch, base_offset=base, leader_epoch=self.epoch))
        return self.end_offset(len(self.batches)) - 1

    @property
    def last_offset(self) -> int:
        return self.end_offset(len(self.batches)) - 1

    @property
    def active(self) -> Controller:
        assert self.leader_id is not None
        return self.controllers[self.leader_id]

    # --- what happens

    def elect(self, node_id: int, keep: int = 0) -> Controller:
        """A new leader, which has `keep` of the batches that were not committed."""
        if self.leader_id is not None:
            former, self.leader_id = self.active, None
            former.resign(self.now_ms)
            self.collect()
        del self.batches[self.committed + keep :]
        self.epoch += 1
        self.leader_id = node_id
        change = LeaderChange(
            leader_id=node_id,
            voters=tuple(LeaderChangeVoter(voter_id=other) for other in sorted(self.controllers)),
            granting_voters=(),
        )
        self.append(encode_control_batch([change], timestamp_ms=self.now_ms))
        self.commit()
        self.controllers[node_id].lead(self.epoch, self.now_ms)
        self.collect()
        return self.controllers[node_id]

    def commit(self, batches: int | None = None) -> None:
        """Commit that many batches more, or all; every controller hears of it."""
        more = len(self.batches) - self.committed if batches is None else batches
        self.committed = min(len(self.batches), self.committed + more)
        for node_id, seat in self.seats.items():
            new = self.batches[seat.delivered : self.committed]
            if new:
                seat.delivered = self.committed
                end = self.end_offset(self.committed)
                self.controllers[node_id].committed(b"".join(new), end, self.now_ms)
        self.collect()

    def ask(self, body: object, node_id: int | None = None) -> int:
        """Put a request to the active controller; its number, for `replies`."""
        self.requests += 1
        controller = self.active if node_id is None else self.controllers[node_id]
        controller.receive(Request(token=self.requests, body=body), self.now_ms)
        self.collect()
        return self.requests

    def answer(self, body: object, node_id: int | None = None) -> object:
        """Ask, commit everything, and take the answer."""
        number = self.ask(body, node_id)
        self.commit()
        return self.replies.pop(number)

    def pass_time(self, ms: int, *, commit: bool = True) -> None:
        self.now_ms += ms
        for controller in self.controllers.values():
            controller.tick(self.now_ms)
        self.collect()
        if commit:
            self.commit()

    def collect(self) -> None:
        for controller in self.controllers.values():
            for effect in controller.take_effects():
                self.effects.append(effect)
                match effect:
                    case Reply():
                        assert effect.token not in self.replies, "answered twice"
                        self.replies[effect.token] = effect.body
                    case Stop():
                        raise AssertionError(effect.reason)
                    case _:
                        pass

    def sent(self) -> list[Send]:
        return [effect for effect in self.effects if isinstance(effect, Send)]
