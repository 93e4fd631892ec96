"""Can a node be taken away: without a risk to the quorum, and to what is stored on it?

Source: KIP-853 (removing a voter), Kafka's operations guide (decommissioning brokers).
"""

from quorumlab.inspection.diagnosis import BEHIND_MAX_MS
from quorumlab.inspection.facts import Finding, Holdings, Level, LiveFacts, LiveVoter

__all__ = ["removable"]


def removable(live: LiveFacts, held: Holdings) -> list[Finding]:
    """What is said of its vote, and of what it stores."""
    is_voter = any(voter.id == held.broker_id for voter in live.voters)
    if not (is_voter or held.is_registered or held.replicas):
        text = f"node {held.broker_id} is neither a voter nor a broker of this cluster"
        return [Finding(Level.WARNING, text)]
    found = [_voter_removable(live, held.broker_id)] if is_voter else []
    return [*found, _broker_removable(held)] if held.is_registered or held.replicas else found


def _broker_removable(held: Holdings) -> Finding:
    if not held.replicas:
        return Finding(
            Level.FINE,
            f"yes: broker {held.broker_id} holds no replica",
            "stop it, then unregister it",
        )
    text = f"no: broker {held.broker_id} holds replicas of {held.replicas} partitions"
    if held.only_in_sync:
        text += f", and of {held.only_in_sync} the only one in sync"
    return Finding(
        Level.PROBLEM, text, "reassign them to other brokers first, and wait for the end"
    )


def _voter_removable(live: LiveFacts, node_id: int) -> Finding:
    rest = [voter for voter in live.voters if voter.id != node_id]
    sound = [voter for voter in rest if _is_sound(voter, live)]
    if not rest:
        text = f"no: node {node_id} is the only voter"
        return Finding(Level.PROBLEM, text, "add another voter first")
    if 2 * len(sound) <= len(rest):
        return Finding(
            Level.PROBLEM,
            f"no: of the {len(rest)} voters that remain only {len(sound)} are up and caught up",
            "bring the others back first, or the quorum has no majority without this node",
        )
    spare = len(sound) - (len(rest) // 2 + 1)
    return Finding(
        Level.FINE,
        f"yes: {len(sound)} of the {len(rest)} voters that remain are up and caught up; after that "
        f"{spare} of them may fail",
        _way_out(live, node_id),
    )


def _way_out(live: LiveFacts, node_id: int) -> str:
    if not live.is_dynamic:
        return (
            "the voters are static: take it out of controller.quorum.voters of all nodes, which"
            " are restarted one by one"
        )
    return (
        "remove it from the voters before it is stopped: `quorumlab quorum remove-voter"
        f" {live.option} --controller-id {node_id}`"
    )


def _is_sound(voter: LiveVoter, live: LiveFacts) -> bool:
    """Caught up, and somebody listens where it is said to be."""
    return 0 <= voter.behind_ms <= BEHIND_MAX_MS and voter.endpoint not in live.unreachable
