"""The recorded terminals of docs/recordings are what the commands print today."""

import getpass
import re
import shlex
import socket

import pytest

from quorumlab.arguments import parse as parse_arguments
from quorumlab.cli import main, root
from tests.recordings.__main__ import FOLDER
from tests.recordings.cast import Cast, parse
from tests.recordings.picture import svg
from tests.recordings.screen import Screen
from tests.recordings.sessions import DIRECTORY, SESSIONS, pictured, recorded

ROOT = FOLDER.parent.parent
BYTES_MAX = 200_000
DOCUMENTS = ("README.md", "docs/inspect.md", "docs/learn.md")
# Session -> the file that prints it, and words of it that the recording must show.
SOURCES = {
    "demo": (
        "quorumlab/verbs/two_kills.py",
        (
            "starting 3 controllers and 3 brokers as six processes",
            "its session has run out: the controller fences it, and elects",
            "a change of metadata is committed: a new topic",
            "every partition has three in-sync replicas again",
            "the last records of the metadata log, as controller",
            "acknowledged records stand exactly at their offset",
            "the whole demo took",
        ),
    ),
    "top": ("quorumlab/top/screen.py", ("METADATA LOG, end", "j/k select, Enter why, q quit")),
}
A_PLACE = re.compile(r"(?<![\w/.\"])/(?:tmp|home|root|work|usr|var|opt)\b[^\s`\\,<]*")
A_HEADING = re.compile("[A-Z ]+")
A_TIME = re.compile(r"\d\d:\d\d:\d\d")


def cast_of(name: str) -> Cast:
    return parse((FOLDER / f"{name}.cast").read_text())


def shown(cast: Cast) -> list[str]:
    return [line for line in cast.paper().lines() if line]


def test_every_session_has_a_recording_and_a_picture_and_nothing_else_is_there() -> None:
    expected = {f"{name}.{kind}" for name in SESSIONS for kind in ("cast", "svg")}
    assert {file.name for file in FOLDER.iterdir()} == expected


@pytest.mark.parametrize("name", SESSIONS)
def test_recording_is_small_fits_80_columns_and_ends_in_time(name: str) -> None:
    cast = cast_of(name)
    assert (FOLDER / f"{name}.cast").stat().st_size < BYTES_MAX
    assert cast.paper().overrun == set()
    assert 2 < cast.events[-1][0] < 90
    assert parse(cast.text()) == cast


@pytest.mark.parametrize("name", SESSIONS)
def test_recording_begins_with_what_the_documents_name_and_the_command_takes(name: str) -> None:
    cast = cast_of(name)
    lines = cast.command_lines()
    assert cast.events[0] == (0.0, f"$ {SESSIONS[name].lines[0]}\r\n")
    assert tuple(lines) == SESSIONS[name].lines
    documents = "".join((ROOT / document).read_text() for document in DOCUMENTS)
    assert f"recordings/{name}.cast" in documents
    for line in lines:
        program, *words = shlex.split(line)
        assert program == "quorumlab"
        assert callable(parse_arguments(root(), words).run)
        assert line in documents, "name it where the recording is linked"


@pytest.mark.parametrize("name", SESSIONS)
def test_recording_says_nothing_of_the_machine(name: str) -> None:
    for kind in ("cast", "svg"):
        text = (FOLDER / f"{name}.{kind}").read_text()
        places = set(A_PLACE.findall(text))
        assert {place for place in places if not place.startswith(str(DIRECTORY))} == set()
        for word in (getpass.getuser(), socket.gethostname()):
            assert re.search(rf"\b{re.escape(word)}@|@{re.escape(word)}\b", text) is None


@pytest.mark.parametrize("name", SESSIONS)
def test_picture_is_of_the_recording(name: str) -> None:
    cast = cast_of(name)
    assert svg(pictured(name, cast), cast.title) == (FOLDER / f"{name}.svg").read_text()


@pytest.mark.parametrize("name", SOURCES)
def test_recording_shows_what_the_code_says_today(name: str) -> None:
    file, words = SOURCES[name]
    source = (ROOT / file).read_text()
    heard = "".join(said for _, said in cast_of(name).events)
    for word in words:
        assert word in source, f"{file} says it in other words: record {name} anew"
        assert word in heard


