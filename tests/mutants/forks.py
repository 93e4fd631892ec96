"""Work in a fork of this process: it comes back with its result, or does not come back."""

import json
import os
import resource
import select
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Any

__all__ = ["Lost", "forked", "limit_processor_time"]

_MEMORY_MAX = 4 << 30
_WALL_SECONDS_MAX = 900.0  # for who waits and spends no processor time


class Lost(Exception):
    """The fork ended without a result; says how."""


def forked(work: Callable[[], Any], seconds_max: float = _WALL_SECONDS_MAX) -> Any:
    """What `work` returns, which is plain data."""
    reading, writing = os.pipe()
    sys.stdout.flush()
    process = os.fork()
    if process == 0:
        os.close(reading)
        _work(work, writing)
    os.close(writing)
    try:
        return _received(reading, seconds_max)
    finally:
        os.close(reading)
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)


def limit_processor_time(seconds: float) -> None:
    """Of this process from now on; then SIGPROF ends it. 0 takes the limit off."""
    signal.setitimer(signal.ITIMER_PROF, seconds)


def _work(work: Callable[[], Any], writing: int) -> None:
    try:
        resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY_MAX, _MEMORY_MAX))
        told = {"result": work()}
    except BaseException:  # noqa: BLE001 - the parent tells it
        told = {"error": traceback.format_exc()}
    with open(writing, "wb") as pipe:
        pipe.write(json.dumps(told).encode())
    os._exit(0)


def _received(reading: int, seconds_max: float) -> Any:
    text = b""
    waiting = select.poll()  # select() refuses descriptors beyond 1,024
    waiting.register(reading, select.POLLIN)
    while True:
        if not waiting.poll(seconds_max * 1000):
            raise Lost("waits for ever")
        part = os.read(reading, 1 << 20)
        if not part:
            break
        text += part
    if not text:
        raise Lost("takes too long, or dies")
    told = json.loads(text)
    if "error" in told:
        raise RuntimeError(told["error"])
    return told["result"]
