"""Browsing a state, one line at a time."""

from pathlib import Path

import pytest

from quorumlab.inspection.browser import BrowseError, Browser
from quorumlab.inspection.states import Moment, replay
from quorumlab.inspection.target import Target, find_target
from quorumlab.inspection.tree import Node, tree_of

GOLDEN = Path(__file__).parents[2] / "golden"


def load(place: str) -> Node:
    target = find_target(str(GOLDEN / "kraft3/node-1"))
    assert isinstance(target, Target)
    moment = Moment() if place == "end" else Moment(offset=int(place))
    return tree_of(replay(target, moment).image)


@pytest.fixture(scope="module")
def tree() -> Node:
    return load("end")


@pytest.fixture
def browser(tree: Node) -> Browser:
    return Browser(tree, load)


def told(browser: Browser, *lines: str) -> list[str]:
    """What the last of the lines says."""
    said: list[str] = []
    for line in lines:
        said = list(browser.run(line))
    return said


def test_the_top_is_listed_with_values_and_directories(browser: Browser) -> None:
    assert told(browser, "ls")[:3] == ["offset = 167", "epoch = 2", "features/"]


def test_paths_are_relative_absolute_and_up(browser: Browser) -> None:
    assert told(browser, "cd topics/six", "ls") == [
        "id = LE4ntTROQaW0-Un9CY3IoA",
        "configs/",
        "partitions/",
    ]
    assert told(browser, "cd ../safe/./partitions", "pwd") == ["/topics/safe/partitions"]
    assert told(browser, "ls /features")[0] == "eligible.leader.replicas.version = 1"
    assert told(browser, "cd", "pwd") == ["/"]


def test_cat_shows_everything_below_with_its_path(browser: Browser) -> None:
    shown = told(browser, "cd /topics/safe", "cat partitions/0")
    assert "/topics/safe/partitions/0/leader = -1" in shown
    assert "/topics/safe/partitions/0/replicas = [1, 2, 3]" in shown


def test_patterns_match_within_one_name(browser: Browser) -> None:
    assert told(browser, "ls /topics/*/partitions/[01]/leader_epoch") == [
        "/topics/safe/partitions/0/leader_epoch = 3",
        "/topics/safe/partitions/1/leader_epoch = 4",
        "/topics/six/partitions/0/leader_epoch = 4",
        "/topics/six/partitions/1/leader_epoch = 3",
    ]


def test_find_looks_at_names_and_values(browser: Browser) -> None:
    assert told(browser, "find retention.ms = 3600000") == [
        "/topics/six/configs/retention.ms = 3600000",
        "/configs/topic/six/retention.ms = 3600000",
    ]


def test_another_time_keeps_the_place_if_it_is_there(browser: Browser) -> None:
    assert told(browser, "cd topics/six", "at 30") == ["after offset 30, epoch 1"]
    assert told(browser, "ls partitions/0")[0] == "leader = 1"
    assert told(browser, "at 20", "pwd") == ["/"]
    assert told(browser, "at end") == ["after offset 166, epoch 2"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("foo", "no such command"),
        ("ls /nowhere", "there is no 'nowhere' there"),
        ("cd /topics/six/id", "not one directory"),
        ("cd /topics/*", "not one directory"),
        ("ls /topics/x*", "there is no"),
        ("at never", "invalid literal"),
        ("at", "at which offset"),
        ("find", "find what"),
        ("ls 'open", "No closing quotation"),
    ],
)
def test_a_line_that_cannot_be_obeyed_says_why(browser: Browser, line: str, reason: str) -> None:
    with pytest.raises(BrowseError, match=reason):
        told(browser, line)


@pytest.mark.parametrize(
    ("line", "completions"),
    [
        ("c", ["cd", "cat"]),
        ("ls to", ["topics/"]),
        ("ls topics/s", ["topics/safe/", "topics/six/"]),
        ("cat /topics/six/i", ["/topics/six/id"]),
        ("cat /br", ["/brokers/"]),
        ("ls nowhere/", []),
        ("ls offset/", []),
    ],
)
def test_what_may_follow_is_offered(browser: Browser, line: str, completions: list[str]) -> None:
    assert browser.completions(line, line.rpartition(" ")[2]) == completions


def test_every_command_of_the_help_is_there(browser: Browser) -> None:
    commands = [line.split()[0].rstrip(",") for line in told(browser, "help")[:-2]]
    assert set(commands) == {"ls", "cd", "cat", "tree", "find", "at", "pwd"}
