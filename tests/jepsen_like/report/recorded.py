"""Histories with times, for pages: operations from when to when, and faults."""

import json
import re
from dataclasses import dataclass, field

from jepsen_like.histories.history import Header, History, Kind, Op, Value
from jepsen_like.report.document import Document

__all__ = ["Recorded", "data_in"]

_DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)


def data_in(html: str) -> Document:
    """The document, read back from a page."""
    found = _DATA.search(html)
    assert found is not None, "no page of ours"
    data: Document = json.loads(found[1])
    return data


@dataclass
class Recorded:
    """Lines are sorted by time in the end, and numbered."""

    workload: str = "log"
    _lines: list[tuple[int, Kind, int | str, str, Value, str | None, dict[str, Value]]] = field(
        default_factory=list
    )

    def did(
        self,
        begin_ms: int,
        end_ms: int,
        process: int,
        f: str,
        value: Value,
        result: Value = None,
        *,
        kind: Kind = Kind.OK,
        error: str | None = None,
        **extra: Value,
    ) -> None:
        self._line(begin_ms, Kind.INVOKE, process, f, value)
        self._line(end_ms, kind, process, f, result or value, error, extra)

    def begun(self, begin_ms: int, process: int, f: str, value: Value) -> None:
        self._line(begin_ms, Kind.INVOKE, process, f, value)

    def send(self, begin_ms: int, end_ms: int, process: int, value: Value, offset: int) -> None:
        told = [["send", "a-0", [offset, value]]]
        self.did(begin_ms, end_ms, process, "send", [["send", "a-0", value]], told)

    def poll(self, begin_ms: int, end_ms: int, process: int, *records: list[Value]) -> None:
        found = {"a-0": list(records)} if records else {}
        self.did(begin_ms, end_ms, process, "poll", [["poll"]], [["poll", found]])

    def read_all(self, begin_ms: int, end_ms: int, process: int, *records: list[Value]) -> None:
        self._line(begin_ms, Kind.INVOKE, process, "assign", ["a-0"], None, {"seek": "beginning"})
        self._line(begin_ms, Kind.OK, process, "assign", ["a-0"])
        polled = [["poll", {"a-0": list(records)}]]
        self.did(begin_ms, end_ms, process, "poll", [["poll"]], polled, caught_up=True)

    def fault(self, begin_ms: int, end_ms: int | None, number: int = 0, kind: str = "kill") -> None:
        value = {"fault": number, "kind": kind, "role": "leader", "nodes": [1], "parameters": {}}
        self._line(begin_ms, Kind.INFO, "nemesis", "inject", value)
        if end_ms is not None:
            extra = {"bit": True, "evidence": "node 1 died"}
            self._line(end_ms, Kind.INFO, "nemesis", "heal", value, None, extra)

    def nemesis(self, at_ms: int, f: str, value: Value = None, **extra: Value) -> None:
        self._line(at_ms, Kind.INFO, "nemesis", f, value, None, extra)

    def observed(self, at_ms: int, node: int, value: Value) -> None:
        self._line(at_ms, Kind.OK, f"node-{node}", "observe", value)

    @property
    def history(self) -> History:
        ordered = sorted(self._lines, key=lambda line: line[0])
        ops = [
            Op(
                index=index,
                time_ns=at_ms * 1_000_000,
                kind=kind,
                process=process,
                f=f,
                value=value,
                error=error,
                extra=extra,
            )
            for index, (at_ms, kind, process, f, value, error, extra) in enumerate(ordered)
        ]
        return History(header=Header(workload=self.workload, seed=7), ops=ops)

    def _line(
        self,
        at_ms: int,
        kind: Kind,
        process: int | str,
        f: str,
        value: Value,
        error: str | None = None,
        extra: dict[str, Value] | None = None,
    ) -> None:
        self._lines.append((at_ms, kind, process, f, value, error, extra or {}))
