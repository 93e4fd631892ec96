"""`quorumlab top` on a small cluster: by directory and by address, with and without a terminal."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from jepsen_like.real.local_cluster import LocalCluster
from quorumlab.cli import main
from quorumlab.inspection.target import Address
from quorumlab.top.any_cluster import AnyCluster
from quorumlab.top.log_follower import LogFollower
from tests.integration.waiting import wait
from tests.started import started

pytestmark = pytest.mark.slow

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_SECONDS = 60.0


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """A controller that is a broker too, another broker, and a topic on both."""
    directory = tmp_path_factory.mktemp("top") / "cluster"
    with started(
        LocalCluster.create(directory, controllers=1, brokers=2, combined=True)
    ) as running:
        admin = AdminClient({"bootstrap.servers": running.layout.bootstrap_servers})
        admin.create_topics([NewTopic("orders", 2, 2)])["orders"].result(15)
        yield running


@pytest.fixture(autouse=True)
def on_a_busy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A single screen waits longer for the log than users do."""
    monkeypatch.setattr("quorumlab.top.watching._ALL_SECONDS", _SECONDS)


# xdist says how large its workers' terminal is, which has none: ours would not be asked.
_ENVIRONMENT = {key: each for key, each in os.environ.items() if key not in ("COLUMNS", "LINES")}


class Terminal:
    """`quorumlab top` at a terminal of 80 by 24."""

    def __init__(self, *options: str, environment: Mapping[str, str] | None = None) -> None:
        self.main, self._side = pty.openpty()
        self.resize(columns=80)
        self.settings = termios.tcgetattr(self._side)
        self.said = b""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "quorumlab", "top", *options],
            stdin=self._side,
            stdout=self._side,
            stderr=self._side,
            env={**_ENVIRONMENT, "TERM": "xterm-256color", **(environment or {})},
            start_new_session=True,
        )

    def resize(self, *, columns: int) -> None:
        fcntl.ioctl(self._side, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))

    def press(self, keys: str) -> None:
        self.said = b""
        os.write(self.main, keys.encode())

    def wait_for(self, text: str, *, columns: int = 80) -> str:
        """The last screen, once it has the text, and lines of that length."""
        deadline = time.monotonic() + _SECONDS
        while text not in (screen := self._screen()) or columns != max(
            map(len, screen.splitlines())
        ):
            assert time.monotonic() < deadline, screen
            assert self.process.poll() is None, self.said
            self._read()
        return screen

    def _screen(self) -> str:
        return _ESCAPES.sub("", self.said.decode(errors="ignore").rpartition("\x1b[H")[2])

    def _read(self) -> None:
        ready, _, _ = select.select([self.main], [], [], 0.1)
        if ready:
            self.said += os.read(self.main, 65536)

    def ends(self) -> int:
        deadline = time.monotonic() + _SECONDS
        while self.process.poll() is None and time.monotonic() < deadline:
            self._read()
        self._read()
        return self.process.wait(1)

    def close(self) -> None:
        with suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait()
        os.close(self.main)
        os.close(self._side)

    def assert_restored(self) -> None:
        assert termios.tcgetattr(self._side) == self.settings
        assert b"\x1b[?1049l" in self.said, "the first screen is shown again"
        assert b"\x1b[?25h" in self.said, "the cursor is shown again"


@pytest.fixture
def at_terminal() -> Iterator[Callable[..., Terminal]]:
    opened: list[Terminal] = []

    def start(*options: str, **named: Mapping[str, str]) -> Terminal:
        opened.append(Terminal(*options, **named))
        return opened[-1]

    yield start
    for terminal in opened:
        terminal.close()


def once(capsys: pytest.CaptureFixture[str], *options: str) -> str:
    assert main(["top", "--once", *options]) == 0
    return capsys.readouterr().out


def test_directory_is_read(small: LocalCluster, capsys: pytest.CaptureFixture[str]) -> None:
    screen = once(capsys, "--dir", str(small.layout.directory))
    assert "controller 1, epoch 1  2 partitions\n" in screen
    assert re.search(r"\n1 +leader +1 +0 +0\n", screen)
    assert re.search(r"\n2 +running +1 +0 +", screen)
    assert re.search(r"\norders-1 +[12] +[12],[12] +[12],[12]\n", screen)
    assert re.search(r"\n> \d+ \d\d:\d\d:\d\d PARTITION orders-1 ", screen)
    assert "missing" not in screen


