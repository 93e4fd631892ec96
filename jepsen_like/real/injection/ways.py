"""Which flows between nodes a fault of the network lies on.

    around     between the targets and everybody else
    one_way    what the targets say ("out"), or what they are told ("in")
    ring       everybody hears a majority of its kind, and no two hear the same
    bridge     two halves that see only the first target in common

Clients keep reaching everybody, unless the fault's parameter `clients` is true: then they are among
"everybody else". Pure. Source: jepsen.nemesis (`partition-majorities-ring`, `bridge`).
"""

from collections.abc import Callable, Sequence

from jepsen_like.faults import Fault
from jepsen_like.real.layout import ClusterLayout
from jepsen_like.real.proxy import both_ways
from jepsen_like.rules import CLIENTS

__all__ = ["Way", "Ways", "around", "bridge", "one_way", "ring"]

Way = tuple[int, int]
Ways = Callable[[ClusterLayout, Fault, Sequence[int]], set[Way]]


def _others(layout: ClusterLayout, fault: Fault, targets: Sequence[int]) -> list[int]:
    others = [node.id for node in layout.nodes if node.id not in targets]
    return [*others, CLIENTS] if fault.parameters.get("clients") else others


def around(layout: ClusterLayout, fault: Fault, targets: Sequence[int]) -> set[Way]:
    return both_ways(targets, _others(layout, fault, targets))


def one_way(layout: ClusterLayout, fault: Fault, targets: Sequence[int]) -> set[Way]:
    others = _others(layout, fault, targets)
    if fault.parameters.get("direction", "out") == "out":
        return {(target, other) for target in targets for other in others}
    return {(other, target) for target in targets for other in others}


def ring(layout: ClusterLayout, fault: Fault, targets: Sequence[int]) -> set[Way]:
    """Voters in one ring, brokers in another. With fewer than three there is nothing to cut."""
    ways = set()
    for group in (layout.controllers, layout.brokers):
        ids = [node.id for node in group]
        heard = len(ids) // 2 + 1  # itself and those behind it
        for place, node_id in enumerate(ids):
            for further in range(heard, len(ids)):
                ways.add((ids[(place + further) % len(ids)], node_id))
    return ways


def bridge(layout: ClusterLayout, fault: Fault, targets: Sequence[int]) -> set[Way]:
    """The other nodes of a kind are in either half by turns."""
    halves: tuple[list[int], list[int]] = ([], [])
    for group in (layout.controllers, layout.brokers):
        rest = [node.id for node in group if node.id not in (targets[0], *halves[0], *halves[1])]
        for place, node_id in enumerate(rest):
            halves[place % 2].append(node_id)
    return both_ways(*halves)
