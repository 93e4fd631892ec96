"""Jobs in threads: the last to rest is the next to work, and no more work than there may be."""

import gc
from threading import Event, get_ident
from weakref import ref

import pytest

from quorum.core.storage import StorageError
from quorum.log.files.jobs import Outcome, Pool
from quorum.log.files.threads import Threads


class Job:
    """Waits until it may end."""

    def __init__(self) -> None:
        self.has_begun, self.may_end = Event(), Event()

    def __call__(self) -> int:
        self.has_begun.set()
        assert self.may_end.wait(10)
        return get_ident()


def run(threads: Threads, job: Job, ended: list[Outcome]) -> None:
    threads.run(Pool.SYNC, job, ended.append)


def test_one_after_the_other_takes_one_thread() -> None:
    threads, ended = Threads(), list[Outcome]()
    for _ in range(5):
        job = Job()
        job.may_end.set()
        run(threads, job, ended)
        threads.wait()
    assert len(ended) == 5
    assert len({outcome.result() for outcome in ended}) == 1
    threads.shut_down()


def test_what_finds_no_thread_waits_for_one() -> None:
    threads, ended = Threads(), list[Outcome]()
    first, second, third = jobs = [Job() for _ in range(3)]
    for job in jobs:
        run(threads, job, ended)
    assert first.has_begun.wait(10)
    assert second.has_begun.wait(10)
    assert not third.has_begun.is_set()
    second.may_end.set()
    assert third.has_begun.wait(10)
    for job in jobs:
        job.may_end.set()
    threads.shut_down()  # what was handed in is done first
    assert len({outcome.result() for outcome in ended}) == 2
    assert len(ended) == 3


def test_error_is_the_outcome_and_the_thread_goes_on() -> None:
    threads, ended = Threads(), list[Outcome]()

    def fail() -> None:
        raise StorageError("the disk is gone")

    threads.run(Pool.SYNC, fail, ended.append)
    threads.wait()
    with pytest.raises(StorageError, match="the disk is gone"):
        ended[0].result()
    job = Job()
    job.may_end.set()
    run(threads, job, ended)
    threads.shut_down()
    assert ended[1].result()


@pytest.mark.parametrize("fails", [False, True])
def test_job_that_has_ended_is_not_kept(fails: bool) -> None:
    class Short:
        def __call__(self) -> None:
            if fails:
                raise StorageError("the disk is gone")

    threads, job = Threads(), Short()
    kept = ref(job)
    gc.disable()  # it is gone without a search for garbage
    try:
        threads.run(Pool.SYNC, job, lambda _: None)
        del job
        threads.wait()
        assert kept() is None
    finally:
        gc.enable()
    threads.shut_down()


def test_end_that_cannot_be_told_ends_no_thread(caplog: pytest.LogCaptureFixture) -> None:
    threads, ended = Threads(), list[Outcome]()

    def nobody(_: Outcome) -> None:
        raise RuntimeError("Event loop is closed")

    threads.run(Pool.SYNC, lambda: None, nobody)
    threads.wait()
    assert "Event loop is closed" in caplog.text
    threads.run(Pool.SYNC, lambda: 7, ended.append)
    threads.shut_down()
    assert [outcome.result() for outcome in ended] == [7]


def test_nothing_runs_after_the_end() -> None:
    threads = Threads()
    threads.shut_down()
    with pytest.raises(AssertionError, match="a job after the end"):
        threads.run(Pool.SYNC, lambda: None, lambda _: None)
    threads.shut_down()
