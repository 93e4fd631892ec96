"""Files of the user's, and of other distributions, that have the names of our packages."""

import importlib
import sys
from pathlib import Path

import pytest

from quorumlab import cli
from quorumlab.cli import foreign, main, overwritten
from tests.hostile_files import write_hostile_files


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """First in Python's path, and nothing of ours imported yet."""
    for name in ("broker", "quorum"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(str(write_hostile_files(tmp_path)))
    importlib.invalidate_caches()
    return tmp_path


def test_file_in_the_place_of_a_package_is_named_in_one_line(
    hostile: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "wire", raising=False)
    assert main(["status"]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"quorumlab: Python finds {hostile}/wire.py in the place of quorumlab's")
    assert said.count("\n") == 1


def test_every_package_of_ours_is_looked_for(hostile: Path) -> None:
    assert f"{hostile}/broker.py" in foreign(["broker"])


def test_our_own_packages_are_not_foreign() -> None:
    assert foreign() == ""


def test_names_are_those_of_the_wheel() -> None:
    """Every package that is installed at the top, but the one that asks."""
    root = Path(__file__).parent.parent.parent
    packages = {path.parent.name for path in root.glob("*/__init__.py")} - {"quorumlab", "tests"}
    assert {*cli._NAMES} == packages - {"benchmarks", "examples"}


def test_files_of_another_distribution_among_ours_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = ImportError("cannot import name 'Broker' from 'broker'", name="broker")
    assert overwritten(error) == ""  # in a clone it is a mistake of ours, and its trace is wanted
    monkeypatch.setattr(cli, "_ROOT", str(tmp_path))
    assert f"its files are among ours in {tmp_path}/broker" in overwritten(error)
    assert overwritten(ImportError("no such thing", name="somebodys")) == ""
