"""An order in which the transactions that write a register may have done it.

Each value must hold from its write to its last read: a zone, as in `zones`. Who writes over what it
has read comes right behind it, so that both are one block. Blocks follow one another by the moments
at which their zones begin. The order is a guess: the caller must check it against all certain
edges.

Source: Gibbons and Korach 1997.
"""

from collections.abc import Hashable, Iterator
from itertools import pairwise

from jepsen_like.checkers.micro_operations import Transaction
from jepsen_like.checkers.rw_register import Node, RegisterKey

__all__ = ["likely_order"]

_NOTHING = object()


def likely_order(of: RegisterKey) -> Iterator[tuple[Transaction, Transaction]]:
    """Pairs, of which the first comes first; each reader stands before the next writer."""
    writers = [writer for block in _blocks(of) for writer in block]
    if not writers:
        return
    for reader in of.readers.get(None, ()):
        if reader is not writers[0]:
            yield reader.by, writers[0].by
    for one, other in pairwise(writers):
        yield one.by, other.by
        for reader in of.readers.get(one.writes[of.key], ()):
            if reader is not other:
                yield reader.by, other.by


def _blocks(of: RegisterKey) -> list[list[Node]]:
    overwriter: dict[Hashable, Node] = {}  # of a value, who had read it
    written = {each.writes[of.key] for each in of.writers}
    roots = []
    for each in of.writers:
        read = each.reads.get(of.key, _NOTHING)
        if read in written:
            overwriter[read] = each
        else:
            roots.append(each)
    blocks = [_block(of, root, overwriter) for root in roots]
    return sorted(blocks, key=lambda block: _begin(of, block))


def _block(of: RegisterKey, root: Node, overwriter: dict[Hashable, Node]) -> list[Node]:
    block = [root]
    while (after := overwriter.get(block[-1].writes[of.key])) is not None:
        block.append(after)
    return block


def _begin(of: RegisterKey, block: list[Node]) -> int:
    """Returns the moment at which its zone begins; -1 for what was written over nothing."""
    if block[0].reads.get(of.key, _NOTHING) is None:
        return -1
    operations = [writer.by.operation for writer in block]
    for writer in block:
        readers = of.readers.get(writer.writes[of.key], ())
        operations += [reader.by.operation for reader in readers]
    # the zone begins at the first return or the last call, whichever is earlier: see `zones`
    return min(min(each.ret for each in operations), max(each.call for each in operations))
