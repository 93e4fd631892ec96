"""Every shipped scenario says what the simulator does, and shows the bug that it is about."""

import re
from pathlib import Path

import pytest
from msgspec import structs

from controller.metadata import alter_partition
from controller.metadata.image import MetadataImage
from controller.metadata.partitions import PartitionState
from jepsen_like.planted.every_bug import planted
from jepsen_like.scenarios.performance import play
from jepsen_like.scenarios.script import names, scenario
from jepsen_like.scenarios.steady_streams import SteadyStreams
from quorum.raft import voters
from wire.errors import ErrorCode
from wire.messages.partitions import IsrPartition

# scenario -> a bug that it is about
ABOUT = {
    "01-an-election": "stands_without_asking",
    "03-no-majority-no-commit": "never_checks_quorum",
    "04-a-leader-dies": "resumes_leadership",
    "05-pre-vote": "grants_pre_votes_while_following",
    "06-a-split-vote": "answers_before_saving",
    "07-the-longer-log-wins": "compares_offsets_first",
    "08-a-diverging-log": "keeps_what_was_cut_off",
    "09-a-partitioned-leader": "never_checks_quorum",
    "10-a-leader-of-an-earlier-epoch": "commits_earlier_epochs",
    "11-power-loss": "acknowledges_before_sync",
    "12-the-leader-counts-itself-late": "counts_before_own_sync",
    "13-a-vote-survives-a-crash": "forgets_its_vote",
    "14-a-leader-says-goodbye": "refuses_pre_votes_for_any_leader",
    "15-a-snapshot": "serves_who_is_too_far_behind",
    "16-adding-a-voter": "counts_voters_once_committed",
    "17-removing-the-leader": "leads_on_though_removed",
    "18-a-disk-that-was-lost": "takes_any_disk_for_the_voters",
    "19-brokers-join": "decides_at_the_end_of_the_log",
    "20-a-record-of-a-partition": "shows_consumers_the_end",
    "21-the-isr-shrinks-and-expands": "does_not_look_after_an_answer",
    "22-too-few-in-sync": "is_content_with_any_isr",
    "23-a-change-that-comes-too-late": "asks_once",
    "24-a-broker-dies": "waits_for_whoever_fetches",
    "25-a-controlled-shutdown": "elects_whoever_is_first",
    "26-partition-logs-diverge": "tells_no_epoch",
    "27-a-leader-that-does-not-know": "acknowledges_at_once",
    "28-an-idempotent-producer": "takes_repetitions",
    "29-the-controller-dies": "keeps_the_leader_epoch",
    "30-the-last-in-sync": "elects_uncleanly_unasked",
    "31-an-unclean-election": "goes_on_recovering",
    "32-eligible-leader-replicas": "elects_uncleanly_unasked",
    "33-an-unclean-stop": "trusts_every_stop",
}


@pytest.mark.parametrize("name", names())
def test_a_scenario_says_what_comes(name: str) -> None:
    played = play(scenario(name))
    assert not played.failures
    assert "\n".join(played.differences()) == ""


def test_a_leader_that_is_content_with_less_than_a_majority_shows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(voters, "majority_offset", lambda ends: max(ends.values()))
    assert play(scenario("02-replication-and-commit"), is_judged=False).differences()


def test_a_controller_that_minds_no_partition_epoch_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = alter_partition.refusal

    def refusal(
        image: MetadataImage, state: PartitionState, asked: IsrPartition, *, broker_id: int
    ) -> ErrorCode:
        newest = structs.replace(asked, partition_epoch=state.partition_epoch)
        return shipped(image, state, newest, broker_id=broker_id)

    monkeypatch.setattr(alter_partition, "refusal", refusal)
    differences = play(scenario("23-a-change-that-comes-too-late"), is_judged=False).differences()
    assert "-1 refuses that to 2: INVALID_UPDATE_VERSION" in differences


def test_each_is_about_a_bug() -> None:
    assert set(names()) - {*ABOUT} == {"02-replication-and-commit"}, "which has a test of its own"


@pytest.mark.parametrize("name", ABOUT)
def test_a_planted_bug_shows(name: str) -> None:
    with planted(ABOUT[name]):
        assert play(scenario(name), is_judged=False).differences()


def test_what_a_bug_does_is_told_as_a_difference() -> None:
    with planted("forgets_its_vote"):
        differences = play(scenario("13-a-vote-survives-a-crash"), is_judged=False).differences()
    assert "-2 does not vote for 3 in epoch 1" in differences
    assert "+2 votes for 3 in epoch 1" in differences
    assert "+3 leads epoch 1" in differences, "beside 1"


def test_a_broken_invariant_ends_a_scenario() -> None:
    with planted("forgets_its_vote"):
        played = play(scenario("13-a-vote-survives-a-crash"))
    assert [failure.split(":")[:2] for failure in played.failures] == [["broken", " R-VD"]]
    assert played.outputs[-1] == ()


def test_a_story_does_not_rest_on_what_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all streams, only that of a broker is random: it gives ids to sessions."""
    steady = SteadyStreams.__call__
    monkeypatch.setattr(SteadyStreams, "__call__", lambda self, name: steady(self, f"{name}/other"))
    for name in ("10-a-leader-of-an-earlier-epoch", "29-the-controller-dies", "33-an-unclean-stop"):
        assert not play(scenario(name)).differences()


def test_they_are_numbered_and_say_their_source() -> None:
    shipped = names()
    assert [int(name.partition("-")[0]) for name in shipped] == [*range(1, len(shipped) + 1)]
    for name in shipped:
        head = "\n".join(scenario(name).blocks[0].before)
        assert re.search(r"^# Source: .*(Raft|KIP|KAFKA|Kafka)", head, re.MULTILINE), name


LEARN = Path(__file__).parents[3] / "docs" / "learn.md"


@pytest.mark.parametrize("name", names())
def test_the_walk_quotes_the_files(name: str) -> None:
    """docs/learn.md names each file, and what it quotes below stands there, in that order."""
    _, found, section = LEARN.read_text(encoding="utf-8").partition(f"`{name}.txt`")
    assert found, name
    section = re.split(r"\n## |`\d\d-[a-z0-9-]+\.txt`", section)[0]
    quoted = re.findall(r"```text\n(.*?)```", section, re.DOTALL)
    assert quoted, name
    lines = iter(play(scenario(name)).text.splitlines())
    for line in "".join(quoted).splitlines():
        assert line == "..." or line in lines, f"{line!r} is not there, or not behind the others"
