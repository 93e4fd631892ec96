"""The example in docs/simulation.md of an assembly of one's own runs, and finds what it says."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jepsen_like.faults.fault import Proof
from jepsen_like.sim.violation import Violation

PAGE = Path(__file__).parents[2] / "docs" / "simulation.md"
SEED = 7  # as the page says
Run = Callable[[int, str], Iterator[Proof]]


@pytest.fixture(scope="module")
def run() -> Run:
    section = PAGE.read_text(encoding="utf-8").split("## A sixth assembly\n")[1].split("\n## ")[0]
    (code,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    names: dict[str, Run] = {}
    exec(compile(code, str(PAGE), "exec"), names)
    return names["run"]


def test_a_dead_leader_has_one_successor(run: Run) -> None:
    proofs = list(run(SEED, "kill"))
    assert len(proofs) > 1
    assert all(proof.bit for proof in proofs), proofs


def test_two_lead_where_one_is_not_heard(run: Run) -> None:
    with pytest.raises(Violation, match="one-leader: two nodes lead"):
        list(run(SEED, "partition"))
