"""Which directions of links a fault of the network lies on.

    around            between the targets and everybody else; where that is nobody, among them
    one_way           what the targets say, or what they are told
    from controllers  between the targets and the controllers
    ring              everybody hears a majority of its group, and no two hear the same
    bridge            two halves that see only the first target in common

    direction   of the first three: what the targets say ("out"), what they are told ("in"), "both"
    others      nodes that are meant in place of everybody else
    clients     true: they are among everybody else; they keep reaching all nodes if not

A cluster is told as its groups: the controllers, then the brokers; a node may be of both.

Pure. Source: jepsen.nemesis (`partition-majorities-ring`, `bridge`).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from jepsen_like.faults.fault import Fault
from jepsen_like.faults.participants import CLIENTS

__all__ = [
    "CUTS",
    "Direction",
    "DirectionsOf",
    "Groups",
    "around",
    "both_ways",
    "bridge",
    "one_way",
    "ring",
]

Direction = tuple[int, int]  # of a link: the node that sends, the node that receives
Groups = Sequence[Sequence[int]]
DirectionsOf = Callable[[Groups, Fault, Sequence[int]], Sequence[Direction]]


def both_ways(some: Iterable[int], others: Iterable[int]) -> list[Direction]:
    return _between(some, others, "both")


def _between(some: Iterable[int], others: Iterable[int], which: str) -> list[Direction]:
    out = [(one, other) for one in some for other in others if one != other]
    back = [(other, one) for one, other in out]
    return {"out": out, "in": back, "both": out + back}[which]


def _others(groups: Groups, fault: Fault, targets: Sequence[int]) -> list[int]:
    nodes = dict.fromkeys(node for group in groups for node in group)
    others = fault.parameters.get("others", [node for node in nodes if node not in targets])
    return [*others, CLIENTS] if fault.parameters.get("clients") else others


def around(groups: Groups, fault: Fault, targets: Sequence[int]) -> Sequence[Direction]:
    if others := _others(groups, fault, targets):
        return _between(targets, others, fault.parameters.get("direction", "both"))
    return [(one, other) for one in targets for other in targets if one != other]


def one_way(groups: Groups, fault: Fault, targets: Sequence[int]) -> Sequence[Direction]:
    others = _others(groups, fault, targets)
    return _between(targets, others, fault.parameters.get("direction", "out"))


def ring(groups: Groups, fault: Fault, targets: Sequence[int]) -> Sequence[Direction]:
    """Cuts a ring; fewer than three nodes have none."""
    directions: list[Direction] = []
    for group in groups:
        heard = len(group) // 2 + 1  # itself and those behind it
        for place, node in enumerate(group):
            unheard = range(heard, len(group))
            directions += [(group[(place + further) % len(group)], node) for further in unheard]
    return directions


def bridge(groups: Groups, fault: Fault, targets: Sequence[int]) -> Sequence[Direction]:
    """The other nodes of a group are in either half by turns."""
    halves: tuple[list[int], list[int]] = ([], [])
    for group in groups:
        rest = [node for node in group if node not in (targets[0], *halves[0], *halves[1])]
        for place, node in enumerate(rest):
            halves[place % 2].append(node)
    return both_ways(*halves)


CUTS: Mapping[str, DirectionsOf] = {
    "partition": around,
    "isolate-controller": around,
    "partition-one-way": one_way,
    "cut-controllers": lambda groups, fault, targets: _between(
        targets, groups[0], fault.parameters.get("direction", "both")
    ),
    "partition-ring": ring,
    "bridge": bridge,
    "netns-partition": around,
    "netns-one-way": one_way,
}
