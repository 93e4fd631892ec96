"""Plain registers replicated by the quorum alone: read, write, compare-and-set.

No broker and no topic takes part. A compare-and-set that finds another value fails and tells which:
`fail` with extra {"seen": v}. Values are ints that are written once.
Source: Jepsen's linearizable register.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from jepsen_like.histories.history import Kind, Op, Value
from jepsen_like.workloads.generator import Turns, Unique, mixed
from jepsen_like.workloads.workload import NewTopic, Wish
from jepsen_like.workloads.workload_options import WorkloadOptions

__all__ = ["CasRegister"]

KEYS = ("x", "y", "z")
_WEIGHTS = {"read": 40, "write": 20, "cas": 40}
_PAUSES = 3  # as long as a log's: many operations on one object make a long search


@dataclass(slots=True)
class CasRegister:
    options: WorkloadOptions
    name: str = "cas-register"
    _values: Unique = field(default_factory=Unique)
    _seen: dict[str, Value] = field(default_factory=dict)  # the last that anybody was told
    _turns: Turns = field(init=False)

    def __post_init__(self) -> None:
        self._turns = Turns(seed=self.options.seed, mean_ms=_PAUSES * self.options.pause_ms)

    @property
    def processes(self) -> int:
        return self.options.processes

    @property
    def topics(self) -> Sequence[NewTopic]:
        return []

    def next(self, process: int, now_ms: int) -> Wish | None:
        random = self._turns.take(process, now_ms)
        if random is None:
            return None
        key = random.choice(KEYS)
        match mixed(random, _WEIGHTS):
            case "write":
                return Wish(f="write", value=[key, self._values.next()])
            case "cas":
                return Wish(f="cas", value=[key, [self._seen.get(key), self._values.next()]])
            case _:
                return Wish(f="read", value=[key, None])

    def completed(self, op: Op) -> None:
        match op:
            case Op(kind=Kind.OK, f="cas", value=[key, [_, new]]):
                self._seen[key] = new
            case Op(kind=Kind.OK, f="read" | "write", value=[key, value]):
                self._seen[key] = value
            case Op(kind=Kind.FAIL, f="cas", value=[key, _], extra={"seen": value}):
                self._seen[key] = value
            case _:
                pass

    def final(self, process: int) -> Sequence[Wish]:
        return [Wish(f="read", value=[key, None]) for key in KEYS]
