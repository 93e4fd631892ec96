"""What a terminal of 80 columns shows, and what a pipe gets."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping

import pytest

PROGRAM = """
from quorumlab.output import Progress, print_rows
print_rows(
    [{"id": 1, "state": "dead", "log": "/var/lib/" + "long-" * 20 + "name", "pid": None}],
    ("id", "state", "pid", "log"),
)
progress = Progress()
progress("x" * 200)
progress("short")
progress.done()
"""


def shown(environment: Mapping[str, str]) -> str:
    """On a terminal of 80 columns."""
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    settings = {"TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24", **environment}
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**{k: v for k, v in os.environ.items() if k != "NO_COLOR"}, **settings},
    ):
        os.close(theirs)
        text = b""
        try:
            while piece := os.read(ours, 65536):
                text += piece
        except OSError:  # how Linux says that the other side is closed
            pass
        finally:
            os.close(ours)
    return text.decode().replace("\r\n", "\n")


def test_a_table_fits_the_terminal_and_says_all() -> None:
    table = shown({}).partition("\r")[0]
    assert "\x1b[1;31mdead" in table
    plain = re.sub(r"\x1b\[[\d;]*m", "", table).splitlines()
    assert max(map(len, plain)) <= 80
    words = [line.split()[-1] for line in plain[1:] if line.strip()]
    assert "".join(words) == "/var/lib/" + "long-" * 20 + "name"


def test_nobody_who_sets_no_color_sees_a_colour() -> None:
    table = shown({"NO_COLOR": "1"}).partition("\r")[0]
    assert not re.search(r"\x1b\[[\d;]*3\dm", table)


def test_progress_is_never_cut_and_wiped_out_whole() -> None:
    progress = shown({}).partition("\r")[2]
    assert "x" * 200 in progress
    up = "\r\x1b[2K" + 2 * "\x1b[A\x1b[2K"
    assert f"{'x' * 200}{up}short\r\x1b[2K" in progress


def test_a_pipe_gets_a_plain_table_and_no_progress() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, check=True)
    head, row = done.stdout.decode().splitlines()
    assert (head, done.stderr) == ("ID  STATE  PID  LOG", b"")
    assert row == f"1   dead   -    /var/lib/{'long-' * 20}name"
