"""What counts as served again."""

from itertools import count

import pytest

from jepsen_like.histories.history import Kind, Op, Value
from jepsen_like.real.runs.observers import Served

SENT: Value = [["send", "chaos-0", [9, 4]]]
POLLED: Value = [["poll", {"chaos-0": [[9, 4]]}]]


class Lines:
    """A history, told line by line."""

    def __init__(self, *keys: str) -> None:
        self.served = Served(keys)
        self._index = count()

    def heal(self) -> None:
        self.served.begin(self._op(Kind.INFO, "phase", "liveness"))

    def invoke(self, f: str, process: int = 0) -> None:
        self.served(self._op(Kind.INVOKE, f, None, process))

    def end(self, f: str, value: Value, kind: Kind = Kind.OK, process: int = 0) -> None:
        self.served(self._op(kind, f, value, process))

    def _op(self, kind: Kind, f: str, value: Value, process: int = 0) -> Op:
        return Op(index=next(self._index), time_ns=0, kind=kind, process=process, f=f, value=value)


def test_every_key_must_be_written_and_read() -> None:
    lines = Lines("chaos-0", "chaos-1")
    lines.heal()
    for f, value in (("send", SENT), ("poll", POLLED)):
        lines.invoke(f)
        lines.end(f, value)
    assert lines.served.missing() == ["not written: chaos-1", "not read: chaos-1"]


def test_what_began_before_all_was_healed_does_not_count() -> None:
    lines = Lines("chaos-0")
    lines.invoke("send")
    lines.heal()
    lines.end("send", SENT)
    assert lines.served.missing() == ["not written: chaos-0", "not read: chaos-0"]


@pytest.mark.parametrize("kind", [Kind.FAIL, Kind.INFO])
def test_what_was_not_acknowledged_does_not_count(kind: Kind) -> None:
    lines = Lines("chaos-0")
    lines.heal()
    lines.invoke("send")
    lines.end("send", SENT, kind)
    assert "not written: chaos-0" in lines.served.missing()


@pytest.mark.parametrize(
    ("f", "value"),
    [
        ("write", ["x", 3]),
        ("cas", ["x", [3, 4]]),
        ("send", [["send", "x", [0, 3]]]),
        ("txn", [["send", "y", [0, 3]], ["send", "x", [0, 4]]]),
        ("transfer", {"from": "y", "to": "x", "amount": 3}),
        ("transfer", {"from": "x", "to": "y", "amount": 3}),
    ],
)
def test_a_key_is_found_in_every_form(f: str, value: Value) -> None:
    lines = Lines("x")
    lines.heal()
    lines.invoke(f)
    lines.end(f, value)
    assert lines.served.missing() == ["not read: x"]


def test_whoever_reads_all_balances_reads_every_account() -> None:
    lines = Lines("x", "y")
    lines.heal()
    lines.invoke("read")
    lines.end("read", {"x": 3, "y": -3})
    assert lines.served.missing() == ["not written: x, y"]


def test_without_keys_any_write_will_do() -> None:
    lines = Lines()
    lines.heal()
    assert lines.served.missing() == ["nothing was written yet"]
    lines.invoke("add")
    lines.end("add", "element-1")
    assert lines.served.missing() == []
