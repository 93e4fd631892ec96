"""Which Java Spark is started on, with stand-ins for every kind of `java` there is.

What Py4J logs by itself meanwhile is not printed: Ctrl-C while Spark starts has no traceback.
"""

import logging
import subprocess
from pathlib import Path

import pytest

import spark.session as sessions
from spark.session import NoJava, Settings, java_home, session, unlogged


@pytest.fixture
def nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without any Java; a directory for some."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(sessions, "java_of_wheel", lambda: None)
    return tmp_path


def java(home: Path, says: str) -> Path:
    path = home / "bin/java"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\n{says}\n")
    path.chmod(0o700)
    return path


def of_version(version: str) -> str:
    return f"echo 'openjdk version \"{version}\" 2025-04-15' >&2"


def test_java_of_the_path_is_taken(nothing: Path) -> None:
    java(nothing, of_version("17.0.15"))
    assert java_home(nothing / "scratch") == nothing


def test_java_home_goes_first(nothing: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java(nothing, of_version("17.0.15"))
    java(nothing / "newer", of_version("25"))
    monkeypatch.setenv("JAVA_HOME", str(nothing / "newer"))
    assert java_home(nothing / "scratch") == nothing / "newer"


@pytest.mark.parametrize("version", ["1.8.0_392", "11.0.21"])
def test_old_java_is_named_and_not_taken(nothing: Path, version: str) -> None:
    java(nothing, of_version(version))
    with pytest.raises(NoJava, match=f"is Java {11 if '11' in version else 8}"):
        java_home(nothing / "scratch")


def test_no_java_says_what_to_install(nothing: Path) -> None:
    with pytest.raises(NoJava, match=r"none on the PATH.*pip install -e '.\[spark\]'"):
        java_home(nothing / "scratch")


def test_java_of_the_wheel_is_started_without_the_module_that_it_lacks(
    nothing: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = java(nothing / "it's a wheel", 'for option do echo "<$option>"; done')
    monkeypatch.setattr(sessions, "java_of_wheel", lambda: wheel)
    home = java_home(nothing / "scratch")
    options = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "a b", "--add-opens=x"]
    told = subprocess.run([home / "bin/java", *options], capture_output=True, text=True, check=True)
    assert told.stdout.split("\n")[:-1] == ["<-Xmx1g>", "<a b>", "<--add-opens=x>"]


def interrupted() -> None:
    """As Py4J's `send_command` tells it."""
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt:
        logging.exception("KeyboardInterrupt while sending command.")


def test_a_traceback_is_printed_for_nobody(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    with unlogged():
        interrupted()
    assert capfd.readouterr().err == ""
    assert logging.getLogger().handlers == []


def test_a_session_begins_unlogged(monkeypatch: pytest.MonkeyPatch) -> None:
    def started(*_: object) -> None:
        interrupted()
        raise KeyboardInterrupt

    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])
    monkeypatch.setattr("spark.session.is_installed", lambda: True)
    monkeypatch.setattr("spark.session._start", started)
    with pytest.raises(KeyboardInterrupt), session(Settings()):
        raise AssertionError("it has started")
    assert root.handlers == [], "basicConfig has set up a handler that prints"


def test_whoever_has_set_up_logging_hears_it(caplog: pytest.LogCaptureFixture) -> None:
    with unlogged():
        interrupted()
    assert caplog.messages == ["KeyboardInterrupt while sending command."]
