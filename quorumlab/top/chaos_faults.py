"""The faults of a chaos run while it goes on: read from its history as that grows."""

from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from jepsen_like.histories.frames import Frames
from jepsen_like.histories.history import NEMESIS, MalformedHistory
from jepsen_like.real.runs.directory import RunDirectory
from quorumlab.top.cluster_view import FaultSight

__all__ = ["ChaosFaults", "faults_of", "run_around"]

_FRAMES_AT_ONCE = 100_000  # about a fifth of a second


def faults_of(run: Path | None) -> "ChaosFaults | None":
    """None where no chaos run has begun."""
    if run is None or not RunDirectory(run).history.is_file():
        return None
    with suppress(OSError):
        return ChaosFaults(run)
    return None


def run_around(cluster: Path) -> Path | None:
    """The directory of the chaos run that started the cluster, if one did."""
    parent = cluster.resolve().parent
    return parent if RunDirectory(parent).history.exists() else None


class ChaosFaults:
    """`look` reads what is new; `phase` and `faults` tell how it is."""

    def __init__(self, directory: Path) -> None:
        """Raises OSError if there is no history."""
        self._directory = RunDirectory(directory)
        self._history = self._directory.history.open("rb")
        self._frames = Frames(self._history, MalformedHistory)
        self._in_force: dict[int, tuple[str, int]] = {}  # by number: what, and when it began
        self._now_ns = 0
        self._phase = "being prepared"

    def close(self) -> None:
        self._history.close()

    @property
    def phase(self) -> str:
        return "which has ended" if self._directory.verdict.exists() else self._phase

    @property
    def faults(self) -> tuple[FaultSight, ...]:
        return tuple(
            FaultSight(text, (self._now_ns - began_ns) / 1e9)
            for text, began_ns in self._in_force.values()
        )

    def look(self) -> None:
        with suppress(MalformedHistory):  # `quorumlab check` says what is damaged
            for frame in islice(self._frames, _FRAMES_AT_ONCE):
                self._take(frame)

    def _take(self, frame: Any) -> None:
        match frame:
            case [_, int(now_ns), _, process, f, value, *_]:
                self._now_ns = now_ns
                if process == NEMESIS:
                    self._note(f, value)
            case _:
                pass  # the header

    def _note(self, f: str, value: Any) -> None:
        match f, value:
            case "phase", str(phase):
                self._phase = phase
            case "inject", {"fault": int(number), "kind": str(kind), "nodes": [*nodes]}:
                text = f"{kind} {','.join(map(str, nodes))}".rstrip()
                self._in_force[number] = text, self._now_ns
            case "heal", {"fault": int(number)}:
                self._in_force.pop(number, None)
            case _:
                pass
