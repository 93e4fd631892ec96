"""A schedule with ZooKeeper has the same times on processes as simulated, but for their pace."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from jepsen_like.museum.playing import End, play
from jepsen_like.real.museum.process_zookeeper import PACE, ProcessZooKeeper, server_properties
from jepsen_like.real.museum.rig import Rig
from jepsen_like.scenarios.settings import ZkSettings
from jepsen_like.scenarios.stage.story import Production
from wire.zk.designs import DESIGNS

OUT_OF_DATE = "version_that_is_out_of_date"  # runs 1000 ms: a command is repeated before
PROPERTIES = {
    "session_timeout_ms": "zookeeper.session.timeout.ms",
    "ack_timeout_ms": "controller.socket.timeout.ms",
    "lag_time_max_ms": "replica.lag.time.max.ms",
}


def times_of_processes() -> dict[str, int]:
    told = server_properties(ZkSettings())
    return {name: int(told[full]) // PACE for name, full in PROPERTIES.items()}


def test_mended_run_holds_with_the_times_of_processes() -> None:
    played = play(OUT_OF_DATE, settings={"design": "zk-kip497", **times_of_processes()})
    assert played.end is End.HOLDS, played.detail


def test_write_that_waits_is_refused_where_a_command_is_repeated_too_late() -> None:
    settings = {"design": "zk-kip497", "ack_timeout_ms": 3000}
    played = play(OUT_OF_DATE, settings=settings)
    assert (played.end, played.rule) == (End.STUCK, "L-WR")


def test_processes_run_for_as_long_as_their_pace_says(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster: Any = SimpleNamespace(layout=SimpleNamespace(brokers=(), zookeeper_connect="none:1"))
    rig = SimpleNamespace(cluster=cluster, mesh=SimpleNamespace(release=None, drop=None))
    directed = ProcessZooKeeper(
        Production(settings={}), cast("Rig", rig), design=DESIGNS["zk-kip497"]
    )
    ran: list[int] = []
    monkeypatch.setattr(directed.machines, "reach", lambda _condition, ms: ran.append(ms))
    directed.machines.run(1000)
    assert ran == [1000 * PACE]
