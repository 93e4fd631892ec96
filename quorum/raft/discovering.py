"""Discovery: a replica without a leader sends a Fetch to any server; the answer names the leader.

Source: KIP-595, sections on Fetch; KIP-853 (discovery).
"""

from quorum.core.effects import earliest
from quorum.core.types import Endpoint
from quorum.raft.log import QuorumLog
from quorum.raft.messages import fetch_request
from quorum.raft.replica import FETCH_CHANNEL, Replica

__all__ = ["acknowledges", "discover", "discovery_due_ms", "fetch_from", "free_servers"]


def acknowledges(log: QuorumLog) -> bool:
    """May we send our log end to the leader, which counts it for the high watermark?

    Only once everything up to it survives a crash (thesis 3.8; KIP-595: a voter flushes before
    its next Fetch).
    """
    return log.is_synced()


def discover(replica: Replica, epoch: int, now_ms: int) -> None:
    """Ask a random free server who leads."""
    servers = free_servers(replica, now_ms)
    if servers and not replica.peers.busy and acknowledges(replica.log):
        fetch_from(replica, replica.random.choice(servers), epoch)


def discovery_due_ms(replica: Replica) -> int | None:
    """Return when `discover` can do something, unless an answer or a sync comes first."""
    if replica.peers.busy or not acknowledges(replica.log):
        return None
    servers = replica.discovery_servers
    return earliest(*(replica.peers.free_at_ms(server.node_id) for server in servers))


def free_servers(replica: Replica, now_ms: int) -> list[Endpoint]:
    servers = replica.discovery_servers
    return [server for server in servers if replica.peers.is_free(server.node_id, now_ms)]


def fetch_from(replica: Replica, target: Endpoint, epoch: int) -> None:
    log = replica.log
    body = fetch_request(
        replica.config, epoch=epoch, end=log.end, high_watermark=log.high_watermark
    )
    replica.ask(target, FETCH_CHANNEL, body)
