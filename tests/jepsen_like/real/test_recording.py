"""The history of a run while it goes on."""

import itertools
import threading
from collections import Counter
from pathlib import Path

from jepsen_like.histories.history import Header, Kind, Op, read_history
from jepsen_like.real.runs.worker_threads import Recording
from jepsen_like.workloads.workload import Done, Wish, completion, deed, invocation, observation

HEADER = Header(workload="log", seed=3, options={"idempotent": True})
SEND = Wish(f="send", value=[["send", "chaos-0", 1]])


def test_file_is_whole_after_every_op(tmp_path: Path) -> None:
    path = tmp_path / "history.msgpack"
    with Recording(path, HEADER) as recording:
        assert read_history(path.read_bytes()).header == HEADER
        invoked = recording.enter(invocation(0, SEND))
        assert read_history(path.read_bytes()).ops == [invoked]
        answer = Done(kind=Kind.OK, value=[["send", "chaos-0", [5, 1]]], extra={"retries": 1})
        ended = recording.enter(completion(0, SEND, answer))
    assert [invoked.index, ended.index] == [0, 1]
    assert ended.time_ns >= invoked.time_ns >= 0
    history = read_history(path.read_bytes())
    assert history.ops == [invoked, ended]
    assert history.ops[1].value == [["send", "chaos-0", [5, 1]]]
    assert history.ops[1].extra == {"retries": 1}


def test_what_is_not_ok_keeps_what_was_asked_for(tmp_path: Path) -> None:
    with Recording(tmp_path / "history", HEADER) as recording:
        recording.enter(invocation(0, SEND))
        ended = recording.enter(completion(0, SEND, Done(kind=Kind.INFO, error="_TIMED_OUT")))
    assert (ended.value, ended.error) == (SEND.value, "_TIMED_OUT")


def test_only_operations_of_clients_are_counted(tmp_path: Path) -> None:
    told: list[Op] = []
    with Recording(tmp_path / "history", HEADER) as recording:
        recording.listeners.append(told.append)
        recording.enter(invocation(4, SEND))
        recording.enter(completion(4, SEND, Done(kind=Kind.FAIL, error="no")))
        recording.enter(observation(1, {"chaos-0": [1, 0, 0, [1]]}, incarnation=0))
        recording.enter(deed("phase", "safety"))
    assert recording.counts == Counter({Kind.INVOKE: 1, Kind.FAIL: 1})
    assert [op.process for op in told] == [4, 4, "node-1", "nemesis"]


def test_threads_write_one_line_after_the_other(tmp_path: Path) -> None:
    path = tmp_path / "history"

    def work(process: int) -> None:
        for _ in range(50):
            recording.enter(invocation(process, SEND))
            recording.enter(completion(process, SEND, Done(kind=Kind.INFO)))

    with Recording(path, HEADER) as recording:
        threads = [threading.Thread(target=work, args=(process,)) for process in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    ops = read_history(path.read_bytes()).ops
    assert [op.index for op in ops] == list(range(400))
    assert all(a.time_ns <= b.time_ns for a, b in itertools.pairwise(ops))
