"""What is recorded, and how: real commands, in a directory that says nothing of the machine."""

import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from subprocess import CalledProcessError
from typing import NamedTuple

from jepsen_like.python_children import python_environment
from tests.recordings.cast import Cast, Event
from tests.recordings.screen import Screen
from tests.recordings.terminal import Act, Place, type_line

__all__ = ["DIRECTORY", "SESSIONS", "Session", "pictured", "recorded"]

DIRECTORY = Path("/tmp/quorumlab-demo")
_PAUSE_SECONDS = 2.0  # to read, before the next line is typed
_LEADER = """$(quorumlab topics describe orders --format json \\
    | sed -n 's/.*"leader": \\([0-9]*\\).*/\\1/p' | head -1)"""  # of orders-0
_CLUSTER = (
    "quorumlab up --detach",
    "quorumlab topics create orders --partitions 3 --replication-factor 3",
    "seq 20 | quorumlab produce orders",
)


class Session(NamedTuple):
    title: str
    lines: tuple[str, ...]  # as the documents name them
    before: tuple[str, ...] = ()  # not shown
    acts: tuple[Act, ...] = ()  # while the only line runs
    after: tuple[str, ...] = ()  # not shown
    is_pictured: Callable[[Screen], bool] = lambda _: True  # the last such screen


def _is_told(*words: str, hides: str | None = None) -> Callable[[Screen], bool]:
    def is_told(screen: Screen) -> bool:
        text = "\n".join(screen.lines())
        return all(word in text for word in words) and (hides is None or hides not in text)

    return is_told


SESSIONS = {
    "bug": Session(
        "a bug is planted, convicted by what clients saw, and shrunk to one fault",
        (
            "quorumlab chaos sim --workload log --plant acknowledges_at_once --out runs",
            "quorumlab chaos shrink runs/seed-0",
        ),
        is_pictured=_is_told("quorumlab chaos sim", "lost-write", "still fails: 1 faults"),
    ),
    "demo": Session(
        "two kills, and every record accounted for",
        ("quorumlab demo",),
        is_pictured=_is_told("acknowledged records stand exactly", "the whole demo took"),
    ),
    "top": Session(
        "top, while another terminal kills broker 1 and starts it again",
        ("quorumlab top",),
        before=_CLUSTER,
        acts=(
            Act(4, line="quorumlab node-kill 1"),
            Act(9.5, line="quorumlab node-start 1"),
            Act(16, keys="q"),
        ),
        after=("quorumlab down",),
        is_pictured=_is_told("orders-0", "isr=[2,3]", "dead"),
    ),
    "inspect": Session(
        "the story of a partition, from a log that a cluster left",
        ("quorumlab inspect why orders-0 data/101", "quorumlab inspect at 20 data/101"),
        before=(
            *_CLUSTER,
            f"node={_LEADER}; quorumlab node-kill $node; sleep 4; quorumlab node-start $node",
            "sleep 4; for node in 101 102 103 1 2 3; do quorumlab node-kill $node; done",
        ),
        is_pictured=_is_told("inspect why", "came into the ISR", hides="inspect at"),
    ),
    "scenario": Session(
        "a planted bug: a voter forgets its vote, and an epoch has two leaders",
        (
            "quorumlab chaos scenario 13",
            "quorumlab chaos scenario 13 --plant forgets_its_vote",
        ),
        is_pictured=_is_told("has two leaders", "broken: R-VD"),
    ),
}


def recorded(name: str) -> Cast:
    session = SESSIONS[name]
    with _place() as place:
        for line in session.before:
            place.run(line)
        try:
            events = _typed(session, place)
        finally:
            for line in session.after:
                place.run(line)
    return Cast(session.title, tuple(events))


def _typed(session: Session, place: Place) -> list[Event]:
    events: list[Event] = []
    for line in session.lines:
        at = events[-1][0] + _PAUSE_SECONDS if events else 0.0
        events += type_line(place, line, session.acts, starts_at=at)
    return events


def pictured(name: str, cast: Cast) -> Screen:
    """The last screen that shows it."""
    is_pictured = SESSIONS[name].is_pictured
    places = [place for place, screen in enumerate(cast.screens()) if is_pictured(screen)]
    assert places, f"{name}: no screen shows what its picture is of"
    return next(screen for place, screen in enumerate(cast.screens()) if place == places[-1])


@contextmanager
def _place() -> Iterator[Place]:
    """Raises FileExistsError where another one records."""
    DIRECTORY.mkdir()
    try:
        with tempfile.TemporaryDirectory(prefix="quorumlab-bin-") as binaries:
            command = Path(binaries) / "quorumlab"
            root = Path(__file__).parent.parent.parent
            command.write_text(
                f"#!/bin/sh\nPYTHONPATH={shlex.quote(str(root))} "
                f'exec {shlex.quote(sys.executable)} -m quorumlab "$@"\n'
            )
            command.chmod(0o755)
            yield Place(DIRECTORY, _environment(binaries))
    finally:
        _end_nodes()
        shutil.rmtree(DIRECTORY)


def _environment(binaries: str) -> dict[str, str]:
    hidden = ("COLUMNS", "LINES", "NO_COLOR", "PYTHONPATH")
    known = {key: value for key, value in python_environment().items() if key not in hidden}
    path = os.pathsep.join([binaries, os.environ["PATH"]])
    return {**known, "TERM": "xterm-256color", "PATH": path, "PWD": str(DIRECTORY)}


def _end_nodes() -> None:
    from jepsen_like.real.layout import CLUSTER_FILE
    from jepsen_like.real.local_cluster import LocalCluster

    with suppress(CalledProcessError):
        for file in DIRECTORY.rglob(CLUSTER_FILE):
            LocalCluster.open(file.parent).kill_all()
