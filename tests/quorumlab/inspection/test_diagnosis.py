"""What the doctor finds, from made-up facts."""

import pytest

from quorumlab.inspection.diagnosis import diagnose
from quorumlab.inspection.facts import Finding, Level, LiveFacts, LiveVoter, ReplicaFacts
from quorumlab.inspection.identity import Voter, VoterSet
from tests.quorumlab.inspection.made_up_facts import DYNAMIC, STATIC, live, replica


def problems(found: list[Finding]) -> list[str]:
    return [finding.text for finding in found if finding.level is Level.PROBLEM]


def test_a_sound_cluster_has_no_problem() -> None:
    found = diagnose([replica(1), replica(2), replica(3)], [live(0, 5, 9)])
    assert problems(found) == []


def test_a_node_without_a_quorum_needs_no_leader() -> None:
    """One of a design on ZooKeeper."""
    there = LiveFacts(name="h:1", no_quorum="h:1 keeps its metadata in ZooKeeper", cluster_id="A")
    assert problems(diagnose([], [there])) == []
    assert problems(diagnose([], [there, LiveFacts(name="h:2", failure="refused")])) == [
        "h:2 does not answer: refused",
        "nobody knows a leader of the quorum",
    ]


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


def test_a_voter_whose_log_is_not_needed_may_be_absent() -> None:
    """Two of three logs hold all that is committed: nothing is to be warned of."""
    found = diagnose([replica(1), replica(2)], [])
    (absent,) = [finding for finding in found if "were not given" in finding.text]
    assert (absent.level, absent.advice) == (Level.FINE, "")


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


def test_a_voter_that_this_leader_never_heard_may_have_been_caught_up_before() -> None:
    (text,) = problems(diagnose([], [live(0, -1, 5)]))
    assert "voter 2 has not been caught up since node 1 began to lead epoch 3" in text


def test_nobody_who_knows_a_leader_is_a_problem() -> None:
    found = diagnose([], [LiveFacts(name="h:1", failure="refused")])
    assert problems(found) == [
        "h:1 does not answer: refused",
        "nobody knows a leader of the quorum",
    ]


def test_two_leaders_of_one_epoch_are_a_problem() -> None:
    found = diagnose([], [live(0, 0, 0), live(0, 0, 0, name="h:2", leader_id=2)])
    assert any("two leaders of one epoch" in text for text in problems(found))


def everything_committed(*replicas: ReplicaFacts) -> bool:
    found = diagnose(replicas, [])
    return any("everything committed is in the longest" in finding.text for finding in found)


def test_a_majority_of_logs_holds_what_is_committed() -> None:
    assert everything_committed(replica(1), replica(2))
    assert not everything_committed(replica(1), replica(1, name="a copy"))


@pytest.mark.parametrize(
    "forgetful",
    [
        replica(2, end_offset=0, last_epoch=-1, voters=VoterSet()),
        replica(2, problems=("the checksum of the batch of offset 7 is wrong",)),
        replica(2, directory_id="new"),
    ],
    ids=["wiped", "damaged", "formatted anew"],
)
def test_a_log_that_lost_something_is_none_of_a_majority(forgetful: ReplicaFacts) -> None:
    """What it acknowledged may be on the voter that is not here."""
    assert not everything_committed(replica(1, voters=DYNAMIC), forgetful)


def test_node_0_is_a_node_like_others() -> None:
    voters = VoterSet(voters=(Voter(id=0, directory_id="d0"),), is_dynamic=True)
    texts = problems(diagnose([replica(0, directory_id="new", voters=voters)], []))
    assert any("the voter of that id has d0: it was formatted anew" in text for text in texts)


def test_static_voters_that_differ_are_a_problem() -> None:
    fewer = VoterSet(voters=STATIC.voters[:2], source="LeaderChange")
    texts = problems(diagnose([replica(1), replica(2, voters=fewer), replica(3)], []))
    assert texts == ["static voters are not the same everywhere: 1, 2 in node-2; 1, 2, 3 in node-1"]
