"""Children find our packages, and no file of the user's in their place."""

import os
import site
import subprocess
import sys
from pathlib import Path

import pytest

from jepsen_like import python_children
from jepsen_like.installation import ROOT, install_command
from jepsen_like.python_children import python_environment, python_variables, with_variables
from tests.hostile_files import write_hostile_files

SPAWNED = """
import multiprocessing
from jepsen_like.sim.runs.workers import mapped
if __name__ == "__main__":
    multiprocessing.set_start_method("spawn")
    print(list(mapped(abs, [-1], 1)))
"""


def test_child_of_a_clone_is_told_where_the_clone_is() -> None:
    assert python_variables({}) == {"PYTHONSAFEPATH": "1", "PYTHONPATH": str(ROOT)}
    assert python_variables({"PYTHONPATH": "/theirs"})["PYTHONPATH"] == f"{ROOT}{os.pathsep}/theirs"
    assert python_environment({"A": "b"})["A"] == "b"


def test_child_of_a_child_is_told_no_more() -> None:
    once = python_environment({})
    assert python_environment(once) == once


def test_installed_packages_are_not_put_before_the_standard_library(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(python_children, "ROOT", Path(site.getsitepackages()[0]).resolve())
    assert python_variables({}) == {"PYTHONSAFEPATH": "1"}
    assert python_variables({"PYTHONPATH": "/theirs"})["PYTHONPATH"] == "/theirs"


def test_variables_are_as_before_when_it_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUORUMLAB_A", "before")
    with with_variables({"QUORUMLAB_A": "within", "QUORUMLAB_B": "within"}):
        assert (os.environ["QUORUMLAB_A"], os.environ["QUORUMLAB_B"]) == ("within", "within")
    assert (os.environ["QUORUMLAB_A"], os.environ.get("QUORUMLAB_B")) == ("before", None)


def test_workers_that_begin_a_new_python_import_no_file_of_the_user(tmp_path: Path) -> None:
    """Linux forks them up to Python 3.13; other systems, and later ones, do not."""
    (tmp_path / "spawned.py").write_text(SPAWNED)
    done = subprocess.run(
        [sys.executable, str(tmp_path / "spawned.py")],
        cwd=write_hostile_files(tmp_path / "work"),
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "[(-1, 1)]\n", done.stderr


def test_what_is_missing_is_installed_as_we_were(monkeypatch: pytest.MonkeyPatch) -> None:
    assert install_command("zk") == "`pip install -e '.[zk]'` in the clone"
    monkeypatch.setattr("jepsen_like.installation.ROOT", Path("/site-packages"))
    assert install_command("zk") == "`pip install 'quorumlab[zk]'`"
