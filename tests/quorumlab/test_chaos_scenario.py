"""`quorumlab chaos scenario`: what it prints and writes, and its exit codes."""

from pathlib import Path

import pytest

from jepsen_like.scenarios.language.script import names
from jepsen_like.scenarios.schedules import ALL_SCHEDULES, HARM, vocabulary
from quorumlab.cli import main
from tests.quorumlab.pasted import pasted

MINE = "# Mine.\n\nstart 1\ndeliver until a leader\n----\n"


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.txt"
    path.write_text(MINE)
    return path


def test_without_a_name_it_lists_what_there_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quorumlab.verbs.chaos_scenario.play", None)
    assert main(["chaos", "scenario"]) == 0
    said = capsys.readouterr().out
    lines = said.splitlines()
    assert lines[1].split() == ["01", "An", "election"]
    scenarios, schedules = lines[1 : lines.index("")], lines[lines.index("") + 2 : -2]
    assert len(scenarios) == len(names())
    assert {line.split()[0] for line in schedules} == {*ALL_SCHEDULES, *HARM}
    assert pasted(said) == [["quorumlab", "chaos", "scenario", "01"]]


@pytest.mark.parametrize("name", ["1", "01", "01-an-election"])
def test_a_number_or_a_name_plays_one(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["chaos", "scenario", name]) == 0
    said = capsys.readouterr().out
    assert said.startswith("# An election.\n")
    assert "\n1 leads epoch 1\n" in said


SCHEDULE = """\
# c hears nothing for a while.
# Finds: nothing

start cluster, brokers=3
repeat 2 times
    run 100 ms
hold fetches of c from a

# And on.
produce x at a
finish
"""


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("kip_279", "metadata: a leads in epoch 2; in sync: a, b"),
        ("voter_is_cut_off", "3 voters, kraft.version 0"),
        ("herd", "the design is zk-v2"),
        ("told_and_taken_back", "client: reads of c: ! at 0"),
    ],
)
def test_a_schedule_is_played_with_what_came_of_it(
    name: str, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["chaos", "scenario", name]) == 0
    said = capsys.readouterr().out
    assert said.startswith("# ")
    assert f" ms  {line}\n" in said


def test_a_schedule_with_its_bug_is_broken(capsys: pytest.CaptureFixture[str]) -> None:
    plant = "answers_for_any_epoch"
    assert main(["chaos", "scenario", "kip_279", "--plant", plant]) == 4
    assert "broken: D-THW" in capsys.readouterr().err


def without_output(text: str) -> list[str]:
    """What came of the commands stands behind a line `----`, up to an empty one."""
    kept, is_output = [], False
    for line in text.splitlines():
        is_output = line == "----" or (is_output and bool(line))
        kept += [] if is_output or not line else [line]
    return kept


