"""Random small histories for comparing ways to judge them: right ones, and broken in many ways."""

from dataclasses import dataclass, field
from random import Random
from typing import Any

from jepsen_like.histories.history import Header, History, Value
from tests.jepsen_like.play import Play

__all__ = ["random_history", "random_log"]

_PROCESSES = 4
_KEYS = ("chaos-0", "chaos-1", "other-0")


def random_history(seed: int) -> History:
    """Half of them have no lie in them, at most."""
    random = Random(seed)
    return _history(random.choice([_Log, _Log, _Log, _Registers, _Names])(random), seed)


def random_log(seed: int) -> History:
    return _history(_Log(Random(seed)), seed)


def _history(system: "_System", seed: int) -> History:
    random = system.random
    _play(system, random.randrange(4, 40))
    play = system.play
    if random.random() < 0.2:
        _observe(play, random)
    if random.random() < 0.04:
        for f, value, extra in (system.wish(), system.wish()):
            play.invoke("double", f, value, **extra)
    return History(
        header=Header(workload=play.workload, seed=seed, options=play.options), ops=play.ops
    )


def _play(system: "_System", steps: int) -> None:
    random, play = system.random, system.play
    names = list(range(_PROCESSES))
    open_now: dict[int, Any] = {}
    for _ in range(steps):
        place = random.randrange(_PROCESSES)
        process = names[place]
        if process not in open_now:
            open_now[process] = system.wish()
            f, value, extra = open_now[process]
            play.invoke(process, f, value, **extra)
            continue
        wish = open_now.pop(process)
        how = random.random()
        if how < 0.1:
            if random.random() < 0.5:
                system.done(process, wish)
            play.info(process)
            names[place] += _PROCESSES
        elif how < 0.15:
            if system.lies(0.2):
                system.done(process, wish)
            play.fail(process)
        else:
            result, extra = system.done(process, wish)
            play.ok(process, result, **extra)
    system.end()


def _observe(play: Play, random: Random) -> None:
    for node in range(3):
        told = {key: [random.choice([1, 1, 1, 2]), 1, node, [1, 2]] for key in _KEYS[:2]}
        play.invoke(f"node-{node}", "observe")
        play.ok(f"node-{node}", told)


@dataclass
class _System:
    random: Random
    play: Play = field(default_factory=Play)
    dishonesty: float = 0.0
    values: int = 0

    def __post_init__(self) -> None:
        self.dishonesty = self.random.choice([0.0, 0.0, 0.1, 0.4])

    def lies(self, probability: float = 1.0) -> bool:
        return self.random.random() < self.dishonesty * probability

    def new(self) -> Value:
        self.values += 1
        return self.values if self.values % 7 else f"value-{self.values}"

    def wish(self) -> tuple[str, Value, dict[str, Value]]:
        raise NotImplementedError

    def done(self, process: int, wish: Any) -> tuple[Value, dict[str, Value]]:
        raise NotImplementedError

    def end(self) -> None:
        """What is read at the very end."""


