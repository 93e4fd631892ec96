"""Which ways between nodes a fault of the network lies on.

    around     between the targets and everybody else; where that is nobody, among the targets
    one_way    what the targets say ("out"), or what they are told ("in")
    ring       everybody hears a majority of its group, and no two hear the same
    bridge     two halves that see only the first target in common

A cluster is told as its groups: the controllers, then the brokers; a node may be of both. Clients
keep reaching everybody, unless the fault's parameter `clients` is true: then they are among
"everybody else".

Pure. Source: jepsen.nemesis (`partition-majorities-ring`, `bridge`).
"""

from collections.abc import Callable, Iterable, Sequence

from jepsen_like.faults import Fault
from jepsen_like.participants import CLIENTS

__all__ = ["Groups", "Way", "Ways", "around", "both_ways", "bridge", "one_way", "ring"]

Way = tuple[int, int]  # who says it, and to whom
Groups = Sequence[Sequence[int]]
Ways = Callable[[Groups, Fault, Sequence[int]], Sequence[Way]]


def both_ways(some: Iterable[int], others: Iterable[int]) -> list[Way]:
    there = [(one, other) for one in some for other in others if one != other]
    return [*there, *_back(there)]


def _back(ways: Iterable[Way]) -> list[Way]:
    return [(target, source) for source, target in ways]


def _others(groups: Groups, fault: Fault, targets: Sequence[int]) -> list[int]:
    nodes = dict.fromkeys(node for group in groups for node in group)
    others = [node for node in nodes if node not in targets]
    return [*others, CLIENTS] if fault.parameters.get("clients") else others


def around(groups: Groups, fault: Fault, targets: Sequence[int]) -> Sequence[Way]:
    others = _others(groups, fault, targets)
    if others:
        return both_ways(targets, others)
    return [(one, other) for one in targets for other in targets if one != other]


def one_way(groups: Groups, fault: Fault, targets: Sequence[int]) -> Sequence[Way]:
    others = _others(groups, fault, targets)
    out = [(target, other) for target in targets for other in others]
    return out if fault.parameters.get("direction", "out") == "out" else _back(out)


def ring(groups: Groups, fault: Fault, targets: Sequence[int]) -> Sequence[Way]:
    """Cuts a ring; fewer than three nodes have none."""
    ways: list[Way] = []
    for group in groups:
        heard = len(group) // 2 + 1  # itself and those behind it
        for place, node in enumerate(group):
            unheard = range(heard, len(group))
            ways += [(group[(place + further) % len(group)], node) for further in unheard]
    return ways


def bridge(groups: Groups, fault: Fault, targets: Sequence[int]) -> Sequence[Way]:
    """The other nodes of a group are in either half by turns."""
    halves: tuple[list[int], list[int]] = ([], [])
    for group in groups:
        rest = [node for node in group if node not in (targets[0], *halves[0], *halves[1])]
        for place, node in enumerate(rest):
            halves[place % 2].append(node)
    return both_ways(*halves)
