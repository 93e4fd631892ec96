"""What the doctor finds, from made-up facts."""

import pytest

from quorumlab.inspection.diagnosis import diagnose, removable
from quorumlab.inspection.facts import Finding, Level, LiveFacts, LiveVoter, ReplicaFacts
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


def problems(found: list[Finding]) -> list[str]:
    return [finding.text for finding in found if finding.level is Level.PROBLEM]


def test_a_sound_cluster_has_no_problem() -> None:
    found = diagnose([replica(1), replica(2), replica(3)], [live(0, 5, 9)])
    assert problems(found) == []


def test_another_cluster_id_is_named_with_its_place() -> None:
    (text,) = problems(diagnose([replica(1), replica(2, cluster_id="B")], []))
    assert "A in node-1" in text
    assert "B in node-2" in text


@pytest.mark.parametrize("what", ["node_id", "directory_id"])
def test_a_copied_directory_is_found(what: str) -> None:
    one, other = replica(1), replica(2)
    copied = replica(2, **{what: getattr(one, what)})
    assert not problems(diagnose([one, other], []))
    assert what.replace("_", ".") in problems(diagnose([one, copied], []))[0]


def test_the_longest_log_is_that_of_the_latest_epoch() -> None:
    texts = [f.text for f in diagnose([replica(1, end_offset=500), replica(2, last_epoch=4)], [])]
    assert any(text.startswith("node-2 has the longest log: epoch 4") for text in texts)


def test_too_few_logs_say_nothing_of_what_is_committed() -> None:
    texts = [f.text for f in diagnose([replica(1)], [])]
    assert any("directories of voters 2, 3 were not given" in text for text in texts)


def test_static_beside_dynamic_voters_are_told() -> None:
    found = diagnose([replica(1, voters=DYNAMIC), replica(2), replica(3, voters=DYNAMIC)], [])
    (text,) = [finding.text for finding in found if finding.level is Level.WARNING]
    assert text == "the voters are dynamic, but node-2 knows static ones only"


def test_a_voter_that_was_formatted_anew_is_told_with_both_ids() -> None:
    replicas = [replica(number, voters=DYNAMIC) for number in (1, 2)]
    fresh = replica(3, directory_id="new", end_offset=0, last_epoch=-1, voters=VoterSet())
    texts = problems(diagnose([*replicas, fresh], []))
    assert any("directory.id new, but the voter of that id has d3" in text for text in texts)
    assert any("node-3 of voter 3 has no log: it was wiped" in text for text in texts)


def test_a_voter_that_runs_on_another_directory_is_told() -> None:
    voters = tuple(
        LiveVoter(id=number, end_offset=100, behind_ms=0, directory_id=f"d{number}")
        for number in (1, 2, 3)
    )
    stray = LiveVoter(id=3, end_offset=100, behind_ms=0, directory_id="new")
    (text,) = problems(diagnose([], [live(voters=voters, observers=(stray,))]))
    assert text.startswith("node 3 runs with directory.id new, but the voter of that id has d3")


def test_a_clock_that_differs_is_told() -> None:
    found = diagnose([], [live(0, 0, 0, clock_difference_ms=-5_000)])
    assert any("differs from this one by -5000 ms" in finding.text for finding in found)
    assert [finding.level for finding in found].count(Level.WARNING) == 1


def test_an_endpoint_that_nobody_reaches_is_a_problem() -> None:
    (text,) = problems(diagnose([], [live(0, 0, 0, unreachable={"c:9093": "refused"})]))
    assert text == "voter endpoint c:9093 cannot be reached from here: refused"


def test_a_voter_that_is_stuck_is_a_problem() -> None:
    (text,) = problems(diagnose([], [live(0, 60_000, 5)]))
    assert "voter 2 has not been caught up for 60 s" in text


def test_nobody_who_knows_a_leader_is_a_problem() -> None:
    found = diagnose([], [LiveFacts(name="h:1", failure="refused")])
    assert problems(found) == [
        "h:1 does not answer: refused",
        "nobody knows a leader of the quorum",
    ]


def test_two_leaders_of_one_epoch_are_a_problem() -> None:
    found = diagnose([], [live(0, 0, 0), live(0, 0, 0, name="h:2", leader_id=2)])
    assert any("two leaders of one epoch" in text for text in problems(found))


@pytest.mark.parametrize(
    ("behind_ms", "node_id", "is_safe"),
    [
        ((0, 0, 0), 3, True),
        ((0, 0, 60_000), 3, True),  # the one that is stuck
        ((0, 60_000, 0), 3, False),  # one of two would be left
        ((0,), 1, False),
        ((0, 0), 2, True),
        ((0, 0), 9, True),  # no voter
        ((0, 0, 0, 60_000, -1), 1, False),
        ((0, 0, 0, 60_000, -1), 4, True),
    ],
)
def test_a_voter_may_go_if_a_majority_of_the_rest_is_caught_up(
    behind_ms: tuple[int, ...], node_id: int, is_safe: bool
) -> None:
    assert (removable(live(*behind_ms), node_id).level is Level.FINE) == is_safe
