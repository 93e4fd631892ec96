"""Settings that list principals, between semicolons: the names of certificates have commas."""

from collections.abc import Iterator

from wire.security.principals import Principal

__all__ = ["node_principals", "super_users"]


def super_users(text: str) -> frozenset[str]:
    """`User:admin;User:CN=broker-1,O=lab`. Raises ValueError for what is no principal."""
    return frozenset(str(Principal.parse(each)) for each in _listed(text))


def node_principals(text: str) -> dict[int, frozenset[Principal]]:
    """`1=User:CN=broker-1;2=User:CN=broker-2`; a node may stand there with each of its principals.

    Raises ValueError for anything else.
    """
    found: dict[int, frozenset[Principal]] = {}
    for each in _listed(text):
        node, equals, principal = each.partition("=")
        if not (equals and node.strip().isdecimal()):
            raise ValueError(f"expected ID=TYPE:NAME, for example 1=User:CN=broker-1: {each!r}")
        own = found.get(int(node), frozenset())
        found[int(node)] = own | {Principal.parse(principal.strip())}
    return found


def _listed(text: str) -> Iterator[str]:
    return filter(None, (each.strip() for each in text.split(";")))
