"""Every verb with wrong input: typos, wrong types, missing files, clusters that do not run.

Each line of `wrong_input.txt` is an exit code, a command line, and words of the answer that say
what to do. The answer is one line on stderr.
"""

import io
import shlex
import sys
from pathlib import Path

import pytest

from jepsen_like.real.local_cluster import LocalCluster
from quorumlab.cli import VERBS, main

LINES = [
    tuple(each.strip() for each in line.split(" | "))
    for line in Path(__file__).with_name("wrong_input.txt").read_text().splitlines()
]
SERVER = """
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=127.0.0.1:19093
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:19092,CONTROLLER://127.0.0.1:19093
log.dirs=logs
"""

BAD_CLIENT = "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stopped cluster, and files that are none of ours."""
    path = tmp_path_factory.mktemp("wrong")
    (path / "empty").mkdir()
    (path / "file.svg").write_text("<svg/>\n")
    (path / "file.txt").write_text("years of work\n")
    (path / "server.properties").write_text(SERVER)
    (path / "bad.properties").write_text("process.roles=king\nnode.id=one\n")
    (path / "bad-client.properties").write_text(BAD_CLIENT)
    (path / "secured.properties").write_text("security.protocol=SSL\n")
    LocalCluster.create(path / "stopped", controllers=1, brokers=1, combined=True)
    return path


def test_a_hundred_lines_walk_all_verbs() -> None:
    assert len({line for _, line, _ in LINES}) == len(LINES) >= 100
    assert {line.split()[0] for _, line, _ in LINES} >= set(VERBS)
    chaos = VERBS["chaos"][1]
    assert isinstance(chaos, dict)
    assert {line.split()[1] for _, line, _ in LINES if line.startswith("chaos ")} >= set(chaos)


@pytest.mark.parametrize(("code", "line", "remedy"), LINES, ids=[line for _, line, _ in LINES])
def test_wrong_input_is_refused_in_one_line_that_says_what_to_do(
    code: str,
    line: str,
    remedy: str,
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(place)
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    before = sorted(place.rglob("*"))
    assert main(shlex.split(line)) == int(code)
    said = capfd.readouterr()
    assert said.out == ""
    assert said.err.startswith("quorumlab: ")
    assert said.err.count("\n") == 1, said.err
    assert remedy in said.err
    assert sorted(place.rglob("*")) == before
