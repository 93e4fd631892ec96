"""Nine groups of modules that decide, the trials of each, and the draw of mutants from them."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.mutants.operators import Mutant, mutants_of

__all__ = ["GROUPS", "ROOT", "Group", "drawn"]

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """`sources`: files, or folders with all that is in them. `seeds`, `histories`: see `trials`."""

    name: str
    title: str
    sources: Sequence[str]
    without: Sequence[str] = ()
    tests: Sequence[str]
    seeds: str = ""
    histories: str

    @property
    def files(self) -> list[str]:
        return sorted(file for file in _files(self.sources) if file not in self.without)

    @property
    def mutants(self) -> Iterator[Mutant]:
        for file in self.files:
            yield from _of_file(file)


@cache
def _of_file(file: str) -> list[Mutant]:
    return mutants_of(ROOT, file)


def drawn(group: Group, seed: int, count: int) -> list[Mutant]:
    """A mutant that is drawn stays so whatever code changes elsewhere: each has its own lot."""

    def lot(mutant: Mutant) -> bytes:
        return hashlib.sha256(f"{seed}/{mutant.name}".encode()).digest()

    return sorted(group.mutants, key=lot)[:count]


def _files(sources: Sequence[str]) -> Iterator[str]:
    for source in sources:
        path = ROOT / source
        for each in [path] if path.is_file() else sorted(path.rglob("*.py")):
            yield each.relative_to(ROOT).as_posix()


_QUORUM = [
    f"tests/quorum/test_{name}.py"
    for name in ("catching_up", "confirmed_reads", "epochs", "fetch", "member", "tail")
]
GROUPS = {
    group.name: group
    for group in (
        Group(
            name="raft",
            title="Raft",
            sources=["quorum/raft"],
            without=[f"quorum/raft/{name}.py" for name in ("describing", "messages", "reporting")],
            tests=["tests/quorum/raft", "tests/thesis", *_QUORUM],
            seeds="quorum",
            histories="simulated",
        ),
        Group(
            name="storage",
            title="Storage",
            sources=["quorum/log"],
            tests=[
                "tests/quorum/storage",
                "tests/quorum/raft/test_log.py",
                "tests/broker/test_log_dirs.py",
                *_QUORUM,
            ],
            seeds="files",
            histories="simulated",
        ),
        Group(
            name="partitions",
            title="Partition and ISR",
            sources=[
                *(
                    f"broker/partition/{name}.py"
                    for name in (
                        *("appends", "idempotence", "isr", "isr_rules", "leaders", "partition"),
                        "reads",
                    )
                ),
                "broker/replicas.py",
                "broker/replication/following.py",
                "broker/replication/replication.py",
                "broker/requests/deletions.py",
            ],
            tests=["tests/broker"],
            seeds="cluster",
            histories="simulated",
        ),
        Group(
            name="groups",
            title="Group and offset rules",
            sources=["broker/groups", "broker/requests/list_offsets.py"],
            tests=["tests/broker"],
            seeds="cluster",
            histories="simulated",
        ),
        Group(
            name="transactions",
            title="Transactions",
            sources=[
                "broker/transactions",
                "broker/groups/pending.py",
                "broker/groups/transactional_offsets.py",
                "broker/partition/producer_states.py",
                "broker/partition/recalling.py",
                "broker/partition/transactional.py",
            ],
            tests=["tests/broker"],
            seeds="cluster",
            histories="simulated",
        ),
        Group(
            name="decisions",
            title="Controller decisions",
            sources=["controller/decisions"],
            tests=["tests/controller", "tests/broker/test_requests.py"],
            seeds="cluster",
            histories="simulated",
        ),
        Group(
            name="metadata",
            title="Controller metadata",
            sources=["controller/metadata"],
            tests=["tests/controller", "tests/broker"],
            seeds="cluster",
            histories="simulated",
        ),
        Group(
            name="checkers",
            title="Checkers",
            sources=["jepsen_like/checkers"],
            tests=["tests/jepsen_like/checkers", "tests/agreement"],
            histories="judged",
        ),
        Group(
            name="spark",
            title="Spark's pieces",
            sources=["spark"],
            without=[
                f"spark/{name}.py"
                for name in ("checks", "distributed", "plan", "session", "sweeps")
            ],
            tests=["tests/spark"],
            histories="pieces",
        ),
    )
}
