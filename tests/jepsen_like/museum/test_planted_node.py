"""Bugs are planted for as long as a run lasts, and in processes by one program only."""

import subprocess
import sys
from pathlib import Path

from jepsen_like.planted.every_bug import EVERY_PLANT, planted

ROOT = Path(__file__).parents[3]
MAY_PLANT = (
    "jepsen_like/museum/",
    "jepsen_like/planted/",
    "jepsen_like/sim/",
    "quorumlab/verbs/chaos_scenario.py",  # in the simulator
    "tests/",
)


def test_plants_are_gone_after_the_run() -> None:
    names = ("counts_on_the_shrunk_isr", "never_checks_quorum")
    holders = [(EVERY_PLANT[name].holder, EVERY_PLANT[name].name) for name in names]
    shipped = [getattr(holder, name) for holder, name in holders]
    with planted(",".join(names)):
        assert all(getattr(*place) is not was for place, was in zip(holders, shipped, strict=True))
    assert [getattr(*place) for place in holders] == shipped


def test_only_the_museum_and_the_simulator_can_plant() -> None:
    found = [
        path.relative_to(ROOT).as_posix()
        for package in ("wire", "quorum", "controller", "broker", "jepsen_like", "quorumlab")
        for path in (ROOT / package).rglob("*.py")
        if "planted_in(" in path.read_text() or "planted(" in path.read_text()
    ]
    assert all(path.startswith(MAY_PLANT) for path in found), found


def test_planted_node_is_a_node_with_everything_that_follows_the_names() -> None:
    arguments = [sys.executable, "-m", "jepsen_like.museum.planted_node", "votes_twice"]
    said = subprocess.run(
        [*arguments, "node", "--help"], cwd=ROOT, capture_output=True, text=True, timeout=30
    )
    assert (said.returncode, "--config" in said.stdout) == (0, True), said.stderr


def test_unknown_plant_starts_nothing() -> None:
    arguments = [sys.executable, "-m", "jepsen_like.museum.planted_node", "nonsense"]
    said = subprocess.run(
        [*arguments, "node", "--help"], cwd=ROOT, capture_output=True, text=True, timeout=30
    )
    assert said.returncode != 0
    assert "nonsense" in said.stderr
