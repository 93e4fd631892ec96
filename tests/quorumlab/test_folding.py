"""What people read fits a terminal of 80 columns, and no word is lost; a pipe gets whole lines."""

import json
import re
import shlex
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest

from quorumlab.cli import main
from quorumlab.folding import fold, folded
from quorumlab.output import _widths, topic_lines
from quorumlab.verbs.quorum import _replication_lines, _status_lines

LOG = "tests/golden/kraft3/node-1"
UUID = "pdiwR9OcRf2MnYliq_XYgA"
TOPIC: dict[str, Any] = {
    "topic": "orders",
    "topic_id": UUID,
    "partition_count": 1,
    "replication_factor": 3,
    "configs": {"retention.ms": "1000"},
    "partitions": [{"partition": 0, "leader": 2, "replicas": [2, 3, 1], "isr": [2, 3]}],
}
REPLICA = {
    "NodeId": 103,
    "DirectoryId": UUID,
    "LogEndOffset": 100,
    "Lag": 0,
    "LastFetchTimestamp": 1795852230988,
    "LastCaughtUpTimestamp": 1795852230988,
    "Status": "Follower",
}
STATUS = {"ClusterId": UUID, "CurrentVoters": [{"id": 1, "directoryId": UUID}] * 3}


def at_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if stdout were one of 80 columns. Not a fixture: stdout is another one while these run."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)


def plain(lines: Iterable[str]) -> list[str]:
    return [re.sub(r"\x1b\[[\d;]*m", "", line) for line in lines]


@pytest.mark.parametrize(
    "line",
    [
        f"inspect summary {LOG}",
        "inspect dump tests/golden/data/node-1",
        f"inspect dump --hex --offsets 100..102 {LOG}",
        f"inspect at end {LOG}",
        f"inspect diff 20 40 {LOG}",
        f"inspect why six-0 {LOG}",
        f"inspect verify {LOG}",
        f"doctor {LOG}",
        "chaos scenario 8",
        "chaos sim --plants",
        "chaos sim --seed 7 --until-event 80 --trace full",
        pytest.param("chaos scenario all", marks=pytest.mark.extra),
        pytest.param("chaos museum C1", marks=pytest.mark.extra),
        "topics --help",
    ],
)
def test_output_fits_the_terminal(
    line: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    at_terminal(monkeypatch)
    main(shlex.split(line))
    shown = plain(capsys.readouterr().out.splitlines())
    assert shown
    assert [each for each in shown if len(each) > 80] == []


def test_what_is_too_wide_in_kafkas_layout_is_told_in_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    at_terminal(monkeypatch)
    topic = plain(topic_lines(TOPIC))
    assert topic[0] == f"Topic: orders  TopicId: {UUID}"
    assert topic[-2:] == [
        "PARTITION  LEADER  REPLICAS  ISR  ELR  LAST KNOWN ELR",
        "0          2       2,3,1     2,3  N/A  N/A",
    ]
    rows = plain(_replication_lines([REPLICA], SimpleNamespace(human_readable=False)))
    assert rows[-1].split() == [str(value) for value in REPLICA.values()]
    voters = "\n".join(folded(_status_lines(STATUS), 25)).partition("CurrentVoters:")[2]
    assert json.loads(voters) == STATUS["CurrentVoters"]
    assert max(map(len, [*topic, *rows, *voters.splitlines()])) <= 80


def test_a_pipe_gets_kafkas_layout() -> None:
    head, row = topic_lines(TOPIC)
    assert (head.count("\t"), row.count("\t")) == (4, 7)
    head, row = _replication_lines([REPLICA], SimpleNamespace(human_readable=False))
    assert len(head) == len(row) > 80
    assert len([*_status_lines(STATUS)]) == 2


def test_no_word_is_lost_and_what_is_to_be_copied_stays_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    at_terminal(monkeypatch)
    command = f"`quorumlab node-start 2 --dir {'/long' * 16}`"
    line = f"  a node is dead, {'and so on ' * 8}{command} starts it"
    pieces = [*fold(line)]
    assert len(pieces) > 2
    assert " ".join(pieces).split() == line.split()
    assert any(command in piece for piece in pieces)
    assert all(piece.startswith("    ") for piece in pieces[1:])


@pytest.mark.parametrize(
    ("cells", "room", "expected"),
    [
        ([["a", "b"], ["x" * 5, "y" * 5]], 80, (2, [5, 5])),
        ([["two words", "b"], ["x" * 3, "y" * 9]], 16, (2, [5, 9])),
        ([["a", "b"], ["x" * 10, "y" * 10]], 21, (1, [10, 10])),
        ([["a", "b"], ["x" * 30, "y" * 10]], 31, (1, [20, 10])),
    ],
)
def test_words_of_a_table_stay_whole_if_they_can(
    cells: list[list[str]], room: int, expected: tuple[int, list[int]]
) -> None:
    assert _widths(cells, room) == expected