def test_headings_of_top_are_those_of_today() -> None:
    source = (ROOT / "quorumlab/top/screen.py").read_text()
    names = set(re.findall(r'"([A-Z][A-Z/ ]+)"', source))
    last = "\n".join(pictured("top", cast_of("top")).lines())
    assert len(names) > 10
    assert {name for name in names if name not in last} == set()


def at_terminal(line: str, capsys: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch) -> str:
    """What it prints on one of 80 columns."""
    patch.setenv("COLUMNS", "80")
    patch.setenv("NO_COLOR", "1")
    for stream in ("stdout", "stderr"):
        patch.setattr(f"sys.{stream}.isatty", lambda: True)
    main(shlex.split(line)[1:])
    said = capsys.readouterr()
    return re.sub(r"\x1b\[[\d;]*m", "", said.out + said.err)


def test_scenario_is_played_as_it_was_recorded(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    played = [
        text
        for line in SESSIONS["scenario"].lines
        for text in (f"$ {line}", *at_terminal(line, capsys, monkeypatch).splitlines())
    ]
    assert [line.rstrip() for line in played if line.strip()] == shown(cast_of("scenario"))


def test_inspect_prints_what_has_the_shape_of_the_recording(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    log = "tests/golden/kraft3/node-1"
    recording = shown(cast_of("inspect"))
    story = at_terminal(f"quorumlab inspect why six-0 {log}", capsys, monkeypatch).splitlines()
    assert shape(recording[1]).partition("[")[0] == shape(story[0]).partition("[")[0]
    state = at_terminal(f"quorumlab inspect at end {log}", capsys, monkeypatch).splitlines()
    headings, mine = (
        {" ".join(line.split()) for line in lines if A_HEADING.fullmatch(line)}
        for lines in (state, recording)
    )
    assert len(mine) > 3
    assert mine - headings == set()


def shape(line: str) -> str:
    """With each number, each run of blanks, each list and each id as one."""
    line = re.sub(r"\b[\w-]{22}\b", "ID", line)
    line = re.sub(r"\d+(?:[.,:]\d+)*", "N", line)
    return re.sub(r"\s+", " ", line).strip()


@pytest.mark.extra
def test_demo_recorded_anew_has_the_shape_of_the_recording() -> None:
    anew, before = recorded("demo"), cast_of("demo")
    told, expected = (
        [shape(line) for line in shown(cast) if not A_TIME.search(line)] for cast in (anew, before)
    )
    assert told == expected
    assert anew.paper().overrun == set()


def test_planted_overrun_is_seen_unless_it_is_wiped_out() -> None:
    screen = Screen(columns=10, rows=5)
    screen.feed("eleven char")
    assert screen.overrun == {0}
    screen.feed("\r\x1b[2K\x1b[A\x1b[2Kshort\r\n")
    assert (screen.overrun, screen.lines()[0]) == (set(), "short")


def test_screen_scrolls_and_gives_the_first_one_back() -> None:
    screen = Screen(columns=10, rows=2)
    screen.feed("one\r\ntwo\r\nthree\x1b[?1049h\x1b[H\x1b[7mtop\x1b[0m")
    assert screen.lines() == ["top", ""]
    assert [text for *_, text, style in screen.runs() if style.is_reverse] == ["top"]
    screen.feed("\x1b[?1049l!")
    assert screen.lines() == ["two", "three!"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        '{"version": 1, "width": 80, "height": 24, "title": ""}',
        '{"version": 2, "width": 81, "height": 24, "title": ""}',
        '{"version": 2, "width": 80, "height": 24, "title": ""}\n[0, "i", "typed"]',
        '{"version": 2, "width": 80, "height": 24, "title": ""}\n[2, "o", ""]\n[1, "o", ""]',
    ],
)
def test_what_is_no_recording_of_ours_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse(text)


def test_planted_place_is_seen() -> None:
    found = A_PLACE.findall("in /tmp/quorumlab-demo/data, /home/somebody/data and /tmp/x`")
    assert found == ["/tmp/quorumlab-demo/data", "/home/somebody/data", "/tmp/x"]
