"""What the command says of a command line that it cannot obey."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.structure import PACKAGES
from quorumlab.cli import EXTRAS, main


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("chek", "no verb 'chek': did you mean 'check'? `quorumlab --help` lists them"),
        ("status --colour", "status: unknown --colour: see `quorumlab status --help`"),
        (
            "chaos run --falts kill",
            "chaos run: unknown --falts: did you mean '--faults'? see `quorumlab chaos run --help`",
        ),
        ("topics list --al", "topics list: unknown --al: see `quorumlab topics list --help`"),
        (
            "topics describe orders bills",
            "topics describe: unknown bills: see `quorumlab topics describe --help`",
        ),
        (
            "inspect at .",
            "inspect at: OFFSET|TIME: '.' is neither: write `inspect at OFFSET|TIME TARGET`: "
            "see `quorumlab inspect at --help`",
        ),
        (
            "inspect . --dpth=2",
            "inspect summary: unknown --dpth: see `quorumlab inspect summary --help`",
        ),
        (
            "inspect dmp .",
            "inspect: no verb 'dmp': did you mean 'dump'? `quorumlab inspect --help` lists them",
        ),
        (
            "topics",
            "topics: VERB is missing; there are create, list, describe, delete, alter: "
            "see `quorumlab topics --help`",
        ),
        (
            "check --on sprak .",
            "check: --on: no 'sprak': did you mean 'spark'? there are local, spark: "
            "see `quorumlab check --help`",
        ),
        (
            "check --seconds nan .",
            "check: --seconds: 'nan' is no number above 0: see `quorumlab check --help`",
        ),
        (
            "check",
            "check: TARGET is missing: see `quorumlab check --help`",
        ),
    ],
)
def test_what_cannot_be_obeyed_is_told_in_one_line_with_the_nearest_word(
    given: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(given.split()) == 2
    assert capsys.readouterr().err == f"quorumlab: {told}\n"


LOADED = """
import sys
from quorumlab.cli import main
main(sys.argv[1:])
import json
print(json.dumps(sorted(sys.modules)))
"""


def modules_loaded_by(*arguments: str, program: str = LOADED) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


def of_ours(modules: set[str]) -> set[str]:
    return {name for name in modules if name.partition(".")[0] in PACKAGES}


@pytest.mark.parametrize("asked", ["--help", "--version"])
def test_the_list_of_verbs_imports_no_verb(asked: str) -> None:
    """A shell's completion asks for it, and waits: it may take a tenth of a second."""
    own = {"arguments", "cli", "interrupts"}
    modules = modules_loaded_by(asked)
    assert of_ours(modules) == {"quorumlab", *(f"quorumlab.{name}" for name in own)}
    assert not modules & {"asyncio", "dataclasses", "subprocess"}


def test_status_imports_little(tmp_path: Path) -> None:
    """Scripts ask for it again and again: no simulator, and nothing that decodes messages."""
    modules = modules_loaded_by("status", "--dir", str(tmp_path))
    assert not modules & {"aiohttp", "asyncio", "kio", "msgpack", "numpy", "prometheus_client"}
    assert len(of_ours(modules)) <= 40, sorted(of_ours(modules))


@pytest.mark.parametrize(
    ("parts", "without"),
    [
        ("controller.controller", {"broker.broker", "broker.groups.coordinator"}),
        ("quorumlab.broker_side", {"controller.controller", "controller.decisions.new_topics"}),
    ],
)
def test_a_node_imports_its_own_roles_alone(parts: str, without: set[str]) -> None:
    """Six of them start at once on one desk, and each module costs each of them time and memory."""
    program = f"import {parts}, quorumlab.verbs.run_node" + "\nimport json, sys"
    program += "\nprint(json.dumps(sorted(sys.modules)))"
    modules = modules_loaded_by(program=program)
    others = {"hypothesis", "kazoo", "prometheus_client", "quorum.raftos.raftos_node", "raftos"}
    assert modules & (without | others) == set()
    assert [name for name in modules if name.startswith("jepsen_like")] == []
    assert len(of_ours(modules)) < 375, len(of_ours(modules))


def test_without_the_extras_a_simulation_runs_and_zk_v3_says_what_it_lacks(
    tmp_path: Path,
) -> None:
    """As after `pip install -e .`: a module that is None is not there for import."""
    bare = f"""
import sys
sys.modules |= dict.fromkeys({[*EXTRAS]})
from quorumlab.cli import main
sys.exit(
    main(["--help"])
    or main(["chaos", "sim", "--sweep", "1"])
    or main(["up", "--design", "zk-v3", "--dir", {str(tmp_path)!r}])
)
"""
    done = subprocess.run([sys.executable, "-c", bare], capture_output=True, text=True, check=False)
    install = "`pip install -e '.[zk]'` in the clone"
    assert (done.returncode, done.stderr) == (
        2,
        f"quorumlab: --design zk-v3: nodes need kazoo for ZooKeeper: {install} brings it\n",
    )


def test_the_demo_takes_no_cluster_of_somebody_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It kills nodes, and stops all that it began with."""
    (tmp_path / "cluster.json").write_text("{}")
    assert main(["demo", "--dir", str(tmp_path)]) == 1
    assert f"{tmp_path} is not empty" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["cluster.json"]


@pytest.mark.parametrize("verb", ["museum", "scenario", "sim", "replay", "shrink"])
def test_help_about_the_simulator_does_not_load_it(verb: str) -> None:
    program = (
        "import sys; from quorumlab.cli import main; "
        f"main(['chaos', {verb!r}, '--help']); print('jepsen_like.sim.world.world' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert said.stdout.splitlines()[-1] == "False", said.stderr
