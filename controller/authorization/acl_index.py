"""ACLs by the resources that they are for, kept up to date by what is added and removed.

An image has all entries in the order in which they were made, and the next image has the same
objects: one walk along both finds the few that differ, where a new index would be built of all.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import NamedTuple
from uuid import UUID

from controller.metadata.security import WILDCARD, Operation, Pattern
from wire.metadata_records import AccessControlEntryRecord

__all__ = ["NOTHING_ALLOWED", "AclIndex", "Entries", "Entry", "Names", "Resource", "difference"]

_DENY, _ALLOW = 2, 3
_Acls = Mapping[UUID, AccessControlEntryRecord]


class Resource(IntEnum):
    """Codes of Kafka's ResourceType."""

    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5

    @property
    def title(self) -> str:
        """As Kafka writes it: `TransactionalId`."""
        return "".join(word.capitalize() for word in self.name.split("_"))


# For when it is not known what is denied.
NOTHING_ALLOWED: _Acls = {
    UUID(int=kind): AccessControlEntryRecord(
        id=UUID(int=kind),
        resource_type=kind,
        resource_name=WILDCARD,
        pattern_type=Pattern.LITERAL,
        principal=f"User:{WILDCARD}",
        host=WILDCARD,
        operation=Operation.ALL,
        permission_type=_DENY,
    )
    for kind in Resource
}


class Entry(NamedTuple):
    host: str
    operation: int
    allows: bool


Entries = dict[str, list[Entry]]  # by principal


class Names:
    """The entries of one type of resource, by the names that they are for."""

    def __init__(self) -> None:
        self.literal: dict[str, Entries] = {}
        self.prefixed: dict[str, Entries] = {}
        self._lengths: Counter[int] = Counter()  # of the prefixes
        self._sorted_lengths: tuple[int, ...] | None = ()

    def matching(self, name: str) -> Iterator[Entries]:
        for literal in (name, WILDCARD) if name != WILDCARD else (name,):
            found = self.literal.get(literal)
            if found is not None:
                yield found
        if self._sorted_lengths is None:
            self._sorted_lengths = tuple(sorted(self._lengths))
        for length in self._sorted_lengths:
            if length > len(name):
                return
            found = self.prefixed.get(name[:length])
            if found is not None:
                yield found

    def add(self, acl: AccessControlEntryRecord) -> None:
        name = acl.resource_name
        if acl.pattern_type == Pattern.PREFIXED:
            by_name = self.prefixed
            if name not in by_name:
                self._lengths[len(name)] += 1
                self._sorted_lengths = None
        else:
            by_name = self.literal
        by_name.setdefault(name, {}).setdefault(acl.principal, []).append(_entry(acl))

    def remove(self, acl: AccessControlEntryRecord) -> None:
        name = acl.resource_name
        by_name = self.prefixed if acl.pattern_type == Pattern.PREFIXED else self.literal
        entries = by_name[name]
        entries[acl.principal].remove(_entry(acl))
        if not entries[acl.principal]:
            del entries[acl.principal]
        if entries:
            return
        del by_name[name]
        if by_name is self.prefixed:
            self._lengths[len(name)] -= 1
            if not self._lengths[len(name)]:
                del self._lengths[len(name)]
            self._sorted_lengths = None


def _entry(acl: AccessControlEntryRecord) -> Entry:
    return Entry(acl.host, acl.operation, acl.permission_type == _ALLOW)


class AclIndex:
    def __init__(self) -> None:
        self.names = {kind: Names() for kind in Resource}
        self.generation = 0  # of the entries: decisions hold for one
        self._by_code = {int(kind): names for kind, names in self.names.items()}
        self._acls: _Acls = {}

    def follow(self, acls: _Acls) -> None:
        """From now on it holds these, which are not changed any more."""
        if acls is self._acls:
            return
        removed, added = difference(self._acls, acls)
        self._acls = acls
        self.generation += 1
        for acl in removed:
            if (names := self._by_code.get(acl.resource_type)) is not None:
                names.remove(acl)
        for acl in added:
            if (names := self._by_code.get(acl.resource_type)) is not None:
                names.add(acl)


def difference(
    before: _Acls, after: _Acls
) -> tuple[list[AccessControlEntryRecord], list[AccessControlEntryRecord]]:
    """What is to be removed from `before`, and then added, to have `after`.

    No more than that, if `after` is `before` without some entries and with others at its end;
    otherwise everything from the first entry that is elsewhere.
    """
    rest = iter(after.values())
    following = next(rest, None)
    removed = []
    for acl in before.values():
        if acl is following:
            following = next(rest, None)
        else:
            removed.append(acl)
    return removed, [] if following is None else [following, *rest]
