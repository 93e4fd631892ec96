"""Jobs on virtual time: each works once, and who asked is told when it is due."""

from random import Random

from jepsen_like.sim.disks.virtual_files import VirtualFiles
from jepsen_like.sim.disks.world_workers import WorldWorkers
from jepsen_like.sim.time.virtual_time import VirtualTime
from quorum.log.files.jobs import Jobs, Outcome, Pool

SEEDS = range(60)
DUE_US = 100


class Bench:
    def __init__(self, seed: int) -> None:
        self.world = VirtualTime(seed)
        self.files = VirtualFiles(Random(seed))
        self.workers = WorldWorkers(
            world=self.world, random=Random(seed), files=self.files, delay_us=lambda _pool: DUE_US
        )
        self.jobs = Jobs(self.workers)
        self.log: list[str] = []

    def submit(self) -> None:
        def job() -> None:
            self.log.append("works")
            for name in "abc":
                self.files.mkdir(f"/{name}")

        def finish(outcome: Outcome) -> None:
            assert outcome.result() is None
            self.log.append("told")

        self.jobs.wake_with(self.jobs.settle)
        self.jobs.submit(Pool.SYNC, job, finish)

    def run_until(self, time_us: int) -> None:
        self.log.append("runs")
        self.world.run_until(time_us, events_max=100)


def test_job_works_when_asked_for_or_when_due_and_is_told_of_when_due() -> None:
    found: set[tuple[str, ...]] = set()
    for seed in SEEDS:
        bench = Bench(seed)
        bench.submit()
        bench.run_until(DUE_US - 1)
        assert "told" not in bench.log
        assert bench.jobs.are_running
        bench.run_until(DUE_US)
        assert not bench.jobs.are_running
        found.add(tuple(bench.log))
    assert found == {("works", "runs", "runs", "told"), ("runs", "runs", "works", "told")}


def test_who_waits_is_told_at_once_and_not_again() -> None:
    for seed in SEEDS:
        bench = Bench(seed)
        bench.submit()
        bench.jobs.wait()
        assert bench.log == ["works", "told"]
        bench.run_until(DUE_US)
        assert bench.log == ["works", "told", "runs"]


def test_process_dies_anywhere_in_a_job_and_nobody_is_told() -> None:
    found = set()
    for seed in SEEDS:
        bench = Bench(seed)
        bench.submit()
        bench.workers.die()
        found.add("".join(bench.files.listdir("")))
        bench.run_until(DUE_US)
        assert "told" not in bench.log
        bench.files.mkdir("/d")  # another process may change what it likes
    assert found == {"", "a", "ab", "abc"}
