"""A replica in words for people, and in plain values for HTTP."""

from quorum.raft.leading import progress_of_voters
from quorum.raft.replica import Replica
from quorum.raft.roles import Candidate, Leader, Prospective, Role, leader_of, name_of
from wire.primitives import uuid_text

__all__ = ["describe_node", "node_facts"]


def node_facts(replica: Replica, role: Role) -> dict[str, object]:
    """Values that JSON knows; keys are added, never changed."""
    log = replica.log
    snapshot = log.latest_snapshot
    return {
        "node_id": replica.node_id,
        "role": name_of(role),
        "is_voter": replica.is_voter,
        "epoch": role.epoch,
        "leader_id": leader_of(role, replica.node_id),
        "voted_id": None if role.voted is None else role.voted.id,
        "voters": list(replica.voters.ids),
        "kraft_version": replica.kraft_version,
        "directory_id": uuid_text(replica.key.directory_id),
        "log_start_offset": log.start_offset,
        "log_end_offset": log.end_offset,
        "log_last_epoch": log.last_epoch,
        "log_synced_offset": log.synced_offset,
        "log_size_bytes": log.size_bytes,
        "snapshot_offset": None if snapshot is None else snapshot.id.offset,
        "snapshot_epoch": None if snapshot is None else snapshot.id.epoch,
        "snapshot_size_bytes": None if snapshot is None else snapshot.size_bytes,
        "high_watermark": role.high_watermark if isinstance(role, Leader) else log.high_watermark,
    }


def describe_node(replica: Replica, role: Role) -> str:
    """Several lines: who it is, where its log stands, and what its role knows of others."""
    facts = node_facts(replica, role)
    log = replica.log
    lines = [
        f"node {replica.node_id} {facts['role']} epoch={role.epoch} leader={facts['leader_id']}"
        f" voted={facts['voted_id']}",
        f"  log {log.start_offset}..{log.end_offset} last_epoch={log.last_epoch}"
        f" synced={log.synced_offset} high_watermark={facts['high_watermark']}",
    ]
    match role:
        case Leader():
            lines.append(replica.voters.describe(progress_of_voters(replica, role)))
            lines += [
                f"  observer {progress.key.id} at {progress.end_offset}"
                for progress in role.observers.values()
            ]
        case Prospective() | Candidate():
            lines.append(f"  votes {role.votes}")
        case _:
            pass
    return "\n".join(lines)
