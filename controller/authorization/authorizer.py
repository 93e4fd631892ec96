"""The authorizer: may this principal, from this host, do that to this resource?

Of all entries that name the resource, literally, by a prefix or by `*`, those count that are for
the principal or for `User:*`, and for the host, its network, or any. One DENY wins over every
ALLOW. Where no entry counts the answer is no, but for a resource that no entry names at all:
`allow.everyone.if.no.acl.found` decides. To be allowed to change a thing implies that one may see
it. Super users may do everything.

Decisions are kept until the ACLs change. A subject that is held goes by the ACLs of the moment in
which it is asked.

Source: Kafka's StandardAuthorizerData, Authorizer.authorizeByResourceType; KIP-11, KIP-290,
KIP-679.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from controller.authorization.acl_index import AclIndex, Entries, Entry, Resource
from controller.metadata.acl_hosts import address_of, is_in
from controller.metadata.security import (
    ON_CLUSTER,
    ON_GROUP,
    ON_TOPIC,
    WILDCARD,
    Operation,
)
from wire.security.principals import Principal

__all__ = ["CLUSTER", "Authorizer", "Subject", "UserRules"]

CLUSTER = "kafka-cluster"  # the name of the only resource of its type
_EVERYBODY = f"User:{WILDCARD}"
_DECISIONS_MAX = 10_000  # of each: who asks chooses the names
_KINDS = 16  # more than there are types of resources


_O = Operation
# What allows an operation beside itself and ALL.
_IMPLIED_BY = {
    _O.DESCRIBE: (_O.READ, _O.WRITE, _O.DELETE, _O.ALTER),
    _O.DESCRIBE_CONFIGS: (_O.ALTER_CONFIGS,),
}
_ALLOWED_BY: Mapping[int, frozenset[int]] = {
    each: frozenset((each, _O.ALL, *_IMPLIED_BY.get(each, ()))) for each in Operation
}
_DENIED_BY: Mapping[int, frozenset[int]] = {each: frozenset((each, _O.ALL)) for each in Operation}
_SUPPORTED = {Resource.TOPIC: ON_TOPIC, Resource.GROUP: ON_GROUP, Resource.CLUSTER: ON_CLUSTER}


@dataclass(frozen=True, slots=True, kw_only=True)
class UserRules:
    """What the ACLs do not say."""

    super_users: frozenset[str] = frozenset()
    allows_everyone: bool = False  # what no ACL names


class Authorizer:
    def __init__(self, rules: UserRules) -> None:
        self.rules = rules
        self.index = AclIndex()

    def subject(self, principal: Principal, host: str) -> "Subject":
        return Subject(self, str(principal), host)


class Subject:
    """One principal at one host, and what was decided about it."""

    def __init__(self, authorizer: Authorizer, principal: str, host: str) -> None:
        self.is_super = principal in authorizer.rules.super_users
        self._rules = authorizer.rules
        self._index = authorizer.index
        self._names = authorizer.index.names
        self._principals = (principal, _EVERYBODY)
        self._hosts = (host, WILDCARD)
        self._address = address_of(host)
        self._generation = 0  # of the ACLs that the decisions are by
        self._count = 0
        self._decisions: dict[int, dict[str, bool]] = {}  # by operation and type, then by name
        self._anywhere: dict[tuple[Operation, Resource], bool] = {}

    @property
    def generation(self) -> int:
        """Another number: what it may may have changed."""
        return self._index.generation

    def may(self, operation: Operation, kind: Resource, name: str = CLUSTER) -> bool:
        decided = self.decided(operation, kind).get(name)
        return self._decide(operation, kind, name) if decided is None else decided

    def decided(self, operation: Operation, kind: Resource) -> dict[str, bool]:
        """What is decided by now, by name; to be read only. Who has many names begins here."""
        if self._generation != self._index.generation or self._count >= _DECISIONS_MAX:
            self._generation, self._count = self._index.generation, 0
            self._decisions.clear()
            self._anywhere.clear()
        key = operation * _KINDS + kind  # the hash of an enumeration's member takes a while
        found = self._decisions.get(key)
        if found is None:
            found = self._decisions[key] = {}
        return found

    def _decide(self, operation: Operation, kind: Resource, name: str) -> bool:
        decided = self.is_super or self._judge(operation, kind, name)
        self.decided(operation, kind)[name] = decided
        self._count += 1
        return decided

    def operations(self, kind: Resource, name: str = CLUSTER) -> int:
        """The bits of what may be done to it (KIP-430)."""
        supported = (each for each in Operation if _SUPPORTED[kind] >> each & 1)
        return sum(1 << each for each in supported if self.may(each, kind, name))

    def may_with_any(self, operation: Operation, kind: Resource) -> bool:
        """Is there a name that it may do this to? Implied operations do not count."""
        self.decided(operation, kind)  # forgets what is outdated
        key = operation, kind
        if key not in self._anywhere:
            self._anywhere[key] = self._judge_any(operation, kind)
        return self._anywhere[key]

    def _judge_any(self, operation: Operation, kind: Resource) -> bool:
        if self.may(operation, kind, "hardcode"):  # Kafka's: for super users, and the default
            return True
        names = self._names[kind]
        denied = self._named(names.literal, operation, allows=False)
        denied_prefixes = self._named(names.prefixed, operation, allows=False)
        if WILDCARD in denied:
            return False
        allowed = self._named(names.literal, operation, allows=True)
        if WILDCARD in allowed:
            return True
        candidates = (allowed - denied) | self._named(names.prefixed, operation, allows=True)
        return any(not _has_prefix(name, denied_prefixes) for name in candidates)

    def _judge(self, operation: Operation, kind: Resource, name: str) -> bool:
        is_named = is_allowed = False
        for entries in self._names[kind].matching(name):
            is_named = True
            for entry in self._own(entries):
                if entry.allows:
                    is_allowed = is_allowed or entry.operation in _ALLOWED_BY[operation]
                elif entry.operation in _DENIED_BY[operation]:
                    return False
        return is_allowed or (self._rules.allows_everyone and not is_named)

    def _own(self, entries: Entries) -> Iterator[Entry]:
        for principal in self._principals:
            for entry in entries.get(principal, ()):
                if entry.host in self._hosts or is_in(self._address, entry.host):
                    yield entry

    def _named(
        self, by_name: dict[str, Entries], operation: Operation, *, allows: bool
    ) -> set[str]:
        """The names for which an entry says so of this very operation, or of all."""
        return {
            name
            for name, entries in by_name.items()
            for entry in self._own(entries)
            if entry.allows is allows and entry.operation in _DENIED_BY[operation]
        }


def _has_prefix(name: str, prefixes: set[str]) -> bool:
    return any(name[:length] in prefixes for length in range(1, len(name) + 1))
