"""Which values of a register follow one another with nothing between: chains of compare-and-sets.

Where every value is written once, a compare-and-set of a to b happened while a was there, and a
never comes back: so b came right after a. Each write begins a chain, and so does the initial value.
Two compare-and-sets of one value cannot both have happened; and one of a value that no chain
reaches cannot have happened at all.

An unknown change happened if what it made was seen, or replaced by another change that happened;
otherwise it need not have. Source: checking facts, c2.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from jepsen_like.checkers.operations import Operation, lines_of
from jepsen_like.checkers.register_accesses import Register, new_value, without_useless
from jepsen_like.checkers.verdict import Finding
from jepsen_like.histories.history import Kind, Value

__all__ = ["Chains", "chains_of", "happened"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chains:
    """Where there is something `broken`, every value is a chain by itself."""

    roots: Mapping[Value, Value] = field(default_factory=dict)  # of each value
    places: Mapping[Value, int] = field(default_factory=dict)  # of each value, in its chain
    links: Mapping[tuple[Value, int], Operation] = field(default_factory=dict)  # to each place
    broken: Sequence[Finding] = field(default=())

    def root(self, value: Value) -> Value:
        return self.roots.get(value, value)

    def place(self, value: Value) -> int:
        return self.places.get(value, 0)


def happened(register: Register) -> Register:
    """What surely happened, or was seen. Of what failed nothing is left, not even what it saw."""
    told = [each for each in register.accesses if each.kind is not Kind.FAIL]
    return replace(register, accesses=without_useless(told))


def chains_of(register: Register) -> Chains:
    """Takes a register that `happened` made, in which every change is to a value of its own."""
    roots: dict[Value, Value] = {None: None}
    following: dict[Value, list[Operation]] = {}
    for change in register.changes:
        if change.f == "write":
            roots[change.argument] = change.argument
        else:
            following.setdefault(change.argument[0], []).append(change)
    places = dict.fromkeys(roots, 0)
    links: dict[tuple[Value, int], Operation] = {}
    waiting = list(roots)
    while waiting:
        value = waiting.pop()
        for cas in following.get(value, ()):
            made = new_value(cas)
            roots[made], places[made] = roots[value], places[value] + 1
            links[roots[made], places[made]] = cas
            waiting.append(made)
    broken = [*_forks(register.key, following), *_rootless(register, roots)]
    return Chains(broken=broken) if broken else Chains(roots=roots, places=places, links=links)


def _forks(key: str, following: dict[Value, list[Operation]]) -> Iterator[Finding]:
    for value, (first, *others) in following.items():
        if others:
            made = f"{new_value(first)!r}, and by {new_value(others[0])!r}"
            detail = f"{value!r} was replaced by {made}, and it was there once"
            yield _finding(key, detail, first, others[0])


def _rootless(register: Register, roots: Mapping[Value, Value]) -> Iterator[Finding]:
    """The first one: of a value that was never there, or of a circle."""
    for change in register.changes:
        made = new_value(change)
        if made not in roots:
            detail = f"{change.argument[0]!r} was replaced by {made!r}, and cannot have been there"
            seen = [each for each in register.reads if each.result == made]
            yield _finding(register.key, detail, change, *seen[:1])
            return


def _finding(key: str, detail: str, *operations: Operation) -> Finding:
    ops = lines_of(operations)
    return Finding(rule="not-linearizable", object=key, detail=detail, ops=ops)
