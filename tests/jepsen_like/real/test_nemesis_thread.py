"""The thread that plays faults on real processes: it ends, and tells what broke."""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

import pytest

from jepsen_like.faults.fault import Course, Fault, InForce, Injector, Role, Scheduled, in_force
from jepsen_like.faults.nemesis import Nemesis, Roles
from jepsen_like.histories.history import Header, read_history
from jepsen_like.real.runs.worker_threads import NemesisThread, Recording


def played(
    path: Path, inject: Callable[[Fault, Sequence[int]], InForce], until: threading.Event
) -> list[str]:
    """A fault that lasts an hour, stopped after `until`."""
    roles = Roles(
        controllers=(1,),
        brokers=(1,),
        active_controller=lambda: None,
        partition_leaders=tuple,
        random=Random(1),
    )
    kill = Scheduled(at_ms=5, lasts_ms=3_600_000, fault=Fault(kind="kill", role=Role.ONE))
    with Recording(path, Header(workload="log", seed=0)) as recording:
        thread = NemesisThread(
            Nemesis([kill], injectors={"kill": Injector(inject)}, roles=roles, recording=recording)
        )
        thread.start()
        assert until.wait(10.0)
        thread.stop()
    return [op.f for op in read_history(path.read_bytes()).ops]


def test_what_is_in_force_is_healed_when_it_stops(tmp_path: Path) -> None:
    injected, healed = threading.Event(), threading.Event()

    @in_force
    def inject(fault: Fault, targets: Sequence[int]) -> Course:
        injected.set()
        yield targets
        healed.set()
        return ["seen"]

    assert played(tmp_path / "history", inject, injected) == ["inject", "heal"]
    assert healed.is_set()


def test_what_breaks_is_told_to_whoever_stops(tmp_path: Path) -> None:
    injected = threading.Event()

    def inject(fault: Fault, targets: Sequence[int]) -> InForce:
        injected.set()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        played(tmp_path / "history", inject, injected)
