"""What nodes say of an event: when each step was done (milestones), and what it cost (counters).

Pure. One clock of the machine dates the milestones. A step is done when its milestones have counted
all partitions that the event is about; `told` and `applied`, when that holds for every broker that
lives. A step without milestones, or one that has not counted to the end, has no time: nothing is
guessed.

A broker that applies a change does not know why it was made. So only those commands count that make
leaders and followers, not those that spread the word; and nothing is applied before something is
decided. docs/compare.md names the six steps of seed 000, discussion 1.

The ledger is the difference of the counters of all nodes, summed by role. Counts are exact. Some of
them go on whatever happens, because time goes by (fetches, heartbeats, the measuring client): they
depend on how long was measured and are told apart. The others depend on the design alone.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from msgspec import convert

__all__ = [
    "Counts",
    "Milestone",
    "Phase",
    "difference",
    "goes_on",
    "milestone_of",
    "of_all_roles",
    "phases_of",
    "total",
]

STEPS = ("detected", "decided", "persisted", "told", "applied", "elected", "ready")
_ONCE = ("detected", "elected", "ready")  # the first is the step: nothing is counted
_OF_EACH_BROKER = ("told", "applied")
_OF_A_BROKER = ("broker-failed", "controlled-shutdown")  # causes whose `id` is a broker's
_COMMAND = "LeaderAndIsr"
# Of requests, by the name that follows `rpc.sent.` and `rpc.received.`.
_GO_ON = ("ApiVersions", "BrokerHeartbeat", "Fetch", "FetchSnapshot", "Metadata", "Produce")
_REPLICATED = ("log.records",)  # what every node of a role has once: not summed
_BYTES = ("rpc.bytes_", "zk.bytes_")  # of everything, what goes on included


@dataclass(frozen=True, slots=True, kw_only=True)
class Milestone:
    node: int
    at_ns: int
    step: str
    count: int = 1
    about: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """Milliseconds since the fault; `done_ms` None: it was begun, and not seen to end."""

    first_ms: float
    done_ms: float | None
    count: int  # of partitions, as the milestones say


def milestone_of(node: int, told: Mapping[str, Any]) -> Milestone:
    """Reads one entry of `/v1/milestones`."""
    return convert({**told, "node": node}, Milestone)


def phases_of(
    milestones: Iterable[Milestone],
    *,
    fault_ns: int,
    partitions: int,
    brokers: Collection[int],
    causes: Sequence[str] = (),
    failed_nodes: Collection[int] = (),
    at_least: int | None = None,
) -> dict[str, Phase]:
    """Returns the phase of each step. `partitions` must be counted, on the `brokers` that live.

    If a step has come to its end with fewer counted, but `at_least` so many, its last milestone
    counts.

    A milestone that names another cause than `causes`, or another broker than `failed_nodes`, is
    about something else.
    """
    since = sorted(
        (
            each
            for each in milestones
            if each.at_ns >= fault_ns and _is_due_to(each, causes, failed_nodes)
        ),
        key=lambda each: each.at_ns,
    )
    decided_ns = next((each.at_ns for each in since if each.step == "decided"), fault_ns)
    counted_ns = partial(_counted_ns, partitions=partitions, at_least=at_least)
    found = {}
    for step in STEPS:
        from_ns = decided_ns if step in _OF_EACH_BROKER else fault_ns
        of_step = [each for each in since if each.step == step and each.at_ns >= from_ns]
        if of_step:
            done_ns = _done_ns(step, of_step, brokers, counted_ns)
            found[step] = Phase(
                first_ms=_ms(of_step[0].at_ns - fault_ns),
                done_ms=None if done_ns is None else _ms(done_ns - fault_ns),
                count=sum(each.count for each in of_step),
            )
    return found


def _is_due_to(each: Milestone, causes: Sequence[str], failed_nodes: Collection[int]) -> bool:
    about = each.about
    if about.get("command", _COMMAND) != _COMMAND:
        return False
    what = about.get("what")
    if what in _OF_A_BROKER and failed_nodes and about.get("id") not in failed_nodes:
        return False
    return not causes or what is None or what in causes


def _done_ns(
    step: str,
    of_step: Sequence[Milestone],
    brokers: Collection[int],
    counted_ns: Callable[[Sequence[Milestone]], int | None],
) -> int | None:
    if step in _ONCE:
        return of_step[0].at_ns
    if step not in _OF_EACH_BROKER:
        return counted_ns(of_step)
    if step == "told" and not any("broker" in each.about for each in of_step):
        return counted_ns(of_step)  # a log tells everybody at once
    ends = []
    for broker in brokers:
        own = [each for each in of_step if each.about.get("broker", each.node) == broker]
        end = counted_ns(own)
        if end is None:
            return None
        ends.append(end)
    return max(ends, default=None)


def _counted_ns(
    of_step: Sequence[Milestone], *, partitions: int, at_least: int | None
) -> int | None:
    """Returns when the milestones had counted so many partitions."""
    counted = 0
    for each in of_step:
        counted += each.count
        if counted >= partitions:
            return each.at_ns
    if at_least is not None and of_step and counted >= at_least:
        return of_step[-1].at_ns
    return None


def _ms(nanoseconds: int) -> float:
    return round(nanoseconds / 1e6, 1)


Counts = Mapping[str, int]


# --- the ledger ------------------------------------------------------------------------------


def difference(
    before: Mapping[int, Counts],
    after: Mapping[int, Counts],
    *,
    roles: Mapping[int, str],
    restarted: Collection[int] = (),
) -> dict[str, dict[str, int]]:
    """Returns what each role has counted more, sorted by name; a count that has not moved is left
    out.

    A node that is gone has nothing more to say, and one that was restarted counts from 0: what they
    did until then is not known, and not in the sum.
    """
    summed: dict[str, dict[str, int]] = {}
    for node, counts in sorted(after.items()):
        of_role = summed.setdefault(roles[node], {})
        first = {} if node in restarted else before.get(node, {})
        for name, count in counts.items():
            _add(of_role, name, count - first.get(name, 0))
    return {
        role: {name: count for name, count in sorted(counts.items()) if count}
        for role, counts in sorted(summed.items())
    }


def of_all_roles(ledger: Mapping[str, Counts]) -> dict[str, int]:
    """Sums counters over roles, by name."""
    summed: dict[str, int] = {}
    for counts in ledger.values():
        for name, count in counts.items():
            _add(summed, name, count)
    return summed


def total(ledger: Mapping[str, Counts], names: Collection[str]) -> int:
    """Sums these counters over all roles."""
    return sum(count for name, count in of_all_roles(ledger).items() if name in names)


def _add(summed: dict[str, int], name: str, count: int) -> None:
    so_far = summed.get(name, 0)
    summed[name] = max(so_far, count) if name in _REPLICATED else so_far + count


def goes_on(name: str) -> bool:
    """Does it count with the time, whatever happens?"""
    return name.rpartition(".")[2] in _GO_ON or name.startswith(_BYTES)
