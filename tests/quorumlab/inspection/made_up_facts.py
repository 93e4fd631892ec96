"""Facts of a cluster of three voters, all well; a test says what is otherwise."""

from quorumlab.inspection.facts import LiveFacts, LiveVoter, ReplicaFacts
from quorumlab.inspection.identity import Voter, VoterSet

STATIC = VoterSet(voters=tuple(Voter(id=number) for number in (1, 2, 3)), source="LeaderChange")
DYNAMIC = VoterSet(
    voters=tuple(Voter(id=number, directory_id=f"d{number}") for number in (1, 2, 3)),
    source="KRaftVoters",
    is_dynamic=True,
)


def replica(number: int, **facts: object) -> ReplicaFacts:
    known = {
        "name": f"node-{number}",
        "cluster_id": "A",
        "node_id": number,
        "directory_id": f"d{number}",
        "last_epoch": 3,
        "end_offset": 100,
        "voters": STATIC,
    }
    return ReplicaFacts(**{**known, **facts})  # type: ignore[arg-type]


def live(*behind_ms: int, **facts: object) -> LiveFacts:
    voters = tuple(
        LiveVoter(id=number, end_offset=100, behind_ms=behind)
        for number, behind in enumerate(behind_ms, 1)
    )
    known = {
        "name": "h:1",
        "cluster_id": "A",
        "leader_id": 1,
        "leader_epoch": 3,
        "high_watermark": 100,
        "voters": voters,
    }
    return LiveFacts(**{**known, **facts})  # type: ignore[arg-type]
