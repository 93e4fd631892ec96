"""Tables about a quorum: who is what, who has which records, who has acknowledged what."""

from jepsen_like.scenarios.directed_quorum import DirectedQuorum
from jepsen_like.scenarios.pictures import table
from quorum.raft.roles import Leader

__all__ = ["acks", "logs", "state"]


def state(quorum: DirectedQuorum) -> list[str]:
    return table(
        ("node", "role", "epoch", "leader", "voted for", "high watermark", "log"),
        [_state_of(quorum, node) for node in quorum.machines.nodes],
    )


def _state_of(quorum: DirectedQuorum, node: int) -> tuple[object, ...]:
    written = quorum.written(node)
    span = f"{written.start_offset} to {written.end_offset}"
    if node not in quorum.machines.up:
        return (node, "down", None, None, None, None, span)
    replica = quorum.replica(node)
    voted = replica.raft.role.voted
    return (
        node,
        replica.role_name,
        replica.leader.epoch,
        replica.leader.leader_id,
        None if voted is None else voted.id,
        replica.high_watermark,
        span,
    )


def logs(quorum: DirectedQuorum) -> list[str]:
    """Like figure 3.7 of the Raft thesis: one column an offset, and in it the record's epoch."""
    epochs = {node: _epochs(quorum, node) for node in quorum.machines.nodes}
    held = [offset for of_node in epochs.values() for offset in of_node]
    if not held:
        return ["no records"]
    columns = range(min(held), max(held) + 1)
    rows = [
        (node, *(epochs[node].get(offset, "") for offset in columns))
        for node in quorum.machines.nodes
    ]
    return table(("offset", *map(str, columns)), rows)


def _epochs(quorum: DirectedQuorum, node: int) -> dict[int, str]:
    durable = quorum.durable(node)
    return {
        offset: f"{entry.epoch}{'' if durable.holds(entry) else '*'}"
        for entry in quorum.written(node).entries
        for offset in range(entry.base_offset, entry.next_offset)
    }


def acks(quorum: DirectedQuorum, leader: int) -> list[str]:
    role = quorum.replica(leader).raft.role
    assert isinstance(role, Leader), role
    ends: dict[int, int | None] = {leader: quorum.durable(leader).end_offset}
    for node, progress in role.progress.items():
        ends[node] = progress.log_end_offset if progress.last_fetch_ms >= 0 else None
    rows = [(node, *_acknowledged(end)) for node, end in sorted(ends.items())]
    return [
        *table(("voter", "has stored", ""), rows),
        f"committed: {_all_before(role.high_watermark)}",
    ]


def _acknowledged(end: int | None) -> tuple[str, str]:
    return _all_before(end), "=" * (end or 0)


def _all_before(offset: int | None) -> str:
    return "not known yet" if offset is None else f"all before {offset}"
