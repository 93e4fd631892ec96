"""Clients of `kafka` that do anything their protocol allows, and the histories that they write.

They send, poll one key or several, assign with a seek to anywhere, subscribe and are moved, crash
at any event, commit, and take over the id of a producer. Values look alike. Times may be equal.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from jepsen_like.histories.history import History, Value
from tests.agreement.kafka import KEYS, Fenced, Kafka, Record
from tests.jepsen_like.play import Play

__all__ = ["Wishes", "kafka_history"]

ALIKE: tuple[Value, ...] = (1, "1", True, 1.0, None, "", "true", 2, 0, False, "nil")
_PRODUCERS = (7, 8)
GROUP = "readers"


@dataclass(frozen=True, slots=True)
class Wishes:
    """How often a client asks for each: the keys are `send`, `poll`, `txn`, and so on."""

    workload: str
    weights: dict[str, int]


@dataclass(slots=True)
class _Client:
    positions: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KEYS, 0))
    is_moved: bool = False  # it has subscribed
    producer: tuple[int, int] | None = None
    sequences: dict[str, int] = field(default_factory=dict)
    generation: int = 1
    open: "_Open | None" = None


@dataclass(slots=True)
class _Open:
    """An operation: its steps are done one by one, its end is one more."""

    f: str
    argument: Value
    extra: dict[str, Value]
    told: list[Value] = field(default_factory=list)
    more: dict[str, Value] = field(default_factory=dict)  # told with its end
    sent: list[tuple[str, Record]] = field(default_factory=list)
    read_to: dict[str, int] = field(default_factory=dict)
    has_failed: bool = False
    is_done: bool = False


class _Session:
    def __init__(self, wishes: Wishes, random: Random, lying: float) -> None:
        self.wishes, self.random = wishes, random
        self.is_idempotent = random.random() < 0.8 or wishes.workload == "kafka"
        is_isolated = "txn" in wishes.weights and random.random() < 0.3
        self.is_atomic = is_isolated and not (lying and random.random() < 0.5)
        options = {"idempotent": self.is_idempotent, "isolated_writes": is_isolated}
        self.play = Play(workload=wishes.workload, options=options)
        self.kafka = Kafka(random, lying, reads_open=bool(lying) and random.random() < 0.4)
        self.values = {key: self._mixed_values() for key in KEYS}
        self.asked_commits: dict[str, int] = {}
        self.is_sequenced = random.random() < 0.5

    def _mixed_values(self) -> list[Value]:
        values = [*ALIKE, *range(10, 40)]
        head = values[: self.random.choice([4, len(ALIKE)])]
        return self.random.sample(head, len(head)) + values[len(ALIKE) :]

    # --- what is asked ----------------------------------------------------------------------------

    def ask(self, client: _Client) -> _Open:
        f = self.random.choices([*self.wishes.weights], [*self.wishes.weights.values()])[0]
        keys = self.random.sample(KEYS, self.random.choice([1, 1, 2]))
        match f:
            case "send":
                return self._send(client, keys[0])
            case "poll":
                return _Open(f, [["poll"]] * self.random.choice([1, 1, 1, 2]), {})
            case "txn":
                return _Open(f, [self._step() for _ in range(self.random.choice([1, 2, 3]))], {})
            case "assign" | "subscribe":
                seeks = ["beginning", "beginning", "end", self.random.randrange(4), None]
                seek = self.random.choice([*seeks, *self._committed_seeks()])
                group = {"group": GROUP} if f"{seek}".startswith("committed") else {}
                return _Open(f, keys, group if seek is None else {**group, "seek": seek})
            case "commit":
                return self._commit(client, keys)
            case "committed" | "committed-stale":
                return _Open(f, keys, {"group": GROUP})
            case _:
                return _Open(f, None, {})

    def _committed_seeks(self) -> list[str]:
        if "commit" not in self.wishes.weights:
            return []
        return ["committed", "committed", "committed-stale"]

    def _step(self) -> list[Value]:
        if self.random.random() < 0.4:
            return ["poll"]
        key = self.random.choice(KEYS)
        return ["send", key, self.values[key].pop(0)]

    def _send(self, client: _Client, key: str) -> _Open:
        extra: dict[str, Value] = {}
        if self.is_sequenced and self.is_idempotent:
            if client.producer is None or self.random.random() < 0.1:
                name = self.random.choice(_PRODUCERS)
                self.kafka.epochs[name] += 1
                client.producer, client.sequences = (name, self.kafka.epochs[name]), {}
            number = client.sequences.get(key, 0)
            if self.kafka.lies(0.3):
                number = max(0, number + self.random.choice([-1, 1]))
            extra = {"producer": [*client.producer], "sequence": number}
        return _Open("send", [["send", key, self.values[key].pop(0)]], extra)

    def _commit(self, client: _Client, keys: list[str]) -> _Open:
        if self.random.random() < 0.3:
            if self.random.random() < 0.4:
                self.kafka.generation += 1
                self.asked_commits = {}
            client.generation = self.kafka.generation
        offsets = {}
        for key in keys:
            least = self.asked_commits.get(key, 0)
            wanted = client.positions.get(key, 0) + self.random.choice([0, 0, 1])
            offsets[key] = wanted if self.kafka.lies() else max(least, wanted)
            if client.generation == self.kafka.generation:
                self.asked_commits[key] = max(least, offsets[key])
        return _Open("commit", offsets, {"group": GROUP, "generation": client.generation})

    # --- what is done -----------------------------------------------------------------------------

    def do(self, client: _Client, asked: _Open) -> None:
        """The next step of it, or its end."""
        try:
            self._do(client, asked)
            while self.is_atomic and not asked.is_done:
                self._do(client, asked)
        except Fenced:
            asked.has_failed = asked.is_done = True
            self.kafka.settle((record for _, record in asked.sent), is_committed=False)

    def _do(self, client: _Client, asked: _Open) -> None:
        match asked.f:
            case "send" | "poll" | "txn":
                if len(asked.told) < len(asked.argument):
                    step = asked.argument[len(asked.told)]
                    asked.told.append(
                        self._read(client, asked) if step[0] == "poll" else self._write(asked, step)
                    )
                    if asked.f == "txn" or len(asked.told) < len(asked.argument):
                        return
                self._commit_records(client, asked)
            case "assign" | "subscribe":
                self._seek(client, asked)
            case "commit":
                self.kafka.commit(asked.argument, asked.extra["generation"])
            case "committed" | "committed-stale":
                node = self.random.choice([1, 2]) if asked.f == "committed-stale" else None
                told = {key: self.kafka.committed(key, node) for key in asked.argument}
                is_told = node is not None and self.random.random() < 0.8
                asked.more = {"value": told, **({"node": node} if is_told else {})}
            case "crash":
                client.positions, client.is_moved = dict.fromkeys(KEYS, 0), False
        asked.is_done = True

    def _write(self, asked: _Open, step: list[Value]) -> Value:
        _, key, value = step
        name_and_epoch = asked.extra.get("producer")
        producer = None if name_and_epoch is None else (name_and_epoch[0], name_and_epoch[1])
        record = self.kafka.append(key, value, producer)
        asked.sent.append((key, record))
        if not self.is_idempotent and self.random.random() < 0.3:
            asked.sent.append((key, self.kafka.append(key, value)))
        offset = self.random.choice(
            [each for its, each in asked.sent if its == key and repr(each.value) == repr(value)]
        ).offset
        if self.kafka.lies(0.1):
            offset = max(0, record.offset + self.random.choice([-1, 1]))
        return ["send", key, [None if self.random.random() < 0.1 else offset, value]]

    def _commit_records(self, client: _Client, asked: _Open) -> None:
        self.kafka.settle((record for _, record in asked.sent), is_committed=True)
        if asked.f == "txn":
            for key in {key for key, _ in asked.sent}:
                self.kafka.mark(key)
        if "sequence" in asked.extra:
            client.sequences[asked.sent[0][0]] = asked.extra["sequence"] + 1
        client.positions |= asked.read_to

    def _read(self, client: _Client, asked: _Open) -> Value:
        polled: dict[str, Value] = {}
        kafka, random = self.kafka, self.random
        for key in [each for each in client.positions if random.random() < 0.8]:
            begin = asked.read_to.get(key, client.positions[key])
            is_moved = client.is_moved and random.random() < 0.3
            if is_moved:
                begin = random.randrange(begin + 1)
            if kafka.lies(0.3):
                begin = max(0, begin + random.choice([-1, 1]))
            found = [each for each in kafka.readable(key) if each.offset >= begin]
            found = found[: random.choice([0, 1, 2, 9])]
            if kafka.lies(0.2):
                random.shuffle(found)
            polled[key] = [[each.offset, self._misread(each.value)] for each in found]
            asked.read_to[key] = found[-1].offset + 1 if found else begin
            if is_moved:
                back = random.randrange(begin + 1)
                again = [each for each in kafka.readable(key) if each.offset >= back][:2]
                polled[key] += [[each.offset, each.value] for each in again]
                moved = asked.more.get("rebalance-log", [])
                asked.more["rebalance-log"] = [*moved, {"keys": [key]}]
        if random.random() < 0.3:
            told = random.sample(KEYS, random.choice([1, 2]))
            asked.more["ends"] = {key: kafka.end(key) for key in told}
        positions = {**client.positions, **asked.read_to}
        if not client.is_moved and all(map(self._is_at_end, positions.items())):
            asked.more["caught_up"] = True
        else:
            asked.more.pop("caught_up", None)
        return ["poll", polled]

    def _is_at_end(self, item: tuple[str, int]) -> bool:
        key, position = item
        if self.kafka.lies(0.1):
            return True
        return self.kafka.is_settled(key) and not any(
            each.offset >= position for each in self.kafka.logs[key] if each.is_there
        )

    def _misread(self, value: Value) -> Value:
        if not self.kafka.lies(0.05):
            return value
        return self.random.choice([*ALIKE, 77])

    def _seek(self, client: _Client, asked: _Open) -> None:
        seek, keeps = asked.extra.get("seek"), asked.f == "assign" and not client.is_moved
        positions = {}
        for key in asked.argument:
            match seek:
                case None:
                    positions[key] = client.positions.get(key, 0) if keeps else 0
                case "beginning":
                    positions[key] = 0
                case "end":
                    positions[key] = self.kafka.ends[key]
                case "committed" | "committed-stale":
                    at = self.kafka.committed(key, 3 if seek == "committed-stale" else None)
                    if at is None:
                        asked.has_failed = True
                        return
                    positions[key] = at
                case _:
                    positions[key] = seek
        client.positions, client.is_moved = positions, asked.f == "subscribe"

    def give_up(self, asked: _Open, *, is_late: bool) -> None:
        """What it has sent so far is aborted, or committed although nobody is told; or it comes
        only now."""
        if is_late and not asked.is_done and asked.f in ("send", "commit"):
            self.do(_Client(), asked)
        is_committed = is_late and len(asked.told) == len(asked.argument or [])
        self.kafka.settle((record for _, record in asked.sent), is_committed=is_committed)

    # --- how it goes on ---------------------------------------------------------------------------

    def history(self) -> History:
        random, play = self.random, self.play
        unknown = random.choice([0.0, 0.0, 0.15, 0.3])
        names = list(range(random.choice([2, 3, 4])))
        clients = {name: _Client() for name in names}
        late: list[_Open] = []
        for _ in range(random.randint(12, 50)):
            if late and random.random() < 0.3:
                self.give_up(late.pop(), is_late=random.random() < 0.5)
            place = random.randrange(len(names))
            process = names[place]
            client = clients[process]
            asked = client.open
            if asked is None:
                asked = client.open = self.ask(client)
                play.invoke(process, asked.f, asked.argument, **asked.extra)
            elif random.random() < unknown:
                late.append(asked)
                play.info(process)
                names[place] += len(names)
                clients[names[place]] = _Client()
            elif not asked.is_done:
                if not asked.sent and random.random() < 0.1:
                    asked.has_failed = asked.is_done = True
                else:
                    self.do(client, asked)
            else:
                self._ended(process, asked)
                client.open = None
        self._read_all()
        return replace(play.history, ops=self._timed())

    def _ended(self, process: int, asked: _Open) -> None:
        if asked.has_failed:
            self.play.fail(process)
            return
        more = dict(asked.more)
        value: Any = more.pop("value", asked.told or None)
        self.play.ok(process, value, **more)

    def _read_all(self) -> None:
        """In most histories somebody reads everything at the end."""
        if self.random.random() < 0.3 or not all(map(self.kafka.is_settled, KEYS)):
            return
        polled = {
            key: [[each.offset, each.value] for each in self.kafka.readable(key)] for key in KEYS
        }
        self.play.read_all(1000, polled)

    def _timed(self) -> list[Any]:
        """As they are, or several lines at one time."""
        step = self.random.choice([1, 1, 3])
        return [replace(op, time_ns=op.time_ns // 1000 // step) for op in self.play.ops]


_LOG = {"send": 6, "poll": 6, "assign": 3, "subscribe": 1, "crash": 1}
_TXN = {**_LOG, "txn": 8}
_GROUPS = {"send": 4, "poll": 5, "assign": 4, "commit": 5, "committed": 2, "committed-stale": 1}
WISHES: dict[str, Wishes] = {
    "logs": Wishes("log", _LOG),
    "logs, transactions": Wishes("kafka", _TXN),
    "consumer groups": Wishes("kafka", _GROUPS),
    "producers": Wishes("kafka", {"send": 9, "poll": 3, "assign": 2}),
}
Change = Callable[[Random, History], History]


def kafka_history(wishes: Wishes, random: Random, lying: float) -> History:
    return _Session(wishes, random, lying).history()