@pytest.mark.parametrize("kind", ["broker", "controller"])
def test_address_is_asked(
    small: LocalCluster, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    node = small.layout.node(1)
    port = node.port if kind == "broker" else node.controller_port
    screen = once(capsys, "--bootstrap-server", f"{node.host}:{port}")
    assert "controller 1, epoch 1  2 partitions\n" in screen
    assert re.search(r"\n1 +leader +1 +0 +0\n", screen)
    assert re.search(r"\n> \d+ \d\d:\d\d:\d\d PARTITION orders-1 ", screen)
    if kind == "broker":
        assert re.search(r"\n2 +running +1 +0 +", screen)


@pytest.mark.extra
def test_keys_select_tell_why_and_quit(
    small: LocalCluster, at_terminal: Callable[..., Terminal]
) -> None:
    terminal = at_terminal("--dir", str(small.layout.directory))
    terminal.wait_for("PARTITION orders-1")
    terminal.press("k")
    assert "> " in terminal.wait_for("PARTITION orders-1")
    terminal.press("\r")
    terminal.wait_for("created on [")
    terminal.press("\r")
    terminal.wait_for("METADATA LOG")
    admin = AdminClient({"bootstrap.servers": small.layout.bootstrap_servers})
    admin.create_topics([NewTopic("later", 1, 2)])["later"].result(15)
    terminal.press("\x1b")  # follows the newest again
    terminal.wait_for("PARTITION later-0")
    terminal.resize(columns=40)
    terminal.wait_for("PARTITION later-0", columns=40)
    terminal.press("q")
    assert terminal.ends() == 0
    terminal.assert_restored()


@pytest.mark.extra
def test_signals_leave_the_terminal_as_it_was_and_no_color_is_kept(
    small: LocalCluster, at_terminal: Callable[..., Terminal]
) -> None:
    where = f"127.0.0.1:{small.layout.node(1).port}"
    terminal = at_terminal("--bootstrap-server", where, environment={"NO_COLOR": "1"})
    terminal.wait_for("METADATA LOG")
    os.killpg(terminal.process.pid, signal.SIGINT)
    assert terminal.ends() == 130
    terminal.assert_restored()
    assert not re.search(rb"\x1b\[[0-9;]*3[0-7]m", terminal.said)


@pytest.mark.extra
def test_dead_node_is_missed_and_holds_nothing_up(
    small: LocalCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """A paused one takes all questions, and answers none."""
    small.pause(2)
    try:
        began = time.monotonic()
        screen = once(capsys, "--dir", str(small.layout.directory))
        assert time.monotonic() - began < 20
    finally:
        small.resume(2)
    assert "missing: brokers 2\n" in screen
    assert re.search(r"\n2 +no answer ", screen)


@pytest.mark.extra
def test_brokers_that_answer_are_asked_though_others_were_named(
    small: LocalCluster, tmp_path: Path
) -> None:
    named = small.layout.node(2)
    server = Address(named.host, named.port)
    watched = AnyCluster([server], LogFollower([server], tmp_path))

    def metadata_brokers() -> Sequence[int] | None:
        views = watched.look().views
        return None if views is None else views.metadata_brokers

    wait(lambda: metadata_brokers() == [1, 2], "the cluster is known")
    small.pause(2)
    try:
        wait(lambda: not all(each.answers for each in watched.look().brokers), "broker 2 is missed")
        wait(lambda: metadata_brokers() is not None, "broker 1 is asked")
    finally:
        small.resume(2)


@contextmanager
def page_of(servers: str) -> Iterator[str]:
    """Its URL, while it is served."""
    words = ["top", "--page", "0", "--bootstrap-server", servers]
    with subprocess.Popen(
        [sys.executable, "-m", "quorumlab", *words], stdout=subprocess.PIPE, text=True
    ) as serving:
        assert serving.stdout is not None
        try:
            yield serving.stdout.readline().partition(" ")[0]
        finally:
            serving.send_signal(signal.SIGINT)
        assert serving.wait(_SECONDS) == 0


def test_page_is_served_by_address_until_ctrl_c(small: LocalCluster) -> None:
    with page_of(small.layout.bootstrap_servers) as url:
        with urlopen(url, timeout=_SECONDS) as page:
            assert b"<title>quorumlab</title>" in page.read()
        foreign = Request(url, headers={"Host": "elsewhere.example"})
        with pytest.raises(HTTPError, match="403"):
            urlopen(foreign, timeout=_SECONDS)
        with urlopen(f"{url}v1/page/events", timeout=_SECONDS) as events:
            heads = (json.loads(line[6:]) for line in events if line.startswith(b"data: "))
            # Whoever is asked has half a second, which is not enough for every answer here.
            head = next(each for each in heads if each["counts"] and each["active"] == 1)
        assert (head["counts"]["offline"], head["counts"]["under_replicated"]) == (0, 0)
        assert head["counts"]["partitions"] >= 2
        assert [each["role"] for each in head["controllers"]] == ["leader"]
        assert head["views"]["quorum_leader"] == 1
        with urlopen(f"{url}v1/page/story?subject=orders-0", timeout=_SECONDS) as story:
            told = json.loads(story.read())
        assert told["events"][0]["text"].startswith("created on [")
        assert "nodes" not in told  # Kafka's protocol does not say when they applied it


def test_page_at_a_port_that_is_taken(small: LocalCluster) -> None:
    taken = str(small.layout.node(1).port)
    words = ["top", "--page", taken, "--bootstrap-server", small.layout.bootstrap_servers]
    failed = subprocess.run(
        [sys.executable, "-m", "quorumlab", *words], capture_output=True, text=True, check=False
    )
    assert (failed.returncode, failed.stderr) == (
        1,
        f"quorumlab: --page {taken}: Address already in use\n",
    )


def test_directory_and_address_exclude_each_other(tmp_path: Path) -> None:
    assert main(["top", "--dir", str(tmp_path), "--bootstrap-server", "localhost:1"]) == 2
    assert main(["top", "--bootstrap-server", "localhost:1", "--chaos", str(tmp_path)]) == 1
