"""The wheel, installed into an environment of its own, and used in an empty directory."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from jepsen_like.installation import ROOT
from quorumlab.cli import VERBS

pytestmark = pytest.mark.extra

# What a verb says that needs an extra, or a clone; all others must work with the wheel alone.
NEEDS = {
    "up --design zk-v3 --dir old": "pip install 'quorumlab[zk]'",
    "check run --on spark": "pip install 'quorumlab[spark]'",
    "bench": "run it within a clone of the repository",
    "acls list --dir nowhere": "start one with `quorumlab up",
}
# Each in its order: some use what the ones before them have made.
ON_A_CLUSTER = (
    "up --detach --dir data --controllers 1 --brokers 1",
    "status --dir data",
    "top --once --dir data",
    "topics create orders --partitions 2 --dir data",
    "topics describe orders --dir data",
    "produce orders --dir data",
    "consume orders --count 2 --group readers --dir data",
    "groups list --dir data",
    "users list --dir data",
    "quorum describe --status --dir data",
    "inspect data/101/data",
    "inspect why orders-0 data/101/data",
    "doctor data",
    "node-stop 1 --dir data",
    "node-start 1 --dir data",
    "node-kill 1 --dir data",
    "down --dir data",
)
ALONE = (
    "format --cluster-id AAAAAAAAAAAAAAAAAAAAAA --config server.properties",
    "demo",
    "chaos run --faults kill --seconds 4 --brokers 2 --out run",
    "check run",
    "chaos timeline run",
    "chaos sim --seed 7",
    "chaos scenario 1",
    "chaos museum C1",
    "completion bash",
    "completion man",
    "compare --designs quorum --experiments broker-crash --partitions 10 --settings equal",
)
PROPERTIES = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:19093
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:19092,CONTROLLER://127.0.0.1:19093
log.dirs=formatted
"""


def without_python() -> dict[str, str]:
    """The environment, without what leads to this repository: pip would find it installed there."""
    return {name: value for name, value in os.environ.items() if "PYTHON" not in name}


class Installed:
    def __init__(self, command: Path, directory: Path) -> None:
        self.command, self.directory = command, directory

    def __call__(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self.command), *words],
            cwd=self.directory,
            env=without_python(),
            input="one\ntwo\n",
            capture_output=True,
            text=True,
            timeout=120,
        )

    def failure(self, lines: Sequence[str]) -> str:
        """What the first line says that does not work, or nothing."""
        for line in lines:
            done = self(*line.split())
            if done.returncode or "Traceback" in done.stderr:
                return f"quorumlab {line}\n{done.stdout}\n{done.stderr}"
        return ""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    home = tmp_path_factory.mktemp("wheel")
    python = home / "venv" / "bin" / "python"
    pip = [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check"]
    build = [*pip, "wheel", "--no-deps", "--wheel-dir", str(home), str(ROOT)]
    subprocess.run([sys.executable, "-m", "venv", str(home / "venv")], check=True)
    subprocess.run(build, check=True, env=without_python())
    (wheel,) = home.glob("quorumlab-*.whl")
    install = [*pip, "install", "--no-compile", str(wheel)]
    subprocess.run(install, check=True, env=without_python())
    empty = home / "empty"
    empty.mkdir()
    (empty / "server.properties").write_text(PROPERTIES)
    quorumlab = Installed(python.with_name("quorumlab"), empty)
    yield quorumlab
    quorumlab("down", "--dir", "data")


def test_every_verb_works_from_the_wheel(installed: Installed) -> None:
    with ThreadPoolExecutor() as beside:
        assert [*beside.map(installed.failure, (ON_A_CLUSTER, ALONE))] == ["", ""]
    for line, told in NEEDS.items():
        done = installed(*line.split())
        assert (done.returncode in (1, 2), told in done.stderr) == (True, True), (line, done.stderr)


def test_no_verb_was_forgotten(installed: Installed) -> None:
    used = {line.split()[0] for line in (*ON_A_CLUSTER, *ALONE, *NEEDS)}
    assert used | {"node", "tour"} == VERBS.keys(), "`up` starts nodes; test_tour.py has the tour"
    for verb in VERBS:
        assert installed(verb, "--help").returncode == 0
