"""The log while an operator works on it: reassignments, elections, changes of voters.

One process is the operator, the others are the log's clients, and judged as such: what an operator
does may never cost a record. Needs a cluster whose voters live in the log, or the changes of voters
are refused; partitions have fewer replicas than there are brokers, so that there is where to move.

    reassign       {key: [broker, ...]}         begun, not awaited
    elect          key                          its preferred leader
    remove-voter   node id
    add-voter      node id                      the one that was removed
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from random import Random

from jepsen_like.histories.history import Kind, Op
from jepsen_like.workloads.log import Log
from jepsen_like.workloads.workload import NewTopic, Turns, Wish, WorkloadOptions, mixed

__all__ = ["OPERATIONS", "Admin"]

OPERATIONS = ("reassign", "elect", "remove-voter", "add-voter")
_WEIGHTS = {"reassign": 40, "elect": 30, "voter": 30}
_PAUSES = 40  # as long as a log's: moving a replica copies it
_VOTERS_MIN = 3  # with fewer, a change of voters would leave none to spare


@dataclass(slots=True)
class Admin:
    options: WorkloadOptions
    name: str = "admin"
    _log: Log = field(init=False)
    _away: int | None = None  # the voter that was removed, or may have been
    _turns: Turns = field(init=False)

    def __post_init__(self) -> None:
        replicas = min(3, max(1, len(self.options.brokers) - 1))
        self._log = Log(replace(self.options, replicas=replicas))
        self._turns = Turns.of(self.options, _PAUSES)

    @property
    def processes(self) -> int:
        return self.options.processes

    @property
    def topics(self) -> Sequence[NewTopic]:
        return self._log.topics

    def next(self, process: int, now_ms: int) -> Wish | None:
        if process % self.processes:
            return self._log.next(process, now_ms)
        random = self._turns.take(process, now_ms)
        if random is None:
            return None
        match mixed(random, _WEIGHTS):
            case "reassign":
                return self._reassign(random)
            case "elect":
                return Wish(f="elect", value=random.choice(self._log.keys))
            case _:
                return self._change_voters(random)

    def completed(self, op: Op) -> None:
        match op:
            case Op(f="remove-voter", kind=Kind.OK | Kind.INFO, value=int(node)):
                self._away = node
            case Op(f="add-voter", kind=Kind.OK):
                self._away = None
            case _:
                self._log.completed(op)

    def final(self, process: int) -> Sequence[Wish]:
        return self._log.final(process)

    def _reassign(self, random: Random) -> Wish:
        brokers = random.sample(self.options.brokers, self._log.options.replication_factor)
        return Wish(f="reassign", value={random.choice(self._log.keys): brokers})

    def _change_voters(self, random: Random) -> Wish | None:
        if self._away is not None:
            return Wish(f="add-voter", value=self._away)
        if len(self.options.controllers) < _VOTERS_MIN:
            return None
        return Wish(f="remove-voter", value=random.choice(self.options.controllers))
