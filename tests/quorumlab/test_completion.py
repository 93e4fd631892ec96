"""Completion in real shells, where the machine has them, and the man page."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from quorumlab.cli import VERBS, main
from tests.quorumlab.command_tree import contexts

IN_BASH = """
source {script}
COMP_WORDS=({words})
COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
_quorumlab_completion quorumlab
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


def script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


def run_shell(shell: str, program: str, directory: Path) -> list[str]:
    """With a `quorumlab` that is this one."""
    command = directory / "quorumlab"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m quorumlab "$@"\n')
    command.chmod(0o755)
    path = f"{directory}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [shell, "-c", program],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("quorumlab topi", ["topics"]),
        ("quorumlab node-", ["node-stop", "node-start", "node-kill"]),
        ("quorumlab topics create --re", ["--replication-factor"]),
        ("quorumlab topics d", ["describe", "delete"]),
        ("quorumlab chaos sim --on ''", ["local", "spark"]),
        ("quorumlab status --format j", ["json", "jsonl"]),
        ("quorumlab completion f", ["fish"]),
    ],
)
def test_bash_completes(
    words: str, completed: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "completion.bash"
    file.write_text(script("bash", capsys))
    program = IN_BASH.format(script=file, words=words)
    assert run_shell("bash", program, tmp_path) == completed


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_lists_all_that_begin_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "completion.bash"
    file.write_text(script("bash", capsys))
    found = run_shell("bash", IN_BASH.format(script=file, words="quorumlab to"), tmp_path)
    assert found == [name for name in VERBS if name.startswith("to")]


def test_zsh_completes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = script("zsh", capsys)
    assert text.startswith("#compdef quorumlab\n")
    assert "_QUORUMLAB_COMPLETE=zsh_complete" in text
    if shutil.which("zsh") is None:
        pytest.skip("there is no zsh: the script was looked at, and not run")
    file = tmp_path / "_quorumlab"
    file.write_text(text)
    program = f"autoload -U compinit; compinit -u -d {tmp_path}/dump; source {file}; which "
    assert "_quorumlab_completion" in run_shell("zsh", program + "_quorumlab_completion", tmp_path)


def test_fish_completes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = script("fish", capsys)
    assert "complete --no-files --command quorumlab" in text
    if shutil.which("fish") is None:
        pytest.skip("there is no fish: the script was looked at, and not run")
    file = tmp_path / "quorumlab.fish"
    file.write_text(text)
    assert "--max 1" in text
    told = run_shell("fish", f"source {file}; complete -C 'quorumlab topi'", tmp_path)
    assert " ".join(told) == f"topics {VERBS['topics'][0]}"


@pytest.mark.parametrize(
    ("shell", "word", "answer"), [("zsh", "1", "plain topics"), ("fish", "topi", "plain,topics")]
)
def test_what_shells_ask_for_is_answered(
    shell: str, word: str, answer: str, tmp_path: Path
) -> None:
    asked = f"COMP_WORDS='quorumlab topi' COMP_CWORD={word} _QUORUMLAB_COMPLETE={shell}_complete"
    assert " ".join(run_shell("sh", f"{asked} quorumlab", tmp_path)).startswith(answer)


def test_the_man_page_has_every_verb_and_every_option(
    capsys: pytest.CaptureFixture[str],
) -> None:
    page = script("man", capsys)
    assert page.isascii()
    assert page.startswith('.TH QUORUMLAB 1 "" "quorumlab ')
    sections = [line for line in page.splitlines() if line.startswith(".SH ")]
    assert sections == [
        f".SH {each}" for each in ("NAME", "SYNOPSIS", "DESCRIPTION", "VERBS", "EXIT STATUS")
    ]
    for context in contexts():
        assert context.command_path.replace("-", "\\-") in page
        for param in context.command.params:
            assert param.opts[-1].replace("-", "\\-") in page or param.opts[-1] == param.name


@pytest.mark.skipif(shutil.which("man") is None, reason="there is no man")
def test_man_reads_the_page_without_a_complaint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "quorumlab.1"
    file.write_text(script("man", capsys))
    done = subprocess.run(
        ["man", "--warnings", "-l", str(file)],
        env={**os.environ, "MANWIDTH": "80", "LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    assert "quorumlab topics create [OPTIONS] [TOPIC]" in done.stdout
