"""One order of transactions that explains all that they read, found by going forward.

Who may come next has nobody left before it, reads what is there, and writes over nothing that
somebody has still to read; of those the one that ended first. Nothing is taken back: so where no
order is found, there may be one all the same.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush

__all__ = ["is_explained"]


def is_explained(
    rank: Sequence[int],
    before: Iterable[tuple[int, int]],
    reads: Sequence[Mapping[Hashable, Hashable]],
    writes: Sequence[Mapping[Hashable, Hashable]],
) -> bool:
    """`rank`: of each node, the lowest is tried first. `before`: pairs, the first comes first.

    `reads`, `writes`: by node, what it reads of each key before it writes, and what it leaves
    there; None is what nobody has written. Nodes that do neither only have their place.
    """
    after: dict[int, list[int]] = defaultdict(list)
    left = Counter[int]()  # how many have to come before
    for one, other in set(before):
        after[one].append(other)
        left[other] += 1
    readers = Counter((key, value) for each in reads for key, value in each.items())
    there: dict[Hashable, Hashable] = {}
    waiting: dict[Hashable, list[int]] = defaultdict(list)  # by a key that keeps them back
    ready = [(rank[node], node) for node in range(len(rank)) if not left[node]]
    heapify(ready)
    count = 0
    while ready:
        node = heappop(ready)[1]
        held_by = _held_by(reads[node], writes[node], there, readers)
        if held_by is not None:
            waiting[held_by[0]].append(node)
            continue
        count += 1
        for key, value in reads[node].items():
            readers[key, value] -= 1
        there.update(writes[node])
        for key in {*reads[node], *writes[node]}:
            for other in waiting.pop(key, ()):
                heappush(ready, (rank[other], other))
        for other in after[node]:
            left[other] -= 1
            if not left[other]:
                heappush(ready, (rank[other], other))
    return count == len(rank)


def _held_by(
    reads: Mapping[Hashable, Hashable],
    writes: Mapping[Hashable, Hashable],
    there: Mapping[Hashable, Hashable],
    readers: Mapping[tuple[Hashable, Hashable], int],
) -> tuple[Hashable] | None:
    """A key whose value is not the one to read, or must not be written over yet."""
    for key, value in reads.items():
        if there.get(key) != value:
            return (key,)
    for key in writes:
        still = readers.get((key, there.get(key)), 0) - (key in reads)
        if still > 0:
            return (key,)
    return None
