"""Where calls and processor time go: by phase of a commit, from the modules that do the work.

`PHASES` is the only place that knows which module belongs to which phase. What no line of it names
is `OTHER`: a module that has moved shows there, and gets its line. Python's own modules count for
whoever calls them, but for those of the event loop.
"""

import signal
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from types import CodeType, FrameType
from typing import Any, Self

__all__ = ["OTHER", "OWN", "PHASES", "Calls", "phase_of", "sampling"]

OTHER = "other"
OWN = "the benchmark itself"

# The longest prefix of a module's name decides.
PHASES: Mapping[str, str] = {
    "__main__": OWN,
    "asyncio": "event loop",
    "selectors": "event loop",
    "benchmarks": OWN,
    "quorumlab": "node",
    "quorum.raft": "Raft",
    "quorum.core": "member and delivery",
    "quorum.node.confirmed_reads": "Raft",
    "quorum.core.log_state": "Raft",
    "quorum.core.parking": "deadlines",
    "quorum.core.storage": "storage",
    "quorum.raft.snapshot_schedule": "deadlines",
    "quorum.node": "member and delivery",
    "quorum.node.driver": "driver",
    "quorum.node.driver_counts": "driver",
    "quorum.core.inbox": "driver",
    "quorum.log": "storage",
    "quorum.log.files.jobs": "bookkeeping of syncs",
    "quorum.log.files.log_queue": "bookkeeping of syncs",
    "quorum.log.files.recovery_points": "bookkeeping of syncs",
    "quorum.log.files.sync_pace": "bookkeeping of syncs",
    "controller": "controller: decide",
    "controller.accumulator": "codecs",
    "controller.chores": "deadlines",
    "controller.liveness": "deadlines",
    "controller.metadata": "controller: apply",
    "controller.metadata.configs": "controller: decide",
    "controller.metadata.config_keys": "controller: decide",
    "broker": "broker",
    "wire": "codecs",
    "wire.tcp_client": "connections",
    "wire.tcp_connection": "connections",
    "wire.tcp_server": "connections",
    "wire.framing": "connections",
}

# Whatever asks or tells a core when it wants to be woken, wherever it stands.
DEADLINE_FUNCTIONS = frozenset({"deadline_ms", "due_ms", "tick"})

_SAMPLE_SECONDS = 0.001  # of processor time; the kernel's clock may tick more slowly


def phase_of(module: str, function: str = "") -> str | None:
    """The phase of a function; None for one of Python's own, which is its caller's."""
    name = module
    while name:
        if name in PHASES:
            return "deadlines" if function in DEADLINE_FUNCTIONS else PHASES[name]
        name = name.rpartition(".")[0]
    is_pythons = module.partition(".")[0] in sys.stdlib_module_names
    return None if is_pythons or module.startswith("namedtuple_") else OTHER


@dataclass(slots=True)
class Calls:
    """Counts the calls of the thread that enters it, exactly. Slow: time nothing meanwhile.

    A generator counts once a resumption. What is called is a key with the phase it counted for:
    code of Python, or the name of a function in C, which counts for its caller.
    """

    python: Counter[tuple[CodeType, str]] = field(default_factory=Counter)
    native: Counter[tuple[str, str]] = field(default_factory=Counter)

    def __enter__(self) -> Self:
        sys.setprofile(self._count)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def by_phase(self) -> tuple[Counter[str], Counter[str]]:
        """Calls of Python, and of C. What asks for the puts is no part of them."""
        python, native = Counter[str](), Counter[str]()
        for (_, phase), times in self.python.items():
            python[phase] += times
        for (_, phase), times in self.native.items():
            native[phase] += times
        del python[OWN], native[OWN]
        return python, native

    def times(self, *names: str) -> int:
        """How often these functions in C were called."""
        return sum(times for (name, _), times in self.native.items() if name in names)

    def values_built(self) -> int:
        """Frozen dataclasses that were built: their generated __init__ sets through `object`."""
        return sum(
            times
            for (code, _), times in self.python.items()
            if code.co_name == "__init__"
            and code.co_filename == "<string>"
            and "__setattr__" in code.co_names
        )

    def unknown(self) -> set[str]:
        """The files of what no phase names."""
        return {code.co_filename for code, phase in self.python if phase == OTHER}

    def _count(self, frame: FrameType, event: str, called: Any) -> None:
        if event == "call":
            self.python[frame.f_code, _phase_at(frame)] += 1
        elif event == "c_call" and called is not sys.setprofile:
            self.native[_name(called), _phase_at(frame)] += 1


@contextmanager
def sampling() -> Iterator[Counter[str]]:
    """Count by phase where the main thread is whenever the process has used some processor time.

    What the kernel does for a call is counted at the call: a sync is its storage's.
    """
    samples = Counter[str]()

    def sample(_number: int, frame: FrameType | None) -> None:
        samples[_phase_at(frame)] += 1

    before = signal.signal(signal.SIGPROF, sample)
    signal.setitimer(signal.ITIMER_PROF, _SAMPLE_SECONDS, _SAMPLE_SECONDS)
    try:
        yield samples
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)


def _phase_at(frame: FrameType | None) -> str:
    """Returns the phase of the innermost function that has one."""
    while frame is not None:
        phase = _phase_of_code(frame.f_code, frame.f_globals.get("__name__", ""))
        if phase is not None:
            return phase
        frame = frame.f_back
    return OWN


@cache
def _phase_of_code(code: CodeType, module: str) -> str | None:
    return phase_of(module, code.co_name)


def _name(called: Any) -> str:
    return getattr(called, "__qualname__", None) or repr(called)