@dataclass
class _Log(_System):
    logs: dict[str, list[Value]] = field(default_factory=lambda: {key: [] for key in _KEYS})
    at: dict[tuple[int, str], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.play.options = {"idempotent": self.random.random() < 0.8}

    def wish(self) -> tuple[str, Value, dict[str, Value]]:
        match self.random.random():
            case chance if chance < 0.45:
                return "send", [["send", self.random.choice(_KEYS), self.new()]], {}
            case chance if chance < 0.6:
                two = [["send", self.random.choice(_KEYS), self.new()] for _ in range(2)]
                return "txn", [*two, ["poll"]] if self.lies() else [["poll"], *two], {}
            case chance if chance < 0.7:
                keys = self.random.sample(_KEYS, self.random.randint(1, len(_KEYS)))
                seeks: list[dict[str, Value]] = [{}, {"seek": "beginning"}, {"seek": "end"}]
                return "assign", keys, self.random.choice(seeks)
            case chance if chance < 0.73:
                return self.random.choice(["subscribe", "crash"]), list(_KEYS), {}
            case _:
                return "poll", [["poll"]], {}

    def done(self, process: int, wish: Any) -> tuple[Value, dict[str, Value]]:
        f, value, extra = wish
        if f not in ("send", "poll", "txn"):
            if extra:
                self.at = {where: at for where, at in self.at.items() if where[0] != process}
            if extra.get("seek") == "end":
                self.at |= {(process, key): len(self.logs[key]) for key in value}
            return value, {}
        return [self._step(process, step) for step in value], self._told()

    def _step(self, process: int, step: list[Any]) -> list[Any]:
        match step:
            case ["send", key, value]:
                log = self.logs[key]
                if not self.lies(0.3):
                    log.append(value)
                if self.lies(0.3):
                    log.append(value)
                offset = len(log) - 1 + self.lies(0.3)
                return ["send", key, [None if self.random.random() < 0.1 else offset, value]]
            case _:
                return ["poll", {key: self._read(process, key) for key in _KEYS if self._reads()}]

    def _reads(self) -> bool:
        return self.random.random() < 0.6

    def _read(self, process: int, key: str, count: int = 3) -> list[list[Any]]:
        begin = max(
            0, self.at.get((process, key), 0) + self.random.choice([-1, 1]) * self.lies(0.5)
        )
        log = self.logs[key]
        records = [[begin + each, value] for each, value in enumerate(log[begin : begin + count])]
        self.at[process, key] = begin + len(records)
        if records and self.lies(0.3):
            records.pop(self.random.randrange(len(records)))
        if records and self.lies(0.2):
            records[-1][1] = self.random.choice([-5, self.new(), *log])
        return records

    def _told(self) -> dict[str, Value]:
        if self.random.random() < 0.8:
            return {}
        ends = {key: max(0, len(log) - self.lies(0.5)) for key, log in self.logs.items()}
        return {"ends": ends}

    def end(self) -> None:
        for reader in (1001, 1002)[: self.random.randrange(3)]:
            self.play.read_all(reader, {key: self._read(reader, key, 1000) for key in _KEYS})


@dataclass
class _Registers(_System):
    now: dict[str, Value] = field(default_factory=dict)
    before: dict[str, Value] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.play.workload = self.random.choice(["register", "cas-register"])

    def wish(self) -> tuple[str, Value, dict[str, Value]]:
        key = self.random.choice(["a", "b", "c"])
        if self.random.random() < 0.5:
            f = self.random.choice(["read", "read", "read-stale"])
            return f, [key, None], {"node": 1} if f == "read-stale" else {}
        if self.play.workload == "cas-register" and self.random.random() < 0.5:
            return "cas", [key, [self.now.get(key), self.new()]], {}
        return "write", [key, self.new()], {}

    def done(self, process: int, wish: Any) -> tuple[Value, dict[str, Value]]:
        f, (key, value), _ = wish
        if f in ("read", "read-stale"):
            seen = self.before if self.lies(0.5) else self.now
            return [key, seen.get(key)], {}
        self.before[key] = self.now.get(key)
        self.now[key] = value[1] if f == "cas" else value
        return [key, value], {}


@dataclass
class _Names(_System):
    present: list[Value] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.play.workload = "set"

    def wish(self) -> tuple[str, Value, dict[str, Value]]:
        if self.random.random() < 0.4:
            return self.random.choice(["read", "read-stale"]), None, {"node": 1}
        if self.present and self.random.random() < 0.3:
            return "remove", self.present.pop(0), {}
        return "add", f"element-{self.new()}", {}

    def done(self, process: int, wish: Any) -> tuple[Value, dict[str, Value]]:
        f, value, _ = wish
        if f == "add" and not self.lies(0.3):
            self.present.append(value)
        return (list(self.present), {}) if f.startswith("read") else (value, {})