def test_rewrite_writes_what_came_of_a_schedule(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mine.txt"
    path.write_text(SCHEDULE)
    assert main(["chaos", "scenario", str(path)]) == 0
    assert path.read_text() == SCHEDULE
    assert main(["chaos", "scenario", str(path), "--rewrite"]) == 0
    written = path.read_text()
    assert "\n    run 100 ms\nhold fetches of c from a\n----\n" in written
    assert without_output(written) == [line for line in SCHEDULE.splitlines() if line]
    assert main(["chaos", "scenario", str(path)]) == 0
    assert main(["chaos", "scenario", str(path), "--rewrite"]) == 0
    assert capsys.readouterr().out.count("written") == 1, "it is as it has to be"
    path.write_text(written.replace(" ms  ", " ms, "))
    assert main(["chaos", "scenario", str(path)]) == 4, "it says something else"


@pytest.mark.parametrize(
    ("command", "line", "problem"),
    [
        ("start cluster, brokers=3", "start cluster, voters=3", "4: `start cluster, voters=3`"),
        ("start cluster, brokers=3", "start clusters, brokers=3", "4: `start clusters, brokers=3`"),
        (
            "start cluster, brokers=3",
            "start quorum, votres=3",
            "4: `start quorum, votres=3`: no op",
        ),
        (
            "start cluster",
            "start cluster, eager=1",
            "4: `start cluster, eager=1, brokers=3`: no option 'eager': there are brokers, ",
        ),
        (
            "start cluster",
            "start cluster, brokrs=1",
            "4: `start cluster, brokrs=1, brokers=3`: no option 'brokrs': did you mean 'brokers'? ",
        ),
        (
            "    run 100 ms",
            "    isolate laeder",
            "6: `isolate laeder` cannot be read: there is no ",
        ),
        (
            "    run 100 ms",
            "    isolate z",
            "6: `isolate z` cannot be read: there is no node z: the nodes are 1, 2, 3, 4, a, b, c",
        ),
        ("    run 100 ms", "    run 100", "6: `run 100` cannot be read: write `run MS ms`"),
        ("produce x at a", "produce x at z", "10: `produce x at z` cannot be read"),
        ("finish", "do what_nobody_knows", "11: there are no steps `what_nobody_knows`"),
        ("finish", "deliver until a dances", "11: "),
        ("finish", "deliver until z is acknowledged", "11: `deliver until z is acknowledged`"),
    ],
)
def test_a_wrong_command_is_named_with_its_line(
    tmp_path: Path, command: str, line: str, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mine.txt"
    path.write_text(SCHEDULE.replace(command, line))
    assert main(["chaos", "scenario", str(path)]) == 2
    assert f"{path}:{problem}" in capsys.readouterr().err


def test_several_are_told_in_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["chaos", "scenario", "1", "2"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "01-an-election.txt: An election"
    assert len(said) == 2


def test_a_file_that_says_something_else(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["chaos", "scenario", str(mine)]) == 4
    said = capsys.readouterr().out.splitlines()
    assert said[:2] == [f"--- {mine}", f"+++ {mine} as played"]
    assert "+1 leads epoch 1" in said
    assert mine.read_text() == MINE, "without --rewrite nothing is written"


def test_rewrite_writes_what_came(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["chaos", "scenario", str(mine), "--rewrite"]) == 0
    assert capsys.readouterr().out == f"{mine}: written\n"
    assert "\n1 leads epoch 1\n" in mine.read_text()
    assert main(["chaos", "scenario", str(mine)]) == 0
    assert main(["chaos", "scenario", str(mine), "--rewrite"]) == 0
    assert "written" not in capsys.readouterr().out, "it is as it has to be"


def test_rewrite_does_not_bless_what_was_expected_in_vain(
    mine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = MINE.replace("----", "expect no leader\n----")
    mine.write_text(text)
    assert main(["chaos", "scenario", str(mine), "--rewrite"]) == 4
    assert "not written: not so: no leader" in capsys.readouterr().err
    assert mine.read_text() == text


def test_a_bug_is_planted_for_one_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["chaos", "scenario", "13", "--plant", "forgets_its_vote"]) == 4
    printed = capsys.readouterr()
    assert "+3 leads epoch 1" in printed.out.splitlines()
    assert "broken: R-VD" in printed.err
    assert main(["chaos", "scenario", "13"]) == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nothing-like-it"], "no scenario nothing-like-it, and no such file"),
        (["99"], "no scenario 99"),
        (["voter_is_cut_of"], "no such file: did you mean 'voter_is_cut_off'? `quorumlab"),
        (["/"], "/ is a directory: name a file in it"),
        (["1", "--plant", "forgets_its_votes"], "did you mean 'forgets_its_vote'?"),
        (["1", "--rewrite"], "no scenario 1, and no such file"),
        (["FILE", "--rewrite", "--plant", "forgets_its_vote"], "leave out --plant"),
    ],
)
def test_what_makes_no_sense_is_a_usage_error(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["chaos", "scenario", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_a_file_that_is_no_text(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine.write_bytes(b"\xff\xfe")
    assert main(["chaos", "scenario", str(mine)]) == 1
    assert "not UTF-8" in capsys.readouterr().err


def test_the_commands_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["chaos", "scenario", "--commands"]) == 0
    said = capsys.readouterr().out
    assert "crash NODE losing unsynced" in said
    for parameter in ("`among`", "`node`", "`other`", "`release_reads`"):
        assert parameter not in said


def test_no_two_commands_have_one_meaning() -> None:
    told = [(row["for"], row["meaning"]) for row in vocabulary()]
    assert len({*told}) == len(told)
