"""Waiting for what a running cluster does in its own time."""

import time
from collections.abc import Callable
from typing import Any

__all__ = ["wait"]


def wait(condition: Callable[[], Any], what: str, seconds: float = 30.0) -> None:
    """Until `condition()` is true; raises AssertionError that says `what` did not happen."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not happen within {seconds} s"
        time.sleep(0.05)
