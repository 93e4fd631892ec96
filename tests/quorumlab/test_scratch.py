"""Directories that a killed process leaves behind are removed by the next one."""

import os
from pathlib import Path

import pytest

from quorumlab.scratch import scratch


def test_what_the_dead_left_goes_and_what_is_new_or_in_use_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    left, new, other = (tmp_path / f"quorumlab-{name}" for name in ("page-a", "page-b", "top-a"))
    for each in (left, new, other):
        (each / "log").mkdir(parents=True)
    with scratch("page") as living:
        (living / "log").touch()
        for each in (left, other, living):
            os.utime(each, (0, 0))
        with scratch("page") as following:
            assert {*tmp_path.iterdir()} == {new, other, living, following}
    assert {*tmp_path.iterdir()} == {new, other}
