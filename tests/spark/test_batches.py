"""What a worker may take of the machine's memory."""

import os
import resource
import subprocess
import sys

import pytest

from spark.judging import limited_memory

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the limit is one of Linux")

LIMITED = """
import numpy, pyarrow
from spark.judging import limited_memory
with limited_memory(100):
    assert numpy.ones(10 << 20, "u1").sum()
    assert pyarrow.allocate_buffer(10 << 20).size
    try:
        {too_much}
    except MemoryError:
        print("limited")
assert {too_much} is not None
print(pyarrow.default_memory_pool().backend_name)
"""


def test_where_there_is_no_such_limit_none_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    before = resource.getrlimit(resource.RLIMIT_AS)
    monkeypatch.setattr(sys, "platform", "darwin")
    with limited_memory(1 << 20):
        assert resource.getrlimit(resource.RLIMIT_AS) == before


@pytest.mark.parametrize(
    "too_much", ["numpy.ones(200 << 20, 'u1')", "pyarrow.allocate_buffer(200 << 20)"]
)
def test_what_takes_more_than_a_worker_may_is_refused_meanwhile(too_much: str) -> None:
    """Whoever uses the worker afterwards finds it as it was."""
    done = subprocess.run(
        [sys.executable, "-c", LIMITED.format(too_much=too_much)],
        env={**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "mimalloc"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout == "limited\nmimalloc\n", done.stderr
