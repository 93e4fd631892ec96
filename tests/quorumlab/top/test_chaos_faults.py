"""The faults of a chaos run, read while its history grows."""

import os
from contextlib import closing
from pathlib import Path

from jepsen_like.histories.history import Header, Kind, Op, encode_header, encode_op
from jepsen_like.workloads.workload import deed
from quorumlab.top.chaos_faults import ChaosFaults, faults_of, run_around

KILL = {"fault": 0, "kind": "kill", "nodes": [2, 3]}


def at(seconds: float, op: Op) -> bytes:
    entered = Op(
        index=0, time_ns=int(seconds * 1e9), kind=op.kind, process=op.process, f=op.f,
        value=op.value, extra=op.extra,
    )  # fmt: skip
    return encode_op(entered)


def run_with_a_kill(directory: Path) -> None:
    """Writes the history of a run that has been on for five seconds."""
    told = (
        at(1, deed("phase", "safety")),
        at(2, deed("inject", KILL)),
        at(5, Op(kind=Kind.INVOKE, process=0, f="read")),
    )
    history = directory / "history.msgpack"
    history.write_bytes(encode_header(Header(workload="log", seed=1)) + b"".join(told))


def test_faults_come_and_go_with_the_history(tmp_path: Path) -> None:
    history = tmp_path / "history.msgpack"
    assert run_around(tmp_path / "cluster") is None
    history.write_bytes(encode_header(Header(workload="log", seed=1)))
    assert run_around(tmp_path / "cluster") == tmp_path
    injected = at(2, deed("inject", KILL))
    with closing(ChaosFaults(tmp_path)) as chaos, history.open("ab", buffering=0) as file:
        chaos.look()
        assert (chaos.phase, chaos.faults) == ("being prepared", ())
        file.write(at(1, deed("phase", "safety")) + injected[:15])  # a frame that is being written
        chaos.look()
        assert (chaos.phase, chaos.faults) == ("safety", ())
        file.write(injected[15:] + at(5, Op(kind=Kind.INVOKE, process=0, f="read")))
        chaos.look()
        assert [(fault.text, fault.seconds) for fault in chaos.faults] == [("kill 2,3", 3.0)]
        file.write(at(6, deed("heal", KILL)))
        chaos.look()
        assert chaos.faults == ()
    (tmp_path / "verdict.json").write_text("{}")
    assert chaos.phase == "which has ended"


def test_what_is_no_history_of_faults_is_passed_over(tmp_path: Path) -> None:
    assert faults_of(None) is None
    os.mkfifo(tmp_path / "history.msgpack")
    writer = os.open(tmp_path / "history.msgpack", os.O_RDWR)  # without one, an open would hang
    assert faults_of(tmp_path) is None, "opening it may wait for who writes"
    os.close(writer)
    (tmp_path / "history.msgpack").unlink()
    odd = {"fault": 1, "kind": "kill", "nodes": 5}
    header = encode_header(Header(workload="log", seed=1))
    (tmp_path / "history.msgpack").write_bytes(header + at(2, deed("inject", odd)))
    chaos = faults_of(tmp_path)
    assert chaos is not None
    with closing(chaos):
        chaos.look()
        assert chaos.faults == ()
