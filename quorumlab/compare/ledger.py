"""What an event has cost: differences of the counters of all nodes, summed by role.

Pure. Counts are the nodes' own and exact. Some of them go on whatever happens, because time goes by
(fetches, heartbeats, what the measuring client sends): these are told apart, for they depend on how
long was measured. The others depend on the design alone.
"""

from collections.abc import Collection, Mapping

__all__ = ["Counts", "difference", "goes_on", "of_all_roles", "total"]

Counts = Mapping[str, int]

# Of requests, by the name that follows `rpc.sent.` and `rpc.received.`.
_GO_ON = ("ApiVersions", "BrokerHeartbeat", "Fetch", "FetchSnapshot", "Metadata", "Produce")
_REPLICATED = ("log.records",)  # what every node of a role has once: not summed
_BYTES = ("rpc.bytes_", "zk.bytes_")  # of everything, what goes on included


def difference(
    before: Mapping[int, Counts],
    after: Mapping[int, Counts],
    *,
    roles: Mapping[int, str],
    restarted: Collection[int] = (),
) -> dict[str, dict[str, int]]:
    """By role, sorted by name; what has not moved is left out.

    A node that is gone has nothing more to say, and one that was restarted counts from 0: what
    they did until then is not known, and not in the sum.
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
