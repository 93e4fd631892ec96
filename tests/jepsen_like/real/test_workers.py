"""Threads with clients: who does what, under which number, until when."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from jepsen_like.histories.history import Header, Kind, Op, read_history
from jepsen_like.real.runs.worker_threads import Recording, Workers
from jepsen_like.workloads.workload import UNTIL_CAUGHT_UP, Done, NewTopic, Wish

Answer = Callable[[Wish], Done]
OK = Done(kind=Kind.OK)


class Counting:
    """Two processes, ten operations each."""

    name = "counting"
    processes = 2
    topics: Sequence[NewTopic] = ()

    def __init__(self, finals: Sequence[Wish] = ()) -> None:
        self.done = [0, 0]
        self.finals = finals

    def next(self, process: int, now_ms: int) -> Wish | None:
        return Wish(f="write") if self.done[process % 2] < 10 else None

    def completed(self, op: Op) -> None:
        assert isinstance(op.process, int)
        self.done[op.process % 2] += 1

    def final(self, process: int) -> Sequence[Wish]:
        return self.finals if process % 2 == 0 else ()


class Answering:
    """A client with an answer to everything. Remembers all that were made, and were closed."""

    made = 0
    closed = 0

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        Answering.made += 1

    def invoke(self, wish: Wish) -> Done:
        return self._answer(wish)

    def close(self) -> None:
        Answering.closed += 1


@pytest.fixture(autouse=True)
def _counters() -> None:
    Answering.made = Answering.closed = 0


def worked(path: Path, workload: Counting, answer: Answer) -> Sequence[Op]:
    with Recording(path, Header(workload="counting", seed=0)) as recording:
        workers = Workers(workload, lambda: Answering(answer), recording)
        workers.start()
        try:
            while min(workload.done) < 10:
                workers.check()
            workers.stop()
            assert workers.final(5.0, lambda: False)
        finally:
            workers.close()
    return read_history(path.read_bytes()).ops


def test_a_process_lives_while_its_operations_end(tmp_path: Path) -> None:
    ops = worked(tmp_path / "history", Counting(), lambda _: OK)
    assert {op.process for op in ops} == {0, 1}
    assert (Answering.made, Answering.closed) == (2, 2)


def test_after_info_another_client_has_a_number_that_was_never_used(tmp_path: Path) -> None:
    ops = worked(tmp_path / "history", Counting(), lambda _: Done(kind=Kind.INFO))
    processes = [op.process for op in ops if op.kind is Kind.INVOKE]
    assert len(set(processes)) == len(processes) >= 20
    assert Answering.made == Answering.closed


def test_final_wishes_are_done_to_their_end_by_fresh_processes(tmp_path: Path) -> None:
    polls = iter([OK, Done(kind=Kind.FAIL), Done(kind=Kind.OK, extra={"caught_up": True})])
    finals = [Wish(f="assign"), Wish(f="poll", extra=UNTIL_CAUGHT_UP)]

    def answer(wish: Wish) -> Done:
        return next(polls) if wish.f == "poll" else OK

    ops = worked(tmp_path / "history", Counting(finals), answer)
    final = [op for op in ops if op.f != "write"]
    assert [op.f for op in final if op.kind is Kind.INVOKE] == ["assign", "poll", "poll", "poll"]
    [process] = {op.process for op in final}
    assert process not in (0, 1)


def test_final_wishes_have_a_bound(tmp_path: Path) -> None:
    workload = Counting([Wish(f="poll", extra=UNTIL_CAUGHT_UP)])
    with Recording(tmp_path / "history", Header(workload="counting", seed=0)) as recording:
        workers = Workers(workload, lambda: Answering(lambda _: OK), recording)
        try:
            assert not workers.final(0.05, lambda: False)
        finally:
            workers.close()


def test_what_a_client_raises_ends_the_run(tmp_path: Path) -> None:
    def broken(_: Wish) -> Done:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        worked(tmp_path / "history", Counting(), broken)
